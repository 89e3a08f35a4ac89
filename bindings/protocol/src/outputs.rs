//! Conversion of the outputs of the core to those of the WIT.

use leasehold_core::op::Holding;
use leasehold_core::{Error, Event, Failure, LostReason, Monotonic, Output, Stats};
use leasehold_wire::client as wire;

use crate::ops::{all, completion, denial, fault, holding, lock_op, ms_up, ns, small};
use crate::stores::{http_request, redis_commands, statement};
use crate::wit::client as wit;

pub(crate) fn output(output: wire::Output) -> wit::Output {
    match output {
        wire::Output::Core(output) => of_core(output),
        wire::Output::HttpRequest(request) => wit::Output::HttpRequest(http_request(request)),
        wire::Output::RedisCommands(request) => wit::Output::RedisCommands(redis_commands(request)),
        wire::Output::Statement(request) => wit::Output::Statement(statement(request)),
    }
}

fn of_core(output: Output) -> wit::Output {
    match output {
        Output::Transmit(transmit) => wit::Output::Transmit(wit::Transmit {
            id: transmit.id.get(),
            node: transmit.node.get(),
            deadline_ns: transmit.deadline.ns(),
            ops: all(transmit.ops, lock_op),
        }),
        Output::Event(event) => wit::Output::Event(wit::LockEvent { lock: event.lock().get(), event: told(event) }),
        Output::Subscribe { node, resource } => {
            wit::Output::Subscribe(wit::Subscription { node: node.get(), resource: resource.as_str().into() })
        }
        Output::Unsubscribe { node, resource } => {
            wit::Output::Unsubscribe(wit::Subscription { node: node.get(), resource: resource.as_str().into() })
        }
        Output::NeedCredentials { node } => wit::Output::NeedCredentials(wit::NodeRef { node: node.get() }),
        Output::Rejected { lock, error: reason } => {
            wit::Output::Rejected(wit::RejectedCommand { lock: lock.get(), error: error(reason) })
        }
        Output::WakeAt(at) => wit::Output::WakeAt(wit::Wake { at_ns: wake(at) }),
    }
}

/// When to call again; absent where that is never.
pub(crate) fn wake(at: Monotonic) -> Option<u64> {
    (at != Monotonic::FAR).then(|| at.ns())
}

fn told(event: Event) -> wit::Event {
    match event {
        Event::Acquired { lock: _, token, deadline, recovered } => {
            wit::Event::Acquired(wit::Acquired { token: token.get(), deadline_ns: deadline.ns(), recovered })
        }
        Event::Contended { lock: _, holding: other } => {
            wit::Event::Contended(wit::Contended { holding: holding(&other) })
        }
        Event::Failed { lock: _, failure: why } => wit::Event::Failed(wit::Failed { failure: failure(why) }),
        Event::Renewed { lock: _, deadline, left, recovered } => {
            wit::Event::Renewed(wit::Renewed { deadline_ns: deadline.ns(), left_ns: ns(left), recovered })
        }
        Event::RenewDelayed { lock: _, deadline, fault: why } => {
            wit::Event::RenewDelayed(wit::RenewDelayed { deadline_ns: deadline.ns(), fault: fault(&why) })
        }
        Event::Shortened { lock: _, deadline } => wit::Event::Shortened(wit::Shortened { deadline_ns: deadline.ns() }),
        Event::Expiring { lock: _, deadline } => wit::Event::Expiring(wit::Expiring { deadline_ns: deadline.ns() }),
        Event::Lost { lock: _, reason } => wit::Event::Lost(wit::Lost { reason: lost(reason) }),
        Event::Released { lock: _, confirmed } => wit::Event::Released(wit::Released { confirmed }),
        Event::Finished { lock: _, confirmed, result_dropped } => {
            wit::Event::Finished(wit::Finished { confirmed, result_dropped })
        }
    }
}

fn failure(failure: Failure) -> wit::Failure {
    let elsewhere = |other: Option<&Holding>| wit::HeldElsewhere { holding: other.map(holding) };
    match failure {
        Failure::Busy { holding } => wit::Failure::Busy(elsewhere(holding.as_deref())),
        Failure::TimedOut { holding } => wit::Failure::TimedOut(elsewhere(holding.as_deref())),
        Failure::Throttled(why) => wit::Failure::Throttled(fault(&why)),
        Failure::Unavailable(why) => wit::Failure::Unavailable(fault(&why)),
        Failure::Abstains { left } => wit::Failure::Abstains(wit::Abstention { left_ms: ms_up(left) }),
        Failure::Refused(why) => wit::Failure::Refused(denial(&why)),
        Failure::Done(shown) => wit::Failure::Done(completion(&shown)),
        Failure::CompletionsInDoubt => wit::Failure::CompletionsInDoubt,
        Failure::Cancelled => wit::Failure::Cancelled,
    }
}

fn lost(reason: LostReason) -> wit::LostReason {
    match reason {
        LostReason::Expired => wit::LostReason::Expired,
        LostReason::MaxHold => wit::LostReason::MaxHold,
        LostReason::TakenOver { by } => wit::LostReason::TakenOver(wit::TakenOver { by: by.as_deref().map(holding) }),
        LostReason::Released => wit::LostReason::Released,
        LostReason::RecordGone => wit::LostReason::RecordGone,
        LostReason::Revoked => wit::LostReason::Revoked,
    }
}

pub(crate) fn error(error: Error) -> wit::Error {
    match error {
        Error::DuplicateLock => wit::Error::DuplicateLock,
        Error::UnknownLock => wit::Error::UnknownLock,
        Error::TooManyLocks { limit } => wit::Error::TooManyLocks(wit::TooManyLocks { limit: small(limit) }),
        Error::AboveMaxTtl { record_ttl, max_ttl } => {
            wit::Error::AboveMaxTtl(wit::AboveMaxTtl { record_ttl_ms: ms_up(record_ttl), max_ttl_ms: ms_up(max_ttl) })
        }
        Error::AboveMaxKeep { keep, max_keep } => {
            wit::Error::AboveMaxKeep(wit::AboveMaxKeep { keep_ms: ms_up(keep), max_keep_ms: ms_up(max_keep) })
        }
        Error::NotARun => wit::Error::NotARun,
        Error::Closed => wit::Error::Closed,
    }
}

pub(crate) fn stats(stats: Stats) -> wit::Stats {
    wit::Stats {
        locks: small(stats.locks),
        held: small(stats.held),
        in_flight: small(stats.in_flight),
        orphans: small(stats.orphans),
        observations: small(stats.observations),
        undrained: small(stats.undrained),
        ignored_responses: stats.ignored_responses,
        timed_out_requests: stats.timed_out_requests,
    }
}
