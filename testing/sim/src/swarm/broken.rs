//! Assumptions that can be broken on purpose.

use super::Family;
use crate::promise::Promise;

/// An assumption that a run breaks on purpose, to see that the promise which rests on it falls, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Clock rates are off by more than the drift.
    Rates,
    /// The server's wall clock is set.
    ServerClock,
    /// The store loses everything.
    Wiped,
    /// The store drops single records.
    Evicted,
    /// Clocks stand still while the machine is suspended.
    Suspend,
    /// Hosts read their clock before they read what arrived.
    StaleNow,
    /// Guarded items are deleted, and the marks of the guard with them.
    Marks,
    /// So many nodes of a quorum lose everything at once that none may know the last token, and wall clocks are off.
    Majority,
    /// Nodes that are declared durable come back with older data.
    Undurable,
}

impl Broken {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::Rates,
        Self::ServerClock,
        Self::Wiped,
        Self::Evicted,
        Self::Suspend,
        Self::StaleNow,
        Self::Marks,
        Self::Majority,
        Self::Undurable,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rates => "rates",
            Self::ServerClock => "server-clock",
            Self::Wiped => "wiped",
            Self::Evicted => "evicted",
            Self::Suspend => "suspend",
            Self::StaleNow => "stale-now",
            Self::Marks => "marks",
            Self::Majority => "majority",
            Self::Undurable => "undurable",
        }
    }

    /// The promise that must fall.
    pub const fn fells(self) -> Promise {
        match self {
            Self::Rates
            | Self::ServerClock
            | Self::Wiped
            | Self::Evicted
            | Self::Suspend
            | Self::StaleNow
            | Self::Undurable => Promise::OneHolder,
            Self::Marks => Promise::Fencing,
            Self::Majority => Promise::Tokens,
        }
    }

    /// The assumption that is broken, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rates => "clock rates beyond the drift",
            Self::ServerClock => "server clock set",
            Self::Wiped => "store wiped",
            Self::Evicted => "records evicted",
            Self::Suspend => "clock that stops in suspend",
            Self::StaleNow => "clock read before the replies",
            Self::Marks => "guarded items deleted",
            Self::Majority => "most nodes wiped at once",
            Self::Undurable => "durable nodes that forget",
        }
    }

    /// The worlds in which it is broken.
    pub const fn family(self) -> Family {
        match self {
            Self::Rates
            | Self::ServerClock
            | Self::Wiped
            | Self::Evicted
            | Self::Suspend
            | Self::StaleNow
            | Self::Marks => Family::Store,
            Self::Majority | Self::Undurable => Family::Quorum,
        }
    }
}
