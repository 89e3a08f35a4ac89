//! A store that is down, loses answers, or is slow.

use leasehold::{Change, ErrorKind};

use super::{Journal, TTL, kind, secs, two};

#[test]
fn code_can_be_tested_for_a_store_that_is_down() {
    let (clock, client, _rival) = two();
    let lease = client.lock("job").ttl(TTL).acquire().unwrap();
    clock.store_down();
    assert_eq!(kind(client.lock("other").wait(secs(3)).acquire()), Some(ErrorKind::StoreUnavailable));
    assert_eq!(kind(client.lock("other").wait(secs(0)).acquire()), Some(ErrorKind::StoreUnavailable));
    assert_eq!(kind(client.inspect("job")), Some(ErrorKind::StoreUnavailable));
    assert_eq!(kind(client.list("").next().unwrap()), Some(ErrorKind::StoreUnavailable));
    assert!(!lease.is_lost());
    clock.advance(lease.remaining());
    assert!(lease.is_lost());
    clock.store_up();
    // A lease ends a little before its record does, for clocks that differ.
    assert!(client.lock("job").wait(TTL).acquire().unwrap().token() > lease.token());
}

#[test]
fn a_store_that_comes_back_in_time_costs_no_lease() {
    let (clock, client, _rival) = two();
    let lease = client.lock("job").ttl(TTL).acquire().unwrap();
    for _ in 0..10 {
        clock.store_down();
        clock.advance(TTL / 2);
        clock.store_up();
        clock.advance(TTL / 2);
    }
    assert!(!lease.is_lost() && lease.remaining() > TTL / 2);
}

#[test]
fn a_release_that_the_store_does_not_confirm() {
    let (clock, client, rival) = two();
    let lease = client.lock("job").ttl(TTL).acquire().unwrap();
    clock.store_down();
    let before = clock.now();
    assert_eq!(kind(lease.release()), Some(ErrorKind::StoreUnavailable));
    assert_eq!(clock.now() - before, secs(2), "it is awaited for that long");
    assert_eq!(kind(lease.release()), Some(ErrorKind::NotOwned));
    clock.store_up();
    clock.advance(secs(10));
    assert!(rival.lock("job").try_acquire().unwrap().is_some(), "it went on in the background");
}

#[test]
fn a_grant_whose_answer_is_lost_is_recognised() {
    let (clock, client, rival) = two();
    clock.lose_reply();
    let lease = client.lock("job").acquire().unwrap();
    assert!(rival.lock("job").try_acquire().unwrap().is_none());
    clock.lose_reply();
    lease.release().unwrap();
    assert!(rival.lock("job").try_acquire().unwrap().is_some());
}

#[test]
fn a_slow_store_costs_time_and_one_that_is_too_slow_is_unavailable() {
    let (clock, client, _rival) = two();
    clock.late(secs(1) / 10);
    let lease = client.lock("job").ttl(TTL).acquire().unwrap();
    assert_eq!(clock.now(), secs(1) / 10);
    clock.advance(10 * TTL);
    assert!(!lease.is_lost(), "renewals are in time");
    lease.release().unwrap();
    clock.late(secs(5));
    assert_eq!(kind(client.lock("job").wait(secs(3)).acquire()), Some(ErrorKind::StoreUnavailable));
    clock.late(secs(0));
    client.lock("job").wait(TTL).acquire().unwrap().release().unwrap();
}

#[test]
fn a_run_whose_completion_the_store_does_not_confirm() {
    let (clock, client, rival) = two();
    let leasehold::blocking::Once::Run(run) = client.once("job").keep(20 * TTL).ttl(TTL).begin().unwrap() else {
        panic!("somebody runs it");
    };
    clock.store_down();
    assert_eq!(kind(run.finish()), Some(ErrorKind::FinishUnconfirmed));
    assert_eq!(kind(client.once("job").keep(20 * TTL).wait(secs(1)).begin()), Some(ErrorKind::StoreUnavailable));
    assert_eq!(kind(client.inspect_run("job", None)), Some(ErrorKind::StoreUnavailable));
    clock.store_up();
    clock.advance(2 * TTL);
    assert!(matches!(rival.once("job").keep(20 * TTL).begin().unwrap(), leasehold::blocking::Once::Run(_)));
}

#[test]
fn a_watch_tells_of_a_store_that_is_down() {
    let (clock, client, rival) = two();
    let mut changes = client.watch("job");
    assert!(matches!(changes.next(), Some(Ok(Change::Free))));
    let held = rival.lock("job").acquire().unwrap();
    assert!(matches!(changes.next(), Some(Ok(Change::Held(holder))) if holder.owner.as_deref() == Some("rival")));
    clock.store_down();
    assert!(matches!(changes.next(), Some(Ok(Change::Unreadable(_)))));
    clock.store_up();
    assert!(matches!(changes.next(), Some(Ok(Change::Held(_)))));
    held.release().unwrap();
    assert!(matches!(changes.next(), Some(Ok(Change::Free))));
    assert_eq!(clock.now(), secs(4), "one second between two readings");
}

#[test]
fn items_meet_the_same_faults() {
    let (clock, ..) = two();
    let items = clock.items().tries(1);
    let one_more = |old: Option<&[u8]>| Some(vec![old.map_or(0, |old| old[0]) + 1]);
    assert_eq!(items.update("n", one_more).unwrap().unwrap().value, [1]);
    clock.store_down();
    assert!(items.update("n", one_more).is_err());
    clock.store_up();
    let journal = Journal::default();
    clock.lose_reply();
    let patient = clock.items();
    let updated = patient.update("n", |old| {
        journal.tell("asked");
        one_more(old)
    });
    assert_eq!((updated.unwrap().unwrap().value, journal.take().len()), (vec![2], 1));
}
