//! The queue of waiters on PostgreSQL, when things go wrong.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread::{self, ScopedJoinHandle};

use leasehold::blocking::{Client, Lease};
use leasehold::{ReleaseIfOutcome, RevokeOutcome, Severity, schema};
use leasehold_servers::postgres::{Pooler, Server};

use crate::common::on_postgres::{new_table, table_of};
use crate::common::{PATIENCE, Role, eventually, ms, role_args, say, stay};
use crate::{Rig, patient};

fn waiting(client: &Client) -> u64 {
    client.waiters("job").unwrap().map_or(0, |queue| queue.count)
}

fn held(client: &Client) -> Lease {
    client.lock("job").ttl(PATIENCE * 3).wait(PATIENCE).acquire().unwrap()
}

/// Waits for the lock in a thread of its own, and has a place when this returns.
fn waiter<'a>(scope: &'a thread::Scope<'a, '_>, client: &Client, behind: u64) -> ScopedJoinHandle<'a, Lease> {
    let waits = client.clone();
    let waiter = scope.spawn(move || held(&waits));
    eventually("it stands in the queue", || waiting(client) == behind + 1);
    waiter
}

#[test]
fn every_way_to_free_a_lock_serves_the_line() {
    let rig = Rig::new();
    let (holder, other) = (patient(&rig.url), patient(&rig.url));
    let ways: [fn(&Client, Lease); 4] = [
        |_, lease| lease.release().unwrap(),
        |client, _lease| drop(client.break_lock("job").unwrap()),
        |client, lease| {
            let released = client.release_if("job", lease.token().into()).unwrap();
            assert!(matches!(released, ReleaseIfOutcome::Released(_)), "{released:?}");
        },
        |client, lease| {
            let revoked = client.revoke("job", lease.token()).unwrap();
            assert!(matches!(revoked, RevokeOutcome::Revoked(_)), "{revoked:?}");
            drop(lease.release());
        },
    ];
    for free in ways {
        let lease = held(&holder);
        let token = lease.token();
        thread::scope(|scope| {
            let waits = waiter(scope, &other, 0);
            free(&holder, lease);
            let next = waits.join().unwrap();
            assert!(next.token() > token);
            next.release().unwrap();
        });
        assert_eq!(waiting(&holder), 0);
    }
}

#[test]
fn a_release_of_an_earlier_version_is_noticed() {
    let rig = Rig::new();
    let (holder, other) = (patient(&rig.url), patient(&rig.url));
    let _lease = held(&holder);
    thread::scope(|scope| {
        let waits = waiter(scope, &other, 0);
        rig.server.run(&format!("UPDATE {} SET released = true", rig.table()));
        waits.join().unwrap().release().unwrap();
    });
}

#[test]
fn tables_of_an_earlier_version_serve_waiters_in_any_order_and_can_be_brought_up_to_date() {
    let rig = Rig::new();
    let schema = rig.schema();
    rig.server.run(&format!("DROP TABLE {schema}.leasehold_waiters; ALTER TABLE {schema}.leasehold DROP COLUMN line"));
    let (old, other) = (patient(&rig.url), patient(&rig.url));
    let lease = held(&old);
    thread::scope(|scope| {
        let waits = scope.spawn(|| held(&other).release().unwrap());
        assert_eq!(old.waiters("job").unwrap(), None);
        lease.release().unwrap();
        waits.join().unwrap();
    });
    let queue = |client: &Client| client.doctor().unwrap().into_iter().find(|it| it.check == "postgres.queue").unwrap();
    let found = queue(&old);
    assert!(found.severity == Severity::Warning && found.advice.contains("store create"), "{found:?}");
    // Half of it is not enough.
    rig.server.run(&format!("ALTER TABLE {schema}.leasehold ADD COLUMN line bytea"));
    assert_eq!(queue(&old).severity, Severity::Warning);
    schema::create(&rig.url).unwrap();
    let new = patient(&rig.url);
    assert_eq!(queue(&new).severity, Severity::Good);
    let lease = held(&new);
    let other = patient(&rig.url);
    thread::scope(|scope| {
        let waits = waiter(scope, &other, 0);
        lease.release().unwrap();
        waits.join().unwrap().release().unwrap();
    });
    // One that has not connected since does not know the queue, and gets along.
    held(&old).release().unwrap();
}

#[test]
fn making_tables_that_are_there_waits_for_no_transaction() {
    let rig = Rig::new();
    held(&patient(&rig.url)).release().unwrap();
    let mut by_hand = rig.server.connect();
    let mut open = by_hand.transaction().unwrap();
    open.execute(&format!("UPDATE {} SET owner = 'me'", rig.table()), &[]).unwrap();
    schema::create(&rig.url).unwrap();
    open.rollback().unwrap();
}

#[test]
fn a_user_without_rights_to_the_waiters_waits_without_a_place() {
    let rig = Rig::new();
    rig.server.run("CREATE ROLE placeless LOGIN PASSWORD 'hunter2'");
    let url = rig.url.replace("postgres@", "placeless:hunter2@");
    let grants = schema::sql(&url).unwrap();
    for grant in grants.split(";\n").filter(|sql| sql.starts_with("GRANT") && !sql.contains("leasehold_waiters")) {
        rig.server.run(grant);
    }
    let (mine, other) = (patient(&url), patient(&rig.url));
    let lease = held(&other);
    thread::scope(|scope| {
        let waits = scope.spawn(|| held(&mine).release().unwrap());
        lease.release().unwrap();
        waits.join().unwrap();
    });
    let findings = mine.doctor().unwrap();
    assert!(findings.iter().any(|it| it.check == "postgres.queue" && it.severity == Severity::Warning), "{findings:?}");
}

/// Waits for the lock until the process ends.
#[test]
#[ignore = "the part of another process"]
fn role_waiter() {
    let Some(url) = role_args() else { return };
    let client = patient(&url);
    say("ready");
    let lease = held(&client);
    say(lease.token());
    stay();
}

#[test]
fn the_head_that_is_stopped_costs_its_turn_and_no_more() {
    let rig = Rig::new();
    let (holder, other) = (patient(&rig.url), patient(&rig.url));
    let lease = held(&holder);
    let stopped = Role::start("queue::role_waiter", &rig.url);
    assert_eq!(stopped.says(), "ready");
    eventually("it stands in the queue", || waiting(&holder) == 1);
    thread::scope(|scope| {
        let waits = waiter(scope, &other, 1);
        stopped.signal(libc::SIGSTOP);
        lease.release().unwrap();
        let next = waits.join().unwrap();
        stopped.signal(libc::SIGCONT);
        // It has lost its place, and joins again.
        eventually("it waits again", || waiting(&holder) == 1);
        next.release().unwrap();
        stopped.says().parse::<u64>().expect("a token");
    });
}

#[test]
fn a_line_outlives_a_crash_of_the_server() {
    let server = Server::with(&["fsync=on"]);
    let url = new_table(&server, server.port());
    let (holder, other) = (crate::client(&url), crate::client(&url));
    let lease = held(&holder);
    thread::scope(|scope| {
        let waits = waiter(scope, &other, 0);
        server.kill();
        server.restart();
        eventually("it is seen again", || {
            holder.waiters("job").is_ok_and(|queue| queue.is_some_and(|queue| queue.count == 1))
        });
        eventually("it is released", || !lease.is_lost());
        lease.release().unwrap();
        waits.join().unwrap().release().unwrap();
    });
}

#[test]
fn a_waiter_that_is_cancelled_at_any_step_stops_nobody() {
    let rig = Rig::new();
    let (holder, other) = (patient(&rig.url), patient(&rig.url));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = leasehold::Client::connect(rig.url.as_str()).await.unwrap();
        for steps in 0..14_u32 {
            let lease = held(&holder);
            let mut acquiring: Pin<Box<_>> =
                Box::pin(client.lock("job").ttl(PATIENCE * 3).wait(PATIENCE).into_future());
            for step in 0..steps {
                let is_there = acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                assert!(!is_there, "it is held");
                tokio::time::sleep(ms(u64::from(step % 4))).await;
            }
            if steps % 2 == 0 {
                drop(acquiring);
                lease.release().unwrap();
            } else {
                // Its turn has come by then, or comes to nobody.
                lease.release().unwrap();
                drop(acquiring);
            }
            held(&other).release().unwrap();
        }
    });
    eventually("nobody waits", || waiting(&holder) == 0);
}

#[test]
fn waiters_in_line_leave_the_holder_and_one_another_alone() {
    const WAITERS: u64 = 12;
    let rig = Rig::new();
    let pooler = Pooler::start(&rig.server);
    let through = rig.url.replace(&rig.server.port().to_string(), &pooler.port().to_string());
    let holder = patient(&rig.url);
    let lease = held(&holder);
    let clients: Vec<_> = (0..WAITERS).map(|n| patient(if n % 2 == 0 { &rig.url } else { &through })).collect();
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let before: i64 = rig.server.value(deadlocks);
    thread::scope(|scope| {
        let waits: Vec<_> =
            clients.iter().map(|client| scope.spawn(|| (0..3).for_each(|_| held(client).release().unwrap()))).collect();
        eventually("all stand in the queue", || waiting(&holder) == WAITERS);
        lease.release().unwrap();
        waits.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
    assert_eq!(rig.server.value::<i64>(deadlocks), before);
    eventually("nobody waits", || waiting(&holder) == 0);
    assert_eq!(
        rig.server.value::<i64>(&format!("SELECT count(*) FROM {} WHERE line IS NOT NULL", table_of(&rig.url))),
        0
    );
}
