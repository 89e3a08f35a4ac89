//! A real Redis and its model, kept at the same time and asked the same.
//!
//! The model lives by the server's clock as it was just before a request, and nothing ends within the few milliseconds
//! that a step takes: so what remains uncertain is a token that the server made of its time, and how much time is left.

use std::collections::BTreeMap;
use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, Completion, Holder, LockOp, Op, Outcome, Refusal, Seen};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Monotonic, Nonce, Resource, Token, Version};
use leasehold_servers::redis::Server;
use leasehold_sim::clock::TrueTime;
use leasehold_sim::store::{Answer, Ask, By, ForeignAct, ForeignAnswer, Form, Kind, Mark, Spec, Store};
use leasehold_wire::resp::Value;

use super::dice::{Guise, NAMES, data_of, named, on};
use super::wire::{SENT_UNIX_MS, Span, Wire, command, integer, text};

/// Shorter than a real one, so that counters are forgotten now and then.
pub(crate) const RETENTION: Duration = Duration::from_secs(1_200);
/// A request that takes longer proves nothing.
const LONGEST_MS: u64 = 12;
/// A step that takes longer may meet the end of a record, where the server and the model differ by a millisecond.
const CLEAR_MS: u64 = 60;

/// The machine was busy: what was asked cannot be judged, and both must start again.
#[derive(Debug)]
pub(crate) struct Stalled;

pub(crate) struct Pair<'a> {
    server: &'a Server,
    pub(crate) wire: Wire,
    model: Store,
    ahead_ms: i64,
    clear_from_ms: u64,
    versions: BTreeMap<Mark, Version>,
    marks: BTreeMap<Resource, (Mark, Vec<u8>)>,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(server: &'a Server, seed: u64) -> Self {
        server.set_clock_ms(0);
        let mut wire = Wire::open(server, RETENTION, seed);
        wire.call(&[b"FLUSHALL"]);
        let model = Store::new(&Spec { retention: RETENTION, ..Spec::of(Kind::Redis) });
        Self { server, wire, model, ahead_ms: 0, clear_from_ms: 0, versions: BTreeMap::new(), marks: BTreeMap::new() }
    }

    pub(crate) fn wipe(&mut self) {
        self.wire.call(&[b"FLUSHALL"]);
        self.model.wipe();
    }

    pub(crate) fn counter(&self, resource: &Resource) -> Option<Token> {
        self.model.counter(resource, NOW)
    }

    pub(crate) fn holder(&self, resource: &Resource) -> Option<By> {
        self.model.stored(resource, NOW, &CALLER).map(|stored| stored.by)
    }

    pub(crate) fn move_clock(&mut self, by_ms: i64) {
        self.ahead_ms += by_ms;
        self.server.set_clock_ms(self.ahead_ms);
    }

    /// Moves the clock past all ends in the next moments, and brings the model to the server's time, which is returned.
    pub(crate) fn clear(&mut self) -> u64 {
        let keys = NAMES.iter().flat_map(|name| [name.as_bytes().to_vec(), fence(name), beside(name, "done")]);
        let commands: Vec<_> = keys.map(|key| command(&[b"PTTL", &key])).collect();
        loop {
            let (span, left) = self.wire.timed(&commands);
            let ends_soon = |left: &Value| u64::try_from(integer(left)).is_ok_and(|left| left <= 2 * CLEAR_MS);
            if !left.iter().any(ends_soon) {
                self.clear_from_ms = span.from_ms;
                self.set_model(span.from_ms);
                return span.from_ms;
            }
            self.move_clock(3 * i64::try_from(CLEAR_MS).unwrap());
        }
    }

    /// Brings the model to the time of a request.
    fn at(&mut self, span: Span) -> Result<(), Stalled> {
        if span.to_ms - span.from_ms > LONGEST_MS || span.to_ms - self.clear_from_ms > CLEAR_MS {
            return Err(Stalled);
        }
        self.set_model(span.from_ms);
        Ok(())
    }

    fn set_model(&mut self, unix_ms: u64) {
        let clock = self.model.clock_mut();
        let shown = i64::try_from(clock.shows(NOW)).unwrap();
        clock.jump(NOW, i64::try_from(unix_ms * 1_000_000).unwrap() - shown);
    }

    /// Asks both, and compares what they say.
    pub(crate) fn ask(&mut self, ops: &[LockOp]) -> Result<Vec<Outcome>, Stalled> {
        let (span, outcomes) = self.wire.ask(ops);
        self.at(span)?;
        for (LockOp { resource, op, .. }, real) in ops.iter().zip(&outcomes) {
            let before = self.holder(resource);
            let model = self.ask_model(resource, &minted(op, real, before, span));
            let agree = self.agree(resource, real, &model);
            assert!(agree, "{resource}: {op:?}\n     server: {real:?}\n      model: {model:?}\n     at {span:?}");
        }
        Ok(outcomes)
    }

    fn ask_model(&mut self, resource: &Resource, op: &Op) -> Outcome {
        match self.model.ask(&Ask { resource, op, form: Form::Floor, at: NOW, caller: CALLER, ticket: None }) {
            Answer::Done(outcome) => outcome,
            Answer::Again(form) => panic!("Redis needs no second request: {form:?}"),
        }
    }

    fn agree(&mut self, resource: &Resource, real: &Outcome, model: &Outcome) -> bool {
        match (real, model) {
            (Outcome::Applied(Applied::Read(real)), Outcome::Applied(Applied::Read(model)))
            | (Outcome::NotApplied(Refusal::Conflict(real)), Outcome::NotApplied(Refusal::Conflict(model))) => {
                self.see_alike(resource, real, model)
            }
            (Outcome::NotApplied(Refusal::Done(real)), Outcome::NotApplied(Refusal::Done(model))) => {
                done_alike(Some(real), Some(model))
            }
            (Outcome::NotApplied(Refusal::Denied(real)), Outcome::NotApplied(Refusal::Denied(model))) => {
                real.kind == model.kind
            }
            _ => real == model,
        }
    }

    fn see_alike(&mut self, resource: &Resource, real: &Seen, model: &Seen) -> bool {
        if !done_alike(real.done.as_deref(), model.done.as_deref()) {
            return false;
        }
        let (real, model) = match (&real.holding, &model.holding) {
            (None, None) => return true,
            (Some(real), Some(model)) => (real, model),
            (None, Some(_)) | (Some(_), None) => return false,
        };
        if real.released {
            return real == model;
        }
        let same_left = match (real.left, model.left) {
            (Some(real), Some(model)) => real.abs_diff(model) <= Duration::from_millis(LONGEST_MS),
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        let same_source = match &real.holder {
            Holder::Lease { nonce, .. } => {
                self.is_as_granted(resource, nonce, real.since_unix_ms) && {
                    real.data == data_of(nonce) && real.version == model.version
                }
            }
            // A value that stays is one version, and the model has a notion of its own of what that is.
            Holder::Foreign => {
                let mark = self.marks.get(resource).map(|(mark, _)| *mark);
                let version = mark.map(|mark| self.versions.entry(mark).or_insert_with(|| real.version.clone()));
                version == Some(&mut real.version.clone()) && real.data.is_none() && real.since_unix_ms.is_none()
            }
        };
        (real.holder, real.released, real.counter, &real.owner, real.record_ttl)
            == (model.holder, model.released, model.counter, &model.owner, model.record_ttl)
            && same_left
            && same_source
    }

    fn is_as_granted(&self, resource: &Resource, nonce: &Nonce, since_unix_ms: Option<u64>) -> bool {
        self.holder(resource) == Some(By::Attempt(*nonce)) && since_unix_ms == Some(SENT_UNIX_MS)
    }

    /// Compares all that both keep, and has both drop what has run out.
    pub(crate) fn compare(&mut self) -> Result<(), Stalled> {
        self.ask(&NAMES.map(|name| on(named(name), Op::Read)))?;
        let commands: Vec<_> = NAMES
            .iter()
            .flat_map(|name| {
                let fence = fence(name);
                [command(&[b"PTTL", name.as_bytes()]), command(&[b"GET", &fence]), command(&[b"PTTL", &fence])]
            })
            .collect();
        let (span, replies) = self.wire.timed(&commands);
        self.at(span)?;
        for (name, replies) in NAMES.iter().zip(replies.chunks(3)) {
            let resource = named(name);
            let until = self.model.stored(&resource, NOW, &CALLER).and_then(|stored| stored.until);
            assert!(ends_alike(integer(&replies[0]), until), "{name}: the lock ends in {replies:?}, {until:?}");
            let counter = self.model.counter(&resource, NOW).map(|counter| counter.to_string().into_bytes());
            assert_eq!(text(&replies[1]), counter.as_deref(), "{name}: the counter");
            let until = self.model.forgotten(&resource, NOW);
            assert!(ends_alike(integer(&replies[2]), until), "{name}: the counter is kept for {replies:?}, {until:?}");
        }
        Ok(())
    }

    /// The same for both. Their answers must be equal.
    pub(crate) fn foreign(
        &mut self,
        resource: &Resource,
        act: &ForeignAct,
        guise: Guise,
    ) -> Result<ForeignAnswer, Stalled> {
        let (from, _) = self.wire.timed(&[]);
        let real = self.foreign_server(resource, act, guise);
        let (to, _) = self.wire.timed(&[]);
        self.at(Span { from_ms: from.from_ms, to_ms: to.to_ms })?;
        let model = self.model.foreign(resource, act, NOW);
        assert_eq!(real, model, "{resource}: {act:?}");
        Ok(real)
    }

    fn foreign_server(&mut self, resource: &Resource, act: &ForeignAct, guise: Guise) -> ForeignAnswer {
        let key = resource.as_str().as_bytes();
        let ms = |ttl: &Duration| ttl.as_millis().to_string().into_bytes();
        let dump = |wire: &mut Wire| wire.call(&[b"DUMP", key]);
        let is_theirs = |pair: &mut Self, mark: &Mark| {
            let known = pair.marks.get(resource).filter(|(last, _)| last == mark).map(|(_, dump)| dump.clone());
            known.is_some() && text(&dump(&mut pair.wire)).map(<[u8]>::to_vec) == known
        };
        match act {
            ForeignAct::AcquireNew { mark, ttl } => {
                if integer(&self.wire.call(&[b"EXISTS", key])) == 1 {
                    return ForeignAnswer::Refused;
                }
                create(&mut self.wire, key, *mark, guise, &ms(ttl));
                let dump = text(&dump(&mut self.wire)).unwrap().to_vec();
                self.marks.insert(resource.clone(), (*mark, dump));
                ForeignAnswer::Held(*mark)
            }
            ForeignAct::Heartbeat { mark, ttl } if is_theirs(self, mark) => {
                self.wire.call(&[b"PEXPIRE", key, &ms(ttl)]);
                ForeignAnswer::Held(*mark)
            }
            ForeignAct::ReleaseDelete { mark } if is_theirs(self, mark) => {
                self.wire.call(&[b"DEL", key]);
                ForeignAnswer::Released
            }
            ForeignAct::Heartbeat { .. } | ForeignAct::ReleaseDelete { .. } => ForeignAnswer::Refused,
            ForeignAct::Read
            | ForeignAct::AcquireReleased { .. }
            | ForeignAct::AcquireExpired { .. }
            | ForeignAct::ReleaseKeep { .. } => panic!("not a step on Redis: {act:?}"),
        }
    }

    pub(crate) fn evict(&mut self, resource: &Resource) {
        self.wire.call(&[b"DEL", resource.as_str().as_bytes()]);
        self.model.evict(resource);
    }
}

/// The model's clock is moved by jumps alone, so that it can be set back.
const NOW: TrueTime = TrueTime(0);
/// Redis looks at its wall clock only to write down when work was finished.
const CALLER: StoreNow = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(0), unix_ms: SENT_UNIX_MS };

fn done_alike(real: Option<&Completion>, model: Option<&Completion>) -> bool {
    match (real, model) {
        (None, None) => true,
        (Some(real), Some(model)) => {
            (real.token, &real.owner, real.at_unix_ms, &real.about)
                == (model.token, &model.owner, model.at_unix_ms, &model.about)
                && real.left.abs_diff(model.left) <= Duration::from_millis(LONGEST_MS)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn fence(name: &str) -> Vec<u8> {
    beside(name, "fence")
}

fn beside(name: &str, what: &str) -> Vec<u8> {
    let tagged =
        name.split_once('{').and_then(|(_, rest)| rest.split_once('}')).is_some_and(|(tag, _)| !tag.is_empty());
    if tagged { format!("{name}\u{1f}{what}") } else { format!("{{{name}}}\u{1f}{what} of name") }.into_bytes()
}

/// The model is asked for the token that the server took from its clock, if that is where it may be from: it answers
/// another one if the counter or the floor ask for more.
fn minted(op: &Op, real: &Outcome, before: Option<By>, span: Span) -> Op {
    match (op, real) {
        (Op::Acquire(op), Outcome::Applied(Applied::Acquired { counter }))
            if before != Some(By::Attempt(op.nonce))
                && (span.from_ms..=span.to_ms).contains(&(counter.get() / 1_000)) =>
        {
            Op::Acquire(Box::new(Acquire { floor: op.floor.max(*counter), ..(**op).clone() }))
        }
        _ => op.clone(),
    }
}

/// True if a key of the server and a record of the model end at the same time; `-1` and `-2` mean no end.
fn ends_alike(left_ms: i64, until: Option<TrueTime>) -> bool {
    match (u64::try_from(left_ms), until) {
        (Ok(left), Some(until)) => left.abs_diff(until.since(NOW).as_millis().try_into().unwrap()) <= LONGEST_MS,
        (Err(_), None) => left_ms == -2,
        (Ok(_), None) | (Err(_), Some(_)) => false,
    }
}

fn create(wire: &mut Wire, key: &[u8], mark: Mark, guise: Guise, ttl_ms: &[u8]) {
    let name = format!("{}-{}", mark.by, mark.count);
    let name = name.as_bytes();
    let value = match guise {
        Guise::Text => name.to_vec(),
        Guise::Empty => Vec::new(),
        Guise::Bytes => [b"\x00\xff\r\n", name].concat(),
        Guise::Long => [name, &vec![b'x'; 100_000]].concat(),
        Guise::NearlyOurs => [b"0123456789abcdef0123456789abcdef@", name].concat(),
        Guise::Hash | Guise::List | Guise::Set | Guise::SortedSet | Guise::Stream => {
            match guise {
                Guise::Hash => wire.call(&[b"HSET", key, name, b"1"]),
                Guise::List => wire.call(&[b"RPUSH", key, name]),
                Guise::Set => wire.call(&[b"SADD", key, name]),
                Guise::SortedSet => wire.call(&[b"ZADD", key, b"1", name]),
                _ => wire.call(&[b"XADD", key, b"*", name, b"1"]),
            };
            wire.call(&[b"PEXPIRE", key, ttl_ms]);
            return;
        }
    };
    let reply = wire.call(&[b"SET", key, &value, b"NX", b"PX", ttl_ms]);
    assert_eq!(reply, Value::Simple("OK".into()));
}
