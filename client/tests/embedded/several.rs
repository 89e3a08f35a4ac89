//! Several locks at once: the time they share, what is lost meanwhile, and the order in which they go back.

use std::time::{Duration, Instant};

use crate::common::{self, PATIENCE, connect_patiently, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;

fn two_clients(name: &str) -> (Client, Client) {
    let url = format!("memory:several-{name}");
    (Client::connect(&url).unwrap(), Client::connect(&url).unwrap())
}

#[test]
fn the_locks_share_one_wait() {
    const WAIT: Duration = Duration::from_secs(5);
    let (one, two) = two_clients("one-wait");
    let first = two.lock("a").acquire().unwrap();
    let _second = two.lock("b").acquire().unwrap();
    let waiter = std::thread::spawn(move || {
        let error = one.lock_all(["a", "b"]).wait(WAIT).acquire().unwrap_err();
        (error, one, Instant::now())
    });
    // Most of the wait is for the first lock.
    std::thread::sleep(WAIT * 4 / 5);
    let freed = Instant::now();
    first.release().unwrap();
    let (error, one, ended) = waiter.join().unwrap();
    assert_eq!((error.kind(), error.resource()), (ErrorKind::TimedOut, Some("b")));
    assert!(ended - freed < WAIT, "the second lock had a wait of its own: {:?}", ended - freed);
    assert_eq!(one.inspect("a").unwrap(), None);
}

#[test]
fn a_wait_that_is_over_has_timed_out_however_short_it_was() {
    let (one, two) = two_clients("short-wait");
    let _held = two.lock_all(["a", "b"]).acquire().unwrap();
    for wait in [Duration::from_nanos(1), Duration::from_micros(1), ms(1)] {
        let error = one.lock_all(["a", "b"]).wait(wait).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{wait:?}: {error}");
    }
    let error = one.lock_all(["a", "b"]).wait(Duration::ZERO).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
}

#[test]
fn losing_one_lock_while_waiting_for_another_fails_and_releases_all() {
    const TTL: Duration = Duration::from_secs(1);
    let (one, two) = two_clients("lost");
    let second = two.lock("b").acquire().unwrap();
    let waiter = std::thread::spawn(move || one.lock_all(["a", "b"]).ttl(TTL).wait(PATIENCE).acquire().unwrap_err());
    eventually("the first is held", || two.inspect("a").unwrap().is_some());
    two.break_lock("a").unwrap();
    let rival = two.lock("a").wait(PATIENCE).acquire().unwrap();
    // Nothing is renewed any more, so that it is over by now whatever the other process has heard.
    std::thread::sleep(TTL);
    second.release().unwrap();
    let error = waiter.join().unwrap();
    assert_eq!((error.kind(), error.resource()), (ErrorKind::Lost, Some("a")));
    eventually("the second was given back", || two.inspect("b").unwrap().is_none());
    rival.check(ms(1)).unwrap();
    assert_eq!(two.inspect("a").unwrap().unwrap().token, Some(rival.token()));
}

#[cfg(feature = "sqlite")]
#[test]
fn the_store_sees_the_last_one_taken_go_back_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let client = connect_patiently(common::url(&path));
    let names = ["a", "b", "c", "d"];
    client.lock_all(names).acquire().unwrap().release().unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.busy_timeout(PATIENCE).unwrap();
    db.execute_batch(
        "CREATE TABLE seen (resource TEXT);
         CREATE TRIGGER released AFTER INSERT ON leases WHEN NEW.released
         BEGIN INSERT INTO seen VALUES (NEW.resource); END;",
    )
    .unwrap();
    let seen = || -> Vec<String> {
        let mut read = db.prepare("SELECT resource FROM seen ORDER BY rowid").unwrap();
        read.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    client.lock_all(names).acquire().unwrap().release().unwrap();
    assert_eq!(seen(), ["d", "c", "b", "a"]);
    // Also where one was not to be had, and those before it go back.
    let taken = client.lock("d").acquire().unwrap();
    client.lock_all(names).wait(Duration::ZERO).acquire().unwrap_err();
    assert_eq!(seen()[4..], ["c", "b", "a"]);
    taken.release().unwrap();
}
