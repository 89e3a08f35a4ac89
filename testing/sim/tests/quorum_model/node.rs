//! A node: the real one, on one resource.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION};
use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{Acquire, Applied, Op, Outcome, Raise, Refusal};
use leasehold_core::quorum::Trust;
use leasehold_core::store::{BootId, LeaseRecord, Record, StoreNow};
use leasehold_core::{Monotonic, Nonce, Owner, Seq, Token};

use crate::state::{Ask, By, Count, Lease, Mark, Name, Node, Reply, What};
use crate::world::{Bug, RepairTrust, Setting};

const QUORUM: QuorumId = QuorumId([1; 16]);
const MAX_TTL_MS: u64 = 60_000;
const NOW: StoreNow = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(0), unix_ms: 0 };
const TTL: Duration = Duration::from_secs(30);

/// A node's answer, and whether a quorum was born here.
pub(crate) struct Answered {
    pub(crate) reply: Reply,
    pub(crate) born: bool,
}

pub(crate) fn answer(node: &mut Node, by: By, ask: Ask, setting: &Setting, owner: &Owner) -> Answered {
    let before = node.mark;
    let op = match ask.what {
        What::Raise(to) if setting.bug == Some(Bug::RaisesAnybody) => {
            node.counter = node.counter.max(to);
            return Answered { reply: Reply::Raised(node.counter), born: false };
        }
        // Meant for any loss of the node: more than a real raise can know.
        What::Raise(to) => Op::Raise(Raise { nonce: nonce(by), token: token(to), loss: Some(stamp(node.stamp)) }),
        What::Acquire { floor, waited_out, birth, fresh, .. } => Op::Acquire(Box::new(Acquire {
            floor: token(floor),
            owner: owner.clone(),
            member: Some(Membership {
                quorum: QUORUM,
                max_ttl_ms: MAX_TTL_MS,
                durability: Durability::NotDeclared,
                fresh: stamp(if fresh == 0 { node.stamp + 1 } else { fresh }),
                waited_out: (waited_out != 0)
                    .then(|| stamp(if setting.bug == Some(Bug::AnyStamp) { node.stamp } else { waited_out })),
                bootstrap: if birth { Bootstrap::Yes } else { Bootstrap::No },
                retention: RETENTION,
            }),
            ..Acquire::new(nonce(by), Seq::new(u32::from(ask.seq)), TTL)
        })),
    };
    let mut outcome = run(node, &op, owner);
    if setting.bug == Some(Bug::VotesAtOnce) && matches!(outcome, Outcome::NotApplied(Refusal::Abstains { .. })) {
        node.mark = Mark::Member;
        outcome = run(node, &op, owner);
    }
    let reply = reply(outcome, by, ask.seq);
    if let (What::Acquire { waited_out, repair: true, .. }, Reply::Granted { .. }) = (ask.what, reply) {
        let entitled = match setting.repair_trust {
            RepairTrust::Never => false,
            RepairTrust::Always => true,
            RepairTrust::WaitedOut => waited_out == node.stamp,
        };
        if entitled && node.mark == Mark::Rejoined {
            node.entry = node.stamp;
        }
    }
    Answered { reply, born: before == Mark::Joining && node.mark == Mark::Member }
}

fn reply(outcome: Outcome, by: By, seq: u8) -> Reply {
    match outcome {
        Outcome::Applied(Applied::Acquired { counter }) => {
            Reply::Granted { counter: count(counter), trust: Trust::Trusted, stamp: 0, seq }
        }
        Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp }) => {
            Reply::Granted { counter: count(counter), trust: Trust::Doubtful, stamp: name(stamp), seq }
        }
        Outcome::Applied(Applied::Raised { counter }) => Reply::Raised(count(counter)),
        Outcome::NotApplied(Refusal::Abstains { stamp }) => Reply::Abstains(name(stamp.expect("it was asked to vote"))),
        Outcome::NotApplied(Refusal::Conflict(seen)) => match seen.held() {
            Some(holding) => match (holding.counter, holding.seq()) {
                (Some(counter), Some(wrote)) if holding.is_of(&nonce(by)) => {
                    Reply::Granted { counter: count(counter), trust: Trust::Trusted, stamp: 0, seq: wrote.get() as u8 }
                }
                (counter, _) => Reply::Conflict(counter.map(count)),
            },
            None => Reply::Conflict(None),
        },
        other => unreachable!("{other:?}"),
    }
}

fn run(node: &mut Node, op: &Op, owner: &Owner) -> Outcome {
    let lease = node.lease.map(|lease| LeaseRecord {
        nonce: nonce(lease.by),
        seq: Seq::new(u32::from(lease.seq)),
        released: false,
        record_ttl: TTL,
        boot: NOW.boot,
        expires: NOW.uptime.plus(TTL),
        since_unix_ms: 0,
        owner: owner.clone(),
        data: None,
        session: None,
        told: 0,
    });
    let record = Record { counter: token(node.counter), lease, completion: None };
    let (marker, entry) = (marker(node), (node.entry != 0).then(|| stamp(node.entry)));
    let memory = NodeMemory { marker: marker.as_ref(), trusted: entry.as_ref(), run: None };
    let served = serve(Some(&record), memory, op, &NOW);
    if let Some(Record { counter, lease, .. }) = served.record {
        node.counter = count(counter);
        node.lease = lease.map(|lease| Lease { by: by(&lease.nonce), seq: lease.seq.get() as u8 });
    }
    if let Some(marker) = served.marker {
        (node.mark, node.stamp) = (mark(marker.phase), name(marker.stamp));
    }
    if let Some(stamp) = served.trusted {
        node.entry = name(stamp);
    }
    served.outcome
}

fn marker(node: &Node) -> Option<Marker> {
    let phase = match node.mark {
        Mark::Absent => return None,
        Mark::Member => Phase::Member,
        Mark::Joining => Phase::Joining,
        // Retentions never end here.
        Mark::Rejoined => Phase::Rejoined { trusted_from_unix_ms: u64::MAX },
    };
    Some(Marker { quorum: QUORUM, max_ttl_ms: MAX_TTL_MS, stamp: stamp(node.stamp), phase, run: None })
}

fn mark(phase: Phase) -> Mark {
    match phase {
        Phase::Member => Mark::Member,
        Phase::Joining => Mark::Joining,
        Phase::Rejoined { .. } => Mark::Rejoined,
    }
}

fn stamp(name: Name) -> LossId {
    LossId([name; 16])
}

/// A node names a loss after the moment at which it finds it, and here all is one moment.
fn name(of: LossId) -> Name {
    static FOUND: OnceLock<HashMap<LossId, Name>> = OnceLock::new();
    let found = FOUND.get_or_init(|| (0..=Name::MAX).map(|name| (stamp(name).found_at(NOW.unix_ms), name)).collect());
    found.get(&of).copied().unwrap_or(of.0[0])
}

fn nonce(by: By) -> Nonce {
    let mut bytes = [0; 16];
    (bytes[0], bytes[1]) = (by.client, by.attempt);
    Nonce::from_bytes(bytes)
}

fn by(nonce: &Nonce) -> By {
    let bytes = nonce.as_bytes();
    By { client: bytes[0], attempt: bytes[1] }
}

pub(crate) fn token(count: Count) -> Token {
    Token::new(u64::from(count)).expect("a small number")
}

pub(crate) fn count(token: Token) -> Count {
    Count::try_from(token.get()).expect("a small number")
}
