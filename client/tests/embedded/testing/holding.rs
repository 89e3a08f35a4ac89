//! Leases by a test clock: grants, waits, renewals, losses and callbacks.

use std::sync::Arc;
use std::time::Instant;

use leasehold::blocking::Client;
use leasehold::testing::TestClock;
use leasehold::{ErrorKind, HolderMatch, ReleaseIfOutcome, RevokeOutcome};

use super::{Journal, LONG, TTL, kind, owned, secs, two};

/// Two clients of one store, in the time of a test or of this machine: the same holds for both.
fn on_both(store: &str, assert: fn(&Client, &Client)) {
    let (_clock, client, rival) = two();
    assert(&client, &rival);
    let real = |owner: &str| Client::connect_with(leasehold::Client::builder().owner(owner), store).unwrap();
    assert(&real("me"), &real("rival"));
}

#[test]
fn a_client_does_what_a_real_one_does() {
    on_both("memory:alike", |client, rival| {
        let lease = client.lock("job").ttl(TTL).data(b"here").acquire().unwrap();
        assert!((lease.resource(), lease.owner()) == ("job", "me") && TTL / 2 < lease.remaining());
        assert!(lease.remaining() <= TTL && lease.check(secs(1)).is_ok());
        assert_eq!(kind(lease.check(2 * TTL)), Some(ErrorKind::Lost));
        assert!(!lease.is_lost() && rival.lock("job").try_acquire().unwrap().is_none());
        let busy = rival.lock("job").wait(secs(0)).acquire().unwrap_err();
        assert_eq!((busy.kind(), busy.resource()), (ErrorKind::Busy, Some("job")));
        assert_eq!(busy.holder().and_then(|holder| holder.owner.clone()), Some("me".to_owned()));
        assert_eq!(kind(rival.lock("job").wait(TTL / 3_000).acquire()), Some(ErrorKind::TimedOut));
        let info = rival.inspect("job").unwrap().unwrap();
        assert_eq!((info.owner.as_deref(), info.token), (Some("me"), Some(lease.token())));
        assert_eq!((info.data.as_deref(), info.ttl), (Some(&b"here"[..]), Some(TTL)));
        lease.release().unwrap();
        assert!(rival.inspect("job").unwrap().is_none() && lease.remaining().is_zero());
        assert_eq!(kind(lease.release()), Some(ErrorKind::NotOwned));
        let other = rival.lock("job").acquire().unwrap();
        assert!(other.token() > lease.token());
        rival.clone().close().unwrap();
        assert_eq!(kind(rival.lock("c").acquire()), Some(ErrorKind::Closed));
        assert_eq!(kind(other.check(secs(0))), Some(ErrorKind::NotOwned));
        client.lock("job").acquire().unwrap().release().unwrap();
    });
}

#[test]
fn a_lease_is_released_or_revoked_by_another_client() {
    on_both("memory:by-another", |client, rival| {
        let lease = client.lock("job").ttl(LONG).acquire().unwrap();
        let other = HolderMatch::default().token(lease.token() + 1);
        assert!(matches!(rival.release_if("job", other).unwrap(), ReleaseIfOutcome::NotMatched(_)));
        let this = HolderMatch::default().token(lease.token());
        assert!(matches!(rival.release_if("job", this).unwrap(), ReleaseIfOutcome::Released(_)));
        let theirs = rival.lock("job").acquire().unwrap();
        assert!(theirs.token() > lease.token());
        assert_eq!(kind(lease.release()), Some(ErrorKind::Lost));
        assert!(rival.inspect("job").unwrap().is_some(), "it was left alone");
        theirs.release().unwrap();
        let lease = client.lock("job").ttl(secs(1)).acquire().unwrap();
        let this = HolderMatch::default().token(lease.token());
        assert!(matches!(rival.revoke("job", this).unwrap(), RevokeOutcome::Revoked(_)));
        assert_eq!(lease.lost().kind(), ErrorKind::Lost);
        assert_eq!(kind(lease.release()), Some(ErrorKind::Lost));
        assert!(rival.lock("job").acquire().unwrap().token() > lease.token());
    });
}

#[test]
fn waiting_moves_the_clock_and_takes_no_time() {
    let (clock, client, rival) = two();
    let began = Instant::now();
    let lease = client.lock("job").ttl(TTL).no_renewal().acquire().unwrap();
    assert!(clock.now().is_zero());
    let other = rival.lock("job").wait(2 * TTL).acquire().unwrap();
    assert!(lease.is_lost() && other.token() > lease.token());
    assert!(TTL - secs(1) < clock.now() && clock.now() < 2 * TTL, "{:?}", clock.now());
    let before = clock.now();
    assert_eq!(kind(client.lock("job").wait(2 * LONG).acquire()), Some(ErrorKind::TimedOut));
    assert!(clock.now() - before >= 2 * LONG && clock.now() - before < 2 * LONG + secs(1));
    assert!(!other.is_lost(), "it is renewed meanwhile");
    assert!(began.elapsed() < clock.now());
}

#[test]
fn leases_are_renewed_while_the_clock_is_moved() {
    let (clock, client, _rival) = two();
    let renewed = client.lock("job").ttl(TTL).acquire().unwrap();
    let once = client.lock("once").ttl(TTL).no_renewal().acquire().unwrap();
    let bounded = client.lock("bounded").ttl(TTL).max_hold(2 * TTL).acquire().unwrap();
    clock.advance(LONG);
    assert!(clock.now() == LONG && renewed.remaining() > TTL / 3 && once.is_lost() && bounded.is_lost());
    clock.advance(secs(0));
    assert_eq!(clock.now(), LONG);
}

#[test]
fn a_lease_has_no_time_left_from_its_deadline_on() {
    let (clock, client, _rival) = two();
    let lease = client.lock("job").ttl(TTL).no_renewal().acquire().unwrap();
    let journal = Journal::default();
    let heard = journal.clone();
    lease.on_lost(move |error| heard.tell(error.kind().name()));
    clock.advance(lease.remaining() - std::time::Duration::from_nanos(1));
    assert!(!lease.is_lost() && journal.take().is_empty());
    clock.advance(lease.remaining());
    assert!(lease.remaining().is_zero() && lease.is_lost() && kind(lease.check(secs(0))) == Some(ErrorKind::Lost));
    assert_eq!(journal.take(), ["lost"]);
}

#[test]
fn a_lost_lock_is_free_for_others_before_its_holder_hears_of_it() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let lease = client.lock("job").acquire().unwrap();
    let (heard, other) = (journal.clone(), rival.clone());
    lease.on_lost(move |error| {
        let theirs = other.lock("job").try_acquire().unwrap();
        heard.tell(format!("{}, {}", error.kind().name(), if theirs.is_some() { "free" } else { "held" }));
    });
    clock.lose("job").unwrap();
    assert!(lease.is_lost() && lease.remaining().is_zero() && lease.lost().kind() == ErrorKind::Lost);
    assert_eq!(journal.take(), ["lost, free"]);
    assert!(rival.lock("job").acquire().unwrap().token() > lease.token());
    let heard = journal.clone();
    lease.on_lost(move |_| heard.tell("late"));
    clock.settle();
    assert_eq!(journal.take(), ["late"]);
    assert_eq!(kind(clock.lose("job")), Some(ErrorKind::NotOwned));
    assert_eq!(kind(clock.lose("")), Some(ErrorKind::Config));
}

#[test]
fn callbacks_run_last_and_cannot_disturb_others() {
    let (clock, client, _rival) = two();
    let journal = Journal::default();
    let leases: Arc<Vec<_>> = Arc::new((0..3).map(|n| client.lock(format!("job-{n}")).acquire().unwrap()).collect());
    for lease in leases.iter() {
        let (heard, all) = (journal.clone(), Arc::downgrade(&leases));
        lease.on_lost(move |_| {
            let lost = all.upgrade().unwrap().iter().filter(|lease| lease.is_lost()).count();
            heard.tell(format!("{lost} of 3"));
            panic!("on purpose");
        });
    }
    clock.store_down();
    clock.advance(2 * TTL);
    assert_eq!(journal.take(), ["3 of 3", "3 of 3", "3 of 3"]);
    clock.store_up();
    assert!(client.lock("job-0").wait(2 * TTL).acquire().unwrap().token() > leases[0].token());
}

#[test]
fn a_callback_may_wait_for_locks_itself() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let (lease, held) = (client.lock("a").acquire().unwrap(), rival.lock("b").ttl(TTL).no_renewal().acquire().unwrap());
    let (heard, same) = (journal.clone(), client.clone());
    lease.on_lost(move |_| {
        let waited = same.lock("b").wait(2 * TTL).acquire();
        heard.tell(if waited.is_ok() { "granted" } else { "refused" });
    });
    clock.lose("a").unwrap();
    assert_eq!(journal.take(), ["granted"]);
    assert!(held.is_lost() && clock.now() > TTL - secs(1));
}

#[test]
fn expiring_is_told_before_the_loss() {
    let (clock, client, _rival) = two();
    let journal = Journal::default();
    let lease = client.lock("job").ttl(TTL).acquire().unwrap();
    let (expiring, lost) = (journal.clone(), journal.clone());
    lease.on_expiring(move || expiring.tell("expiring"));
    lease.on_lost(move |_| lost.tell("lost"));
    clock.store_down();
    clock.advance(lease.remaining() - secs(1));
    assert_eq!(journal.take(), ["expiring"]);
    clock.advance(secs(2));
    assert_eq!(journal.take(), ["lost"]);
}

#[test]
fn a_lease_that_is_dropped_is_free_once_the_clock_has_settled() {
    let (clock, client, rival) = two();
    drop(client.lock("job").acquire().unwrap());
    clock.settle();
    assert!(rival.lock("job").try_acquire().unwrap().is_some() && clock.now().is_zero());
}

#[test]
#[should_panic(expected = "this wait never ends")]
fn a_wait_that_never_ends_is_a_panic() {
    let (_clock, client, rival) = two();
    let _held = rival.lock("job").acquire().unwrap();
    let _ = client.lock("job").acquire();
}

#[test]
#[should_panic(expected = "this wait never ends")]
fn a_watch_of_a_lock_that_never_changes_is_a_panic() {
    let (_clock, client, _rival) = two();
    let mut changes = client.watch("job");
    assert!(changes.next().is_some_and(|change| change.is_ok()));
    changes.next();
}

#[test]
fn a_thread_that_waits_for_itself_is_refused() {
    let (_clock, client, _rival) = two();
    let _held = client.lock("job").acquire().unwrap();
    assert_eq!(kind(client.lock("job").acquire()), Some(ErrorKind::Config));
}

#[test]
fn a_closed_client_tells_its_holders() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let lease = client.lock("job").acquire().unwrap();
    let heard = journal.clone();
    lease.on_lost(move |error| heard.tell(error.kind().name()));
    client.close().unwrap();
    assert_eq!(journal.take(), ["not_owned"]);
    assert!(lease.is_lost() && rival.lock("job").try_acquire().unwrap().is_some() && clock.now().is_zero());
}

#[test]
fn each_run_is_the_same_and_another_seed_gives_another() {
    let story = |seed| {
        let clock = TestClock::new(seed);
        let (client, rival) = (owned(&clock, "me"), owned(&clock, "rival"));
        let _renewed = client.lock("other").acquire().unwrap();
        let _held = client.lock("job").ttl(TTL).no_renewal().acquire().unwrap();
        let remaining = rival.lock("job").wait(secs(100)).acquire().unwrap().remaining();
        let mut steps = Vec::new();
        for _ in 0..20 {
            assert!(clock.step());
            steps.push(clock.now());
        }
        (remaining, steps)
    };
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}
