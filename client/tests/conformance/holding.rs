//! How long a lease lasts, and what comes after it.

use std::time::{Duration, Instant};

use leasehold::ErrorKind;

use crate::Store;
use crate::common::{PATIENCE, eventually, ms, paced};

/// Longer than any test: what must not happen by the clock does not.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) fn renewals_outlast_the_ttl(store: &Store) {
    let (one, two) = store.two_clients();
    let ttl = paced(4_000);
    let start = Instant::now();
    let lease = one.lock("job").ttl(ttl).acquire().unwrap();
    let left = || store.left_of(&two.inspect("job").unwrap().expect("it is held all the time"), &lease);
    let (mut renewals, mut last) = (0, left());
    eventually("it was renewed again and again, for longer than its ttl", || {
        lease.check(ms(1)).unwrap();
        assert!(two.lock("job").try_acquire().unwrap().is_none());
        let now = left();
        renewals += u32::from(now > last);
        last = now;
        renewals >= 3 && start.elapsed() > ttl
    });
    assert_eq!(two.inspect("job").unwrap().and_then(|info| info.token), Some(lease.token()), "a renewal mints nothing");
    lease.release().unwrap();
}

pub(crate) fn without_renewal_a_lease_ends(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(paced(300)).no_renewal().acquire().unwrap();
    assert_eq!(lease.lost().kind(), ErrorKind::Lost);
    assert!(lease.is_lost() && lease.remaining().is_zero());
    assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::Lost);
    let next = two.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(next.token() > lease.token());
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
}

pub(crate) fn max_hold_ends_renewal(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(paced(3_000)).max_hold(paced(4_000)).acquire().unwrap();
    let error = lease.lost();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("max_hold"), "{error}");
    assert!(two.lock("job").wait(PATIENCE).acquire().unwrap().token() > lease.token());
}

pub(crate) fn a_lock_delay_keeps_the_lock_closed_after_expiry(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(paced(200)).lock_delay(LONG).no_renewal().owner("late").acquire().unwrap();
    assert_eq!(lease.lost().kind(), ErrorKind::Lost);
    assert!(two.lock("job").try_acquire().unwrap().is_none());
    let error = two.lock("job").wait(paced(100)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.holder().and_then(|holder| holder.owner.as_deref()), Some("late"));
    assert_eq!(two.break_lock("job").unwrap().and_then(|info| info.token), Some(lease.token()));
    // The wait that ended above may have its place in the queue for one round trip more.
    assert!(
        two.lock("job").wait(PATIENCE).acquire().expect("free at once, and not after the delay").token()
            > lease.token()
    );
}

pub(crate) fn a_lock_delay_ends_too(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(paced(200)).lock_delay(paced(300)).no_renewal().acquire().unwrap();
    let next = two.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.is_lost() && next.token() > lease.token());
}

pub(crate) fn a_lock_delay_does_not_outlast_a_release(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").lock_delay(LONG).acquire().unwrap();
    let info = two.inspect("job").unwrap().unwrap();
    assert!(info.left.or(info.ttl).unwrap() > LONG, "the record lasts for both");
    lease.release().unwrap();
    assert!(two.lock("job").try_acquire().unwrap().is_some());
}

pub(crate) fn a_lost_lease_does_not_touch_its_successor(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(paced(200)).no_renewal().acquire().unwrap();
    let next = two.lock("job").wait(PATIENCE).acquire().unwrap();
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
    drop(lease);
    one.close().unwrap();
    next.check(ms(1)).unwrap();
    let info = two.inspect("job").unwrap();
    assert_eq!(info.and_then(|info| info.token), Some(next.token()));
    next.release().unwrap();
}

pub(crate) fn a_release_of_a_broken_lock_is_a_loss(store: &Store) {
    let (one, two) = store.two_clients();
    // No renewal comes first.
    let lease = one.lock("job").ttl(LONG).acquire().unwrap();
    two.break_lock("job").unwrap().expect("it is held");
    lease.check(ms(1)).expect("nobody has told it yet");
    let error = lease.release().unwrap_err();
    assert_eq!((error.kind(), error.lost_reason()), (ErrorKind::Lost, Some("released")), "{error}");
    assert!(lease.is_lost());
    assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost, "still");
    assert!(two.lock("job").try_acquire().unwrap().is_some(), "it is free");
}

pub(crate) fn a_release_of_a_lock_that_a_rival_took_is_a_loss(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(LONG).acquire().unwrap();
    two.break_lock("job").unwrap().expect("it is held");
    let rival = two.lock("job").acquire().unwrap();
    // A node of a quorum that has not heard of the rival yet would give another reason.
    eventually("all nodes show the rival", || {
        two.inspect("job").unwrap().is_some_and(|info| info.token == Some(rival.token()) && info.votes == info.nodes)
    });
    let error = lease.release().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("somebody else holds the lock now"), "{error}");
    let shown = two.inspect("job").unwrap();
    assert_eq!(shown.and_then(|info| info.token), Some(rival.token()), "it was left alone");
    rival.release().unwrap();
}

pub(crate) fn a_release_of_several_tells_that_one_was_broken(store: &Store) {
    let (one, two) = store.two_clients();
    let leases = one.lock_all(["a", "b"]).ttl(LONG).acquire().unwrap();
    two.break_lock("a").unwrap().expect("it is held");
    let error = leases.release().unwrap_err();
    assert_eq!((error.kind(), error.resource()), (ErrorKind::Lost, Some("a")));
    assert!(two.lock("b").try_acquire().unwrap().is_some(), "the other was released");
}
