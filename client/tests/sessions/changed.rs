//! Locks of a living session that others break, release or revoke: its holder is told, and keeps the others.

use leasehold::blocking::Lease;
use leasehold::{HolderMatch, ReleaseIfOutcome, RevokeOutcome};

use crate::common::{eventually, ms};
use crate::{Store, client, lease};

fn told(lease: &Lease) -> String {
    eventually("the holder is told", || lease.is_lost());
    lease.lost().to_string()
}

pub(crate) fn holder_is_told_of_what_others_change(store: &Store<'_>) {
    let url = store.url();
    let (holder, admin) = (client(&url, Some("worker-7")), client(&url, None));
    let [broken, released, revoked, kept] =
        ["broken", "released", "revoked", "kept"].map(|name| lease(&holder, name, ms(12_000)));
    assert_eq!(admin.break_lock("broken").unwrap().unwrap().token, Some(broken.token()));
    let rival = lease(&client(&url, Some("rival")), "broken", ms(30_000));
    told(&broken);
    rival.check(ms(1)).unwrap();
    let mine = HolderMatch::default().token(released.token());
    assert!(matches!(admin.release_if("released", mine).unwrap(), ReleaseIfOutcome::Released(_)));
    told(&released);
    assert!(matches!(admin.revoke("revoked", revoked.token()).unwrap(), RevokeOutcome::Revoked(_)));
    assert!(told(&revoked).contains("revoked"));
    drop(revoked);
    eventually("it is free", || admin.inspect("revoked").unwrap().is_none());
    kept.check(ms(1)).unwrap();
    drop(kept);
    let _ = holder.close();
    eventually("its end frees all", || admin.inspect("kept").unwrap().is_none());
}

pub(crate) fn locks_of_a_session_that_was_broken_are_shown_as_free(store: &Store<'_>) {
    let url = store.url();
    let (holder, admin) = (client(&url, Some("worker-7")), client(&url, None));
    let held = lease(&holder, "a", ms(30_000));
    let shown = admin.inspect("a").unwrap().unwrap();
    assert_eq!((shown.token, shown.ttl), (Some(held.token()), Some(ms(30_000))), "the time of its session");
    admin.break_lock("session:worker-7").unwrap().unwrap();
    assert!(admin.inspect("a").unwrap().is_none());
    let mut listing = admin.list("a");
    assert!(listing.next().is_none(), "nobody holds it");
    assert!(admin.lock("a").try_acquire().unwrap().is_some());
    eventually("its holder finds out", || held.is_lost());
}
