//! The simulator's models, under a clock that stands still but for a millisecond at each step.

use std::time::Duration;

use leasehold_core::member::{Durability, Marker, RunId};
use leasehold_core::op::Op;
use leasehold_core::op::Outcome;
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{LockId, Monotonic, Resource};
use leasehold_sim::clock::TrueTime;
use leasehold_sim::store::{Answer, Ask, BEGAN_UNIX_MS, ForeignAct, ForeignAnswer, Form, Kind, Mark, Spec, Store};

use crate::compare::{Fields, Value};
use crate::run::{Side, Spoilt};
use crate::script::{Edit, NAMES};

/// A model.
pub struct Model {
    name: &'static str,
    kind: Kind,
    store: Store,
    at: TrueTime,
    marks: u32,
}

impl Model {
    /// An empty one.
    pub fn new(kind: Kind) -> Self {
        let name = match kind {
            Kind::Sqlite => "model-sqlite",
            Kind::Redis => "model-redis",
            Kind::Dynamodb => "model-dynamodb",
            Kind::Memory => "model-memory",
        };
        Self { name, kind, store: Store::new(&Spec::of(kind)), at: TrueTime(1_000_000_000), marks: 0 }
    }

    fn caller(&self) -> StoreNow {
        let uptime = Monotonic::from_ns(self.at.0);
        StoreNow { boot: BootId([0; 16]), uptime, unix_ms: BEGAN_UNIX_MS + self.at.0 / 1_000_000 }
    }
}

fn resource(name: u8) -> Resource {
    Resource::new(NAMES[usize::from(name)]).expect("a good name")
}

impl Side for Model {
    fn store(&self) -> &str {
        self.name
    }

    fn is_observed(&self) -> bool {
        self.kind == Kind::Dynamodb
    }

    fn keeps_queue(&self) -> bool {
        false
    }

    fn now(&mut self) -> (Monotonic, u64) {
        self.at = self.at.plus(Duration::from_millis(1));
        let now = self.caller();
        (now.uptime, now.unix_ms)
    }

    fn ask(&mut self, name: u8, _client: u8, _lock: LockId, op: &Op) -> Outcome {
        let (resource, mut form) = (resource(name), Form::Floor);
        loop {
            let ask = Ask { resource: &resource, op, form, at: self.at, caller: self.caller(), ticket: None };
            match self.store.ask(&ask) {
                Answer::Done(outcome) => return outcome,
                Answer::Again(next) => form = next,
            }
        }
    }

    fn edit(&mut self, name: u8, edit: &Edit) -> bool {
        let resource = resource(name);
        match edit {
            Edit::Expire => false,
            Edit::Delete => {
                let can = self.kind == Kind::Dynamodb;
                if can {
                    self.store.delete(&resource);
                }
                can
            }
            Edit::Free => {
                let can = self.kind == Kind::Dynamodb;
                if can {
                    self.store.evict(&resource);
                }
                can
            }
            Edit::Foreign(ttl) => {
                self.marks += 1;
                let act = ForeignAct::AcquireNew { mark: Mark { by: 1, count: self.marks }, ttl: *ttl };
                let answer = self.store.foreign(&resource, &act, self.at);
                !matches!(answer, ForeignAnswer::Refused | ForeignAnswer::Read(_)) && taken(&answer)
            }
        }
    }

    fn raw(&mut self, name: u8) -> Fields {
        let resource = resource(name);
        let counter = self.store.counter(&resource, self.at);
        let kept = self.store.kept_until(&resource);
        let token = counter.map(|counter| ("token", Value::Number(counter.get())));
        token.into_iter().chain(kept.map(|seconds| ("kept until", Value::At(seconds * 1_000)))).collect()
    }

    fn look(&mut self) -> Option<(Option<Marker>, Option<RunId>)> {
        matches!(self.kind, Kind::Dynamodb | Kind::Memory)
            .then(|| (self.store.membership(Durability::Declared).cloned(), None))
    }

    fn spoil(&mut self, name: u8, spoilt: &Spoilt) {
        let unix_ms = self.caller().unix_ms;
        match *spoilt {
            Spoilt::Kept(length) => self.store.spoil(&resource(name), Some((unix_ms, length)), None),
            Spoilt::Length(length) => self.store.spoil(&resource(name), None, Some(length)),
        }
    }

    fn mark(&mut self, marker: Option<&Marker>) {
        self.store.remember(marker.cloned());
    }
}

fn taken(answer: &ForeignAnswer) -> bool {
    matches!(answer, ForeignAnswer::Held(_))
}
