//! Revoked leases: their holders are told, and nobody else has the lock before they have let go.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leasehold::blocking::{Client, Lease};
use leasehold::{ErrorKind, HolderMatch, RevokeOutcome};

use crate::common::{PATIENCE, eventually, ms};
use crate::{Can, Store};

/// Longer than any test: what ends earlier does not end by the clock.
const LONG: Duration = Duration::from_secs(600);

/// A lease that is told soon, and would last for long.
fn hold(client: &Client) -> Lease {
    client.lock("job").ttl(LONG).renew_every(ms(200)).owner("worker:12").acquire().unwrap()
}

#[track_caller]
fn expect_revoked(outcome: RevokeOutcome, token: u64) {
    match outcome {
        RevokeOutcome::Revoked(holder) => assert_eq!((holder.token, holder.revoked), (Some(token), true)),
        outcome => panic!("{outcome:?}"),
    }
}

pub(crate) fn a_revoked_holder_is_told_and_gives_the_lock_back(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = hold(&one);
    assert!(!two.inspect("job").unwrap().unwrap().revoked);
    expect_revoked(two.revoke("job", lease.token()).unwrap(), lease.token());
    let loss = lease.lost();
    assert_eq!((loss.kind(), loss.lost_reason()), (ErrorKind::Lost, Some("revoked")), "{loss}");
    assert!(lease.is_lost() && lease.remaining().is_zero());
    assert!(!lease.protected_for().is_zero(), "nobody else can have it meanwhile");

    let shown = two.inspect("job").unwrap().expect("its work may still run");
    assert_eq!((shown.owner.as_deref(), shown.token, shown.revoked), (Some("worker:12"), Some(lease.token()), true));
    assert_eq!(shown.left.is_some(), store.can(Can::ShowLeft));
    let listed: Vec<_> = two.list("").map(Result::unwrap).collect();
    assert!(matches!(&listed[..], [only] if only.revoked), "{listed:?}");
    assert!(two.lock("job").try_acquire().unwrap().is_none());
    expect_revoked(two.revoke("job", lease.token()).unwrap(), lease.token());

    let (told, waits) = mpsc::channel();
    let waiter = thread::spawn(move || {
        let next = two.lock("job").wait(PATIENCE).acquire();
        told.send(()).unwrap();
        next.map(|next| (next.token(), two.inspect("job").unwrap().unwrap().revoked))
    });
    assert_eq!(lease.release().unwrap_err().lost_reason(), Some("revoked"));
    waits.recv_timeout(PATIENCE).expect("the lock is free as soon as the work has ended");
    let (token, revoked) = waiter.join().unwrap().unwrap();
    assert!(token > lease.token() && !revoked);
    assert!(lease.protected_for().is_zero());
}

pub(crate) fn only_the_lease_that_is_meant_is_revoked(store: &Store) {
    let (one, two) = store.two_clients();
    assert_eq!(two.revoke("job", 7).unwrap(), RevokeOutcome::Free);
    assert_eq!(two.revoke("job", HolderMatch::default()).unwrap_err().kind(), ErrorKind::Config);
    let former = hold(&one);
    former.release().unwrap();
    assert_eq!(two.revoke("job", former.token()).unwrap(), RevokeOutcome::Free, "it was released");
    let lease = hold(&one);
    let by_owner = HolderMatch::default().token(lease.token()).owner("worker:1");
    for other in [former.token().into(), (lease.token() + 1).into(), by_owner] {
        match two.revoke("job", other).unwrap() {
            RevokeOutcome::NotMatched(holder) => {
                assert_eq!((holder.token, holder.revoked), (Some(lease.token()), false));
            }
            outcome => panic!("{outcome:?}"),
        }
    }
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
}

pub(crate) fn a_revoked_lock_of_a_holder_that_does_not_listen_runs_out(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(ms(8_000)).no_renewal().acquire().unwrap();
    expect_revoked(two.revoke("job", lease.token()).unwrap(), lease.token());
    let next = two.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.is_lost(), "not before its own end");
    assert!(next.token() > lease.token());
    assert!(!two.inspect("job").unwrap().unwrap().revoked, "nothing of it is left");
    next.release().unwrap();
}

pub(crate) fn a_revoke_races_renewals_and_a_release(store: &Store) {
    let (one, two) = store.two_clients();
    let mut last = 0;
    for round in 0..6 {
        let lease = one.lock("job").ttl(LONG).renew_every(ms(100)).wait(PATIENCE).acquire().unwrap();
        assert!(lease.token() > last);
        last = lease.token();
        let supervisor = two.clone();
        let revoking = thread::spawn(move || supervisor.revoke("job", last));
        if round % 2 == 0 {
            thread::yield_now();
            // Not told yet, or told: the lock is given back in both cases.
            let _ = lease.release();
            match revoking.join().unwrap() {
                Ok(outcome) => assert!(!matches!(outcome, RevokeOutcome::NotMatched(_))),
                // Of a quorum it found the lock on fewer nodes than a majority: the others were free by then.
                Err(error) => assert!(store.is_a_quorum() && error.kind() == ErrorKind::StoreUnavailable, "{error}"),
            }
        } else {
            expect_revoked(revoking.join().unwrap().unwrap_or_else(|error| panic!("{error:?}")), last);
            assert_eq!(lease.lost().lost_reason(), Some("revoked"));
            drop(lease);
        }
        eventually("the lock is free", || two.inspect("job").unwrap().is_none());
    }
}
