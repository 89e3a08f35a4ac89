//! Warnings of long waits: for whom or what a caller waits that hears of nothing else.

use std::time::Duration;

use leasehold_core::op::{Fault, Holder, Holding};
use leasehold_core::{Nonce, Resource};

use super::Driver;
use super::lease_state::LeaseState;
use crate::error::LockInfo;
use crate::host::fork::PerProcess;
use crate::host::sync::{Arc, Mutex, Weak};

/// The drivers of this process, so that a wait for one of its own leases can be told from others.
static DRIVERS: PerProcess<Mutex<Vec<Weak<Driver>>>> = PerProcess::new(Mutex::default);

/// An acquisition that has waited for long, taken under the mutex and reported after it.
pub(super) struct LongWait {
    pub(super) lease: Arc<LeaseState>,
    pub(super) waited: Duration,
    /// The holder in the way, as far as the store showed it.
    pub(super) holding: Option<Holding>,
}

impl LongWait {
    /// `faults` are those of the nodes that did not answer their last request.
    pub(super) fn emit(self, faults: &[(usize, Fault)]) {
        let Self { lease, waited, holding } = self;
        let (resource, owner, waited_s) = (lease.resource().as_str(), lease.owner().as_str(), waited.as_secs_f64());
        let is_own = holding.as_ref().is_some_and(|holding| is_held_here(lease.resource(), holding));
        let holder = holding.as_ref().and_then(|holding| holding.owner.as_ref()).map(|owner| owner.as_str());
        let held = holding.as_ref().map(|holding| LockInfo::shown(resource, holding).to_string());
        let fault = (!faults.is_empty()).then(|| in_words(faults));
        let why = match (held, &fault) {
            (Some(held), _) if is_own => {
                format!(
                    "another lease of this process holds it ({held}): if no code uses that lease any more, release it"
                )
            }
            (Some(held), None) => held,
            (Some(held), Some(fault)) => format!("{held}; now the store cannot be used ({fault})"),
            (None, Some(fault)) => format!("the store cannot be used ({fault})"),
            (None, None) => "no holder is shown, and it is not granted yet".to_owned(),
        };
        let message = format!("lock.waiting: {resource:?} for {waited_s:.0} s so far: {why}");
        tracing::warn!(name: "lock.waiting", target: "leasehold", resource, owner, holder, fault, is_own, position = lease.place(), waited_s, "{message}");
        #[cfg(feature = "metrics")]
        crate::ffi::observe::tell_unobserved(&message);
    }
}

/// Makes a driver known to those who wait.
pub(super) fn register(driver: &Arc<Driver>) {
    // A schedule of `testing/concurrency` must not depend on those before it.
    if cfg!(leasehold_concurrency) {
        return;
    }
    let mut drivers = DRIVERS.get().lock();
    drivers.retain(|known| known.strong_count() > 0);
    drivers.push(Arc::downgrade(driver));
}

fn is_held_here(resource: &Resource, holding: &Holding) -> bool {
    let Holder::Lease { nonce, .. } = holding.holder else { return false };
    // Upgraded first: the end of a driver must not come while the list is locked.
    let drivers: Vec<_> = DRIVERS.get().lock().iter().filter_map(Weak::upgrade).collect();
    drivers.iter().any(|driver| driver.holds(resource, nonce))
}

fn in_words(faults: &[(usize, Fault)]) -> String {
    match faults {
        [(_, fault)] => fault.to_string(),
        faults => {
            let each: Vec<_> = faults.iter().map(|(node, fault)| format!("node {node}: {fault}")).collect();
            each.join(", ")
        }
    }
}

impl Driver {
    /// Tells if a lease of this client is held by that attempt.
    fn holds(&self, resource: &Resource, nonce: Nonce) -> bool {
        let state = self.state.lock();
        state
            .leases()
            .any(|lease| lease.resource() == resource && lease.is_held() && state.nonce(lease.lock()) == Some(nonce))
    }
}
