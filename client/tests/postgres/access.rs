//! Logins, rights, sockets and TLS.

use leasehold::blocking::Client;
use leasehold::{ErrorKind, schema};
use leasehold_servers::postgres::Server;

use crate::common::on_postgres::{schema_of, table_of};
use crate::common::{PATIENCE, eventually, ms};
use crate::{Rig, client, lease, patient};

const RIGHTS: [&str; 3] = ["SELECT", "INSERT", "UPDATE"];

/// A user with the rights of the sample, and the url with its login.
fn user(rig: &Rig, name: &str) -> String {
    rig.server.run(&format!("CREATE ROLE {name} LOGIN PASSWORD 'hunter2'"));
    let url = rig.url.replace("postgres@", &format!("{name}:hunter2@"));
    for statement in schema::sql(&url).unwrap().split(";\n").filter(|statement| statement.starts_with("GRANT")) {
        rig.server.run(statement);
    }
    url
}

#[test]
fn the_rights_of_the_sample_suffice_and_each_is_needed() {
    let rig = Rig::new();
    let url = user(&rig, "sampled");
    let all = |url: &str| -> Result<(), leasehold::Error> {
        let client = Client::connect(url)?;
        client.lock("a").ttl(ms(10_000)).wait(ms(300)).acquire()?.release()?;
        client.lock("b").wait(ms(300)).acquire()?.release()?;
        client.inspect("a").map(drop)
    };
    all(&url).unwrap();
    for right in RIGHTS {
        rig.server.run(&format!("REVOKE {right} ON {} FROM sampled", table_of(&rig.url)));
        let error = all(&url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{right}: {error}");
        assert!(error.to_string().contains("leasehold store show"), "{right}: {error}");
        rig.server.run(&format!("GRANT {right} ON {} TO sampled", table_of(&rig.url)));
    }
    rig.server.run(&format!("REVOKE DELETE ON {} FROM sampled", table_of(&rig.url)));
    all(&url).expect("rows that nobody uses stay, and nothing else fails");
    rig.server.run(&format!("REVOKE USAGE ON SCHEMA {} FROM sampled", schema_of(&rig.url)));
    assert_eq!(all(&url).unwrap_err().kind(), ErrorKind::StoreRefused);
    let error = schema::create(&format!("{url}x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
}

#[test]
fn a_missing_table_is_named_with_what_makes_it() {
    let rig = Rig::new();
    let connected = rig.client();
    rig.server.run(&format!("DROP TABLE {}", rig.table()));
    let errors = [Client::connect(&rig.url).unwrap_err(), connected.lock("a").wait(ms(300)).acquire().unwrap_err()];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::StoreRefused);
        assert!(error.to_string().contains("leasehold store create"), "{error}");
    }
    schema::create(&rig.url).unwrap();
    schema::create(&rig.url).unwrap();
    lease(&connected, "a").release().unwrap();
}

#[test]
fn wrong_logins_are_refused_and_not_repeated() {
    let rig = Rig::new();
    let url = user(&rig, "known");
    for wrong in [
        url.replace("hunter2", "hunter3"),
        url.replace(":hunter2", ""),
        url.replace("known", "unknown"),
        url.replace("/postgres?", "/nowhere?"),
    ] {
        let error = Client::connect(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
        assert!(!error.to_string().contains("hunter"), "{error}");
    }
    let error = Client::connect("postgres://a:hunter2@127.0.0.1:1/b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert!(error.to_string().contains("is this its port") && !error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn a_socket_is_a_way_to_the_same_table() {
    let rig = Rig::new();
    let (folder, schema) = (rig.server.socket_folder().display(), schema_of(&rig.url));
    let url = format!("postgres://postgres@:{}/postgres?host={folder}&schema={schema}", rig.server.port());
    let held = lease(&client(&url), "a");
    assert!(rig.client().lock("a").try_acquire().unwrap().is_none());
    held.release().unwrap();
}

#[test]
fn a_password_that_was_changed_is_told_and_a_new_client_has_the_new_one() {
    let rig = Rig::new();
    let url = user(&rig, "changed");
    // A login on a busy machine takes its time.
    let one = patient(&url);
    lease(&one, "a").release().unwrap();
    rig.server.run("ALTER ROLE changed PASSWORD 'hunter3'");
    rig.server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'changed'");
    eventually("the new password is asked for", || {
        let error = one.lock("a").wait(ms(0)).acquire().map(drop).err();
        // Shown where the wait fails.
        eprintln!("{error:?}");
        error.is_some_and(|error| error.to_string().contains("worked before"))
    });
    lease(&client(&url.replace("hunter2", "hunter3")), "a").release().unwrap();
}

#[test]
fn files_for_tls_may_be_replaced_while_a_lease_is_held() {
    let files = tempfile::tempdir().unwrap();
    let (server, authority) = Server::with_tls(files.path());
    let url = format!("{}?ca={}", server.url(), authority.display());
    schema::create(&url).unwrap();
    let one = client(&url);
    let held = one.lock("a").ttl(2 * PATIENCE).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap();
    leasehold_servers::postgres::write_tls(files.path());
    server.restart();
    let expires = || server.value::<i64>("SELECT (1000 * extract(epoch FROM max(expires_at)))::int8 FROM leasehold");
    let before = expires();
    eventually("it is renewed", || expires() > before);
    held.check(ms(1)).unwrap();
    held.release().unwrap();
}

#[test]
fn tls_trusts_only_the_authority_that_is_named() {
    let files = tempfile::tempdir().unwrap();
    let (server, authority) = Server::with_tls(files.path());
    let with = |parameters: &str| format!("{}?{parameters}", server.url());
    let url = with(&format!("ca={}", authority.display()));
    schema::create(&url).unwrap();
    let one = client(&url);
    let held = lease(&one, "a");
    let encrypted: bool = server.value(
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'leasehold'",
    );
    assert!(encrypted);
    held.release().unwrap();
    let error = Client::connect(with("sslmode=require")).unwrap_err();
    assert!(error.to_string().contains("parameter ca"), "{error}");
    let plain = Server::shared();
    let error = Client::connect(format!("{}?ca={}", plain.url(), authority.display())).unwrap_err();
    assert!(error.to_string().contains("sslmode=disable"), "{error}");
}
