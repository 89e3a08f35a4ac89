//! The scripts: their steps, and the rows of the table that they take.

use core::time::Duration;

use crate::config::{LockOptionsBuilder, Poll, Wait};
use crate::lease::Row;
use Answer::*;
use Do::{At, DeclareLost, RenewAlong, Say, Wake};
use Row::*;

/// One step of a script.
#[derive(Clone, Copy, Debug)]
pub(super) enum Do {
    /// First in the local queue, and fresh entropy.
    Start,
    /// This many milliseconds after the start of the script.
    At(u64),
    /// A node answers the last operation it was asked.
    Say(u16, Answer),
    Release,
    Finish,
    FinishWithResult,
    Wake,
    Landed(u16),
    RenewAlong,
    /// Requests of other leases to a node have failed, again and again.
    NodeFails(u16),
    DeclareLost,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Granted(u64),
    GrantedInDoubt(u64),
    Raised(u64),
    Renewed,
    Released,
    Finished,
    Done,
    /// Done, with a result.
    DoneWithResult,
    SawDone,
    SawResult,
    Timeout,
    Reset,
    Unavailable,
    Throttled,
    Denied,
    /// Held by somebody else for another 20 s.
    Theirs,
    /// The same, by a record that only observers can declare dead, as of that send.
    Observed(u32),
    SawObserved(u32),
    /// Ours, as of so many sends to this node before the last one.
    Ours(usize),
    OursRevoked,
    OursFreed,
    Gone,
    SawTheirs,
    SawFree,
}

/// A story of one lock.
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) nodes: usize,
    pub(super) poll: Poll,
    pub(super) options: fn(LockOptionsBuilder) -> LockOptionsBuilder,
    /// Each step with the rows it takes, in order.
    pub(super) steps: &'static [(Do, &'static [Row])],
}

pub(super) const PLAIN: Script = Script { name: "", nodes: 1, poll: Poll::Acquire, options: |o| o, steps: &[] };
pub(super) const START: (Do, &[Row]) = (Do::Start, &[IdleStarted]);
pub(super) const HOLD: (Do, &[Row]) = (Say(0, Granted(7)), &[AcquiringGranted]);

// With the default ttl of 30 s a lease is valid for 29,398 ms, renewed after 7.5 to 10 s, and in danger for 5 s.
pub(super) const SCRIPTS: &[Script] = &[
    Script {
        name: "held, renewed, given back",
        steps: &[
            START,
            HOLD,
            (At(7_000), &[]),
            (At(10_000), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (Do::Release, &[HeldReleased, ReleasingSent]),
            (Say(0, Released), &[ReleasingConfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "revoked, and given back",
        steps: &[
            START,
            HOLD,
            (At(10_000), &[HeldRenewed]),
            (Say(0, OursRevoked), &[HeldRevoked]),
            (Do::Finish, &[]),
            (Do::Release, &[RevokedReleased]),
        ],
        ..PLAIN
    },
    Script {
        name: "revoked, and the holder does not listen",
        steps: &[
            START,
            HOLD,
            (At(10_000), &[HeldRenewed]),
            (Say(0, OursRevoked), &[HeldRevoked]),
            (At(39_999), &[]),
            (At(40_000), &[RevokedRanOut]),
        ],
        ..PLAIN
    },
    Script {
        name: "revoked on one node, and then on a majority",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (At(10_000), &[HeldRenewed]),
            (Say(0, OursRevoked), &[HeldShrunk]),
            (Say(1, OursRevoked), &[HeldRevoked]),
            (Do::Release, &[RevokedReleased]),
        ],
        ..PLAIN
    },
    Script {
        name: "revoked before the grant is known",
        options: |o| o.wait(Wait::Once),
        steps: &[START, (Say(0, OursRevoked), &[AcquiringFailed])],
        ..PLAIN
    },
    Script {
        name: "the wait ends in the local queue",
        options: |o| o.wait(Wait::For(Duration::from_secs(1))),
        steps: &[(At(999), &[]), (At(1_000), &[IdleWaitOver])],
        ..PLAIN
    },
    Script {
        name: "released, and an acquire lands behind the release",
        steps: &[
            START,
            HOLD,
            (Do::Release, &[HeldReleased, ReleasingSent]),
            (Do::Landed(0), &[ReleasingLanded]),
            (Say(0, Gone), &[ReleasingOpen, ReleasingSent]),
            (Say(0, Released), &[ReleasingConfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "released, though it was not ours any more",
        steps: &[START, HOLD, (Do::Release, &[HeldReleased, ReleasingSent]), (Say(0, Theirs), &[ReleasingTaken])],
        ..PLAIN
    },
    Script {
        name: "released, and the reply is lost",
        steps: &[
            START,
            HOLD,
            (Do::Release, &[HeldReleased, ReleasingSent]),
            (Say(0, Reset), &[ReleasingOpen]),
            (At(1_000), &[ReleasingSent]),
            (Say(0, Gone), &[ReleasingUnconfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "a majority is given back, and a slow node later",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (Do::Release, &[HeldReleased, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Released), &[ReleasingOpen]),
            (Say(1, Released), &[ReleasingConfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "a majority is not ours any more, and a slow node may be",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (Do::Release, &[HeldReleased, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Theirs), &[ReleasingOpen]),
            (Say(1, Theirs), &[ReleasingTaken]),
        ],
        ..PLAIN
    },
    Script {
        name: "a reply of the majority is lost, and an acquire may land on a third node",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Timeout), &[HeldJoined]),
            (Do::Release, &[HeldReleased, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Released), &[ReleasingOpen]),
            (Say(1, Reset), &[ReleasingOpen]),
            (At(1_000), &[ReleasingSent]),
            (Say(1, Gone), &[ReleasingUnconfirmed]),
        ],
        ..PLAIN
    },
    Script { name: "cancelled in the local queue", steps: &[(Do::Release, &[IdleCancelled])], ..PLAIN },
    Script {
        name: "the reply to the acquire is lost, then the embedder says that the lease is lost",
        steps: &[
            START,
            (Say(0, Timeout), &[AcquiringUnknown, AcquiringResent]),
            (Say(0, Ours(1)), &[AcquiringRecovered]),
            (DeclareLost, &[HeldLost]),
        ],
        ..PLAIN
    },
    Script {
        name: "never an answer, and one try only",
        options: |o| o.wait(Wait::Once),
        steps: &[
            START,
            (Say(0, Timeout), &[AcquiringUnknown, AcquiringResent]),
            (Say(0, Reset), &[AcquiringUnknown]),
            (At(500), &[AcquiringResent]),
            (Say(0, Timeout), &[AcquiringFailed]),
        ],
        ..PLAIN
    },
    Script {
        name: "refused for good, after a send that may have landed",
        steps: &[START, (Say(0, Timeout), &[AcquiringUnknown, AcquiringResent]), (Say(0, Denied), &[AcquiringDenied])],
        ..PLAIN
    },
    Script { name: "cancelled in flight", steps: &[START, (Do::Release, &[AcquiringCancelled])], ..PLAIN },
    Script {
        name: "somebody else holds it, until a wake-up",
        steps: &[
            START,
            (Say(0, Theirs), &[AcquiringBlocked]),
            (At(2_000), &[]),
            (Do::Start, &[WaitingStarted]),
            (Say(0, Throttled), &[AcquiringBlocked]),
            (Wake, &[]),
            (At(3_000), &[]),
            (Do::Start, &[WaitingStarted]),
            (Say(0, Theirs), &[AcquiringBlocked]),
            (Wake, &[WaitingWoken]),
            (Do::Start, &[WaitingStarted]),
            HOLD,
        ],
        ..PLAIN
    },
    Script {
        name: "looks before it writes",
        poll: Poll::Read,
        steps: &[
            START,
            (Say(0, Theirs), &[AcquiringBlocked]),
            (At(2_000), &[WaitingLooked]),
            (Say(0, SawTheirs), &[WaitingSaw]),
            (At(4_000), &[WaitingLooked]),
            (Say(0, Timeout), &[WaitingSaw]),
            (At(6_000), &[WaitingLooked]),
            (Say(0, SawFree), &[WaitingSaw]),
            (Do::Start, &[WaitingStarted]),
            HOLD,
        ],
        ..PLAIN
    },
    Script {
        name: "may not look",
        poll: Poll::Read,
        steps: &[
            START,
            (Say(0, Theirs), &[AcquiringBlocked]),
            (At(2_000), &[WaitingLooked]),
            (Say(0, Denied), &[WaitingDenied]),
        ],
        ..PLAIN
    },
    Script {
        name: "watches until the holder is seen to live",
        poll: Poll::Read,
        options: |o| o.wait(Wait::Watch(Duration::ZERO)),
        steps: &[
            START,
            (Say(0, Observed(1)), &[AcquiringBlocked]),
            (At(2_500), &[WaitingLooked]),
            (Say(0, SawObserved(1)), &[WaitingSaw]),
            (At(5_000), &[WaitingLooked]),
            (Say(0, SawObserved(2)), &[WaitingLives]),
        ],
        ..PLAIN
    },
    Script {
        name: "the wait ends",
        options: |o| o.wait(Wait::For(Duration::from_secs(1))),
        steps: &[START, (Say(0, Unavailable), &[AcquiringBlocked]), (At(1_000), &[WaitingOver])],
        ..PLAIN
    },
    Script {
        name: "cancelled while waiting",
        steps: &[START, (Say(0, Unavailable), &[AcquiringBlocked]), (Do::Release, &[WaitingCancelled])],
        ..PLAIN
    },
    Script {
        name: "without renewal",
        options: LockOptionsBuilder::no_renewal,
        steps: &[
            START,
            HOLD,
            (RenewAlong, &[]),
            (At(24_397), &[]),
            (At(24_398), &[HeldExpiring]),
            (At(29_397), &[]),
            (At(29_398), &[HeldLost]),
        ],
        ..PLAIN
    },
    Script {
        name: "the renewal is never answered",
        steps: &[START, HOLD, (At(10_000), &[HeldRenewed]), (At(24_398), &[HeldExpiring]), (At(29_398), &[HeldLost])],
        ..PLAIN
    },
    Script {
        name: "the reply to a renewal is lost, and the embedder says that the lease is lost",
        steps: &[
            START,
            HOLD,
            (At(10_000), &[HeldRenewed]),
            (Say(0, Timeout), &[HeldDelayed]),
            (At(12_500), &[HeldRenewed]),
            (Say(0, Ours(1)), &[HeldRecovered]),
            (RenewAlong, &[]),
            (At(20_000), &[HeldRenewed]),
            (DeclareLost, &[HeldLost]),
        ],
        ..PLAIN
    },
    Script {
        name: "a renewal travels with somebody else's",
        steps: &[
            START,
            HOLD,
            (At(7_499), &[]),
            (RenewAlong, &[HeldRenewed]),
            (Say(0, Throttled), &[HeldDelayed]),
            (At(12_500), &[HeldRenewed]),
            (Say(0, Theirs), &[HeldTaken]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node serves nobody when a renewal is due",
        steps: &[
            START,
            HOLD,
            (At(9_370), &[]),
            (Do::NodeFails(0), &[]),
            (At(10_000), &[HeldPostponed]),
            (At(14_380), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node serves nobody while another one is renewed",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (At(10_000), &[HeldRenewed]),
            (Say(1, Renewed), &[HeldConfirmed]),
            (At(18_129), &[]),
            (Do::NodeFails(1), &[]),
            (At(19_999), &[HeldPostponed]),
        ],
        ..PLAIN
    },
    Script {
        name: "released by somebody else",
        steps: &[START, HOLD, (At(10_000), &[HeldRenewed]), (Say(0, OursFreed), &[HeldTaken])],
        ..PLAIN
    },
    Script {
        name: "the store does not answer the release",
        steps: &[
            START,
            HOLD,
            (At(10_000), &[HeldRenewed]),
            (Do::Release, &[HeldReleased, ReleasingSent]),
            (Say(0, Reset), &[ReleasingOpen]),
            (At(12_000), &[ReleasingSent]),
            (At(39_999), &[]),
            (At(40_000), &[ReleasingRanOut]),
        ],
        ..PLAIN
    },
    Script {
        name: "counters differ: the lower one is raised before the lock is granted",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(5)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringCounted]),
            (Say(0, Raised(7)), &[AcquiringGranted]),
            (Say(2, Granted(6)), &[HeldJoined]),
            (At(10_000), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (Say(1, Gone), &[HeldShrunk]),
            (Say(2, Theirs), &[HeldTaken]),
        ],
        ..PLAIN
    },
    Script {
        name: "nodes are renewed on their own",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Timeout), &[HeldJoined]),
            (At(10_000), &[HeldRenewed]),
            (Say(0, Timeout), &[HeldDelayed]),
            (At(12_500), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (Say(1, Renewed), &[HeldConfirmed]),
            (Do::Release, &[HeldReleased, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Released), &[ReleasingOpen]),
            (Say(2, Gone), &[ReleasingOpen]),
            (At(13_000), &[ReleasingSent]),
            (Say(2, Gone), &[ReleasingOpen]),
            (Say(1, Released), &[ReleasingConfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "a late node moves the deadline",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Reset), &[AcquiringUnknown]),
            (Say(2, Reset), &[AcquiringUnknown]),
            (At(200), &[AcquiringResent, AcquiringResent]),
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (At(10_200), &[HeldRenewed]),
            (Say(2, Gone), &[HeldShrunk]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node without our record is asked again",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (At(5_000), &[]),
            (Say(2, Gone), &[HeldJoined]),
            (At(10_000), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (Say(1, Renewed), &[HeldConfirmed]),
            (At(15_000), &[HeldRepaired]),
            (Say(2, Theirs), &[HeldJoined]),
            (At(20_000), &[HeldRenewed]),
            (At(25_000), &[HeldRepaired]),
            (Say(2, Granted(8)), &[HeldJoined]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (Say(1, Renewed), &[HeldConfirmed]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node without our record is asked again while others are renewed",
        nodes: 3,
        options: |o| o.renew_every(Duration::from_millis(10)),
        steps: &[
            START,
            (Say(0, Reset), &[AcquiringUnknown]),
            (Say(2, Reset), &[AcquiringUnknown]),
            (At(200), &[AcquiringResent, AcquiringResent]),
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted, HeldRenewed]),
            (Say(2, Gone), &[HeldJoined]),
            (At(210), &[HeldRenewed]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node in doubt is lifted by the holder",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, GrantedInDoubt(3)), &[HeldJoined, HeldRepaired]),
            (Say(2, Raised(7)), &[HeldJoined]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node in doubt is lifted while others are renewed",
        nodes: 3,
        options: |o| o.renew_every(Duration::from_millis(10)),
        steps: &[
            START,
            (Say(0, Reset), &[AcquiringUnknown]),
            (Say(2, Reset), &[AcquiringUnknown]),
            (At(200), &[AcquiringResent, AcquiringResent]),
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted, HeldRenewed]),
            (Say(2, GrantedInDoubt(3)), &[HeldJoined, HeldRepaired]),
            (Say(2, Timeout), &[HeldJoined]),
        ],
        ..PLAIN
    },
    Script {
        name: "a raise is sent again",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(5)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringCounted]),
            (Say(0, Timeout), &[AcquiringUnknown, AcquiringResent]),
            (Say(0, Gone), &[AcquiringCounted]),
            (Say(2, Theirs), &[AcquiringBlocked]),
        ],
        ..PLAIN
    },
    Script {
        name: "an embedder that wakes up past max_hold",
        options: |o| o.max_hold(Duration::from_secs(30)).renew_every(Duration::from_secs(15)),
        steps: &[
            START,
            HOLD,
            (At(15_000), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (At(30_500), &[HeldCapped]),
            (At(39_398), &[HeldExpiring]),
            (At(44_398), &[HeldLost]),
        ],
        ..PLAIN
    },
    Script {
        name: "an embedder that wakes up past max_hold while one node was slow",
        nodes: 3,
        options: |o| o.max_hold(Duration::from_secs(40)).renew_every(Duration::from_secs(15)),
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Gone), &[HeldJoined]),
            (At(15_000), &[HeldRenewed]),
            (Say(0, Renewed), &[HeldConfirmed]),
            (Say(1, Renewed), &[HeldConfirmed]),
            (At(30_000), &[HeldRenewed]),
            (Say(0, Timeout), &[HeldDelayed]),
            (At(40_000), &[HeldExpiring, HeldCapped]),
        ],
        ..PLAIN
    },
    Script {
        name: "a node joins while others are renewed",
        nodes: 3,
        options: |o| o.renew_every(Duration::from_millis(10)),
        steps: &[
            START,
            (Say(0, Reset), &[AcquiringUnknown]),
            (Say(2, Reset), &[AcquiringUnknown]),
            (At(200), &[AcquiringResent, AcquiringResent]),
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted, HeldRenewed]),
            (At(210), &[HeldRenewed]),
            (Say(2, Granted(7)), &[HeldJoined, HeldRenewed]),
        ],
        ..PLAIN
    },
];
