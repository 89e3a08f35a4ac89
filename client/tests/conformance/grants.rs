//! Grants: a lock's holder, the callers that are told of it, and how the lock comes free.

use std::time::Duration;

use leasehold::{ErrorKind, HolderMatch, ReleaseIfOutcome};

use crate::common::{PATIENCE, eventually, ms, paced, with_shortest_ttl};
use crate::{Can, Store};

const TTL: Duration = Duration::from_secs(20);

pub(crate) fn one_holder_at_a_time(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("invoice/42").ttl(TTL).owner("one").acquire().unwrap();
    assert_eq!((lease.resource(), lease.owner(), lease.is_lost()), ("invoice/42", "one", false));
    assert!(lease.remaining() < TTL, "the margin for clock drift is taken off");
    lease.check(ms(1)).unwrap();
    for client in [&one, &two] {
        let error = client.lock("invoice/42").wait(Duration::ZERO).acquire().unwrap_err();
        assert_eq!((error.kind(), error.resource()), (ErrorKind::Busy, Some("invoice/42")));
        store.expect_named(&error, "one", lease.token());
    }
    let other = two.lock("invoice/43").acquire().unwrap();
    other.check(ms(1)).unwrap();
    lease.release().unwrap();
}

pub(crate) fn others_see_who_holds_it(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(TTL).owner("one").data(b"step 3").acquire().unwrap();
    for client in [&one, &two] {
        let info = client.inspect("job").unwrap().expect("it is held");
        assert_eq!((info.resource.as_str(), info.owner.as_deref()), ("job", Some("one")));
        assert_eq!((info.token, info.foreign), (Some(lease.token()), false));
        assert_eq!(info.data.as_deref(), Some(b"step 3".as_slice()));
        assert_eq!(info.ttl, store.can(Can::ShowTtl).then_some(TTL));
        assert_eq!(info.left.is_some(), store.can(Can::ShowLeft), "a store that frees locks by itself knows when");
        assert!(info.left.is_none_or(|left| left <= TTL && !left.is_zero()), "{info:?}");
        assert!(info.since_unix_ms.is_some());
    }
    lease.release().unwrap();
}

pub(crate) fn a_free_lock_shows_nothing(store: &Store) {
    let (one, two) = store.two_clients();
    assert_eq!(two.inspect("job").unwrap(), None);
    let lease = one.lock("job").acquire().unwrap();
    assert!(two.inspect("job").unwrap().is_some());
    assert_eq!(two.inspect("job2").unwrap(), None);
    lease.release().unwrap();
    assert_eq!(two.inspect("job").unwrap(), None, "its history is nobody's business");
}

/// Over releases, expiry, a broken lock and new clients, for any caller.
pub(crate) fn tokens_grow_with_every_grant(store: &Store) {
    let watcher = store.client();
    let mut last = 0;
    let mut grown = |token: u64| {
        assert!(token > last, "{token} after {last}");
        assert!(token < 1 << 53);
        last = token;
    };
    for round in 0..6 {
        let client = store.client();
        let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
        grown(lease.token());
        match round % 3 {
            0 => lease.release().unwrap(),
            1 => drop(lease),
            _ => {
                watcher.break_lock("job").unwrap();
            }
        }
        let short =
            with_shortest_ttl(paced(150), |ttl| watcher.lock("job").ttl(ttl).no_renewal().wait(PATIENCE / 8).acquire());
        grown(short.token());
        if round % 2 == 0 {
            assert_eq!(short.lost().kind(), ErrorKind::Lost);
        }
    }
}

pub(crate) fn a_release_frees_the_lock_once(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").acquire().unwrap();
    lease.release().unwrap();
    let next = two.lock("job").try_acquire().unwrap().expect("it is free at once");
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::NotOwned);
    assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::NotOwned);
    assert!(lease.remaining().is_zero() && !lease.is_lost());
    drop(lease);
    next.check(ms(1)).unwrap();
    assert_eq!(one.inspect("job").unwrap().and_then(|info| info.token), Some(next.token()));
}

pub(crate) fn trying_does_not_wait(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").try_acquire().unwrap().expect("it is free");
    // Whatever wait is set.
    assert!(two.lock("job").wait(Duration::MAX).try_acquire().unwrap().is_none());
    assert!(one.lock("job").wait(Duration::MAX).try_acquire().unwrap().is_none());
    lease.release().unwrap();
    assert!(two.lock("job").try_acquire().unwrap().is_some());
}

pub(crate) fn an_administrator_breaks_a_lock(store: &Store) {
    let (one, two) = store.two_clients();
    assert_eq!(two.break_lock("job").unwrap(), None);
    let lease = one.lock("job").ttl(paced(2_000)).owner("stuck").acquire().unwrap();
    let broken = two.break_lock("job").unwrap().expect("it was held");
    assert_eq!((broken.owner.as_deref(), broken.token), (Some("stuck"), Some(lease.token())));
    assert_eq!(two.inspect("job").unwrap(), None);
    let next = two.lock("job").try_acquire().unwrap().expect("it is free at once");
    assert!(next.token() > lease.token());
    // The former holder hears of it with its next renewal.
    assert_eq!(lease.lost().kind(), ErrorKind::Lost);
    assert!(lease.is_lost());
    next.check(ms(1)).unwrap();
}

pub(crate) fn a_supervisor_releases_only_the_holder_it_means(store: &Store) {
    let (one, two) = store.two_clients();
    let meant = HolderMatch::default;
    let by_owner = || meant().owner("worker:12:*");
    assert_eq!(two.release_if("job", by_owner()).unwrap(), ReleaseIfOutcome::Free);
    assert_eq!(two.release_if("job", meant()).unwrap_err().kind(), ErrorKind::Config);
    let former = one.lock("job").owner("worker:12:main").acquire().unwrap();
    let shown = two.inspect("job").unwrap().expect("it is held");
    former.release().unwrap();
    let lease = one.lock("job").ttl(paced(2_000)).owner("worker:123:main").acquire().unwrap();
    let others = [
        by_owner(),
        meant().token(former.token()),
        meant().token(former.token()).owner("worker:123:*"),
        meant().token(lease.token()).owner("worker:12:*"),
        meant().lease(&shown),
    ];
    for other in others {
        match two.release_if("job", other.clone()).unwrap() {
            ReleaseIfOutcome::NotMatched(holder) => assert_eq!(holder.owner.as_deref(), Some("worker:123:main")),
            outcome => panic!("{other:?}: {outcome:?}"),
        }
    }
    lease.check(ms(1)).unwrap();
    let this = meant().token(lease.token()).owner("worker:123:*");
    match two.release_if("job", this).unwrap() {
        ReleaseIfOutcome::Released(holder) => assert_eq!(holder.token, Some(lease.token())),
        outcome => panic!("{outcome:?}"),
    }
    let next = two.lock("job").try_acquire().unwrap().expect("it is free at once");
    assert!(next.token() > lease.token(), "the counter stays");
    assert_eq!(lease.lost().kind(), ErrorKind::Lost);
    next.check(ms(1)).unwrap();
}

pub(crate) fn closing_releases_everything(store: &Store) {
    let (one, two) = store.two_clients();
    let leases: Vec<_> = (0..5).map(|n| one.lock(format!("job-{n}")).acquire().unwrap()).collect();
    let kept = one.clone();
    one.close().unwrap();
    for lease in &leases {
        assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::NotOwned);
        assert_eq!(two.inspect(lease.resource()).unwrap(), None);
    }
    let error = kept.lock("other").acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

pub(crate) fn dropping_a_client_releases_everything(store: &Store) {
    let (one, two) = store.two_clients();
    let leases: Vec<_> = (0..5).map(|n| one.lock(format!("job-{n}")).acquire().unwrap()).collect();
    drop(one);
    for lease in &leases {
        lease.check(ms(1)).expect("a lease keeps its client alive");
    }
    drop(leases);
    for n in 0..5 {
        assert_eq!(two.inspect(format!("job-{n}")).unwrap(), None, "the last drop waits for its releases");
    }
}

pub(crate) fn a_dropped_lease_is_released(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").acquire().unwrap();
    drop(lease);
    eventually("the lock is free", || two.inspect("job").unwrap().is_none());
    assert!(two.lock("job").try_acquire().unwrap().is_some());
}
