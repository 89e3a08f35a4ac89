//! The types of the crate's public face.
//!
//! `mirrored!` lists them and expands to an exhaustive match on each, so that a variant or field that is added to the crate
//! stops this file from compiling until the list, and then the WIT, has it too.

use std::time::Duration;

use leasehold_core::config::{ConfigError, Limits, NodeConfig, Poll, RunOptions, Wait};
use leasehold_core::fence::Rejected;
use leasehold_core::member::{Bootstrap, Durability, Membership};
use leasehold_core::op::{
    Acquire, Applied, Completion, Denial, DenialKind, Fault, FaultKind, Finish, Holder, Holding, LockOp, Op, Outcome,
    Raise, Refusal, Release, Renew, Revoke, Seen, Tell, TransportFault,
};
use leasehold_core::{Error, Event, Failure, Input, LostReason, Monotonic, Now, Output, Revocation, Stats, Transmit};

/// Public types that `mirrored!` leaves out: checked numbers and bytes, what has methods instead of fields, what only nodes
/// do, and queues of waiters and sessions, which components keep none of.
pub(crate) const NOT_MIRRORED: [&str; 20] = [
    "Session",
    "Span",
    "Tell",
    "Client",
    "Departure",
    "Ttl",
    "Drift",
    "Config",
    "Quorum",
    "LockOptions",
    "LockOptionsBuilder",
    "Guard",
    "QuorumId",
    "LossId",
    "RunId",
    "Phase",
    "Marker",
    "Admission",
    "Answer",
    "CounterTrust",
];

/// The structure of a type of the crate, or of one of its variants.
pub(crate) enum Shape {
    Nothing,
    Fields(Vec<&'static str>),
    One(&'static str),
    Cases(Vec<(&'static str, Shape)>),
}

macro_rules! shape {
    () => { Shape::Nothing };
    ({ $($field:ident),* }) => { Shape::Fields(vec![$(stringify!($field)),*]) };
    (($one:ident)) => { Shape::One(stringify!($one)) };
}

macro_rules! mirror {
    (struct $name:ident { $($field:ident),* }) => {{
        #[allow(dead_code)]
        fn exhaustive($name { $($field: _),* }: &$name) {}
        (stringify!($name), shape!({ $($field),* }))
    }};
    (enum $name:ident { $($case:ident $(($one:ident))? $({ $($field:ident),* })?),* $(,)? $(; $rest:pat)? }) => {{
        #[allow(dead_code)]
        fn exhaustive(value: &$name) {
            match value {
                $($name::$case $((mirror!(@any $one)))? $({ $($field: _),* })? => {
                    // Reaches through a box as well: where a payload lives is nobody's business but Rust's.
                    $(if let $name::$case(payload) = value { let _: &$one = payload; })?
                })*
                $($rest => {})?
            }
        }
        let cases = vec![$((stringify!($case), shape!($(($one))? $({ $($field),* })?))),*];
        (stringify!($name), Shape::Cases(cases))
    }};
    (@any $one:ident) => { _ };
}

macro_rules! mirrored {
    ($what:ident: $($kind:ident $name:ident $body:tt)*) => {
        pub(crate) fn $what() -> Vec<(&'static str, Shape)> {
            vec![$(mirror!($kind $name $body)),*]
        }
    };
}
pub(crate) use {mirror, mirrored, shape};

mirrored! { mirrors:
    struct Now { monotonic, unix_ms }
    struct NodeConfig { poll, watch, batch, durability }
    enum Durability { Declared, NotDeclared }
    enum Poll { Acquire, Read }
    struct Limits { locks, orphans, observations }
    enum Wait { Once, For(Duration), Forever, Watch(Duration) }
    struct RunOptions { keep, trust_quorum, even_if_done }
    // May grow, so its variants are also read from the source.
    enum ConfigError {
        EmptyResource,
        EmptyKey,
        TooLong { what, bytes, max },
        ControlCharacter { what, at, code },
        SessionLabel { given },
        TooShort { what, value, min },
        TooFar { what, value, max },
        KeepBelowTtl { keep, ttl },
        Drift { ppm, min, max },
        Nodes { count, max },
        ZeroLimit { what };
        _
    }

    struct LockOp { lock, resource, op }
    enum Op { Acquire(Acquire), Renew(Renew), Release(Release), Finish(Finish), Revoke(Revoke), Tell(Tell), Raise(Raise), Read }
    struct Acquire { nonce, seq, record_ttl, floor, expect, owner, data, session, member, unless_done, in_queue }
    struct Membership { quorum, max_ttl_ms, durability, fresh, waited_out, bootstrap, retention }
    enum Bootstrap { Yes, No }
    struct Renew { nonce, seq, record_ttl, quorum }
    struct Release { nonce, quorum }
    struct Finish { nonce, token, counter, keep, owner, about, quorum }
    struct Revoke { nonce }
    struct Raise { nonce, token, loss }
    enum Outcome { Applied(Applied), NotApplied(Refusal), Unknown(Fault) }
    enum Applied {
        Acquired { counter }, AcquiredInDoubt { counter, stamp }, Renewed, RenewedTold { told }, Released, Finished, Revoked, Told,
        Raised { counter }, Read(Seen),
    }
    enum Refusal {
        Conflict(Seen), Done(Completion), Throttled(Fault), Unavailable(Fault), Abstains { stamp },
        NeedsCredentials(Fault), Denied(Denial),
    }
    struct Fault { kind, detail }
    enum FaultKind { Timeout, Reset, Unreachable, Cancelled, Server, Busy, Protocol }
    struct Denial { kind, detail }
    enum DenialKind { Permission, Schema, CorruptRecord, TokensExhausted, StorageFull, Membership, Other }
    struct Seen { holding, done }
    struct Completion { token, owner, at_unix_ms, left, about, unsettled }
    struct Holding { holder, version, released, counter, owner, record_ttl, left, since_unix_ms, data, session, told }
    enum Holder { Lease { nonce, seq }, Foreign }
    enum TransportFault { NotSent(Fault), Unknown(Fault) }

    enum Output {
        Transmit(Transmit),
        Event(Event),
        Subscribe { node, resource },
        Unsubscribe { node, resource },
        NeedCredentials { node },
        Rejected { lock, error },
        WakeAt(Monotonic),
    }
    struct Transmit { id, node, deadline, ops }
    enum Event {
        Acquired { lock, token, deadline, recovered },
        Contended { lock, holding },
        Failed { lock, failure },
        Renewed { lock, deadline, left, recovered },
        RenewDelayed { lock, deadline, fault },
        Shortened { lock, deadline },
        Expiring { lock, deadline },
        Lost { lock, reason },
        Released { lock, confirmed },
        Finished { lock, confirmed, result_dropped },
    }
    enum Failure {
        Busy { holding }, TimedOut { holding }, Throttled(Fault), Unavailable(Fault), Abstains { left },
        Refused(Denial), Done(Completion), CompletionsInDoubt, Cancelled,
    }
    enum LostReason { Expired, MaxHold, TakenOver { by }, Released, RecordGone, Revoked }
    enum Input {
        Acquire { lock, resource, options },
        Release { lock },
        Finish { lock, run_result },
        DeclareLost { lock },
        Response { id, result },
        Notified { resource },
        Subscribed { node, resource },
        CredentialsRenewed { node },
        NodeVotes { node, loss },
        Reseed { seed },
        Close,
    }
    enum Error {
        DuplicateLock, UnknownLock, TooManyLocks { limit }, AboveMaxTtl { record_ttl, max_ttl },
        AboveMaxKeep { keep, max_keep }, NotARun, Closed,
    }
    struct Revocation { is_revoked, troubles }
    struct Stats { locks, held, in_flight, orphans, observations, undrained, ignored_responses, timed_out_requests }

    enum Rejected { Stale { token, high_water }, OutOfOrder { write, last }, Unclaimed }
}
