//! All orders of events of a small world in which the number is written and counted.
//!
//! Two clients change the number, two want a permit. A request arrives at any time after it was sent, or never; a lock or the
//! record is lost at any time. No two holders may count with different numbers.

use std::collections::HashSet;
use std::time::Duration;

use super::{Node, Shown, shown};
use crate::runs::completion::Completion;

/// A rule that somebody might break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// The locks are checked before the record is asked for.
    CheckBeforeBegin,
    /// The locks are not checked.
    NoCheck,
    /// A number is counted although somebody holds its record.
    HeldCounts,
    /// The number that is replaced is read before the record is asked for.
    LookBeforeBegin,
    /// A finish arrives although the record was lost.
    FinishUnfenced,
}

/// The two who set the number, and the two who take a permit. A number is also the number of a client's permits.
const CLIENTS: [(Role, u8); 4] = [(Role::Setter, 1), (Role::Setter, 2), (Role::Holder, 1), (Role::Holder, 2)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Setter,
    Holder,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    /// It knows which locks it needs.
    Chosen,
    /// It has them.
    Locked,
    /// The record was asked for.
    Asked,
    Granted,
    /// The number that it replaces was looked at.
    Looked,
    /// The finish is on its way.
    Finishing,
    Over,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Client {
    phase: Phase,
    /// The locks that it has or had, as bits.
    locks: u8,
    /// A request for the record that has not arrived.
    is_begin_under_way: bool,
    /// It uses its permit, by its own number.
    counts: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct World {
    number: Option<u8>,
    record: Option<usize>,
    /// The holder of each permit.
    locks: [Option<usize>; 2],
    clients: [Client; CLIENTS.len()],
}

fn bits(count: u8) -> u8 {
    (1 << count) - 1
}

impl World {
    fn new(number: Option<u8>) -> Self {
        Self { number, record: None, locks: [None; 2], clients: [Client::default(); CLIENTS.len()] }
    }

    fn holds(&self, client: usize) -> bool {
        let locks = self.clients[client].locks;
        locks != 0 && (0..2).all(|lock| locks & 1 << lock == 0 || self.locks[lock] == Some(client))
    }

    fn take(&mut self, client: usize, locks: u8) -> bool {
        let is_wanted = |lock: &usize| locks & 1 << lock != 0;
        if (0..2).filter(is_wanted).any(|lock| self.locks[lock].is_some()) {
            return false;
        }
        (0..2).filter(is_wanted).for_each(|lock| self.locks[lock] = Some(client));
        self.clients[client].locks = locks;
        true
    }

    /// The number as a reader sees it.
    fn shown(&self, mistake: Mistake) -> Shown {
        let completion = |number| Completion {
            token: 1,
            owner: Some(format!("permits={number}")),
            at_unix_ms: 0,
            left: Duration::MAX,
            result: None,
            result_unsettled: false,
            began_unix_ms: None,
        };
        let is_held = self.record.is_some() && mistake != Mistake::HeldCounts;
        shown(&[Some(Node { is_held, completion: self.number.map(completion) })], Duration::ZERO)
    }

    fn is_wrong(&self) -> bool {
        let counts = |number| {
            let mut clients = (0..CLIENTS.len()).filter(|client| CLIENTS[*client].1 == number);
            clients.any(|client| self.clients[client].counts && self.holds(client))
        };
        counts(1) && counts(2)
    }

    /// The worlds that may come next.
    fn next(&self, mistake: Mistake) -> Vec<Self> {
        let mut worlds = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut world = *self;
            change(&mut world);
            world.forget();
            worlds.push(world);
        };
        for lock in (0..2).filter(|lock| self.locks[*lock].is_some()) {
            add(&|world| world.locks[lock] = None);
        }
        if self.record.is_some() {
            add(&|world| world.record = None);
        }
        for (client, (role, number)) in CLIENTS.into_iter().enumerate() {
            if self.clients[client].is_begin_under_way && self.record.is_none() {
                add(&|world| world.begin_arrives(client, role));
            }
            match self.clients[client].phase {
                Phase::Idle if role == Role::Setter => add(&|world| {
                    let count = world.number.unwrap_or(0).max(number);
                    (world.clients[client].locks, world.clients[client].phase) = (bits(count), Phase::Chosen);
                }),
                Phase::Idle => {
                    for lock in 0..number {
                        add(&|world| {
                            if world.take(client, 1 << lock) {
                                world.clients[client].phase = Phase::Locked;
                            }
                        });
                    }
                }
                Phase::Chosen => add(&|world| {
                    if world.take(client, world.clients[client].locks) {
                        world.clients[client].phase = Phase::Locked;
                    }
                }),
                Phase::Locked => add(&|world| world.locked(client, mistake)),
                Phase::Asked => add(&|world| world.clients[client].phase = Phase::Over),
                Phase::Granted => add(&|world| world.look(client, mistake)),
                Phase::Looked => add(&|world| {
                    let checks = !matches!(mistake, Mistake::CheckBeforeBegin | Mistake::NoCheck);
                    world.go_on(client, !checks || world.holds(client), Phase::Finishing);
                }),
                Phase::Finishing => add(&|world| {
                    if world.record == Some(client) || mistake == Mistake::FinishUnfenced {
                        world.number = Some(number);
                        world.go_on(client, false, Phase::Over);
                        world.clients[client].counts = role == Role::Holder;
                    }
                }),
                Phase::Over => {}
            }
        }
        worlds
    }

    /// Forgets what decides nothing any more, so that there are fewer worlds.
    fn forget(&mut self) {
        for client in 0..CLIENTS.len() {
            let holds = self.holds(client);
            let one = &mut self.clients[client];
            one.counts &= holds;
            if one.phase == Phase::Over && !one.counts {
                one.locks = 0;
            }
        }
    }

    fn begin_arrives(&mut self, client: usize, role: Role) {
        let one = &mut self.clients[client];
        one.is_begin_under_way = false;
        // A first number is refused where there is one; who counts one already writes it once more.
        if role == Role::Holder && !one.counts && self.number.is_some() {
            if one.phase == Phase::Asked {
                one.phase = Phase::Locked;
            }
            return;
        }
        self.record = Some(client);
        if one.phase == Phase::Asked {
            one.phase = Phase::Granted;
        }
    }

    fn locked(&mut self, client: usize, mistake: Mistake) {
        let (role, number) = CLIENTS[client];
        let mut asks = true;
        if role == Role::Setter {
            asks &= mistake != Mistake::CheckBeforeBegin || self.holds(client);
            asks &= mistake != Mistake::LookBeforeBegin || self.is_covered(client);
        } else {
            match self.shown(mistake) {
                Shown::Settled { .. } if self.number == Some(number) => self.clients[client].counts = true,
                Shown::Settled { .. } => return self.go_on(client, false, Phase::Over),
                Shown::None { .. } => {}
                Shown::Unsettled => return,
            }
        }
        self.clients[client].is_begin_under_way = asks;
        self.clients[client].phase = if asks { Phase::Asked } else { Phase::Over };
    }

    fn is_covered(&self, client: usize) -> bool {
        bits(self.number.unwrap_or(0)) & !self.clients[client].locks == 0
    }

    fn look(&mut self, client: usize, mistake: Mistake) {
        let (role, number) = CLIENTS[client];
        let goes_on = match role {
            Role::Setter => mistake == Mistake::LookBeforeBegin || self.is_covered(client),
            Role::Holder if self.clients[client].counts => self.number == Some(number),
            Role::Holder => true,
        };
        self.go_on(client, goes_on, Phase::Looked);
    }

    /// On to a phase, or to the end, where the record goes back.
    fn go_on(&mut self, client: usize, goes_on: bool, to: Phase) {
        self.clients[client].phase = if goes_on { to } else { Phase::Over };
        if !goes_on && self.record == Some(client) {
            self.record = None;
        }
    }
}

/// The number of worlds, `None` if one of them is wrong.
fn search(mistake: Mistake) -> Option<usize> {
    let mut open: Vec<World> = [None, Some(1), Some(2)].map(World::new).to_vec();
    let mut known: HashSet<World> = open.iter().copied().collect();
    while let Some(world) = open.pop() {
        if world.is_wrong() {
            return None;
        }
        open.extend(world.next(mistake).into_iter().filter(|next| known.insert(*next)));
    }
    Some(known.len())
}

#[test]
fn no_order_of_events_gives_two_numbers_at_once() {
    let worlds = search(Mistake::None);
    assert!(worlds.is_some_and(|worlds| worlds > 10_000), "{worlds:?}");
}

#[test]
fn each_mistake_is_found() {
    for mistake in [
        Mistake::CheckBeforeBegin,
        Mistake::NoCheck,
        Mistake::HeldCounts,
        Mistake::LookBeforeBegin,
        Mistake::FinishUnfenced,
    ] {
        assert_eq!(search(mistake), None, "{mistake:?}");
    }
}
