//! The machine in its sandbox. It can break off, which the machine that is compiled in cannot: then all that it knew is
//! told as lost, and nothing is taken on any more.

use std::collections::{BTreeMap, VecDeque};

use leasehold_core::member::Stamp;
use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{
    Config, Entropy, Event, Failure, LockId, LockOptions, LostReason, NodeId, Now, Output, RequestId, Resource, Seed,
};
use leasehold_wasmtime::client::Error as Refusal;
use leasehold_wasmtime::{CallError, Client, Component, HostError, Limits};

use super::{incoming, outgoing};
use crate::error::{Error, ErrorKind};
use crate::transport::Answer;

pub(crate) struct Guest {
    client: Client,
    alive: BTreeMap<LockId, Phase>,
    /// Why nothing works any more.
    broken: Option<String>,
    /// What is told of the locks that were alive by then.
    last_words: VecDeque<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Wanted,
    Held,
    GivenBack,
}

impl Guest {
    pub(super) fn new(
        component: &Component,
        limits: Limits,
        config: &Config,
        seed: &Seed,
        now: Now,
    ) -> Result<Self, Error> {
        let made = Client::create(component, limits, &outgoing::config(config), seed, outgoing::now(now));
        let client = made.map_err(|error| Error::config(format!("the component refuses to start: {error}")))?;
        Ok(Self { client, alive: BTreeMap::new(), broken: None, last_words: VecDeque::new() })
    }

    pub(super) fn acquire(
        &mut self,
        lock: LockId,
        resource: &Resource,
        options: &LockOptions,
        fresh: &Entropy,
        now: Now,
    ) -> Result<(), Error> {
        if let Some(why) = &self.broken {
            return Err(broken(why));
        }
        let (options, now) = (outgoing::options(options), outgoing::now(now));
        match self.client.acquire(lock.get(), resource.as_str(), &options, fresh, now) {
            Ok(()) => {
                self.alive.insert(lock, Phase::Wanted);
                Ok(())
            }
            Err(CallError::Refused(refusal)) => Err(refused(refusal)),
            Err(CallError::Host(error)) => {
                self.failed(&error);
                Err(broken(&error.to_string()))
            }
        }
    }

    pub(super) fn release(&mut self, lock: LockId, now: Now) -> bool {
        let released = self.client.release(lock.get(), outgoing::now(now));
        if released.is_ok() {
            self.alive.entry(lock).and_modify(|phase| {
                if *phase == Phase::Held {
                    *phase = Phase::GivenBack;
                }
            });
        }
        self.accepted(released)
    }

    pub(super) fn declare_lost(&mut self, lock: LockId, now: Now) {
        let declared = self.client.declare_lost(lock.get(), outgoing::now(now));
        self.accepted(declared);
    }

    pub(super) fn close(&mut self, now: Now) {
        let closed = self.client.close(outgoing::now(now));
        self.came_back(closed);
    }

    pub(super) fn handle_response(&mut self, id: RequestId, answer: Answer, now: Now) {
        let (id, now) = (id.get(), outgoing::now(now));
        match self.client.handle_response(id, &outgoing::response(answer), now) {
            // Something has happened that cannot be told.
            Err(HostError::TooLarge { .. }) => {
                let fault = Fault::new(FaultKind::Protocol, "the answer is too large for the component");
                let unknown = outgoing::response(Err(TransportFault::Unknown(fault)));
                let told = self.client.handle_response(id, &unknown, now);
                self.came_back(told);
            }
            told => drop(self.came_back(told)),
        }
    }

    pub(super) fn handle_timeout(&mut self, fresh: &Entropy, now: Now) {
        let handled = self.client.handle_timeout(fresh, outgoing::now(now));
        self.accepted(handled);
    }

    pub(super) fn notified(&mut self, resource: &Resource, now: Now) {
        let told = self.client.notified(resource.as_str(), outgoing::now(now));
        self.came_back(told);
    }

    pub(super) fn subscribed(&mut self, node: NodeId, resource: &Resource, now: Now) {
        let told = self.client.subscribed(node.get(), resource.as_str(), outgoing::now(now));
        self.came_back(told);
    }

    pub(super) fn node_votes(&mut self, node: NodeId, loss: Option<Stamp>, now: Now) {
        let loss = loss.as_ref().map(|loss| &loss.0[..]);
        let told = self.client.node_votes(node.get(), loss, outgoing::now(now));
        self.accepted(told);
    }

    /// `None` once the component has broken off and all that it knew is told.
    pub(super) fn poll_output(&mut self, now: Now) -> Option<Output> {
        if self.broken.is_none() {
            let polled = self.client.poll_output(outgoing::now(now));
            if let Some(output) = self.came_back(polled) {
                match incoming::output(output) {
                    Some(output) => {
                        self.follow(&output);
                        return Some(output);
                    }
                    None => self.failed(&HostError::Trap("it says what makes no sense".to_owned())),
                }
            }
        }
        self.last_words.pop_front().map(Output::Event)
    }

    pub(super) fn state(&mut self, lock: LockId) -> Option<String> {
        let state = self.client.state(lock.get());
        self.came_back(state).flatten()
    }

    pub(super) fn is_idle(&mut self) -> bool {
        let idle = self.client.is_idle();
        self.came_back(idle).unwrap_or(self.last_words.is_empty())
    }

    fn follow(&mut self, output: &Output) {
        let Output::Event(event) = output else { return };
        match event {
            Event::Acquired { lock, .. } => drop(self.alive.insert(*lock, Phase::Held)),
            Event::Failed { lock, .. } | Event::Lost { lock, .. } | Event::Released { lock, .. } => {
                self.alive.remove(lock);
            }
            Event::Contended { .. }
            | Event::Renewed { .. }
            | Event::RenewDelayed { .. }
            | Event::Shortened { .. }
            | Event::Expiring { .. } => {}
        }
    }

    /// Answers whether the component took it; what it refuses here is a lock that is not alive.
    fn accepted<E>(&mut self, result: Result<(), CallError<E>>) -> bool {
        match result {
            Ok(()) => true,
            Err(CallError::Refused(_)) => false,
            Err(CallError::Host(error)) => {
                self.failed(&error);
                false
            }
        }
    }

    fn came_back<T>(&mut self, result: Result<T, HostError>) -> Option<T> {
        result.map_err(|error| self.failed(&error)).ok()
    }

    fn failed(&mut self, error: &HostError) {
        if self.broken.is_some() {
            return;
        }
        let why = error.to_string();
        for (lock, phase) in std::mem::take(&mut self.alive) {
            self.last_words.push_back(match phase {
                Phase::Wanted => {
                    let fault = Fault::new(FaultKind::Server, &why);
                    Event::Failed { lock, failure: Failure::Unavailable(fault) }
                }
                // Nobody renews it any more.
                Phase::Held => Event::Lost { lock, reason: LostReason::Expired },
                Phase::GivenBack => Event::Released { lock, confirmed: false },
            });
        }
        self.broken = Some(why);
    }
}

fn broken(why: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("{why}; connect again"))
}

fn refused(refusal: Refusal) -> Error {
    match incoming::error(refusal) {
        Ok(error) => super::rejected(&error),
        Err(why) => Error::config(why),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::op::{Applied, Outcome};
    use leasehold_core::{Monotonic, NodeConfig, Token};

    use super::*;

    const LOCKS: u64 = 1_000;

    fn at(ns: u64) -> Now {
        Now { monotonic: Monotonic::from_ns(ns), unix_ms: 1_700_000_000_000 }
    }

    #[test]
    fn when_the_component_breaks_off_every_lock_is_told_and_nothing_is_taken_on() {
        let path = std::env::var("LEASEHOLD_COMPONENT").expect("LEASEHOLD_COMPONENT names a component");
        // SAFETY: the file is what the build has just made.
        let component = unsafe { Component::deserialize(&std::fs::read(path).unwrap()) }.unwrap();
        // Enough for anything but closing so many locks.
        let limits = Limits { fuel: 2_000_000, ..Limits::default() };
        let config = Config::new(vec![NodeConfig::default()]).unwrap();
        let mut guest = Guest::new(&component, limits, &config, &[7; 32], at(0)).unwrap();
        let options = LockOptions::builder().build().unwrap();
        for lock in 0..LOCKS {
            let resource = Resource::new(&format!("r{lock}")).unwrap();
            guest.acquire(LockId::new(lock), &resource, &options, &[lock as u8; 16], at(lock)).unwrap();
        }
        let Some(Output::Transmit(first)) = guest.poll_output(at(LOCKS)) else { panic!("a request") };
        let granted = Outcome::Applied(Applied::Acquired { counter: Token::new(34).unwrap() });
        guest.handle_response(first.id, Ok(vec![granted]), at(LOCKS));
        let Some(Output::Event(Event::Acquired { lock: held, .. })) = guest.poll_output(at(LOCKS)) else {
            panic!("a grant")
        };

        guest.close(at(LOCKS));
        let mut told = BTreeMap::new();
        while let Some(output) = guest.poll_output(at(LOCKS)) {
            let Output::Event(event) = output else { panic!("{output:?}") };
            told.insert(event.lock(), event);
        }
        assert_eq!(told.len() as u64, LOCKS);
        for (lock, event) in told {
            match event {
                Event::Lost { reason: LostReason::Expired, .. } => assert_eq!(lock, held),
                Event::Failed { failure: Failure::Unavailable(fault), .. } => {
                    assert!(fault.to_string().contains("fuel"), "{fault}");
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(guest.is_idle());
        let resource = Resource::new("r").unwrap();
        let refused = guest.acquire(LockId::new(LOCKS), &resource, &options, &[1; 16], at(LOCKS)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::StoreUnavailable);
        assert!(!guest.release(held, at(LOCKS)));
    }
}
