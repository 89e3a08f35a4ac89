//! The scripts of lines against the simulator's model of them: the same random steps on both, at times that the test sets. All
//! that can be seen is compared: answers, the line, the lock, and what clients are told.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, LockOp, Op, Outcome, Refusal, Release};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::time::{OPEN_EVERY, OPEN_WITHIN};
use leasehold_core::{LockId, Monotonic, Nonce, RequestId, Resource, Seq};
use leasehold_differential::measure::seeds;
use leasehold_servers::redis::Server;
use leasehold_servers::resp::{Connection, Reply};
use leasehold_sim::clock::TrueTime;
use leasehold_sim::rng::{Draws, Stream};
use leasehold_sim::store::{
    Answer, Ask, BEGAN_UNIX_MS, ForeignAct, ForeignAnswer, Form, Kind, Mark, Spec, Store, Ticket,
};
use leasehold_wire::redis::{Command, ConnectionMemory, Progress, Session, Settings, Subscription};
use leasehold_wire::resp::Value;

/// No lease runs out in a sequence.
const TTL: Duration = Duration::from_secs(40 * 3_600);
const STEPS: u32 = 120;
const CLIENTS: usize = 4;
/// A real reservation stands, and a real lock is free for others, so many milliseconds, so that no step is late for it.
const OPEN: i64 = 40_000;

/// The content of a message: the client, its acquisition, and how long the lock is free for others before.
type Told = (u64, LockId, Duration);

/// The effect of a step: the answer, and all that can be seen afterwards.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    answer: String,
    /// The place in line that a refused acquire was told, and if it was told when to come again.
    place: Option<(u64, bool)>,
    line: Vec<Ticket>,
    lock: Lock,
    told: Vec<Told>,
}

#[derive(Debug, PartialEq, Eq)]
enum Lock {
    Free,
    Reserved(Ticket),
    Taken,
}

#[derive(Clone, Debug)]
enum Step {
    Acquire { ticket: Ticket, nonce: Nonce, in_line: bool },
    Release(Nonce),
    Leave(Ticket),
    Die(u64),
    Foreign(Mark),
    ForeignRelease(Mark),
    Later(Duration),
}

fn id(client: u64) -> leasehold_wire::redis::ClientId {
    leasehold_wire::redis::ClientId::new([u8::try_from(client).expect("few clients"); 16])
}

fn nonce(number: u64) -> Nonce {
    Nonce::from_bytes((u128::from(number) + 1).to_be_bytes())
}

fn op(step: &Step) -> Option<(Ticket, Op)> {
    match *step {
        Step::Acquire { ticket, nonce, in_line } => {
            // The first send of an acquisition does not look at the line.
            let acquire = Acquire { in_line, ..Acquire::new(nonce, Seq::new(2), TTL) };
            Some((ticket, Op::Acquire(Box::new(acquire))))
        }
        Step::Release(nonce) => {
            Some((Ticket { client: 0, lock: LockId::new(0) }, Op::Release(Release { nonce, quorum: None })))
        }
        Step::Leave(_) | Step::Die(_) | Step::Foreign(_) | Step::ForeignRelease(_) | Step::Later(_) => None,
    }
}

fn name_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied(Applied::Acquired { .. }) => "granted".to_owned(),
        Outcome::NotApplied(Refusal::Conflict(_)) => "refused".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The model, under a clock that stands still but for a millisecond at each step.
struct Model {
    store: Store,
    at: TrueTime,
    resource: Resource,
}

impl Model {
    fn step(&mut self, step: &Step) -> Shown {
        self.at = self.at.plus(Duration::from_millis(1));
        let (at, resource) = (self.at, self.resource.clone());
        let mut place = None;
        let answer = match step {
            Step::Acquire { .. } | Step::Release(_) => {
                let (ticket, op) = op(step).expect("it is one");
                let caller = StoreNow {
                    boot: BootId([0; 16]),
                    uptime: Monotonic::from_ns(at.0),
                    unix_ms: BEGAN_UNIX_MS + at.0 / 1_000_000,
                };
                let ask = Ask { resource: &resource, op: &op, form: Form::Floor, at, caller, ticket: Some(ticket) };
                let Answer::Done(outcome) = self.store.ask(&ask) else { panic!("Redis answers at once") };
                if matches!(step, Step::Acquire { in_line: true, .. }) && name_of(&outcome) == "refused" {
                    let at = self.store.line(&resource, at).iter().position(|other| *other == ticket);
                    let reserved = self.store.reserved_before(&resource, ticket, self.at).is_some();
                    place = at.map(|at| (at as u64 + 1, reserved));
                }
                name_of(&outcome)
            }
            Step::Leave(ticket) => {
                self.store.leave(&resource, *ticket, at);
                String::new()
            }
            Step::Die(client) => {
                self.store.listens(*client, false, at);
                String::new()
            }
            Step::Foreign(mark) => {
                let answer = self.store.foreign(&resource, &ForeignAct::AcquireNew { mark: *mark, ttl: TTL }, at);
                matches!(answer, ForeignAnswer::Held(_)).to_string()
            }
            Step::ForeignRelease(mark) => {
                self.store.foreign(&resource, &ForeignAct::ReleaseDelete { mark: *mark }, at);
                String::new()
            }
            Step::Later(time) => {
                self.at = at.plus(*time);
                String::new()
            }
        };
        let caller = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(at.0), unix_ms: BEGAN_UNIX_MS };
        let lock = match self.store.reserved_for(&resource, self.at) {
            Some(ticket) => Lock::Reserved(ticket),
            None if self.store.stored(&resource, self.at, &caller).is_some() => Lock::Taken,
            None => Lock::Free,
        };
        let told = self.store.take_messages().into_iter();
        let told = told.map(|(Ticket { client, lock }, _, after)| (client, lock, after)).collect();
        Shown { answer, place, line: self.store.line(&resource, self.at), lock, told }
    }
}

/// A server, and clients by hand.
struct Real<'a> {
    server: &'a Server,
    connection: Connection,
    session: Session,
    resource: Resource,
    line: String,
    /// The connections on which clients listen.
    listening: BTreeMap<u64, Connection>,
}

fn value(reply: Reply) -> Value {
    match reply {
        Reply::Status(text) => Value::Simple(text.into()),
        Reply::Error(text) => Value::Error(text),
        Reply::Integer(number) => Value::Integer(number),
        Reply::Bulk(bytes) => Value::Bulk(bytes),
        Reply::Nil => Value::Nil,
        Reply::Array(all) => Value::Array(all.into_iter().map(value).collect()),
    }
}

fn ticket_of(text: &str) -> Ticket {
    let (client, lock) = text.split_once(':').expect("a ticket");
    let client = u64::from_str_radix(&client[..2], 16).expect("a client");
    Ticket { client, lock: LockId::new(lock.parse().expect("a number")) }
}

impl Real<'_> {
    fn listens(&mut self, client: u64) {
        let mut connection = self.server.connect();
        connection.command(&[&b"SUBSCRIBE"[..], &id(client).channel()]).expect("it can be subscribed to");
        self.listening.insert(client, connection);
    }

    fn send(&mut self, command: &Command) -> Value {
        let words: Vec<&[u8]> = command.words().collect();
        value(self.connection.command(&words).expect("an answer"))
    }

    fn step(&mut self, step: &Step) -> Shown {
        let mut place = None;
        let resource = self.resource.clone();
        let answer = match step {
            Step::Acquire { .. } | Step::Release(_) => {
                let (ticket, op) = op(step).expect("it is one");
                let mut memory = ConnectionMemory::default();
                if self.listening.contains_key(&ticket.client) {
                    memory.listens(Some(Subscription { client: id(ticket.client), generation: 1 }));
                }
                let ops = [LockOp { lock: ticket.lock, resource, op }];
                let request = RequestId::new(1);
                let unix_ms = BEGAN_UNIX_MS;
                let begun = self.session.begin_on(&memory, request, &ops, Duration::ZERO, unix_ms);
                let mut exchange = begun.expect("a good request");
                let outcome = loop {
                    let commands = exchange.commands().to_vec();
                    let replies = commands.iter().map(|command| self.send(command)).collect();
                    if let Progress::Done(mut outcomes) = exchange.replies(replies) {
                        break outcomes.remove(0);
                    }
                };
                place = exchange.place().map(|place| (place, exchange.reserved().is_some()));
                name_of(&outcome)
            }
            Step::Leave(ticket) => {
                let command = Session::leave(&id(ticket.client), &resource, ticket.lock);
                assert!(self.send(&command).as_error().is_none());
                String::new()
            }
            Step::Die(client) => {
                self.listening.remove(client);
                let channel = id(*client).channel();
                let channel = String::from_utf8(channel).expect("a text");
                let numsub = ["PUBSUB", "NUMSUB", &channel];
                while self.server.command(&numsub).array()[1].integer() != 0 {
                    std::thread::yield_now();
                }
                String::new()
            }
            Step::Foreign(mark) => {
                let set = ["SET", resource.as_str(), &format!("other-{}", mark.count), "NX", "PX", "144000000"];
                (self.server.command(&set) != Reply::Nil).to_string()
            }
            Step::ForeignRelease(mark) => {
                let found = self.server.command(&["GET", resource.as_str()]);
                if found == Reply::Bulk(format!("other-{}", mark.count).into_bytes()) {
                    self.server.command(&["DEL", resource.as_str()]);
                }
                String::new()
            }
            Step::Later(_) => String::new(),
        };
        let told = self.told();
        let line = self.server.command(&["ZRANGE", &self.line, "0", "-1"]);
        let line = line.array().iter().map(|ticket| ticket_of(&ticket.text())).collect();
        let lock = match self.server.command(&["GET", self.resource.as_str()]) {
            Reply::Nil => Lock::Free,
            found => found.text().strip_prefix("reserved:").map_or(Lock::Taken, |text| Lock::Reserved(ticket_of(text))),
        };
        Shown { answer, place, line, lock, told }
    }

    /// The messages to all clients that listen, but for the empty ones by which their channels are tested.
    fn told(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        for (client, connection) in &mut self.listening {
            connection.send(&["PING"]).expect("it is connected");
            loop {
                let message = connection.receive().expect("it is connected");
                if message.array()[0].text() == "pong" {
                    break;
                }
                if let Some((_, lock, after)) = Session::reserved_by(message.array()[2].text().as_bytes()) {
                    told.push((*client, lock, after));
                }
            }
        }
        told
    }

    /// Sets what the server counts down to what it is in the model: its own time does not count.
    fn set_clocks(&self, model: &Model) {
        let hands = format!("{}\u{1f}hands", self.line);
        let left = model.store.hands_left(&model.resource, model.at);
        let found = self.server.command(&["PTTL", &hands]).integer();
        match left.map(|left| i64::try_from(left.as_millis()).expect("it is short")) {
            None => {
                // It may stand no longer in the model, where time has passed.
                self.server.command(&["DEL", &hands]);
            }
            Some(left) => {
                assert!(found >= 0, "hands: {found}, where the model has {left}");
                let open = model.store.is_open_for_others(&model.resource, model.at);
                let left = left + if open { OPEN } else { 0 };
                self.server.command(&["PEXPIRE", &hands, &left.to_string()]);
            }
        }
        match model.store.reserved_for(&model.resource, model.at) {
            Some(_) => self.server.command(&["PEXPIRE", self.resource.as_str(), &OPEN.to_string()]),
            None if self.server.command(&["GET", self.resource.as_str()]).is_reservation() => {
                self.server.command(&["DEL", self.resource.as_str()])
            }
            None => Reply::Nil,
        };
    }
}

trait IsReservation {
    fn is_reservation(&self) -> bool;
}

impl IsReservation for Reply {
    fn is_reservation(&self) -> bool {
        matches!(self, Self::Bulk(bytes) if bytes.starts_with(b"reserved:"))
    }
}

/// The clients of a sequence; who has died comes back under another number.
struct Script {
    draws: Draws,
    clients: Vec<u64>,
    next: u64,
    marks: u32,
    nonces: u64,
    /// The last that was granted.
    granted: Option<Nonce>,
}

impl Script {
    fn step(&mut self) -> Step {
        match self.draws.below(100) {
            0..=44 => {
                let back = if self.draws.one_in(4) { self.draws.below(6) } else { 0 };
                self.nonces += 1;
                let nonce = nonce(self.nonces.saturating_sub(back));
                Step::Acquire { ticket: self.ticket(), nonce, in_line: !self.draws.one_in(8) }
            }
            45..=72 => {
                let old = nonce(self.nonces.saturating_sub(self.draws.below(8)));
                Step::Release(if self.draws.one_in(4) { old } else { self.granted.unwrap_or(old) })
            }
            73..=80 => Step::Leave(self.ticket()),
            81..=83 => Step::Die(*self.draws.pick(&self.clients)),
            84..=87 => {
                self.marks += 1;
                Step::Foreign(self.mark())
            }
            88..=90 => Step::ForeignRelease(self.mark()),
            _ => Step::Later(Duration::from_millis(*self.draws.pick(&[60, 600, 600, 2_000, 5_500, 5_500, 70_000]))),
        }
    }

    fn mark(&self) -> Mark {
        Mark { by: 1, count: self.marks }
    }

    fn ticket(&mut self) -> Ticket {
        let client = *self.draws.pick(&self.clients);
        Ticket { client, lock: LockId::new(1 + self.draws.below(2)) }
    }
}

#[derive(Default, Debug)]
struct Seen {
    steps: u64,
    joined: u64,
    told: u64,
    told_to_come_later: u64,
    refused_while_open: u64,
}

fn compare(server: &Server, seed: u64, seen: &mut Seen) {
    let resource = Resource::new(&format!("line-{seed}")).expect("a good name");
    let line = String::from_utf8(Session::line_key(&resource)).expect("a text");
    let mut model =
        Model { store: Store::new(&Spec::of(Kind::Redis)), at: TrueTime(1_000_000_000), resource: resource.clone() };
    let mut real = Real {
        server,
        connection: server.connect(),
        session: Session::new(Settings::default()),
        resource,
        line,
        listening: BTreeMap::new(),
    };
    let clients = (1..=CLIENTS as u64).collect::<Vec<_>>();
    let mut script = Script {
        draws: Stream::new(seed, "line of redis").draws(),
        next: clients.len() as u64 + 1,
        clients: Vec::new(),
        marks: 0,
        nonces: 0,
        granted: None,
    };
    for client in clients {
        real.listens(client);
        model.store.listens(client, true, model.at);
        script.clients.push(client);
    }
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let step = script.step();
        let was_open = model.store.is_open_for_others(&model.resource, model.at);
        let wanted = model.step(&step);
        if matches!(step, Step::Later(_)) {
            real.set_clocks(&model);
        }
        let shown = real.step(&step);
        steps.push(format!("{step:?}\n      {shown:?}"));
        assert_eq!(shown, wanted, "server and model, seed {seed}, after these steps:\n{}", steps.join("\n"));
        real.set_clocks(&model);
        seen.steps += 1;
        seen.joined += u64::from(shown.place.is_some());
        seen.told += shown.told.len() as u64;
        seen.told_to_come_later += shown.told.iter().filter(|(_, _, after)| !after.is_zero()).count() as u64;
        seen.refused_while_open += u64::from(was_open && shown.place.is_some());
        if let Step::Acquire { nonce, .. } = step
            && shown.answer == "granted"
        {
            script.granted = Some(nonce);
        }
        if let Step::Die(client) = step {
            script.clients.retain(|other| *other != client);
            script.clients.push(script.next);
            real.listens(script.next);
            model.store.listens(script.next, true, model.at);
            script.next += 1;
        }
    }
}

#[test]
fn the_scripts_of_lines_do_as_their_model() {
    assert!(OPEN_EVERY + OPEN_WITHIN < Duration::from_secs(70), "the longest of the steps in time ends all");
    let server = Server::start();
    let mut seen = Seen::default();
    for seed in seeds(40) {
        compare(&server, seed, &mut seen);
    }
    println!("redis, lines: {seen:?}");
    for (count, what) in [
        (seen.joined, "joined"),
        (seen.told, "told"),
        (seen.told_to_come_later, "told to come later"),
        (seen.refused_while_open, "refused while it is free for others"),
    ] {
        assert!(count > 0, "nobody was {what}");
    }
}
