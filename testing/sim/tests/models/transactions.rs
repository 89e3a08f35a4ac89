//! Every order, within bounds, of what two clients, their connections and a Redis do to the tokens of one name, where
//! locks are taken by transactions. The clients' sessions, exchanges and memories are the real ones.
//!
//! Searched for: a token that was granted twice, or that is not above one that was told before the attempt began.

mod server;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, LockOp, Op, Outcome, Refusal};
use leasehold_core::{LockId, Nonce, RequestId, Resource, Seq, Token};
use leasehold_wire::Progress;
use leasehold_wire::redis::{Codec, Command, ConnectionMemory, Exchange, Settings};
use leasehold_wire::resp::Value;

use server::{Bug, Counter, Server};

const BEGAN_UNIX_MS: u64 = 1_767_225_600_000;
/// The most sends of one attempt.
const MAX_SENDS: u8 = 2;

/// Events that may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    attempts: [u8; 2],
    /// Connections that break.
    cuts: u8,
    /// Locks that run out.
    ends: u8,
    /// Counters that are lost or overwritten, failovers to a replica that lags, and rights that are taken away.
    losses: u8,
    /// Seconds that pass at once.
    passes: u8,
    /// How far the clock of the second client is behind; then no failover happens, which needs clocks that agree.
    behind_ms: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum State {
    Idle,
    Asking(Box<Attempt>),
    Held(Nonce),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Attempt {
    op: LockOp,
    exchange: Exchange,
    /// The replies of the server, once it has run the commands.
    replies: Option<Vec<Value>>,
    /// The highest token that anybody was told when the attempt began.
    told: u64,
    sends: u8,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Client {
    memory: ConnectionMemory,
    state: State,
    began: u8,
    /// The highest token that it has seen.
    seen: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    unix_ms: u64,
    server: Server,
    /// The replica, which has what was there when it was last in step.
    replica: Server,
    clients: [Client; 2],
    /// Commands of connections that are gone, which the server may still run.
    late: Vec<Vec<Command>>,
    told: u64,
    granted: BTreeMap<u64, Nonce>,
    budget: Budget,
}

/// A broken promise.
type Broken = String;

#[derive(Default)]
struct Found {
    states: usize,
    broken: Option<Broken>,
    reached: BTreeMap<&'static str, u64>,
}

impl Found {
    fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }
}

impl World {
    /// Both clients have had the lock twice in a row, so that their next attempts are transactions.
    fn new(budget: Budget) -> Self {
        let client = Client { memory: ConnectionMemory::default(), state: State::Idle, began: 0, seen: 0 };
        let mut world = Self {
            unix_ms: BEGAN_UNIX_MS,
            server: Server::new(),
            replica: Server::new(),
            clients: [client.clone(), client],
            late: Vec::new(),
            told: 0,
            granted: BTreeMap::new(),
            budget: Budget { attempts: [2, 2], ..budget },
        };
        let mut found = Found::default();
        for at in [0, 0, 1, 1] {
            world.begin(at);
            world.arrive(at, None);
            world.answer(at, &mut found).expect("nothing is in doubt");
            assert!(matches!(world.clients[at].state, State::Held(_)));
            world.server.lock = None;
            world.clients[at].state = State::Idle;
        }
        world.replica = world.server.clone();
        world.budget = budget;
        world
    }

    fn now_us(&self) -> u64 {
        self.unix_ms * 1_000
    }

    /// The wall clock of a client.
    fn clock(&self, at: usize) -> u64 {
        self.unix_ms - if at == 1 { self.budget.behind_ms } else { 0 }
    }

    fn begin(&mut self, at: usize) {
        self.budget.attempts[at] -= 1;
        // A counter that runs ahead of the clocks may be lost with tokens that no clock passes.
        self.unix_ms += 1;
        let unix_ms = self.clock(at);
        let client = &mut self.clients[at];
        client.began += 1;
        let mut nonce = [0; 16];
        nonce[..2].copy_from_slice(&[u8::try_from(at).unwrap(), client.began]);
        let acquire = Acquire {
            // As the core has it: tokens that the clock has passed need not be remembered.
            floor: Token::new((unix_ms * 1_000).max(client.seen + 1)).unwrap(),
            ..Acquire::new(Nonce::from_bytes(nonce), Seq::new(1), Duration::from_secs(30))
        };
        let resource = Resource::new("a").unwrap();
        let op = LockOp { lock: LockId::new(1), resource, op: Op::Acquire(Box::new(acquire)) };
        let exchange = exchange(&client.memory, &op, unix_ms);
        let told = self.told;
        client.state = State::Asking(Box::new(Attempt { op, exchange, replies: None, told, sends: 1 }));
    }

    fn arrive(&mut self, at: usize, bug: Option<Bug>) {
        let now_us = self.now_us();
        if let State::Asking(attempt) = &mut self.clients[at].state {
            attempt.replies = Some(self.server.run(attempt.exchange.commands(), now_us, bug));
        }
    }

    fn answer(&mut self, at: usize, found: &mut Found) -> Result<(), Broken> {
        let client = &mut self.clients[at];
        let State::Asking(attempt) = &mut client.state else { return Ok(()) };
        let replies = attempt.replies.take().expect("it has arrived");
        let transaction = attempt.exchange.commands().first().is_some_and(|command| command.name() == b"MULTI");
        match attempt.exchange.replies(replies) {
            Progress::Again => {
                found.reach("script after a transaction");
                Ok(())
            }
            Progress::Done(outcomes) => {
                client.memory.learn(&attempt.exchange, std::slice::from_ref(&attempt.op), &outcomes);
                self.done(at, &outcomes[0], transaction, found)
            }
        }
    }

    fn done(&mut self, at: usize, outcome: &Outcome, transaction: bool, found: &mut Found) -> Result<(), Broken> {
        let State::Asking(attempt) = &self.clients[at].state else { return Ok(()) };
        let nonce = attempt.op.op.nonce().unwrap();
        match outcome {
            Outcome::Applied(Applied::Acquired { counter }) => {
                let (token, told) = (counter.get(), attempt.told);
                found.reach(if transaction { "granted by a transaction" } else { "granted by a script" });
                self.clients[at].state = State::Held(nonce);
                self.clients[at].seen = self.clients[at].seen.max(token);
                if token <= told {
                    return Err(format!("{token} is not above {told}, which was told before"));
                }
                if self.granted.insert(token, nonce).is_some_and(|other| other != nonce) {
                    return Err(format!("{token} was granted twice"));
                }
                self.told = self.told.max(token);
            }
            Outcome::NotApplied(refusal) => {
                // What refuses must have left nothing.
                let hex = hex(&nonce);
                let stands = self.server.lock.as_ref().is_some_and(|value| value.starts_with(&hex));
                if stands && attempt.sends == 1 {
                    return Err(format!("refused, and the lock stands: {refusal:?}"));
                }
                match refusal {
                    Refusal::Conflict(seen) => {
                        let counter = seen.holding.as_ref().and_then(|holding| holding.counter).map_or(0, Token::get);
                        self.clients[at].seen = self.clients[at].seen.max(counter);
                        found.reach("refused for another");
                    }
                    Refusal::Unavailable(_) => found.reach("taken without a token, and given back"),
                    _ => found.reach("refused for a counter that is none"),
                }
                self.clients[at].state = State::Idle;
            }
            Outcome::Unknown(_) => self.send_again(at, found),
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn send_again(&mut self, at: usize, found: &mut Found) {
        let unix_ms = self.clock(at);
        let client = &mut self.clients[at];
        let State::Asking(attempt) = &mut client.state else { return };
        if attempt.sends == MAX_SENDS {
            client.state = State::Idle;
            return;
        }
        found.reach("sent again");
        attempt.sends += 1;
        attempt.exchange = exchange(&client.memory, &attempt.op, unix_ms);
        attempt.replies = None;
    }

    fn cut(&mut self, at: usize, bug: Option<Bug>, found: &mut Found) {
        let client = &mut self.clients[at];
        if bug != Some(Bug::MemoryOutlivesConnection) {
            client.memory = ConnectionMemory::default();
        }
        if let State::Asking(attempt) = &client.state {
            if attempt.replies.is_none() {
                self.late.push(attempt.exchange.commands().to_vec());
            }
            self.send_again(at, found);
        }
    }

    /// All worlds that one step leads to.
    fn steps(&self, bug: Option<Bug>, found: &mut Found) -> Vec<Result<Self, Broken>> {
        let mut next = Vec::new();
        let mut step = |change: &mut dyn FnMut(&mut Self, &mut Found) -> Result<(), Broken>| {
            let mut world = self.clone();
            next.push(change(&mut world, found).map(|()| world));
        };
        for at in [0, 1] {
            match &self.clients[at].state {
                State::Idle if self.budget.attempts[at] > 0 => step(&mut |world, _| {
                    world.begin(at);
                    Ok(())
                }),
                State::Idle => {}
                State::Asking(attempt) if attempt.replies.is_none() => step(&mut |world, _| {
                    world.arrive(at, bug);
                    Ok(())
                }),
                State::Asking(_) => step(&mut |world, found| world.answer(at, found)),
                State::Held(nonce) => step(&mut |world, _| {
                    if world.server.lock.as_ref().is_some_and(|value| value.starts_with(&hex(nonce))) {
                        world.server.lock = None;
                    }
                    world.clients[at].state = State::Idle;
                    Ok(())
                }),
            }
            if self.budget.cuts > 0 {
                step(&mut |world, found| {
                    world.budget.cuts -= 1;
                    world.cut(at, bug, found);
                    Ok(())
                });
            }
        }
        for number in 0..self.late.len() {
            step(&mut |world, found| {
                let commands = world.late.remove(number);
                world.server.run(&commands, world.now_us(), bug);
                found.reach("ran after its connection was gone");
                Ok(())
            });
        }
        if self.budget.ends > 0 && self.server.lock.is_some() {
            step(&mut |world, _| {
                world.budget.ends -= 1;
                world.server.lock = None;
                Ok(())
            });
        }
        if self.budget.passes > 0 {
            step(&mut |world, _| {
                world.budget.passes -= 1;
                world.unix_ms += 2_000;
                Ok(())
            });
        }
        if self.replica != self.server {
            step(&mut |world, _| {
                world.replica = world.server.clone();
                Ok(())
            });
        }
        if self.budget.losses > 0 {
            for loss in [Counter::None, Counter::Wrong] {
                step(&mut |world, _| {
                    world.budget.losses -= 1;
                    world.unix_ms += 1;
                    world.server.counter = loss.clone();
                    Ok(())
                });
            }
            if self.budget.behind_ms == 0 {
                step(&mut |world, found| {
                    world.budget.losses -= 1;
                    world.unix_ms += 1;
                    world.server = world.replica.clone();
                    [0, 1].into_iter().for_each(|at| world.cut(at, bug, found));
                    world.late.clear();
                    Ok(())
                });
            }
            step(&mut |world, _| {
                world.budget.losses -= 1;
                world.server.allows_multi = false;
                Ok(())
            });
        }
        next
    }
}

fn exchange(memory: &ConnectionMemory, op: &LockOp, unix_ms: u64) -> Exchange {
    let codec = Codec::new(Settings::default());
    let ops = std::slice::from_ref(op);
    codec.begin_on(memory, RequestId::new(1), ops, Duration::from_secs(1), unix_ms).unwrap()
}

fn hex(nonce: &Nonce) -> String {
    nonce.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

fn search(name: &str, budget: Budget, bug: Option<Bug>) -> Found {
    let began = std::time::Instant::now();
    let (mut found, mut seen) = (Found::default(), HashSet::new());
    let mut open = vec![World::new(budget)];
    while let Some(world) = open.pop() {
        for next in world.steps(bug, &mut found) {
            match next {
                Ok(next) if seen.insert(digest(&next)) => open.push(next),
                Ok(_) => {}
                Err(broken) => {
                    found.broken = Some(broken);
                    break;
                }
            }
        }
        if found.broken.is_some() {
            break;
        }
    }
    found.states = seen.len();
    println!("{name}: {} states in {:.1?}, {:?}, {:?}", found.states, began.elapsed(), found.reached, found.broken);
    found
}

const CALM: Budget = Budget { attempts: [2, 2], cuts: 0, ends: 1, losses: 0, passes: 1, behind_ms: 0 };
const CUT: Budget = Budget { cuts: 1, passes: 0, attempts: [2, 1], ..CALM };
const LOST: Budget = Budget { losses: 1, passes: 0, attempts: [2, 1], ..CALM };
const LOST_BY_CLOCKS_APART: Budget = Budget { behind_ms: 10_000, attempts: [1, 2], ..LOST };

#[test]
fn tokens_grow_whatever_is_lost() {
    let mut reached = BTreeMap::new();
    for (name, budget) in [
        ("calm", CALM),
        ("connections break", CUT),
        ("counters are lost", LOST),
        ("counters are lost, and clocks are apart", LOST_BY_CLOCKS_APART),
        ("both", Budget { attempts: [1, 1], cuts: 1, ..LOST }),
        ("two losses", Budget { attempts: [1, 1], losses: 2, ..LOST }),
    ] {
        let found = search(name, budget, None);
        assert_eq!(found.broken, None, "{name}");
        found.reached.into_iter().for_each(|(what, count)| *reached.entry(what).or_insert(0) += count);
    }
    for what in [
        "granted by a transaction",
        "granted by a script",
        "script after a transaction",
        "refused for another",
        "refused for a counter that is none",
        "taken without a token, and given back",
        "sent again",
        "ran after its connection was gone",
    ] {
        assert!(reached.contains_key(what), "never reached: {what}");
    }
}

fn finds(bug: Bug, budget: Budget, words: &str) {
    let broken = search(&format!("{bug:?}"), budget, Some(bug)).broken.expect("a broken promise");
    assert!(broken.contains(words), "{bug:?}: {broken}");
}

#[test]
fn search_finds_script_that_tells_a_low_counter_of_its_own_lock() {
    finds(Bug::OwnLockIgnoresFloor, LOST, "is not above");
}

#[test]
fn search_finds_lost_counter_that_no_clock_passes() {
    finds(Bug::NoClock, LOST_BY_CLOCKS_APART, "was granted twice");
}

#[test]
fn search_finds_lock_that_is_kept_without_a_token() {
    finds(Bug::KeepsLockWithoutToken, LOST, "the lock stands");
}

#[test]
fn search_finds_memory_that_outlives_its_connection() {
    finds(Bug::MemoryOutlivesConnection, LOST, "twice");
}
