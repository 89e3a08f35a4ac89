//! The model of queues of waiters against a real Redis: the same random operations on both, and all that can be seen
//! compared. The real one is spoken to by the sessions of clients, and their channels have real subscribers. Both have the time
//! that the test sets.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::node::NodeMemory;
use leasehold_core::op::{Acquire, Applied, Finish, LockOp, Op, Outcome, Refusal, Release};
use leasehold_core::queue::{self, Waiter, serve_in_queue};
use leasehold_core::store::{BootId, Record, StoreNow};
use leasehold_core::{LockId, Monotonic, Nonce, Owner, RequestId, Resource, Seq, Token};
use leasehold_servers::redis::Server;
use leasehold_servers::resp::{Connection, Reply};
use leasehold_sim::clock::TrueTime;
use leasehold_sim::rng::{Draws, Stream};
use leasehold_sim::store::{Answer, Ask, By, ForeignAct, ForeignAnswer, Form, Kind, Mark, Spec, Store, Ticket};
use leasehold_wire::Progress;
use leasehold_wire::redis::{ClientId, Codec, Command, ConnectionMemory, Settings, Subscription};
use leasehold_wire::resp::Value;

const SEEDS: u64 = 20;
const STEPS: usize = 120;
const CLIENTS: u64 = 4;
/// No lease runs out by itself.
const TTL: Duration = Duration::from_secs(40 * 3_600);
/// A real lock is free for others, and reserved, for so many milliseconds longer than the model's, so that no step is late for it.
const PATIENCE: i64 = 600_000;
const CALLER: StoreNow = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::FAR, unix_ms: 0 };

fn resource() -> Resource {
    Resource::new("job").unwrap()
}

fn client(n: u64) -> ClientId {
    let mut random = [0; 16];
    random[0] = u8::try_from(n).unwrap();
    ClientId::new(random)
}

/// A client's name as it stands in tickets.
fn name(n: u64) -> String {
    format!("{n:02x}{}", "0".repeat(30))
}

fn shown(ticket: Ticket) -> String {
    format!("{}:{}", name(ticket.client), ticket.lock.get())
}

struct Pair {
    server: Server,
    connection: Connection,
    model: Store,
    codec: Codec,
    /// Those who listen.
    subscribers: BTreeMap<u64, Connection>,
    asked: u64,
    nonces: u64,
    generation: u64,
    at: TrueTime,
}

impl Pair {
    fn new() -> Self {
        let server = Server::start();
        let connection = server.connect();
        Self {
            connection,
            server,
            model: Store::new(&Spec::of(Kind::Redis)),
            codec: Codec::new(Settings::default()),
            subscribers: BTreeMap::new(),
            asked: 0,
            nonces: 0,
            generation: 0,
            at: TrueTime(0),
        }
    }

    fn send(&mut self, command: &Command) -> Reply {
        let words: Vec<&[u8]> = command.words().collect();
        self.connection.command(&words).unwrap()
    }

    fn listens(&mut self, n: u64, on: bool) {
        if on && !self.subscribers.contains_key(&n) {
            let mut connection = self.server.connect();
            assert!(!connection.command(&[&b"SUBSCRIBE"[..], &client(n).channel()]).unwrap().is_error());
            self.subscribers.insert(n, connection);
        } else if !on && let Some(connection) = self.subscribers.remove(&n) {
            drop(connection);
            let channel = String::from_utf8(client(n).channel()).unwrap();
            while self.server.command(&["PUBSUB", "NUMSUB", &channel]).array()[1].integer() > 0 {
                std::thread::yield_now();
            }
        }
        self.model.listens(n, on, self.at);
    }

    /// Asks both, and compares what they say.
    fn ask(&mut self, n: u64, lock: LockId, op: Op) -> Outcome {
        self.asked += 1;
        // Clients believe that they are subscribed, and the server knows better.
        self.generation += 1;
        let subscription = Subscription { client: client(n), generation: self.generation };
        // A new connection each time: a transaction takes a free lock without a look at the queue.
        let mut memory = ConnectionMemory::default();
        memory.listens(Some(subscription));
        let ops = [LockOp { lock, resource: resource(), op }];
        let id = RequestId::new(self.asked);
        let mut exchange = self.codec.begin_on(&memory, id, &ops, Duration::from_secs(9), 0).unwrap();
        let real = loop {
            let commands = exchange.commands().to_vec();
            let replies = commands.iter().map(|command| value(self.send(command))).collect();
            if let Progress::Done(mut outcomes) = exchange.replies(replies) {
                break outcomes.remove(0);
            }
        };
        let op = match (&ops[0].op, &real) {
            (Op::Acquire(acquire), Outcome::Applied(Applied::Acquired { counter })) => {
                Op::Acquire(Box::new(Acquire { floor: *counter, ..(**acquire).clone() }))
            }
            (op, _) => op.clone(),
        };
        let ticket = matches!(&op, Op::Acquire(acquire) if acquire.in_queue).then_some(Ticket { client: n, lock });
        let ask = Ask { resource: &resource(), op: &op, form: Form::Floor, at: self.at, caller: CALLER, ticket };
        let Answer::Done(model) = self.model.ask(&ask) else { panic!("one request") };
        let kind = |outcome: &Outcome| match outcome {
            Outcome::Applied(applied) => format!("{applied:?}"),
            Outcome::NotApplied(Refusal::Conflict(seen)) => {
                format!("conflict with {:?}", seen.holding.as_ref().map(|holding| holding.holder))
            }
            other => format!("{other:?}"),
        };
        assert_eq!(kind(&real), kind(&model), "{op:?}");
        let place = self.model.queue(&resource(), self.at).iter().position(|other| Some(*other) == ticket);
        // Who does not listen is told of no place, though an earlier ticket may stand in the queue.
        let refused = matches!(real, Outcome::NotApplied(_)) && self.subscribers.contains_key(&n);
        assert_eq!(exchange.place(), place.filter(|_| refused).map(|place| place as u64 + 1), "{op:?}");
        let before =
            ticket.filter(|_| refused).and_then(|ticket| self.model.reserved_before(&resource(), ticket, self.at));
        assert_eq!(exchange.reserved().is_some(), before.is_some(), "{op:?} {before:?}");
        real
    }

    fn leave(&mut self, ticket: Ticket) {
        let command = Codec::leave(&client(ticket.client), &resource(), ticket.lock);
        assert!(!self.send(&command).is_error());
        self.model.leave(&resource(), ticket, self.at);
    }

    /// Compares the lock, the queue and the messages.
    fn compare(&mut self) {
        let queue: Vec<String> = self.model.queue(&resource(), self.at).iter().map(|ticket| shown(*ticket)).collect();
        let key = String::from_utf8(Codec::queue_key(&resource())).unwrap();
        let real = self.server.command(&["ZRANGE", &key, "0", "-1"]);
        assert_eq!(real.array().iter().map(Reply::text).collect::<Vec<_>>(), queue);
        let told = self.model.take_messages();
        for (ticket, _, after) in &told {
            let subscriber = self.subscribers.get_mut(&ticket.client).expect("it was told, so it listens");
            // A test message may come before.
            loop {
                let message = subscriber.receive().unwrap();
                let payload = message.array()[2].text();
                if !payload.is_empty() {
                    assert_eq!(Codec::reserved_by(payload.as_bytes()), Some((resource(), ticket.lock, *after)));
                    break;
                }
            }
        }
        let value = self.server.command(&["GET", "job"]);
        match self.model.stored(&resource(), self.at, &CALLER).map(|stored| stored.by) {
            Some(By::Attempt(nonce)) => assert!(value.text().starts_with(&hex(nonce)), "{value:?}"),
            Some(By::Foreign(by)) => assert_eq!(value.text(), other(by)),
            None if self.model.reserved_for(&resource(), self.at).is_some() => {
                assert!(value.text().starts_with("reserved:"), "{value:?}");
                if let Some((ticket, _, _)) = told.last() {
                    assert_eq!(value.text(), format!("reserved:{}", shown(*ticket)));
                }
            }
            None => assert_eq!(value, Reply::Nil),
        }
        self.set_clock();
    }

    /// Another library takes the lock if it is free.
    fn take_as_another(&mut self, by: u32) {
        let mark = Mark { by, count: 1 };
        let model = self.model.foreign(&resource(), &ForeignAct::AcquireNew { mark, ttl: TTL }, self.at);
        let ttl = TTL.as_millis().to_string();
        let real = self.server.command(&["SET", "job", &other(by), "NX", "PX", &ttl]);
        assert_eq!(matches!(model, ForeignAnswer::Held(_)), real != Reply::Nil);
    }

    /// Time passes for both.
    fn pass(&mut self, time: Duration) {
        self.at = self.at.plus(time);
        self.set_clock();
    }

    /// Has the server count from where the model does: its own time does not matter.
    fn set_clock(&self) {
        let (queue, found) = (Codec::queue_key(&resource()), self.server.command(&["GET", "job"]));
        let hands = format!("{}\u{1f}hands", String::from_utf8(queue).unwrap());
        let stands = self.server.command(&["EXISTS", &hands]).integer() == 1;
        match self.model.hands_left(&resource(), self.at) {
            Some(left) => {
                assert!(stands, "nobody remembers that the lock passes from hand to hand");
                let is_open = self.model.is_open_for_others(&resource(), self.at);
                let left = i64::try_from(left.as_millis()).unwrap() + if is_open { PATIENCE } else { 0 };
                self.server.command(&["PEXPIRE", &hands, &left.to_string()]);
            }
            None => drop(self.server.command(&["DEL", &hands])),
        }
        if matches!(found, Reply::Bulk(value) if value.starts_with(b"reserved:")) {
            match self.model.reserved_for(&resource(), self.at) {
                Some(_) => self.server.command(&["PEXPIRE", "job", &PATIENCE.to_string()]),
                None => self.server.command(&["DEL", "job"]),
            };
        }
    }

    fn nonce(&mut self) -> Nonce {
        self.nonces += 1;
        let mut bytes = [0x5a; 16];
        bytes[..8].copy_from_slice(&self.nonces.to_le_bytes());
        Nonce::from_bytes(bytes)
    }
}

fn hex(nonce: Nonce) -> String {
    nonce.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value(reply: Reply) -> Value {
    match reply {
        Reply::Status(text) => Value::Simple(text.into()),
        Reply::Error(text) => Value::Error(text),
        Reply::Integer(number) => Value::Integer(number),
        Reply::Bulk(bytes) => Value::Bulk(bytes),
        Reply::Nil => Value::Nil,
        Reply::Array(parts) => Value::Array(parts.into_iter().map(value).collect()),
    }
}

/// The value of a lock that another library has.
fn other(by: u32) -> String {
    format!("other-{by}")
}

fn acquire(nonce: Nonce, in_queue: bool) -> Op {
    Op::Acquire(Box::new(Acquire {
        owner: Owner::new("me").unwrap(),
        in_queue,
        ..Acquire::new(nonce, Seq::new(1), TTL)
    }))
}

fn run(seed: u64) {
    let mut draws: Draws = Stream::new(seed, "lines").draws();
    let mut pair = Pair::new();
    (0..CLIENTS).for_each(|n| pair.listens(n, true));
    // Who shows all messages makes nobody alive.
    let mut tool = pair.server.connect();
    if seed % 2 == 1 {
        assert!(!tool.command(&[&b"PSUBSCRIBE"[..], b"*"]).unwrap().is_error());
    }
    let mut holder: Option<(Nonce, Token)> = None;
    for step in 0..STEPS {
        // While the lock is free for others, the first in the queue asks, leaves or dies in half of the steps: that would be drawn too seldom.
        let is_early = pair.model.is_open_for_others(&resource(), pair.at) && draws.one_in(2);
        let first = pair.model.queue(&resource(), pair.at).first().copied().filter(|_| is_early);
        let drawn = Ticket { client: draws.below(CLIENTS), lock: LockId::new(draws.below(3)) };
        let Ticket { client: n, lock } = first.unwrap_or(drawn);
        match if first.is_some() { *draws.pick(&[0, 0, 9, 10]) } else { draws.below(18) } {
            0..=5 => {
                let (nonce, in_queue) = (pair.nonce(), !draws.one_in(6));
                if let Outcome::Applied(Applied::Acquired { counter }) = pair.ask(n, lock, acquire(nonce, in_queue)) {
                    holder = Some((nonce, counter));
                }
            }
            6..=8 => {
                if let Some((nonce, counter)) = holder.take() {
                    let release = Op::Release(Release { nonce, quorum: None });
                    let finish = Finish {
                        nonce,
                        token: Token::new(1).unwrap(),
                        counter,
                        keep: Duration::from_secs(600),
                        owner: Owner::new("me").unwrap(),
                        about: None,
                        quorum: None,
                    };
                    pair.ask(n, lock, if draws.one_in(4) { Op::Finish(Box::new(finish)) } else { release });
                }
            }
            9 => pair.leave(Ticket { client: n, lock }),
            10 => pair.listens(n, first.is_none() && draws.one_in(2)),
            11 => pair.take_as_another(step as u32),
            // Over are a gap, a reservation, the time until the next gap, and what is remembered.
            12..=15 => pair.pass(Duration::from_millis(*draws.pick(&[60, 600, 5_500, 5_500, 70_000]))),
            _ if draws.one_in(3) => {
                // The lock runs out, or is deleted by somebody else.
                pair.server.command(&["DEL", "job"]);
                pair.model.evict(&resource());
                holder = None;
            }
            _ => {}
        }
        println!("seed {seed}, step {step}");
        pair.compare();
    }
}

#[test]
fn lines_of_the_model_agree_with_a_real_server() {
    (0..SEEDS).for_each(run);
}

/// A request and the commands inside of its script, as the server counts them.
fn commands(server: &Server) -> u64 {
    let names = ["evalsha", "eval", "getrange", "exists", "pttl", "type", "time", "set", "pexpire", "del", "publish"];
    let of_queues = ["zadd", "zrank", "zrem", "zpopmin", "pubsub|numsub"];
    names.iter().chain(&of_queues).map(|name| server.commands_processed(name)).sum()
}

#[test]
fn a_turn_costs_three_requests_and_twenty_commands() {
    let mut pair = Pair::new();
    (0..3).for_each(|n| pair.listens(n, true));
    let [first, second, third] = [0, 1, 2].map(|n| (n, LockId::new(0)));
    let (holder, next) = (pair.nonce(), pair.nonce());
    pair.ask(first.0, first.1, acquire(holder, true));
    // Somebody waits already, as where a lock is in demand.
    let nonce = pair.nonce();
    pair.ask(second.0, second.1, acquire(nonce, true));
    let before = commands(&pair.server);
    let nonce = pair.nonce();
    pair.ask(third.0, third.1, acquire(nonce, true));
    pair.ask(first.0, first.1, Op::Release(Release { nonce: holder, quorum: None }));
    let granted = pair.ask(second.0, second.1, acquire(next, true));
    assert!(matches!(granted, Outcome::Applied(_)), "{granted:?}");
    // These happen once: the question and the message that test a channel, the digest of a script that the server does not have, and
    // the key that says since when the lock passes from hand to hand.
    let once = 4;
    assert_eq!(commands(&pair.server) - before - once, 20);
}

/// Where a queue on Redis does something else than the core's queue, and what makes that harmless. The test below lets
/// nothing else pass.
const ALLOWED: [(Difference, &str); 3] = [
    (Difference::RedeemsOnlyInQueue, "an acquire without a place meets its own reservation as that of another"),
    (
        Difference::KeepsTheTicketOfWhoTookTheLock,
        "an acquire without a place does not look at the line; its client declines",
    ),
    (
        Difference::LooksAtNoTimes,
        "a waiter that was not seen for 10 s keeps its place: whether it listens is asked in its turn",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    RedeemsOnlyInQueue,
    KeepsTheTicketOfWhoTookTheLock,
    LooksAtNoTimes,
}

fn is_allowed(difference: Difference) -> bool {
    ALLOWED.iter().any(|(allowed, _)| *allowed == difference)
}

/// The same operations on a real Redis and on the core's queue, and every outcome, turn and place compared. All clients listen.
fn run_beside_the_core(seed: u64) {
    let mut draws: Draws = Stream::new(seed, "lines beside the core").draws();
    let mut pair = Pair::new();
    (0..CLIENTS).for_each(|n| pair.listens(n, true));
    let mut now = StoreNow { boot: BootId([1; 16]), uptime: Monotonic::default(), unix_ms: 1 };
    let (mut record, mut queue): (Option<Record>, Vec<Waiter>) = (None, Vec::new());
    let of_core = |n: u64, lock: LockId| {
        let mut bytes = [0; 16];
        bytes[0] = u8::try_from(n).unwrap();
        queue::Ticket { client: queue::ClientId(bytes), lock }
    };
    let text = |ticket: queue::Ticket| shown(Ticket { client: ticket.client.0[0].into(), lock: ticket.lock });
    let mut holder: Option<Nonce> = None;
    for step in 0..STEPS {
        let (n, lock) = (draws.below(CLIENTS), LockId::new(draws.below(3)));
        let ticket = of_core(n, lock);
        let does = |op: &Op, record: &mut Option<Record>, queue: &mut Vec<Waiter>| {
            let decided = serve_in_queue(record.as_ref(), NodeMemory::default(), queue, ticket, op, &now);
            *record = decided.served.record.or(record.take());
            *queue = decided.queue.unwrap_or(std::mem::take(queue));
            matches!(decided.served.outcome, Outcome::Applied(_))
        };
        match draws.below(12) {
            0..=5 => {
                let (nonce, in_queue) = (pair.nonce(), !draws.one_in(6));
                let had_place = queue.iter().any(|waiter| waiter.ticket == ticket);
                let op = acquire(nonce, in_queue);
                let granted = matches!(pair.ask(n, lock, op.clone()), Outcome::Applied(_));
                let is_own = queue::reserved_for(&queue, &now) == Some(ticket);
                if is_own && !in_queue && is_allowed(Difference::RedeemsOnlyInQueue) {
                    assert!(!granted);
                    continue;
                }
                assert_eq!(does(&op, &mut record, &mut queue), granted, "seed {seed}, step {step}: {op:?}");
                if granted {
                    holder = Some(nonce);
                    if had_place && !in_queue && is_allowed(Difference::KeepsTheTicketOfWhoTookTheLock) {
                        pair.leave(Ticket { client: n, lock });
                    }
                }
            }
            6..=8 => {
                if let Some(nonce) = holder.take() {
                    let op = Op::Release(Release { nonce, quorum: None });
                    pair.ask(n, lock, op.clone());
                    assert!(does(&op, &mut record, &mut queue));
                }
            }
            9 => {
                pair.leave(Ticket { client: n, lock });
                queue = queue::leave(&queue, ticket, &now).0.unwrap_or(queue);
            }
            10 if queue::reserved_for(&queue, &now).is_some() => {
                // A turn is missed.
                pair.server.command(&["DEL", "job"]);
                pair.model.evict(&resource());
                now.uptime = now.uptime.plus(queue::RESERVED);
            }
            _ if is_allowed(Difference::LooksAtNoTimes) => queue.iter_mut().for_each(|waiter| waiter.seen = now.uptime),
            _ => {}
        }
        pair.compare();
        let key = String::from_utf8(Codec::queue_key(&resource())).unwrap();
        let waits: Vec<String> =
            pair.server.command(&["ZRANGE", &key, "0", "-1"]).array().iter().map(Reply::text).collect();
        let in_core: Vec<String> = queue::waiting(&queue, &now).map(|waiter| text(waiter.ticket)).collect();
        assert_eq!(waits, in_core, "seed {seed}, step {step}");
        let value = pair.server.command(&["GET", "job"]);
        let reserved = queue::reserved_for(&queue, &now).map(|ticket| format!("reserved:{}", text(ticket)));
        let on_redis = (value != Reply::Nil).then(|| value.text()).filter(|value| value.starts_with("reserved:"));
        assert_eq!(on_redis, reserved, "seed {seed}, step {step}");
    }
}

#[test]
fn lines_of_a_real_server_agree_with_the_core() {
    (0..SEEDS).for_each(run_beside_the_core);
}
