//! Counts of the faults that were injected, and of interesting events that must happen sometimes.

use crate::swarm::Family;

macro_rules! counted {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident => $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$case_doc])* $case,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$case,)*];

            /// Its name, for people.
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$case => $words,)*
                }
            }
        }
    };
}

counted! {
    /// Faults, counted when they take effect.
    Struck {
        /// A request that never arrived.
        RequestLost => "request lost",
        /// An answer that never arrived.
        ReplyLost => "reply lost",
        /// A request that was held up.
        RequestDelayed => "request delayed",
        /// An answer that was held up.
        ReplyDelayed => "reply delayed",
        /// A request that arrived twice.
        RequestCopied => "request doubled",
        /// An answer that arrived twice.
        ReplyCopied => "reply doubled",
        /// A connection that broke after the request had left.
        Reset => "reset after sending",
        /// A request that arrived after its sender had given up.
        Zombie => "zombie delivered",
        /// A wake-up that never came.
        WakeupLost => "wake-up lost",
        /// Held up before the clock was read.
        StalledBefore => "held up before the clock",
        /// Held up before the requests left.
        StalledProcess => "held up before sending",
        /// The driver's thread held up, workers going on.
        StalledDriver => "driver held up",
        /// A process was stopped.
        Stopped => "process stopped",
        /// A machine was suspended.
        Suspended => "machine suspended",
        /// A process died.
        Crashed => "process crashed",
        /// A machine restarted.
        Rebooted => "machine rebooted",
        /// A process was copied.
        Forked => "process forked",
        /// A wall clock was set.
        WallJumped => "wall clock set",
        /// A clock's rate changed.
        RateChanged => "clock rate changed",
        /// Nothing got through between a host and the store.
        Partitioned => "host cut off",
        /// The store refused connections.
        StoreDown => "store down",
        /// The store swallowed requests.
        StoreSilent => "store silent",
        /// The store said that it failed.
        StoreErrors => "store failing",
        /// The store asked for patience.
        Throttling => "store throttling",
        /// The store wanted credentials.
        NoCredentials => "credentials expired",
        /// The store refused for good.
        Denied => "store refusing",
        /// The server's clock was set.
        StoreJumped => "server clock set",
        /// The store lost everything.
        StoreWiped => "store wiped",
        /// The store dropped a record.
        Evicted => "record evicted",
        /// A supervisor revoked a lease.
        Revoked => "lease revoked",
        /// A client of another library came.
        ForeignClients => "foreign client",
        /// A node of a quorum came back with its data.
        NodeRestarted => "node restarted",
        /// A node of a quorum came back without its data.
        NodeLostData => "node restarted empty",
        /// A node of a quorum came back with older data.
        NodePromoted => "replica promoted",
        /// A node of a quorum was emptied.
        NodeWiped => "node wiped",
    }
}

counted! {
    /// Events that must happen sometimes, or the runs prove nothing.
    Sometimes {
        /// A grant.
        Granted => "granted",
        /// A grant after the record of another client ran out.
        Takeover => "takeover",
        /// A grant in time after all earlier holders had crashed or closed.
        Succeeded => "followed in time",
        /// A grant by a store that had forgotten the token counter.
        Forgotten => "granted without a counter",
        /// A grant of which the reply was lost.
        RecoveredAcquire => "recovered acquire",
        /// A renewal.
        Renewed => "renewed",
        /// A renewal of which the reply was lost.
        RecoveredRenewal => "recovered renewal",
        /// A renewal that did not succeed.
        RenewDelayed => "renewal delayed",
        /// A warning before the deadline.
        Expiring => "expiring",
        /// Lost because the deadline passed.
        LostByClock => "LOST by the clock",
        /// Lost because the record belongs to another client, or is gone.
        LostToOther => "LOST to the store's record",
        /// Lost because a caller's check found the deadline passed first.
        DeclaredLost => "LOST by a caller's check",
        /// Released, and the store confirmed it.
        Released => "released",
        /// Released, and never confirmed.
        ReleasedUnconfirmed => "released, unconfirmed",
        /// An acquisition that timed out.
        TimedOut => "timed out",
        /// An acquisition that tried once and found the lock held.
        Busy => "busy",
        /// An acquisition that was cancelled.
        Cancelled => "cancelled",
        /// An acquisition that ended because the store was away.
        Unavailable => "store unavailable",
        /// An acquisition that the store refused for good.
        Refused => "refused",
        /// A wait that was throttled.
        ThrottledWait => "throttled wait",
        /// A wake-up that led to a grant.
        WokenUp => "woken up and granted",
        /// An attempt that was given up with sends unaccounted for.
        GivenUp => "attempt given up and released",
        /// A record of an attempt that no worker waits for.
        Orphan => "orphaned record",
        /// A response that came too late or twice.
        Ignored => "response ignored",
        /// A guarded write that was accepted.
        Written => "guarded write",
        /// A guarded write with an old token, refused.
        RefusedStale => "refused stale write",
        /// A takeover of a record that only observation could show to be dead.
        Observed => "takeover by observation",
        /// Two conditional writes for one acquire.
        SecondForm => "second form of a write",
        /// A lock that a table had written for a vote that it does not have was freed again.
        Undone => "written and undone",
        /// The holder of a lock that was freed again took it again.
        TakenAgain => "undone lock taken again",
        /// A lease kept for several renewals in a row.
        LongLease => "lease renewed 3 times",
        /// A table's lock of an earlier send became that of a later one.
        MadeItsOwn => "earlier send taken up",
        /// A node's counter was lifted to the token of a majority.
        WroteBack => "token written back",
        /// A node abstained.
        Abstained => "node abstained",
        /// A node that had abstained votes again.
        Rejoined => "node rejoined",
        /// The counter of a node in doubt was raised, and is trusted again.
        DoubtRaised => "doubtful counter raised",
        /// A node that may have forgotten a holder's record, and said so.
        KeptInDoubt => "renewal met a lost memory",
        /// A holder's record came to a node that had not granted it.
        Repaired => "majority repaired",
        /// A grant while a node was out of reach.
        MinorityDown => "granted with nodes away",
        /// A run was finished, and a majority has its completion.
        Finished => "run finished",
        /// The finish of a run was never confirmed.
        FinishUnconfirmed => "run finished, unconfirmed",
        /// An acquisition that found that the work was done.
        FoundDone => "run found done",
        /// A run that was told the result of another.
        ToldResult => "run told a result",
        /// A finish that found that the lease was lost.
        FinishLost => "run lost at its finish",
        /// A run that nodes which may have lost completions kept waiting.
        CompletionsInDoubt => "completions in doubt",
        /// A holder that was told that its lease is revoked.
        ToldRevoked => "told revoked",
        /// Word of a revoked lease that came to its session after a renewal which it was sent before.
        ToldLate => "session told late",
        /// The same, and the session had grown since.
        ToldLonger => "longer session told late",
        /// A node that became a member of a quorum without `init`.
        Born => "quorum born without init",
    }
}

impl Struck {
    /// True if it happens only where an assumption is broken on purpose.
    pub const fn breaks_an_assumption(self) -> bool {
        matches!(self, Self::StoreJumped | Self::StoreWiped | Self::Evicted)
    }

    /// True if it happens in worlds of this kind.
    pub const fn strikes(self, world: Family) -> bool {
        match world {
            Family::Store => {
                !matches!(self, Self::NodeRestarted | Self::NodeLostData | Self::NodePromoted | Self::NodeWiped)
            }
            Family::Quorum => !matches!(self, Self::ForeignClients),
        }
    }
}

impl Sometimes {
    /// True if it happens only after an assumption was broken.
    pub const fn needs_a_broken_assumption(self) -> bool {
        matches!(self, Self::LostToOther | Self::FinishLost)
    }

    /// True if it can happen in worlds of this kind.
    pub const fn happens_in(self, world: Family) -> bool {
        match world {
            Family::Store => !matches!(
                self,
                Self::WroteBack
                    | Self::Abstained
                    | Self::Rejoined
                    | Self::DoubtRaised
                    | Self::KeptInDoubt
                    | Self::Repaired
                    | Self::MinorityDown
                    | Self::Born
                    | Self::CompletionsInDoubt
                    | Self::Undone
                    | Self::TakenAgain
                    | Self::MadeItsOwn
            ),
            Family::Quorum => true,
        }
    }
}

/// The counts of all faults and events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The counts of faults, indexed by [`Struck`].
    struck: [u64; Struck::ALL.len()],
    /// Indexed by [`Sometimes`].
    sometimes: [u64; Sometimes::ALL.len()],
    /// Steps of the world.
    pub steps: u64,
    /// Requests to stores.
    pub requests: u64,
    /// True time that passed, in milliseconds.
    pub time_ms: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self { struck: [0; Struck::ALL.len()], sometimes: [0; Sometimes::ALL.len()], steps: 0, requests: 0, time_ms: 0 }
    }
}

impl Counts {
    /// Counts a fault.
    pub const fn strike(&mut self, fault: Struck) {
        self.struck[fault as usize] += 1;
    }

    /// Something interesting happened.
    pub const fn see(&mut self, what: Sometimes) {
        self.sometimes[what as usize] += 1;
    }

    /// The count of a fault.
    pub const fn struck(&self, fault: Struck) -> u64 {
        self.struck[fault as usize]
    }

    /// The count of an event.
    pub const fn seen(&self, what: Sometimes) -> u64 {
        self.sometimes[what as usize]
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.struck.iter_mut().zip(other.struck) {
            *mine += theirs;
        }
        for (mine, theirs) in self.sometimes.iter_mut().zip(other.sometimes) {
            *mine += theirs;
        }
        self.steps += other.steps;
        self.requests += other.requests;
        self.time_ms += other.time_ms;
    }
}
