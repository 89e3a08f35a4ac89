//! The statements of queues against the core's own queue of waiters: the same random operations on both, at times that the
//! test sets, and all that can be seen compared.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leasehold_core::node::NodeMemory;
use leasehold_core::op::{Acquire, Applied, LockOp, Op, Outcome, Refusal, Release};
use leasehold_core::queue::{self, ClientId, RESERVED, Ticket, UNSEEN, Waiter, serve_in_queue};
use leasehold_core::store::{BootId, Record, StoreNow, seen};
use leasehold_core::{LockId, Monotonic, Nonce, Owner, Resource, Seq};
use leasehold_wire::Progress;
use leasehold_wire::postgres::{Asker, Codec, Field, Notify, Param, Settings, Statement, Told};
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};

use crate::Rig;
use crate::common::ms;

/// Longer than any wait here, unless a test sets the time.
const TTL: Duration = Duration::from_secs(30);
const SEEDS: u64 = 5;
const STEPS: usize = 70;

fn resource() -> Resource {
    Resource::new("job").unwrap()
}

const fn client(n: u64) -> ClientId {
    ClientId([n as u8; 16])
}

/// Clients by hand on one connection.
struct Hand {
    db: postgres::Client,
    codec: Codec,
    /// The time by which statements are read, in microseconds since 1970; the server's own without one.
    now_us: Option<u64>,
}

impl Hand {
    fn new(rig: &Rig) -> Self {
        let settings = Settings { schema: rig.schema(), notify: Notify::On, queues: true, ..Settings::default() };
        Self { db: rig.server.connect(), codec: Codec::new(&settings), now_us: None }
    }

    fn query(&mut self, statement: &Statement) -> Vec<Vec<Field>> {
        let Statement { sql, params } = statement;
        let sql = match self.now_us {
            Some(us) => sql.replace(
                "clock_timestamp()",
                &format!("(timestamptz 'epoch' + {us}::bigint * interval '1 microsecond')"),
            ),
            None => sql.clone(),
        };
        let params: Vec<(&(dyn ToSql + Sync), Type)> = params.iter().map(parameter).collect();
        let rows = self.db.query_typed(&sql, &params).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter().map(|row| (0..row.len()).map(|at| field(row, at)).collect()).collect()
    }

    fn see(&mut self, client: ClientId) {
        let statement = self.codec.see(client);
        self.query(&statement);
    }

    fn ask(&mut self, ticket: Ticket, op: Op) -> (Outcome, Told) {
        let asker = Asker { client: ticket.client, is_seen: false, has_place: false };
        let ops = [LockOp { lock: ticket.lock, resource: resource(), op }];
        let mut exchange = self.codec.begin_in_queue(&ops, TTL, asker);
        loop {
            let statement = exchange.statement().clone();
            if let Progress::Done(mut outcomes) = exchange.answer(Ok(self.query(&statement))) {
                return (outcomes.remove(0), exchange.told());
            }
        }
    }

    fn leave(&mut self, ticket: Ticket) -> Option<Ticket> {
        let statement = self.codec.leave(&resource(), ticket, TTL);
        Codec::left(&Ok(self.query(&statement)))
    }
}

fn parameter(param: &Param) -> (&(dyn ToSql + Sync), Type) {
    match param {
        Param::Text(text) => (text, Type::TEXT),
        Param::Bytea(bytes) => (bytes, Type::BYTEA),
        Param::Int8(number) => (number, Type::INT8),
        Param::Bool(value) => (value, Type::BOOL),
        Param::TextArray(texts) => (texts, Type::TEXT_ARRAY),
        Param::ByteaArray(all) => (all, Type::BYTEA_ARRAY),
        Param::Int8Array(numbers) => (numbers, Type::INT8_ARRAY),
    }
}

fn field(row: &postgres::Row, at: usize) -> Field {
    let read = match *row.columns()[at].type_() {
        Type::TEXT => row.get::<_, Option<String>>(at).map(Field::Text),
        Type::BYTEA => row.get::<_, Option<Vec<u8>>>(at).map(Field::Bytes),
        Type::INT8 => row.get::<_, Option<i64>>(at).map(Field::Int),
        Type::BOOL => row.get::<_, Option<bool>>(at).map(Field::Bool),
        _ => None,
    };
    read.unwrap_or(Field::Null)
}

fn acquire(nonce: u64, seq: u32, in_queue: bool) -> Op {
    Op::Acquire(Box::new(Acquire {
        owner: Owner::new("hand").unwrap(),
        in_queue,
        ..Acquire::new(nonce_of(nonce), Seq::new(seq), TTL)
    }))
}

fn release(nonce: u64) -> Op {
    Op::Release(Release { nonce: nonce_of(nonce), quorum: None })
}

fn nonce_of(n: u64) -> Nonce {
    Nonce::from_bytes((u128::from(n) + 1).to_be_bytes())
}

fn is_granted(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Applied(Applied::Acquired { .. }) => true,
        Outcome::NotApplied(Refusal::Conflict(_)) => false,
        other => panic!("{other:?}"),
    }
}

/// A queue in the core, and the same on the server.
struct Pair {
    hand: Hand,
    now: StoreNow,
    record: Option<Record>,
    queue: Vec<Waiter>,
    draws: Draws,
    /// The next client, and those that are alive, with the number of what each acquires.
    next: u64,
    alive: BTreeMap<u64, u64>,
    /// The attempts that were granted, or have ended.
    attempts: u64,
    holder: Option<u64>,
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

impl Pair {
    fn new(rig: &Rig, seed: u64) -> Self {
        let unix_ms = 1_800_000_000_000;
        let now = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(unix_ms * 1_000_000), unix_ms };
        let mut pair = Self {
            hand: Hand::new(rig),
            now,
            record: None,
            queue: Vec::new(),
            draws: Draws(seed),
            next: 0,
            alive: BTreeMap::new(),
            attempts: 0,
            holder: None,
        };
        pair.hand.db.batch_execute(&format!("TRUNCATE {}", rig.table())).unwrap();
        pair.pass(Duration::ZERO);
        (0..4).for_each(|_| pair.born());
        pair
    }

    fn born(&mut self) {
        self.attempts += 1;
        self.alive.insert(self.next, self.attempts);
        self.hand.see(client(self.next));
        self.next += 1;
    }

    /// Time goes on, and who is alive is seen.
    fn pass(&mut self, time: Duration) {
        self.now.uptime = self.now.uptime.plus(time);
        self.now.unix_ms = self.now.uptime.ns() / 1_000_000;
        self.hand.now_us = Some(self.now.uptime.ns() / 1_000);
        let alive: BTreeSet<_> = self.alive.keys().map(|n| client(*n)).collect();
        for waiter in self.queue.iter_mut().filter(|waiter| alive.contains(&waiter.ticket.client)) {
            waiter.seen = self.now.uptime;
        }
        alive.into_iter().for_each(|client| self.hand.see(client));
    }

    fn ticket(&self, n: u64) -> Ticket {
        Ticket { client: client(n), lock: LockId::new(self.alive[&n]) }
    }

    /// One operation on both. Tells if it is granted.
    fn ask(&mut self, ticket: Ticket, op: Op) -> bool {
        let decided = serve_in_queue(self.record.as_ref(), NodeMemory::default(), &self.queue, ticket, &op, &self.now);
        let is_acquire = matches!(op, Op::Acquire(_));
        let (outcome, told) = self.hand.ask(ticket, op);
        self.record = decided.served.record.or(self.record.take());
        self.queue = decided.queue.unwrap_or(std::mem::take(&mut self.queue));
        if is_acquire {
            assert_eq!(is_granted(&outcome), is_granted(&decided.served.outcome));
            let place = queue::waiting(&self.queue, &self.now).position(|waiter| waiter.ticket == ticket);
            let told = told.places.first().map(|(_, lock, place)| (*lock, *place));
            assert_eq!(told, place.map(|at| (ticket.lock, at as u64 + 1)));
            return is_granted(&outcome);
        }
        assert_eq!(outcome, Outcome::Applied(Applied::Released));
        assert_eq!(told.turns.first().map(|(_, ticket)| *ticket), decided.turn);
        true
    }

    fn step(&mut self) -> String {
        let clients: Vec<u64> = self.alive.keys().copied().collect();
        let n = clients[self.draws.below(clients.len() as u64) as usize];
        let ticket = self.ticket(n);
        match self.draws.below(12) {
            0..5 if self.holder != Some(n) => {
                // Who stands in the queue stays there.
                let in_queue = self.draws.below(5) > 0 || self.queue.iter().any(|waiter| waiter.ticket == ticket);
                if self.ask(ticket, acquire(self.alive[&n], 1, in_queue)) {
                    self.holder = Some(n);
                }
                format!("{n} acquires, in the queue: {in_queue}")
            }
            0..8 => {
                let Some(n) = self.holder.take_if(|n| clients.contains(n)) else { return "nothing".to_owned() };
                if seen(self.record.as_ref(), &self.now)
                    .held()
                    .is_some_and(|held| held.is_of(&nonce_of(self.alive[&n])))
                {
                    self.ask(self.ticket(n), release(self.alive[&n]));
                }
                self.attempts += 1;
                self.alive.insert(n, self.attempts);
                format!("{n} releases")
            }
            8 if self.holder != Some(n) => {
                let (queue, turn) = queue::leave(&self.queue, ticket, &self.now);
                self.queue = queue.unwrap_or(std::mem::take(&mut self.queue));
                let told = self.hand.leave(ticket);
                // A turn that was told before may be told again.
                assert!(turn.is_none() || told == turn, "{told:?} {turn:?}");
                assert!(told.is_none() || told == queue::reserved_for(&self.queue, &self.now), "{told:?}");
                self.attempts += 1;
                self.alive.insert(n, self.attempts);
                format!("{n} leaves")
            }
            9 if self.attempts.is_multiple_of(2) => {
                // A late copy of an attempt that is over, or is the holder's: it waits for nothing.
                let nonce = self.draws.below(self.attempts) + 1;
                let is_open = self.alive.iter().any(|(n, open)| *open == nonce && self.holder != Some(*n));
                if is_open || self.queue.iter().any(|waiter| waiter.ticket == ticket) {
                    return "nothing".to_owned();
                }
                self.ask(ticket, acquire(nonce, 1, true));
                format!("a copy of {nonce} arrives late")
            }
            9 if clients.len() > 2 => {
                self.alive.remove(&n);
                self.born();
                format!("{n} dies")
            }
            _ => {
                let times = [ms(1), ms(120), RESERVED, RESERVED + ms(1), UNSEEN / 4, UNSEEN / 2, UNSEEN, TTL];
                let time = times[self.draws.below(times.len() as u64) as usize];
                self.pass(time);
                format!("{time:?} pass")
            }
        }
    }

    fn compare(&mut self) {
        let waiting: Vec<_> = queue::waiting(&self.queue, &self.now).map(|waiter| waiter.ticket).collect();
        let reserved = queue::reserved_for(&self.queue, &self.now);
        let statement = self.hand.codec.ask_waiting(&resource());
        let shown = Codec::waiting(&Ok(self.hand.query(&statement))).map_or(0, |(waiting, _)| waiting);
        assert_eq!(shown, waiting.len() as u64);
        let is_free = seen(self.record.as_ref(), &self.now).held().is_none();
        for n in self.alive.keys().copied().collect::<Vec<_>>() {
            let ticket = self.ticket(n);
            let statement = self.hand.codec.look_at_places(ticket.client, &[(resource(), ticket.lock)]);
            let sight = Codec::sights(Ok(self.hand.query(&statement))).unwrap().remove(0);
            let place = waiting.iter().position(|other| *other == ticket).map(|at| at as u64 + 1);
            // A turn that was missed shows as a line that nobody has the turn of, beside a lock that is free.
            let is_passed = is_free && reserved.is_none() && !waiting.is_empty();
            let is_due = is_passed || place.is_none();
            assert!(is_due || !is_free || !queue::is_due(&self.queue, ticket, &self.now), "{ticket:?}");
            assert_eq!((sight.place, sight.is_due), (place, is_due), "{ticket:?}");
        }
    }
}

#[test]
fn statements_decide_as_the_core_does() {
    let rig = Rig::new();
    for seed in 1..=SEEDS {
        let mut pair = Pair::new(&rig, seed);
        let mut steps = Vec::new();
        for _ in 0..STEPS {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                steps.push(pair.step());
                pair.compare();
            }));
            assert!(done.is_ok(), "seed {seed}, {steps:#?}, then {:#?}", pair.queue);
        }
    }
}

#[test]
fn a_turn_is_told_on_the_channel_of_its_client() {
    let rig = Rig::new();
    let mut hand = Hand::new(&rig);
    let ticket = |n| Ticket { client: client(n), lock: LockId::new(n) };
    assert!(is_granted(&hand.ask(ticket(1), acquire(1, 1, true)).0));
    assert!(!is_granted(&hand.ask(ticket(2), acquire(2, 1, true)).0));
    let channel = Codec::turns_channel(client(2));
    hand.db.batch_execute(&format!("LISTEN {channel}; LISTEN leasehold")).unwrap();
    let (outcome, told) = hand.ask(ticket(1), release(1));
    assert_eq!((outcome, told.turns), (Outcome::Applied(Applied::Released), vec![(resource(), ticket(2))]));
    let messages = |hand: &mut Hand| -> Vec<_> {
        let told = hand
            .db
            .notifications()
            .timeout_iter(ms(100))
            .map(|told| Ok((told.channel().to_owned(), told.payload().to_owned())))
            .collect::<Vec<_>>();
        told.unwrap()
    };
    let told = messages(&mut hand);
    assert_eq!(told.len(), 1, "nobody else is told: {told:?}");
    assert_eq!(
        (told[0].0.as_str(), Codec::turn_of(&told[0].1)),
        (channel.as_str(), Some((resource(), LockId::new(2))))
    );
    assert!(is_granted(&hand.ask(ticket(2), acquire(2, 2, true)).0));
    hand.ask(ticket(2), release(2));
    assert_eq!(messages(&mut hand), [("leasehold".to_owned(), "job".to_owned())], "nobody waits: all are told");
}

#[test]
fn a_line_that_somebody_wrote_keeps_nobody_waiting() {
    let rig = Rig::new();
    let mut hand = Hand::new(&rig);
    let ticket = |n| Ticket { client: client(n), lock: LockId::new(n) };
    let set = |queue: &str| rig.server.run(&format!("UPDATE {} SET released = true, line = {queue}", rig.table()));
    assert!(is_granted(&hand.ask(ticket(1), acquire(1, 1, true)).0));
    hand.see(client(7));
    let far =
        format!("decode('{}', 'hex') || int8send(9) || int8send(1) || int8send(9223372036854775807)", "07".repeat(16));
    for (n, queue) in
        ["''", "'x'", "'\\x00'", "decode(repeat('ff', 39), 'hex')", "decode(repeat('ff', 4001), 'hex')", &far]
            .into_iter()
            .enumerate()
    {
        set(queue);
        let n = 10 + n as u64;
        assert!(is_granted(&hand.ask(ticket(n), acquire(n, 1, true)).0), "{queue}");
        assert!(!is_granted(&hand.ask(ticket(n + 10), acquire(n + 10, 1, true)).0), "{queue}");
        assert_eq!(hand.leave(ticket(n + 10)), None);
        assert_eq!(hand.ask(ticket(n), release(n)).1.turns, [], "{queue}");
    }
}

#[test]
fn a_line_has_an_end_and_the_dead_do_not_fill_it() {
    let rig = Rig::new();
    let mut hand = Hand::new(&rig);
    let ticket = |n| Ticket { client: client(n), lock: LockId::new(n) };
    assert!(is_granted(&hand.ask(ticket(1), acquire(1, 1, true)).0));
    let full = "SELECT string_agg(decode(repeat('09', 16), 'hex') || int8send(n) || int8send(1) || int8send(0), ''::bytea ORDER BY n) FROM generate_series(1, 1000) AS n";
    rig.server.run(&format!("UPDATE {} SET line = ({full})", rig.table()));
    hand.see(client(9));
    let (refused, told) = hand.ask(ticket(2), acquire(2, 1, true));
    assert!(!is_granted(&refused) && told.places.is_empty(), "there is no room");
    rig.server.run(&format!("UPDATE {}.leasehold_waiters SET seen_at = seen_at - interval '70 seconds'", rig.schema()));
    let statement = hand.codec.forget_unseen();
    hand.query(&statement);
    hand.see(client(2));
    assert_eq!(hand.ask(ticket(2), acquire(2, 1, true)).1.places, [(resource(), LockId::new(2), 1)]);
    assert_eq!(rig.column::<i32>("octet_length(line)", "job"), 40);
    let seen: Vec<u8> =
        rig.server.value(&format!("SELECT string_agg(client, '') FROM {}.leasehold_waiters", rig.schema()));
    assert_eq!(seen, client(2).0, "clients that are gone are forgotten");
}
