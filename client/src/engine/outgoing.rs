//! What the component is told: settings and answers, in its own words.

use std::time::Duration;

use leasehold_core::config::Poll;
use leasehold_core::member::Durability;
use leasehold_core::op::{
    Applied, Denial, DenialKind, Fault, FaultKind, Holder, Holding, Outcome, Refusal, Seen, TransportFault,
};
use leasehold_core::{Config, LockOptions, NodeConfig, Now, Seq, Token, Wait};
use leasehold_wasmtime::{client, ops, types};

use crate::transport::Answer;

pub(super) fn now(now: Now) -> types::Now {
    types::Now { monotonic_ns: now.monotonic.ns(), unix_ms: now.unix_ms }
}

pub(super) fn config(config: &Config) -> types::Config {
    let limits = config.limits();
    types::Config {
        nodes: config.nodes().iter().map(node).collect(),
        drift_ppm: Some(config.drift().ppm()),
        request_timeout_ms: Some(ms(config.request_timeout())),
        limits: types::Limits {
            locks: Some(small(limits.locks)),
            orphans: Some(small(limits.orphans)),
            observations: Some(small(limits.observations)),
        },
        quorum: config
            .quorum()
            .map(|quorum| types::Quorum { id: quorum.id().0.to_vec(), max_ttl_ms: Some(ms(quorum.max_ttl())) }),
    }
}

fn node(node: &NodeConfig) -> types::NodeConfig {
    types::NodeConfig {
        poll: match node.poll {
            Poll::Acquire => types::Poll::Acquire,
            Poll::Read => types::Poll::Read,
        },
        watch: node.watch,
        batch: Some(small(node.batch)),
        durability: Some(match node.durability {
            Durability::Declared => types::Durability::Declared,
            Durability::NotDeclared => types::Durability::NotDeclared,
        }),
    }
}

/// Lengths of time lose what they have below a millisecond.
pub(super) fn options(options: &LockOptions) -> types::LockOptions {
    types::LockOptions {
        ttl_ms: Some(ms(options.ttl().get())),
        wait: match options.wait() {
            Wait::Once => types::Wait::Once,
            Wait::For(wait) => types::Wait::For(types::WaitFor { wait_ms: ms(wait) }),
            Wait::Forever => types::Wait::Forever,
        },
        lock_delay_ms: ms(options.lock_delay()),
        max_hold_ms: options.max_hold().map(ms),
        renewal: match options.renew_every() {
            Some(every) => types::Renewal::Every(types::RenewEvery { interval_ms: ms(every) }),
            None => types::Renewal::Off,
        },
        owner: options.owner().as_str().to_owned(),
        data: options.data().map(|data| data.as_bytes().to_vec()),
    }
}

pub(super) fn response(answer: Answer) -> client::Response {
    match answer {
        Ok(outcomes) => {
            client::Response::Outcomes(client::Outcomes { outcomes: outcomes.into_iter().map(outcome).collect() })
        }
        Err(TransportFault::NotSent(reason)) => client::Response::NotSent(fault(&reason)),
        Err(TransportFault::Unknown(reason)) => client::Response::Unknown(fault(&reason)),
    }
}

fn outcome(outcome: Outcome) -> ops::Outcome {
    match outcome {
        Outcome::Applied(done) => ops::Outcome::Applied(ops::AppliedOutcome { applied: applied(done) }),
        Outcome::NotApplied(why) => ops::Outcome::NotApplied(ops::NotAppliedOutcome { refusal: refusal(why) }),
        Outcome::Unknown(why) => ops::Outcome::Unknown(fault(&why)),
    }
}

fn applied(applied: Applied) -> ops::Applied {
    let node = |counter: Token| ops::NodeCounter { counter: counter.get() };
    match applied {
        Applied::Acquired { counter } => ops::Applied::Acquired(node(counter)),
        Applied::AcquiredInDoubt { counter, stamp } => {
            ops::Applied::AcquiredInDoubt(ops::DoubtfulCounter { counter: counter.get(), stamp: stamp.0.to_vec() })
        }
        Applied::Renewed => ops::Applied::Renewed,
        Applied::Released => ops::Applied::Released,
        Applied::Raised { counter } => ops::Applied::Raised(node(counter)),
        Applied::Read(shown) => ops::Applied::Read(seen(shown)),
    }
}

fn refusal(refusal: Refusal) -> ops::Refusal {
    match refusal {
        Refusal::Conflict(shown) => ops::Refusal::Conflict(seen(shown)),
        Refusal::Throttled(why) => ops::Refusal::Throttled(fault(&why)),
        Refusal::Unavailable(why) => ops::Refusal::Unavailable(fault(&why)),
        Refusal::Abstains { stamp } => {
            ops::Refusal::Abstains(ops::LostMemory { stamp: stamp.map(|stamp| stamp.0.to_vec()) })
        }
        Refusal::NeedsCredentials(why) => ops::Refusal::NeedsCredentials(fault(&why)),
        Refusal::Denied(why) => ops::Refusal::Denied(denial(&why)),
    }
}

fn seen(seen: Seen) -> ops::Seen {
    ops::Seen { holding: seen.holding.map(|other| holding(&other)) }
}

fn holding(holding: &Holding) -> ops::Holding {
    ops::Holding {
        holder: match &holding.holder {
            Holder::Lease { nonce, seq } => {
                Some(ops::LeaseHolder { nonce: nonce.as_bytes().to_vec(), seq: seq.map(Seq::get) })
            }
            Holder::Foreign => None,
        },
        version: holding.version.as_bytes().to_vec(),
        released: holding.released,
        counter: holding.counter.map(Token::get),
        owner: holding.owner.as_ref().map(|owner| owner.as_str().to_owned()),
        record_ttl_ms: holding.record_ttl.map(ms_up),
        left_ms: holding.left.map(ms_up),
        since_unix_ms: holding.since_unix_ms,
        data: holding.data.as_ref().map(|data| data.as_bytes().to_vec()),
    }
}

fn fault(fault: &Fault) -> ops::Fault {
    let kind = match fault.kind {
        FaultKind::Timeout => ops::FaultKind::Timeout,
        FaultKind::Reset => ops::FaultKind::Reset,
        FaultKind::Unreachable => ops::FaultKind::Unreachable,
        FaultKind::Cancelled => ops::FaultKind::Cancelled,
        FaultKind::Server => ops::FaultKind::Server,
        FaultKind::Busy => ops::FaultKind::Busy,
        FaultKind::Protocol => ops::FaultKind::Protocol,
    };
    ops::Fault { kind, detail: fault.detail.as_deref().map(str::to_owned) }
}

fn denial(denial: &Denial) -> ops::Denial {
    let kind = match denial.kind {
        DenialKind::Permission => ops::DenialKind::Permission,
        DenialKind::Schema => ops::DenialKind::Schema,
        DenialKind::CorruptRecord => ops::DenialKind::CorruptRecord,
        DenialKind::TokensExhausted => ops::DenialKind::TokensExhausted,
        DenialKind::StorageFull => ops::DenialKind::StorageFull,
        DenialKind::Membership => ops::DenialKind::Membership,
        DenialKind::Other => ops::DenialKind::Other,
    };
    ops::Denial { kind, detail: denial.detail.as_ref().to_owned() }
}

fn ms(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// What a record has left must not look shorter than it is.
fn ms_up(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
