//! The program on a real PostgreSQL.

use crate::common::{Place, block};
use leasehold_servers::postgres::Server;

const PAGE: &str = include_str!("../../../docs/postgres.md");

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
    for grant in block(PAGE, "sql", "GRANT").lines() {
        let (grant, _) = grant.split_once(';').unwrap();
        let grant = grant.replace("\"public\"", "\"by_sql\"").replace("\"app\"", "\"postgres\"");
        assert!(sql.contains(&grant), "no {grant:?} in {sql}");
    }
    server.run(&sql);
    place.run(&["exec", "--store", &by_sql, "job", "--", "touch", "ran too"]).expect(0);
    assert!(place.path("ran too").exists());
}

#[test]
fn the_first_use_of_the_documentation_works() {
    let server = Server::shared();
    let url = format!("{}?schema=first_use", server.url());
    let lines = block(PAGE, "console", "$ export").replace("postgres://app:secret@db/prod", &url);
    // It finds that this server was told to forget.
    let lines = lines.replace("leasehold doctor", "leasehold doctor || [ $? = 2 ]");
    let ran = Place::new().run_lines(&format!("set -e\n{lines}")).expect(0);
    assert!(ran.stdout.ends_with("report written\n"), "{ran:?}");
}

#[test]
fn other_stores_need_no_such_table() {
    let place = Place::new();
    for action in ["create", "show"] {
        place
            .run(&["store", action, "--store", "sqlite:a.db"])
            .expect(64)
            .says("sqlite needs no table: only dynamodb and postgres have one");
    }
}

#[test]
fn doctor_shows_no_password() {
    let place = Place::new();
    let doctor = place.run(&["doctor", "--store", "postgres://user:hunter2@127.0.0.1:1/db"]).expect(2);
    assert!(!format!("{}{}", doctor.stdout, doctor.stderr).contains("hunter2"));
}
