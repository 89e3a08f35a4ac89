//! Servers that crash, end sessions, refuse transactions, or have no connection left.

use std::thread;

use leasehold::ErrorKind;
use leasehold::blocking::{Client, Lease};
use leasehold_servers::postgres::{Pooler, Server};

use crate::common::on_postgres::{new_table, table_of};
use crate::common::{PATIENCE, eventually, ms};
use crate::{Rig, client, lease, patient};

const END_ALL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE application_name = 'leasehold' AND pid <> pg_backend_pid()";

/// A lease whose statements wait for a locked row for 15 s, since a busy machine may take long.
fn long_lease(client: &Client, resource: &str) -> Lease {
    client.lock(resource).ttl(PATIENCE * 3).wait(PATIENCE).acquire().unwrap()
}

fn renewals(server: &Server, url: &str, resource: &str) -> i64 {
    server.value(&format!("SELECT seq FROM {} WHERE resource = '{resource}'", table_of(url)))
}

/// Waits until the lease in this row was renewed once more.
fn expect_renewal(server: &Server, url: &str, resource: &str) {
    let before = renewals(server, url, resource);
    eventually("it is renewed", || renewals(server, url, resource) > before);
}

#[test]
fn a_lease_outlives_a_crash_of_the_server() {
    let server = Server::with(&["fsync=on"]);
    let url = new_table(&server, server.port());
    let (one, two) = (client(&url), client(&url));
    let held = lease(&one, "a");
    server.kill();
    assert_eq!(two.lock("b").wait(ms(100)).acquire().unwrap_err().kind(), ErrorKind::StoreUnavailable);
    server.restart();
    expect_renewal(&server, &url, "a");
    assert!(two.lock("a").wait(PATIENCE / 40).try_acquire().unwrap().is_none());
    let token = held.token();
    held.release().unwrap();
    assert!(lease(&two, "a").token() > token);
}

#[test]
fn sessions_that_an_administrator_ends_are_replaced() {
    let rig = Rig::new();
    let client = rig.client();
    let held = lease(&client, "a");
    for _ in 0..5 {
        rig.server.run(END_ALL);
        expect_renewal(&rig.server, &rig.url, "a");
        lease(&client, "b").release().unwrap();
    }
    held.release().unwrap();
}

#[test]
fn a_restarted_pooler_is_used_again() {
    let server = Server::start();
    let pooler = Pooler::start(&server);
    let url = new_table(&server, pooler.port());
    let client = client(&url);
    let held = lease(&client, "a");
    pooler.restart();
    expect_renewal(&server, &url, "a");
    lease(&client, "b").release().unwrap();
    held.release().unwrap();
}

#[test]
fn serialization_failures_are_tried_again() {
    for level in ["repeatable read", "serializable"] {
        let server = Server::with(&[&format!("default_transaction_isolation={level}")]);
        let url = new_table(&server, server.port());
        let one = patient(&url);
        lease(&one, "a").release().unwrap();
        let mut other = server.connect();
        let mut change = other.transaction().unwrap();
        change.execute(&format!("UPDATE {} SET owner = 'other'", table_of(&url)), &[]).unwrap();
        let waiter = thread::spawn(move || long_lease(&one, "a").release());
        eventually("it waits for the row", || server.value("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"));
        change.commit().unwrap();
        waiter.join().unwrap().unwrap();
        assert!(server.log().contains("could not serialize access"), "{level}: {}", server.log());
    }
}

#[test]
fn deadlocks_are_tried_again() {
    let server = Server::with(&["deadlock_timeout=20ms"]);
    let url = new_table(&server, server.port());
    let (table, one) = (table_of(&url), patient(&url));
    lease(&one, "a").release().unwrap();
    // A trigger of somebody's, which holds the lock's row, and waits for another as soon as somebody waits for that one:
    // a server looks for deadlocks once, soon after a wait begins. In the end nobody has to wait any more.
    server.run(&format!(
        "CREATE TABLE other (n int); INSERT INTO other VALUES (0); \
         CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN \
            WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted) AND NOT pg_try_advisory_xact_lock(1) LOOP \
              PERFORM pg_sleep(0.01); \
            END LOOP; \
            UPDATE other SET n = n + 1; RETURN NEW; \
          END'; \
         CREATE TRIGGER touch BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION touch()"
    ));
    let mut other = server.connect();
    other
        .batch_execute("SET deadlock_timeout = '1min'; SELECT pg_advisory_lock(1); BEGIN; UPDATE other SET n = 7")
        .unwrap();
    let waiter = thread::spawn(move || long_lease(&one, "a"));
    let sleeps = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')";
    eventually("the trigger has the row", || server.value(sleeps));
    other.execute(&format!("DELETE FROM {table} WHERE resource = 'none' OR resource = 'a' AND released"), &[]).unwrap();
    other.batch_execute("ROLLBACK; SELECT pg_advisory_unlock(1)").unwrap();
    waiter.join().unwrap().release().unwrap();
    assert!(server.log().contains("deadlock detected"), "{}", server.log());
}

#[test]
fn a_row_that_a_transaction_locks_stalls_no_other_renewal() {
    let rig = Rig::new();
    let client = rig.client();
    let (one, two) = (lease(&client, "one"), lease(&client, "two"));
    let mut other = rig.server.connect();
    let mut change = other.transaction().unwrap();
    change.query(&format!("SELECT FROM {} WHERE resource = 'one' FOR UPDATE", rig.table()), &[]).unwrap();
    let before: i64 = rig.column("seq", "one");
    for _ in 0..4 {
        expect_renewal(&rig.server, &rig.url, "two");
    }
    assert_eq!(rig.column::<i64>("seq", "one"), before);
    change.commit().unwrap();
    expect_renewal(&rig.server, &rig.url, "one");
    one.release().unwrap();
    two.release().unwrap();
}

#[test]
fn a_user_with_few_connections_gets_along_with_them() {
    let server = Server::start();
    let url = new_table(&server, server.port());
    server.run(&format!(
        "CREATE ROLE few LOGIN SUPERUSER PASSWORD 'hunter2' CONNECTION LIMIT 2; GRANT ALL ON {} TO few",
        table_of(&url)
    ));
    server.run("ALTER ROLE few NOSUPERUSER; GRANT USAGE ON SCHEMA test_1 TO few");
    let url = url.replace("postgres@", "few:hunter2@");
    let one = patient(&url);
    let workers: Vec<_> = (0..8)
        .map(|at| {
            let one = one.clone();
            thread::spawn(move || {
                for _ in 0..5 {
                    // On a busy machine its turn may come after the 2 s for which a release is awaited.
                    if let Err(error) = lease(&one, &format!("lock {at}")).release() {
                        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
                    }
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let is_free = |at| one.inspect(format!("lock {at}")).unwrap().is_none();
    eventually("all of them are released", || (0..8).all(is_free));
    let used: i64 = server.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'few'");
    assert!((1..=2).contains(&used), "{used}");
    server.run("ALTER ROLE few CONNECTION LIMIT 0");
    let error = Client::connect(&url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert!(error.to_string().contains("no connection left") && error.to_string().contains("53300"), "{error}");
}

#[test]
fn a_commit_that_no_replica_confirmed_is_no_grant_yet() {
    let server = Server::start();
    let url = new_table(&server, server.port());
    let one = patient(&url);
    lease(&one, "a").release().unwrap();
    server.configure("SET synchronous_standby_names = 'nobody'");
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query_start > ";
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    // Commits wait once the checkpointer has read the setting, which may be later than a new connection does.
    thread::scope(|scope| {
        loop {
            let probe = scope.spawn(|| server.run("SELECT pg_logical_emit_message(true, '', '')"));
            let is_waiting = || server.value::<i64>(&format!("{waits} '-infinity'")) == 1;
            eventually("a commit waits, or ends", || is_waiting() || probe.is_finished());
            if !probe.is_finished() {
                return server.run(cancel);
            }
        }
    });
    let waiter = thread::spawn(move || one.lock("a").ttl(PATIENCE * 3).acquire());
    eventually("its commit waits", || server.value::<i64>(&format!("{waits} '-infinity'")) == 1);
    let start: String = server.value("SELECT clock_timestamp()::text");
    // It is committed here, and confirmed by nobody.
    server.run(cancel);
    eventually("it is sent again", || server.value::<i64>(&format!("{waits} '{start}'")) == 1);
    assert!(!waiter.is_finished());
    server.configure("RESET synchronous_standby_names");
    let held = waiter.join().unwrap().unwrap();
    let counter: i64 = server.value(&format!("SELECT counter FROM {}", table_of(&url)));
    assert_eq!(u64::try_from(counter).unwrap(), held.token());
    held.release().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_what_grows_and_says_so() {
    let server = Server::rigged();
    let url = new_table(&server, server.port());
    let one = patient(&url);
    let held = lease(&one, "a");
    server.fill_disk(true);
    // Names of 1,000 bytes fill the pages that are there.
    let error = (0..100).find_map(|at| one.lock(format!("{at:01000}")).wait(ms(300)).try_acquire().err());
    let error = error.expect("the table cannot grow");
    assert!(error.kind() == ErrorKind::StoreUnavailable && error.to_string().contains("disk is full"), "{error}");
    assert!(error.to_string().contains("53100"), "{error}");
    server.fill_disk(false);
    expect_renewal(&server, &url, "a");
    lease(&one, "b").release().unwrap();
    held.release().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_clock_that_jumps_forward_ends_leases_which_is_told() {
    let server = Server::rigged();
    let url = new_table(&server, server.port());
    let (one, two) = (patient(&url), patient(&url));
    let held = one.lock("a").ttl(ms(20_000)).renew_every(ms(9_000)).acquire().unwrap();
    assert!(two.lock("a").try_acquire().unwrap().is_none());
    server.set_clock(3_600_000);
    let next = lease(&two, "a");
    assert!(next.token() > held.token());
    eventually("its renewal is refused", || held.is_lost());
    // A lease of now is renewed by the clock of now.
    expect_renewal(&server, &url, "a");
    next.release().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_clock_that_jumps_backward_lengthens_leases_and_lowers_no_token() {
    let server = Server::rigged();
    let url = new_table(&server, server.port());
    let (one, two) = (patient(&url), patient(&url));
    let held = lease(&one, "a");
    let abandoned = one.lock("b").ttl(ms(500)).no_renewal().acquire().unwrap();
    server.set_clock(-3_600_000);
    expect_renewal(&server, &url, "a");
    eventually("it is over for its holder", || abandoned.is_lost());
    assert!(two.lock("b").try_acquire().unwrap().is_none(), "the server's clock is an hour before its end");
    let token = held.token();
    held.release().unwrap();
    assert!(lease(&two, "a").token() > token, "a release needs no clock");
    server.set_clock(0);
    assert!(lease(&two, "b").token() > abandoned.token());
}

#[test]
fn a_listener_that_is_ended_listens_again() {
    let rig = Rig::new();
    let url = format!("{}&listen=yes", rig.url);
    let (one, two) = (client(&url), client(&url));
    let listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN leasehold%'";
    eventually("both listen", || rig.server.value::<i64>(listeners) == 2);
    for _ in 0..3 {
        let ended: i64 = rig.server.value(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN leasehold%'",
        );
        assert_eq!(ended, 2);
        eventually("both listen again", || rig.server.value::<i64>(listeners) == 2);
        let held = lease(&one, "a");
        let waiter = {
            let two = two.clone();
            thread::spawn(move || lease(&two, "a").release())
        };
        held.release().unwrap();
        waiter.join().unwrap().unwrap();
    }
}
