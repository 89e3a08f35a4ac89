//! A clock that also counts the time while the machine is suspended, made of the two clocks of WASI.

use core::time::Duration;

use leasehold_core::{Monotonic, Now};

use crate::host;

/// How far the wall clock may run ahead of the other one before that is taken for time that the other one has missed. So much
/// can be missed unseen: others have to keep away from a lock for as long after its lease has run out here.
pub(crate) const SUSPENDED: Duration = Duration::from_millis(500);

const SUSPENDED_NS: i64 = 500_000_000;

/// Both clocks as one. WASI does not say whether the monotonic one counts while the machine is suspended, and on Linux most
/// hosts have one that does not; the wall clock is set by people. So a wall clock that has suddenly gained counts as time that
/// has passed. Should it have been set, a lease ends too early, which harms nobody.
pub(crate) struct Clock {
    gained_ns: u64,
    ahead_ns: i64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let (steady_ns, wall_ns) = host::clocks();
        Self { gained_ns: 0, ahead_ns: leads(steady_ns, wall_ns) }
    }

    pub(crate) fn now(&mut self) -> Now {
        let (steady_ns, wall_ns) = host::clocks();
        let leads = leads(steady_ns, wall_ns);
        let gain = leads.saturating_sub(self.ahead_ns);
        if gain > SUSPENDED_NS {
            self.gained_ns = self.gained_ns.saturating_add(gain.unsigned_abs());
        }
        // A clock that creeps ahead gains too, in time.
        if !(0..=SUSPENDED_NS).contains(&gain) {
            self.ahead_ns = leads;
        }
        let monotonic = Monotonic::from_ns(steady_ns.saturating_add(self.gained_ns));
        Now { monotonic, unix_ms: wall_ns / 1_000_000 }
    }
}

fn leads(steady_ns: u64, wall_ns: u64) -> i64 {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    signed(wall_ns).saturating_sub(signed(steady_ns))
}
