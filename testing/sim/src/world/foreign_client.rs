//! A client of another library that shares a lock with ours, and follows its own rules.

use std::time::Duration;

use leasehold_core::Version;

use super::{Due, World};
use crate::clock::{Clock, TrueTime};
use crate::counts::Struck;
use crate::script::ForeignClient as Spec;
use crate::store::{ForeignAct, ForeignAnswer, ForeignRow, Kind, Mark};

#[derive(Clone, Debug)]
pub(super) struct ForeignClient {
    spec: Spec,
    clock: Clock,
    /// Marks are never used twice.
    count: u32,
    /// The version that it watches, and the time since when, by its own clock.
    watched: Option<(Version, u64)>,
    held: Option<Held>,
    done: bool,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    mark: Mark,
    since: TrueTime,
    /// The end of its belief, if it decides that itself: the whole ttl by its own clock, without a margin. Where the
    /// store expires records, foreign clients leave it to the store.
    until: Option<TrueTime>,
}

/// The time between two looks or tries.
const POLL: Duration = Duration::from_millis(37);

impl ForeignClient {
    pub(super) fn new(spec: &Spec) -> Self {
        let clock = Clock::new(0, spec.rate_ppm);
        Self { spec: *spec, clock, count: 0, watched: None, held: None, done: false }
    }

    /// The end of its belief that it holds a resource.
    pub(super) fn believes_until(&self, resource: usize) -> Option<TrueTime> {
        self.held.filter(|_| self.spec.resource == resource)?.until
    }

    pub(super) fn dies(&mut self) {
        self.done = true;
        self.held = None;
    }

    fn ttl(&self) -> Duration {
        Duration::from_nanos(self.spec.ttl_ns)
    }

    fn believe(&mut self, kind: Kind, mark: Mark, since: TrueTime, now: TrueTime) {
        let until = (kind == Kind::Dynamodb).then(|| self.clock.when(self.clock.shows(now) + self.spec.ttl_ns));
        self.held = Some(Held { mark, since, until });
        // The next acquisition must not use a mark that a heartbeat of this one has reached.
        self.count = mark.count + 1;
    }

    /// The next try for a lock that it does not hold.
    fn attempt(&mut self, by: u32, row: Option<&ForeignRow>, now: TrueTime) -> Option<ForeignAct> {
        let (mark, ttl) = (Mark { by, count: self.count }, self.ttl());
        let shows = self.clock.shows(now);
        match row {
            None => Some(ForeignAct::AcquireNew { mark, ttl }),
            Some(row) if row.released => Some(ForeignAct::AcquireReleased { mark, ttl }),
            Some(row) => match &self.watched {
                Some((version, since)) if *version == row.version => {
                    let ran_out = u128::from(shows.saturating_sub(*since)) > row.ttl.as_nanos();
                    ran_out.then(|| ForeignAct::AcquireExpired { mark, ttl, seen: version.clone() })
                }
                Some(_) | None => {
                    self.watched = Some((row.version.clone(), shows));
                    None
                }
            },
        }
    }
}

impl World<'_> {
    pub(super) fn foreign_client(&mut self, n: usize) {
        if self.foreign_clients[n].done {
            return;
        }
        let resource = self.foreign_clients[n].spec.resource;
        let name = self.resources[resource].clone();
        let by = u32::try_from(n).unwrap_or(u32::MAX);
        let next = match self.foreign_clients[n].held {
            None => self.foreign_client_tries(n, by, &name),
            Some(held) => self.foreign_client_continues(n, held, &name),
        };
        if let Some(pause) = next {
            self.push(self.now.plus(pause), Due::ForeignClient(n));
        } else {
            self.foreign_clients[n].done = true;
        }
        self.audit(resource);
        self.record_stores(resource);
    }

    fn foreign_client_tries(&mut self, n: usize, by: u32, name: &leasehold_core::Resource) -> Option<Duration> {
        let ForeignAnswer::Read(row) = self.nodes[0].store.foreign(name, &ForeignAct::Read, self.now) else {
            return None;
        };
        // Where the store expires records, a client of Redis tries to set its own.
        let row = row.filter(|_| self.nodes[0].store.kind() == Kind::Dynamodb);
        let Some(act) = self.foreign_clients[n].attempt(by, row.as_ref(), self.now) else { return Some(POLL) };
        match self.nodes[0].store.foreign(name, &act, self.now) {
            ForeignAnswer::Held(mark) => {
                self.counts.strike(Struck::ForeignClients);
                self.foreign_clients[n].believe(self.nodes[0].store.kind(), mark, self.now, self.now);
                Some(self.foreign_clients[n].ttl() / 3)
            }
            ForeignAnswer::Released | ForeignAnswer::Refused | ForeignAnswer::Read(_) => Some(POLL),
        }
    }

    fn foreign_client_continues(&mut self, n: usize, held: Held, name: &leasehold_core::Resource) -> Option<Duration> {
        let spec = self.foreign_clients[n].spec;
        if self.now.since(held.since) >= Duration::from_nanos(spec.hold_ns) {
            if spec.releases {
                self.nodes[0].store.foreign(name, &ForeignAct::ReleaseDelete { mark: held.mark }, self.now);
                self.foreign_clients[n].held = None;
            }
            return None;
        }
        let ttl = self.foreign_clients[n].ttl();
        match self.nodes[0].store.foreign(name, &ForeignAct::Heartbeat { mark: held.mark, ttl }, self.now) {
            ForeignAnswer::Held(mark) => {
                self.foreign_clients[n].believe(self.nodes[0].store.kind(), mark, held.since, self.now);
                Some(ttl / 3)
            }
            ForeignAnswer::Released | ForeignAnswer::Refused | ForeignAnswer::Read(_) => None,
        }
    }
}
