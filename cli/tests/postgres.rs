//! The program on a real PostgreSQL.
#![cfg(feature = "postgres")]

mod common;

use common::Place;
use leasehold_servers::postgres::Server;

#[test]
fn the_table_is_made_by_the_command_or_by_its_sql() {
    let place = Place::new();
    let server = Server::shared();
    let url = format!("{}?schema=by_command", server.url());
    let doctor = place.run(&["doctor", "--store", &url]).expect(2);
    assert!(doctor.stdout.contains("leasehold store create"), "{}", doctor.stdout);
    for _ in 0..2 {
        place.run(&["store", "create", "--store", &url]).expect(0);
    }
    place.run(&["exec", "--store", &url, "job", "--", "touch", "ran"]).expect(0);
    assert!(place.path("ran").exists());

    let by_sql = url.replace("by_command", "by_sql");
    let sql = place.run(&["store", "show", "--store", &by_sql]).expect(0).stdout;
    server.run(&sql);
    place.run(&["exec", "--store", &by_sql, "job", "--", "touch", "ran too"]).expect(0);
    assert!(place.path("ran too").exists());
}

#[test]
fn other_stores_need_no_such_table() {
    let place = Place::new();
    for action in ["create", "show"] {
        place
            .run(&["store", action, "--store", "sqlite:a.db"])
            .expect(64)
            .says("postgres://user:password@host/database");
    }
}

#[test]
fn doctor_shows_no_password() {
    let place = Place::new();
    let doctor = place.run(&["doctor", "--store", "postgres://user:hunter2@127.0.0.1:1/db"]).expect(2);
    assert!(!format!("{}{}", doctor.stdout, doctor.stderr).contains("hunter2"));
}
