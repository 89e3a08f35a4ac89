//! The playground has a store of its own, in JavaScript. What it must answer is written down here, by the core's own
//! node: `docs/playground/test/store.json`, which its tests play.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_core::member::{Bootstrap, Durability, LossId, Marker, Membership, Phase, QuorumId, RETENTION};
use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{self, Acquire, Finish, Op, Raise, Refusal, Release, Renew};
use leasehold_core::store::{BootId, Record, StoreNow};
use leasehold_core::{Monotonic, Nonce, Owner, Seq, Token, Version};
use serde_json::{Value, json};

const BLESS: &str = "LEASEHOLD_BLESS";
const RUNS: u64 = 6;
const STEPS: usize = 60;
const QUORUM: QuorumId = QuorumId([0x70; 16]);
const MAX_TTL_MS: u64 = 8_000;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/playground/test/store.json")
}

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Clone>(&mut self, among: &[T]) -> T {
        among[usize::try_from(self.below(among.len() as u64)).expect("an index")].clone()
    }
}

/// A node and what it remembers.
struct Node {
    is_voter: bool,
    record: Option<Record>,
    marker: Option<Marker>,
    trusted: Option<LossId>,
    /// Losses as the node names them, with the names that they have in the file: there, each is called what the request
    /// called it that was the first to find it, since requests are delivered once.
    names: BTreeMap<LossId, LossId>,
    now: StoreNow,
    stamps: u8,
}

impl Node {
    fn new(is_voter: bool) -> Self {
        let marker = is_voter.then_some(Marker {
            quorum: QUORUM,
            max_ttl_ms: MAX_TTL_MS,
            stamp: LossId([0; 16]),
            phase: Phase::Member,
            run: None,
        });
        let now = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(1_000_000_000), unix_ms: 10 };
        Self { is_voter, record: None, marker, trusted: None, names: BTreeMap::new(), now, stamps: 0 }
    }

    fn pass(&mut self, us: u64) {
        self.now.uptime = self.now.uptime.plus(Duration::from_micros(us));
        self.now.unix_ms += us / 100_000;
    }

    fn serve(&mut self, op: &Op) -> op::Outcome {
        if let Op::Acquire(acquire) = op
            && let Some(member) = &acquire.member
        {
            self.names.insert(member.fresh.found_at(self.now.unix_ms), member.fresh);
        }
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted: self.trusted.as_ref(), run: None };
        let served = serve(self.record.as_ref(), memory, op, &self.now);
        self.record = served.record.or(self.record.take());
        self.marker = served.marker.or(self.marker.take());
        self.trusted = served.trusted.or(self.trusted);
        served.outcome
    }

    fn named(&self, stamp: LossId) -> LossId {
        self.names.get(&stamp).copied().unwrap_or(stamp)
    }

    fn told(&self, op: &Op) -> Op {
        let mut op = op.clone();
        match &mut op {
            Op::Acquire(acquire) => {
                if let Some(member) = &mut acquire.member {
                    member.waited_out = member.waited_out.map(|stamp| self.named(stamp));
                }
            }
            Op::Raise(raise) => raise.loss = raise.loss.map(|stamp| self.named(stamp)),
            Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Read => {}
        }
        op
    }

    fn heard(&self, outcome: op::Outcome) -> op::Outcome {
        match outcome {
            op::Outcome::Applied(op::Applied::AcquiredInDoubt { counter, stamp }) => {
                op::Outcome::Applied(op::Applied::AcquiredInDoubt { counter, stamp: self.named(stamp) })
            }
            op::Outcome::NotApplied(Refusal::Abstains { stamp }) => {
                op::Outcome::NotApplied(Refusal::Abstains { stamp: stamp.map(|stamp| self.named(stamp)) })
            }
            other @ (op::Outcome::Applied(_) | op::Outcome::NotApplied(_) | op::Outcome::Unknown(_)) => other,
        }
    }

    fn any_op(&mut self, chance: &mut Chance) -> Op {
        let nonce = Nonce::from_bytes([chance.of(&[1, 2]); 16]);
        let seq = Seq::new(u32::try_from(chance.below(9)).expect("a small number") + 1);
        let record_ttl = Duration::from_millis(chance.of(&[1_000, 4_000, 8_000]));
        let floor = Token::new(self.now.unix_ms + chance.below(3)).expect("a small token");
        // A run in place of a plain lock, which the page has on single nodes alone.
        match chance.below(if self.is_voter { 12 } else { 14 }) {
            0..=4 => Op::Acquire(Box::new(Acquire {
                floor,
                expect: chance.one_in(4).then(|| Version::of(&nonce, seq)),
                owner: Owner::new("A").expect("a short label"),
                member: self.is_voter.then(|| self.membership(chance)),
                unless_done: !self.is_voter && chance.one_in(2),
                ..Acquire::new(nonce, seq, record_ttl)
            })),
            5..=6 => {
                let quorum = self.is_voter.then_some(Durability::Declared);
                Op::Renew(Renew { nonce, seq, record_ttl, quorum })
            }
            7 => Op::Release(Release { nonce, quorum: self.is_voter.then_some(Durability::Declared) }),
            8..=10 => {
                let loss =
                    self.marker.as_ref().map(|marker| marker.stamp).filter(|_| self.is_voter && !chance.one_in(2));
                let token = Token::new(floor.get() - 5 + chance.below(10)).expect("a small token");
                Op::Raise(Raise { nonce, token, loss })
            }
            12..=13 => Op::Finish(Box::new(Finish {
                nonce,
                token: floor,
                counter: self
                    .record
                    .as_ref()
                    .map_or(floor, |record| if chance.one_in(5) { floor } else { record.counter }),
                keep: Duration::from_millis(chance.of(&[8, 40])),
                owner: Owner::new("A").expect("a short label"),
                about: None,
                quorum: None,
            })),
            _ => Op::Read,
        }
    }

    fn membership(&mut self, chance: &mut Chance) -> Membership {
        self.stamps += 1;
        let shown = self.marker.as_ref().map(|marker| marker.stamp);
        Membership {
            quorum: if chance.one_in(30) { QuorumId([0x71; 16]) } else { QUORUM },
            max_ttl_ms: if chance.one_in(30) { MAX_TTL_MS + 1 } else { MAX_TTL_MS },
            durability: Durability::Declared,
            fresh: LossId([self.stamps; 16]),
            waited_out: if chance.one_in(2) { shown } else { None },
            bootstrap: if chance.one_in(6) { Bootstrap::Yes } else { Bootstrap::No },
            // Short enough to be over within a run.
            retention: if chance.one_in(6) { Duration::from_millis(20) } else { RETENTION },
        }
    }
}

fn at(node: &Node) -> Value {
    json!({ "uptime_ns": node.now.uptime.ns(), "unix_ms": node.now.unix_ms })
}

fn ask(node: &mut Node, op: &Op) -> Value {
    let told = node.told(op);
    let answer = node.serve(op);
    json!({ "at": at(node), "op": told, "outcome": node.heard(answer) })
}

fn wipe(node: &mut Node) -> Value {
    (node.record, node.marker, node.trusted) = (None, None, None);
    json!({ "at": at(node), "wipe": {} })
}

fn any_step(node: &mut Node, chance: &mut Chance) -> Value {
    node.pass(chance.of(&[0, 10_300, 200_000, 900_000, 3_000_000]));
    if chance.one_in(20) {
        return wipe(node);
    }
    let op = node.any_op(chance);
    ask(node, &op)
}

/// A loss, the vote after it, and raises of which one is meant for that loss; then a birth. Random steps rarely lead
/// there.
fn losses(node: &mut Node) -> Vec<Value> {
    let acquire = |node: &mut Node, nonce: u8, seq: u32, bootstrap: Bootstrap| {
        node.stamps += 1;
        Op::Acquire(Box::new(Acquire {
            floor: Token::new(node.now.unix_ms).expect("a small token"),
            owner: Owner::new("A").expect("a short label"),
            member: Some(Membership {
                quorum: QUORUM,
                max_ttl_ms: MAX_TTL_MS,
                durability: Durability::Declared,
                fresh: LossId([node.stamps; 16]),
                waited_out: node.marker.as_ref().map(|marker| marker.stamp),
                bootstrap,
                retention: RETENTION,
            }),
            ..Acquire::new(Nonce::from_bytes([nonce; 16]), Seq::new(seq), Duration::from_secs(8))
        }))
    };
    let raise = |token: u64, loss: Option<LossId>| {
        let token = Token::new(token).expect("a small token");
        Op::Raise(Raise { nonce: Nonce::from_bytes([1; 16]), token, loss })
    };
    let mut steps = vec![wipe(node)];
    for seq in [1, 2] {
        let op = acquire(node, 1, seq, Bootstrap::No);
        steps.push(ask(node, &op));
    }
    let meant = node.marker.as_ref().map(|marker| marker.stamp);
    for (token, loss) in [(20, None), (21, Some(LossId([0; 16]))), (22, meant)] {
        steps.push(ask(node, &raise(token, loss)));
        let op = acquire(node, 2, 1, Bootstrap::No);
        steps.push(ask(node, &op));
    }
    steps.push(wipe(node));
    for (nonce, seq) in [(1, 3), (1, 4), (2, 2)] {
        let op = acquire(node, nonce, seq, Bootstrap::Yes);
        steps.push(ask(node, &op));
    }
    steps
}

fn recorded() -> String {
    let run = |is_voter: bool, steps: &[Value]| {
        let lines: Vec<String> = steps.iter().map(Value::to_string).collect();
        format!("{{\"is_voter\":{is_voter},\"steps\":[\n{}\n]}}", lines.join(",\n"))
    };
    let by_chance = (0..RUNS).map(|number| {
        let (mut chance, mut node) = (Chance(number), Node::new(number % 3 > 0));
        let steps: Vec<Value> = (0..STEPS).map(|_| any_step(&mut node, &mut chance)).collect();
        run(node.is_voter, &steps)
    });
    let on_purpose = run(true, &losses(&mut Node::new(true)));
    format!("[\n{}\n]\n", by_chance.chain([on_purpose]).collect::<Vec<_>>().join(",\n"))
}

#[test]
fn playground_file_agrees_with_the_node() {
    let recorded = recorded();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(path(), &recorded).expect("the file can be written");
    }
    let stored = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(
        stored == recorded,
        "docs/playground/test/store.json is not what the core does; if the core was changed on purpose, run this test \
         with {BLESS}=1, and change docs/playground/store.mjs as well"
    );
}

#[test]
fn playground_file_covers_all_answers() {
    let recorded = recorded();
    let kinds = "acquired acquired_in_doubt renewed released finished raised read conflict done abstains denied";
    for kind in kinds.split(' ') {
        assert!(recorded.contains(&format!("\"{kind}\":")), "{kind}");
    }
}
