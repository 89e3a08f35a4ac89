//! The reason of a loss is that of its cause, on every store.

use leasehold::blocking::{Client, Lease};
use leasehold::{ErrorKind, HolderMatch};

use crate::Store;
use crate::common::ms;
use crate::holding::LONG;

/// A way to lose a lease, and its reason.
type Cause = (&'static str, &'static str, fn(&Client, &Client) -> Lease);

const CAUSES: [Cause; 5] = [
    ("broken", "released", |holder, other| {
        let lease = renewed(holder);
        other.break_lock("job").unwrap().expect("it is held");
        lease
    }),
    ("released by a supervisor", "released", |holder, other| {
        let lease = renewed(holder);
        other.release_if("job", HolderMatch::default().token(lease.token())).unwrap();
        lease
    }),
    ("revoked", "revoked", |holder, other| {
        let lease = renewed(holder);
        other.revoke("job", lease.token()).unwrap();
        lease
    }),
    ("not renewed", "expired", |holder, _| holder.lock("job").ttl(ms(1_000)).no_renewal().acquire().unwrap()),
    ("held for as long as it may", "max_hold", |holder, _| {
        holder.lock("job").ttl(ms(3_000)).max_hold(ms(3_000)).acquire().unwrap()
    }),
];

/// A lease that learns soon what became of its record, and would last for long.
fn renewed(holder: &Client) -> Lease {
    holder.lock("job").ttl(LONG).renew_every(ms(200)).acquire().unwrap()
}

pub(crate) fn a_loss_has_the_reason_of_its_cause(store: &Store) {
    let (one, two) = store.two_clients();
    for (cause, reason, lose) in CAUSES {
        let lease = lose(&one, &two);
        let loss = lease.lost();
        assert_eq!((loss.kind(), loss.lost_reason()), (ErrorKind::Lost, Some(reason)), "{cause}: {loss}");
        let again = lease.release().unwrap_err();
        assert_eq!(again.lost_reason(), Some(reason), "{cause}: {again}");
    }
}
