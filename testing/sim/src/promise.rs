//! The promises, the assumptions of each, and the signs that one is broken.

use serde::{Deserialize, Serialize};

use crate::clock::TrueTime;
use crate::script::{Data, Host, Script, What};
use crate::store::{Kind, Spec};

/// A promise of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// At most one holder believes in its lease at any true instant.
    OneHolder,
    /// While a holder believes, its record stands in the store: what keeps the others away.
    Backed,
    /// Tokens are unique, and a grant requested after another was answered has the larger one.
    Tokens,
    /// A guarded item loses no update between holders, and none of a holder's own writes comes out of order.
    Fencing,
    /// After a holder's death a waiter follows in bounded time.
    Succession,
    /// No waiter sleeps past its poll timer, and each wake-up is followed by a try.
    Waiting,
    /// An attempt that was given up is released, and blocks others for a bounded time.
    Orphans,
    /// A lease is lost from its deadline on. The loss is reported once, is final, and is never invented.
    Loss,
    /// Requests, queues and memory are bounded.
    Bounds,
    /// Once a finish was answered, no run that asks later is granted while the completion stands; and no completion is made up.
    Once,
    /// Waiters in the queue are granted in the order of their joining.
    Order,
    /// A lock that is freed goes to somebody in the queue, if anybody there is alive.
    HandOver,
}

impl Promise {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::OneHolder,
        Self::Backed,
        Self::Tokens,
        Self::Fencing,
        Self::Succession,
        Self::Waiting,
        Self::Orphans,
        Self::Loss,
        Self::Bounds,
        Self::Once,
        Self::Order,
        Self::HandOver,
    ];

    /// Its short name, I1 to I10, with a `b` for what belongs to the one before.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OneHolder => "I1",
            Self::Backed => "I1b",
            Self::Tokens => "I2",
            Self::Fencing => "I3",
            Self::Succession => "I4",
            Self::Waiting => "I5",
            Self::Orphans => "I6",
            Self::Loss => "I7",
            Self::Bounds => "I8",
            Self::Once => "I9",
            Self::Order => "I10",
            Self::HandOver => "I10b",
        }
    }

    /// The promise in a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OneHolder => "one holder at a time",
            Self::Backed => "a lease that is believed in stands in the store",
            Self::Tokens => "tokens are unique and grow",
            Self::Fencing => "no lost update behind the guard",
            Self::Succession => "a waiter follows a dead holder in time",
            Self::Waiting => "no waiter oversleeps",
            Self::Orphans => "what was given up does not block for long",
            Self::Loss => "lost means lost, at once and for good",
            Self::Bounds => "requests and memory are bounded",
            Self::Once => "what is finished is not done again",
            Self::Order => "who joined first is served first",
            Self::HandOver => "a free lock goes to who stands in the queue",
        }
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Violation {
    /// The promise.
    pub promise: Promise,
    /// The time when it was noticed.
    pub at_ns: TrueTime,
    /// The host, if one host is at fault.
    pub host: Option<usize>,
    /// On which resource, if on one.
    pub resource: Option<usize>,
    /// The observation, in words.
    pub text: String,
}

/// The assumptions that the faults of a run leave standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// Every clock's rate is off by at most the drift, and the server's clock is not set.
    pub rates: bool,
    /// The store keeps what it acknowledged.
    pub records: bool,
    /// Monotonic clocks count suspended time.
    pub suspend: bool,
    /// Hosts read the clock after the last input.
    pub manners: bool,
    /// No token counter is ever forgotten.
    pub counters: bool,
    /// No wall clock is ahead.
    pub walls: bool,
    /// No two processes draw the same random bytes.
    pub nonces: bool,
    /// Guarded items are never deleted.
    pub guarded_items: bool,
    /// Nobody else removes the completions of finished runs.
    pub dones: bool,
    /// Each lock is renewed by itself, as what is known of its requests supposes.
    pub alone: bool,
}

impl Assumptions {
    /// Those that this script keeps.
    pub fn of(script: &Script) -> Self {
        let drift = script.world.drift_ppm;
        let within = |ppm: i32| ppm.unsigned_abs() <= drift;
        let all = |keeps: fn(&Host) -> bool| script.hosts.iter().all(keeps);
        let stores = script.world.specs();
        let quorum = script.world.is_quorum();
        let rates = script.hosts.iter().all(|host| within(host.rate_ppm))
            && script.foreign_clients.iter().all(|client| within(client.rate_ppm))
            && stores.iter().all(|store| within(store.rate_ppm));
        let foreign_puts =
            stores.iter().any(|store| store.kind == Kind::Dynamodb) && !script.foreign_clients.is_empty();
        // A node that has forgotten a counter makes the next one of its own time, which no other node knows.
        let ahead = |ppm: i32| quorum && ppm > 0;
        let on_time = |store: &Spec| store.unix_offset_ms == 0 && !ahead(store.rate_ppm);
        let mut kept = Self {
            rates,
            records: true,
            suspend: all(|host| !host.forgets_suspend),
            manners: all(|host| !host.stale_now),
            counters: stores.iter().all(Spec::keeps_counters) && !foreign_puts,
            walls: all(|host| host.unix_offset_ms == 0) && stores.iter().all(on_time),
            nonces: all(|host| !host.own_entropy),
            guarded_items: all(|host| host.workers.iter().flatten().all(|job| !job.deletes)),
            dones: !foreign_puts,
            alone: !script.world.sessions,
        };
        for fault in &script.faults {
            match fault.what {
                What::Rate { rate_ppm, .. } => kept.rates &= within(rate_ppm),
                What::StoreRate { rate_ppm, .. } => {
                    kept.rates &= within(rate_ppm);
                    kept.walls &= !ahead(rate_ppm);
                }
                What::StoreJump { .. } => {
                    kept.rates = false;
                    kept.walls = false;
                }
                What::WallJump { .. } => kept.walls = false,
                What::StoreWiped => {
                    kept.records = false;
                    kept.counters = false;
                }
                What::Evicted { .. } => kept.records = false,
                // A node that does not say that it has forgotten is believed.
                What::NodeRestart { node, data: Data::Lags { .. }, .. }
                    if stores[node].durable || stores[node].kind != Kind::Redis =>
                {
                    kept.records = false;
                    kept.counters = false;
                }
                // The run shows which nodes forget at the same time.
                What::NodeRestart { .. } | What::NodeWiped { .. } => {}
                What::Crash { .. }
                | What::Reboot { .. }
                | What::Fork { .. }
                | What::Stop { .. }
                | What::Suspend { .. }
                | What::Partition { .. }
                | What::StoreDown { .. }
                | What::StoreSilent { .. }
                | What::StoreErrors { .. }
                | What::Throttle { .. }
                | What::Credentials { .. }
                | What::Revoked { .. }
                | What::Denied { .. } => {}
            }
        }
        kept
    }

    /// True if they are enough for a promise.
    pub const fn allow(&self, promise: Promise) -> bool {
        match promise {
            Promise::OneHolder | Promise::Backed => {
                self.rates && self.records && self.suspend && self.manners && self.nonces
            }
            Promise::Once => self.rates && self.records && self.nonces && self.dones,
            Promise::Tokens => (self.counters || self.walls) && self.nonces,
            Promise::Fencing => (self.counters || self.walls) && self.nonces && self.guarded_items,
            // A clock that stands still keeps records standing, too, where the store goes by it.
            Promise::Succession => self.rates && self.suspend && self.manners,
            Promise::Orphans => self.rates && self.suspend && self.manners && self.alone,
            Promise::Waiting | Promise::Loss | Promise::Bounds => self.manners && self.alone,
            Promise::Order | Promise::HandOver => self.rates && self.records,
        }
    }
}
