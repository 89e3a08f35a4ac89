//! A real table and its model, kept at the same time and asked the same, request by request.

use leasehold_core::member::Marker;
use leasehold_core::op::{Acquire, Applied, Holder, Op, Outcome, Refusal, Seen};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Monotonic, Nonce, Resource, Version};
use leasehold_servers::dynamodb::Server;
use leasehold_sim::clock::TrueTime;
use leasehold_sim::store::{Answer, Ask, By, ForeignAct, ForeignAnswer, ForeignRow, Form, Kind, Spec, Store};
use serde_json::json;

use super::dice::{Known, names};
use super::java;
use super::wire::{Fate, Flight, SENT_UNIX_MS, Wire};

const NOW: TrueTime = TrueTime(0);
const CALLER: StoreNow = StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(0), unix_ms: SENT_UNIX_MS };

pub(crate) struct Pair {
    pub(crate) wire: Wire,
    model: Store,
}

/// One operation under way at both.
pub(crate) struct Both {
    resource: Resource,
    op: Op,
    flight: Flight,
    form: Form,
}

impl Both {
    /// The form of the next request.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }
}

impl Pair {
    pub(crate) fn new(server: &Server, seed: u64) -> Self {
        Self { wire: Wire::open(server, seed), model: Store::new(&Spec::of(Kind::Dynamodb)) }
    }

    pub(crate) fn known(&self, resource: &Resource) -> Known {
        let standing = self.model.stored(resource, NOW, &CALLER);
        let holder = standing.and_then(|standing| match standing.by {
            By::Attempt(nonce) => Some(nonce),
            By::Foreign(_) => None,
        });
        let holder = holder.or_else(|| self.undone(resource));
        let version = match self.model.clone().ask(&ask(resource, &Op::Read, Form::Floor)) {
            Answer::Done(Outcome::Applied(Applied::Read(seen))) => seen.holding.map(|holding| holding.version),
            Answer::Done(_) | Answer::Again(_) => None,
        };
        Known { counter: self.model.counter(resource, NOW), version, holder, marker: self.marker() }
    }

    /// The attempt whose lock was freed again, because the table does not vote.
    pub(crate) fn undone(&self, resource: &Resource) -> Option<Nonce> {
        self.model.undone(resource).map(|(nonce, _)| nonce)
    }

    pub(crate) fn marker(&self) -> Option<Marker> {
        self.model.membership(leasehold_core::member::Durability::Declared).cloned()
    }

    pub(crate) fn begin(&self, resource: &Resource, op: &Op) -> Both {
        let flight = self.wire.begin(resource, &as_the_table_has_it(op));
        Both { resource: resource.clone(), op: op.clone(), flight, form: Form::Floor }
    }

    /// One request to both, which must say the same; `None` where another follows.
    pub(crate) fn advance(&mut self, both: &mut Both, fate: Fate) -> Option<(Form, Outcome)> {
        let form = both.form.clone();
        let real = self.wire.advance(&mut both.flight, fate);
        let answer = match fate {
            Fate::Throttled => None,
            Fate::Answered | Fate::AnswerLost => Some(self.model.ask(&ask(&both.resource, &both.op, form.clone()))),
        };
        let model = match (fate.outcome(), answer) {
            (Some(outcome), _) => form.failed(&both.op, outcome),
            (None, Some(answer)) => answer,
            (None, None) => unreachable!("it was asked"),
        };
        match (real, model) {
            (Some(real), Answer::Done(model)) => {
                assert!(
                    agree(&real, &model),
                    "{}: {:?} as {form:?}, {fate:?}\n     table: {real:?}\n     model: {model:?}",
                    both.resource,
                    both.op
                );
                Some((form, real))
            }
            (None, Answer::Again(next)) => {
                both.form = next;
                None
            }
            (real, model) => panic!("{:?} as {form:?}\n     table: {real:?}\n     model: {model:?}", both.op),
        }
    }

    pub(crate) fn foreign(&mut self, resource: &Resource, act: &ForeignAct) -> ForeignAnswer {
        let real = java::act(&self.wire, resource.as_str(), act);
        let model = match self.model.foreign(resource, act, NOW) {
            ForeignAnswer::Read(Some(row)) => {
                // Java sees the text.
                let version = java::version_text(&row.version);
                let version = Version::new(version.as_bytes()).unwrap();
                ForeignAnswer::Read(Some(ForeignRow { version, ..row }))
            }
            other @ (ForeignAnswer::Held(_)
            | ForeignAnswer::Released
            | ForeignAnswer::Refused
            | ForeignAnswer::Read(None)) => other,
        };
        assert_eq!(real, model, "{resource}: {act:?}");
        real
    }

    pub(crate) fn evict(&mut self, resource: &Resource) {
        self.wire.set(resource.as_str(), "isReleased", "1");
        self.model.evict(resource);
    }

    pub(crate) fn delete(&mut self, resource: &Resource) {
        self.wire.delete(resource.as_str());
        self.model.delete(resource);
    }

    pub(crate) fn obscure(&mut self, resource: &Resource) {
        self.wire.set(resource.as_str(), "leaseDuration", "20s");
        self.model.obscure(resource);
    }

    pub(crate) fn wipe(&mut self) {
        self.wire.wipe();
        self.model.wipe();
    }

    pub(crate) fn mark(&mut self, marker: Option<&Marker>) {
        match marker {
            Some(marker) => self.wire.mark(marker),
            None => self.wire.forget_marker(),
        }
        self.model.remember(marker.cloned());
    }

    pub(crate) fn compare_all(&mut self) {
        names().iter().for_each(|name| self.compare(name));
    }

    /// All that both keep of a resource, and of the quorum.
    pub(crate) fn compare(&mut self, resource: &Resource) {
        let mut both = self.begin(resource, &Op::Read);
        self.advance(&mut both, Fate::Answered).expect("a read is one request");
        let row = self.wire.row(resource.as_str());
        let attribute = |name: &str| row.as_ref().and_then(|row| row.get(name)).cloned();
        let counter = self.model.counter(resource, NOW).map(|counter| json!({ "N": counter.to_string() }));
        assert_eq!(attribute("fencingToken"), counter, "{resource}");
        let trust = self.model.raised_since(resource).map(|stamp| json!({ "S": stamp.to_string() }));
        assert_eq!(attribute("quorumTrust"), trust, "{resource}");
        let undone = self.model.undone(resource).map(|(nonce, seq)| Version::of(&nonce, seq));
        let undone = undone.map(|version| json!({ "S": java::version_text(&version) }));
        assert_eq!(attribute("undoneVersion"), undone, "{resource}");
        if let Some(name) = self.wire.codec.settings().expires_name() {
            let kept = self.model.kept_until(resource).map(|seconds| json!({ "N": seconds.to_string() }));
            assert_eq!(attribute(name), kept, "{resource}");
        }
        let is_held = row.is_some() && attribute("isReleased").is_none();
        assert_eq!(is_held, self.model.stored(resource, NOW, &CALLER).is_some(), "{resource}");
        assert_eq!(self.wire.marker(), self.marker());
    }
}

fn ask<'a>(resource: &'a Resource, op: &'a Op, form: Form) -> Ask<'a> {
    Ask { resource, op, form, at: NOW, caller: CALLER, ticket: None }
}

/// The model's versions of foreign rows are shorter.
fn as_the_table_has_it(op: &Op) -> Op {
    match op {
        Op::Acquire(acquire) => {
            let expect = acquire.expect.as_ref().map(java::real_version);
            Op::Acquire(Box::new(Acquire { expect, ..(**acquire).clone() }))
        }
        Op::Renew(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => {
            op.clone()
        }
    }
}

/// Words for people may differ.
fn agree(real: &Outcome, model: &Outcome) -> bool {
    match (real, model) {
        (Outcome::Applied(Applied::Read(real)), Outcome::Applied(Applied::Read(model)))
        | (Outcome::NotApplied(Refusal::Conflict(real)), Outcome::NotApplied(Refusal::Conflict(model))) => {
            *real == as_seen(model)
        }
        (Outcome::NotApplied(Refusal::Denied(real)), Outcome::NotApplied(Refusal::Denied(model))) => {
            real.kind == model.kind
        }
        (Outcome::NotApplied(Refusal::Unavailable(real)), Outcome::NotApplied(Refusal::Unavailable(model)))
        | (Outcome::Unknown(real), Outcome::Unknown(model)) => real.kind == model.kind,
        _ => real == model,
    }
}

fn as_seen(model: &Seen) -> Seen {
    let mut seen = model.clone();
    if let Some(holding) = seen.holding.as_mut().filter(|holding| holding.holder == Holder::Foreign) {
        holding.version = java::real_version(&holding.version);
    }
    seen
}
