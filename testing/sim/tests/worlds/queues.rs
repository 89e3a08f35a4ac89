//! Every order, within bounds, of what clients that stand in the queue, their messages and a store do. The clients are the real
//! core; the store is the model that the simulator uses: of a Redis, or of the core's own queues in memory and in a file.
//!
//! Searched for: two holders; a grant out of the order of joining, where nothing fails (I10); a lock that nobody takes although
//! somebody alive waits, for longer than is promised (progress).

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use leasehold_core::op::{Applied, Op, Outcome};
use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{
    Client, Config, Departure, Entropy, Event, LockId, LockOptions, Monotonic, NodeConfig, Now, Output, RequestId,
    Resource, Transmit,
};
use leasehold_sim::clock::TrueTime;
use leasehold_sim::store::{Answer, Ask, Form, Kind, Spec, Store, Ticket};

const BEGAN_UNIX_MS: u64 = 1_767_225_600_000;
const GRACE_MS: u64 = 500;
/// The longest sleep of a waiter, and two requests that are not answered.
const POLL_MS: u64 = 2_000 + 2 * 500;

/// Events that may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Budget {
    /// How often each client wants the lock.
    wants: [u8; 3],
    /// Requests that are carried out twice.
    copies: u8,
    /// Messages to and from tickets that are lost.
    losses: u8,
    cancels: u8,
    deaths: u8,
    stops: u8,
    /// Times at which nothing happens until a timer is due.
    passes: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Runs,
    Stopped,
    Dead,
}

#[derive(Clone, Hash)]
struct Host {
    core: Client,
    life: Life,
    drawn: u64,
    /// The acquisition or lease that it has.
    lock: Option<LockId>,
    next: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Message {
    Request { from: usize, transmit: Transmit },
    Reply { to: usize, id: RequestId, outcome: Outcome },
    Turn { to: usize, lock: LockId, after: Duration },
    Leave { from: usize, lock: LockId },
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Want(usize),
    Release(usize),
    Cancel(usize),
    Die(usize),
    Stop(usize),
    GoOn(usize),
    Deliver(usize),
    Copy(usize),
    Lose(usize),
    Pass,
}

/// The store that keeps the queue, and how it learns that a waiter has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeper {
    /// Nobody receives its messages.
    Redis,
    /// Its places end with it.
    Memory,
    /// Not at all, for some time: its place is like that of a waiter that is stopped.
    File,
}

#[derive(Clone)]
struct World {
    keeper: Keeper,
    now_ms: u64,
    store: Store,
    hosts: Vec<Host>,
    messages: Vec<Message>,
    /// Those who have joined and were not granted, in the order of their joining.
    joined: Vec<Ticket>,
    budget: Budget,
    /// Nothing has failed so far.
    is_calm: bool,
    /// A ticket may be in the queue although its acquisition has ended.
    may_have_ghosts: bool,
    lost: u8,
}

type Broken = String;

fn resource() -> Resource {
    Resource::new("r").unwrap()
}

impl World {
    fn new(keeper: Keeper, budget: Budget) -> Self {
        let config = Config::new(vec![NodeConfig { watch: true, ..NodeConfig::default() }]).unwrap().with_queues(true);
        let kind = if keeper == Keeper::Redis { Kind::Redis } else { Kind::Memory };
        let mut store = Store::new(&Spec::of(kind));
        let hosts = (0..budget.wants.iter().filter(|wants| **wants > 0).count()).map(|n| {
            store.listens(n as u64, true, TrueTime(0));
            let seed = [u8::try_from(n).unwrap(); 32];
            Host { core: Client::new(config.clone(), seed, at(0)), life: Life::Runs, drawn: 0, lock: None, next: 0 }
        });
        let hosts = hosts.collect();
        Self {
            keeper,
            now_ms: 0,
            store,
            hosts,
            messages: Vec::new(),
            joined: Vec::new(),
            budget,
            is_calm: true,
            may_have_ghosts: false,
            lost: 0,
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = DefaultHasher::new();
        (self.now_ms, &self.store, &self.hosts, &self.joined, self.budget).hash(&mut digest);
        (self.is_calm, self.may_have_ghosts, self.lost).hash(&mut digest);
        // The order in which they were sent decides nothing.
        let one = |message: &Message| {
            let mut digest = DefaultHasher::new();
            message.hash(&mut digest);
            digest.finish()
        };
        let mut messages: Vec<u64> = self.messages.iter().map(one).collect();
        messages.sort_unstable();
        messages.hash(&mut digest);
        digest.finish()
    }

    fn state(&self, n: usize) -> Option<&'static str> {
        self.hosts[n].lock.and_then(|lock| self.hosts[n].core.state(lock))
    }

    fn holds(&self, n: usize) -> bool {
        let host = &self.hosts[n];
        host.life != Life::Dead && host.lock.is_some_and(|lock| !host.core.remaining(lock, at(self.now_ms)).is_zero())
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (n, host) in self.hosts.iter().enumerate() {
            match host.life {
                Life::Runs => {}
                Life::Stopped => {
                    actions.push(Action::GoOn(n));
                    continue;
                }
                Life::Dead => continue,
            }
            match self.state(n) {
                None if self.budget.wants[n] > 0 => actions.push(Action::Want(n)),
                Some("Held") => actions.push(Action::Release(n)),
                Some("Acquiring" | "Waiting") if self.budget.cancels > 0 => actions.push(Action::Cancel(n)),
                _ => {}
            }
            let is_under_way = matches!(self.state(n), Some("Acquiring" | "Waiting"));
            if self.budget.deaths > 0 && is_under_way {
                actions.push(Action::Die(n));
            }
            if self.budget.stops > 0 && is_under_way {
                actions.push(Action::Stop(n));
            }
        }
        for (n, message) in self.messages.iter().enumerate() {
            let reaches = match message {
                Message::Reply { to, .. } | Message::Turn { to, .. } => self.hosts[*to].life == Life::Runs,
                Message::Request { .. } | Message::Leave { .. } => true,
            };
            if !reaches || self.messages[..n].contains(message) {
                continue;
            }
            actions.push(Action::Deliver(n));
            match message {
                Message::Request { .. } if self.budget.copies > 0 => actions.push(Action::Copy(n)),
                Message::Turn { .. } | Message::Leave { .. } if self.budget.losses > 0 => actions.push(Action::Lose(n)),
                _ => {}
            }
        }
        if self.budget.passes > 0 {
            actions.push(Action::Pass);
        }
        actions
    }

    fn act(&mut self, action: Action) -> Result<(), Broken> {
        match action {
            Action::Want(n) => {
                self.budget.wants[n] -= 1;
                let host = &mut self.hosts[n];
                let lock = LockId::new(host.next);
                host.next += 1;
                host.lock = Some(lock);
                let options = LockOptions::builder().ttl(Duration::from_secs(86_400)).no_renewal().build().unwrap();
                self.drive(n, |core, fresh, now| core.acquire(lock, resource(), options, fresh, now).unwrap())
            }
            Action::Release(n) => self.end(n),
            Action::Cancel(n) => {
                self.budget.cancels -= 1;
                self.is_calm = false;
                let of_it = |message: &Message| matches!(message, Message::Request { from, .. } if *from == n);
                self.may_have_ghosts |= self.messages.iter().any(of_it);
                self.end(n)
            }
            Action::Die(n) => {
                self.budget.deaths -= 1;
                self.is_calm = false;
                self.hosts[n].life = Life::Dead;
                if self.keeper != Keeper::File {
                    self.store.listens(n as u64, false, self.true_time());
                }
                self.messages.retain(
                    |message| !matches!(message, Message::Reply { to, .. } | Message::Turn { to, .. } if *to == n),
                );
                // A process that has ended sends no more to its own memory.
                let keeper = self.keeper;
                self.messages.retain(|message| {
                    !matches!(message, Message::Request { from, .. } | Message::Leave { from, .. }
                        if *from == n && keeper != Keeper::Redis)
                });
                self.tell()
            }
            Action::Stop(n) => {
                self.budget.stops -= 1;
                self.is_calm = false;
                self.hosts[n].life = Life::Stopped;
                Ok(())
            }
            Action::GoOn(n) => {
                self.hosts[n].life = Life::Runs;
                self.drive(n, |core, fresh, now| core.handle_timeout(fresh, now))
            }
            Action::Deliver(n) => {
                let message = self.messages.remove(n);
                self.deliver(message)
            }
            Action::Copy(n) => {
                self.budget.copies -= 1;
                self.is_calm = false;
                self.may_have_ghosts = true;
                self.deliver(self.messages[n].clone())
            }
            Action::Lose(n) => {
                self.budget.losses -= 1;
                self.lost += 1;
                self.is_calm = false;
                self.may_have_ghosts = true;
                self.messages.remove(n);
                Ok(())
            }
            Action::Pass => {
                self.budget.passes -= 1;
                self.is_calm = false;
                // A request that was given up may arrive.
                self.may_have_ghosts = true;
                self.pass()
            }
        }
    }

    fn end(&mut self, n: usize) -> Result<(), Broken> {
        let Some(lock) = self.hosts[n].lock else { return Ok(()) };
        self.joined.retain(|ticket| *ticket != Ticket { client: n as u64, lock });
        self.drive(n, |core, _, now| core.release(lock, now).unwrap())
    }

    fn deliver(&mut self, message: Message) -> Result<(), Broken> {
        match message {
            Message::Request { from, transmit } => {
                let [lock_op] = &transmit.ops[..] else { panic!("one operation") };
                let ticket = Ticket { client: from as u64, lock: lock_op.lock };
                let in_queue = matches!(&lock_op.op, Op::Acquire(acquire) if acquire.in_queue);
                let ask = Ask {
                    resource: &lock_op.resource,
                    op: &lock_op.op,
                    form: Form::Floor,
                    at: self.true_time(),
                    caller: self.store_now(),
                    ticket: in_queue.then_some(ticket),
                };
                let Answer::Done(outcome) = self.store.ask(&ask) else { panic!("one request") };
                if let Outcome::Applied(Applied::Acquired { .. }) = outcome {
                    if self.is_calm && self.joined.first().is_some_and(|first| *first != ticket) {
                        return Err(format!("{ticket:?} is granted, and {:?} joined before", self.joined));
                    }
                    self.joined.retain(|other| *other != ticket);
                }
                let is_alive = self.hosts[from].core.state(ticket.lock).is_some();
                if is_alive
                    && self.store.queue(&resource(), self.true_time()).contains(&ticket)
                    && !self.joined.contains(&ticket)
                {
                    self.joined.push(ticket);
                }
                if self.hosts[from].life != Life::Dead {
                    self.messages.push(Message::Reply { to: from, id: transmit.id, outcome });
                }
                self.tell()
            }
            Message::Reply { to, id, outcome } => {
                let queue = self.store.queue(&resource(), self.true_time());
                let own = queue.into_iter().filter(|ticket| ticket.client == to as u64);
                let reserved = |ticket| self.store.reserved_before(&resource(), ticket, self.true_time());
                let placed: Vec<_> = own.map(|ticket| (ticket.lock, reserved(ticket))).collect();
                self.drive(to, |core, _, now| {
                    placed.into_iter().for_each(|(lock, reserved)| core.placed(lock, reserved));
                    core.handle_response(id, Ok([outcome]), now);
                })
            }
            Message::Turn { to, lock, after } => {
                self.drive(to, |core, _, now| core.reserved(&resource(), lock, after, now))
            }
            Message::Leave { from, lock } => {
                let at = self.true_time();
                self.store.leave(&resource(), Ticket { client: from as u64, lock }, at);
                self.tell()
            }
        }
    }

    /// Passes on what the store has published.
    fn tell(&mut self) -> Result<(), Broken> {
        for (Ticket { client, lock }, _, after) in self.store.take_messages() {
            let to = usize::try_from(client).unwrap();
            if self.hosts[to].life == Life::Dead {
                if self.keeper == Keeper::File {
                    continue;
                }
                return Err(format!("the lock is reserved for {client}, who is dead"));
            }
            self.messages.push(Message::Turn { to, lock, after });
        }
        Ok(())
    }

    /// Enters a client, and takes all that it wants.
    fn drive(&mut self, n: usize, enter: impl FnOnce(&mut Client, &Entropy, Now)) -> Result<(), Broken> {
        let now = at(self.now_ms);
        let fresh = self.fresh(n);
        enter(&mut self.hosts[n].core, &fresh, now);
        loop {
            match self.hosts[n].core.poll_output(now) {
                Output::WakeAt(at) if at <= now.monotonic => {
                    let fresh = self.fresh(n);
                    self.hosts[n].core.handle_timeout(&fresh, now);
                }
                Output::WakeAt(_) => break,
                Output::Transmit(transmit) => self.messages.push(Message::Request { from: n, transmit }),
                Output::Event(event @ (Event::Failed { .. } | Event::Released { .. } | Event::Lost { .. }))
                    if self.hosts[n].lock == Some(event.lock()) =>
                {
                    self.hosts[n].lock = None;
                }
                _ => {}
            }
        }
        while let Some(Departure { lock, .. }) = self.hosts[n].core.next_departure() {
            self.messages.push(Message::Leave { from: n, lock });
        }
        let holders: Vec<usize> = (0..self.hosts.len()).filter(|n| self.holds(*n)).collect();
        if holders.len() > 1 { Err(format!("{holders:?} hold the lock")) } else { Ok(()) }
    }

    /// Time passes until the next timer of a client or the end of a reservation.
    fn pass(&mut self) -> Result<(), Broken> {
        let now = at(self.now_ms);
        let running = self.hosts.iter_mut().enumerate().filter(|(_, host)| host.life == Life::Runs);
        let timers: Vec<(usize, u64)> = running
            .filter_map(|(n, host)| match host.core.poll_output(now) {
                Output::WakeAt(at) if at < Monotonic::FAR => Some((n, at.ns().div_ceil(1_000_000))),
                _ => None,
            })
            .collect();
        let reserved = self.store.reserved_for(&resource(), self.true_time()).map(|_| self.now_ms + GRACE_MS);
        let Some(next) = timers.iter().map(|(_, at)| *at).chain(reserved).min() else { return Ok(()) };
        self.now_ms = next.max(self.now_ms);
        for (n, _) in timers.into_iter().filter(|(_, at)| *at <= next) {
            self.drive(n, |core, fresh, now| core.handle_timeout(fresh, now))?;
        }
        Ok(())
    }

    /// Where nothing is under way, somebody alive who waits gets the lock in the time that is promised.
    fn check_progress(&self) -> Result<(), Broken> {
        let is_under_way = |message: &&Message| match message {
            Message::Reply { to, .. } | Message::Turn { to, .. } => self.hosts[*to].life == Life::Runs,
            Message::Request { .. } | Message::Leave { .. } => true,
        };
        if self.messages.iter().any(|message| is_under_way(&message)) {
            return Ok(());
        }
        let reserved = self.store.reserved_for(&resource(), self.true_time());
        if let Some(ticket) = reserved.filter(|_| self.lost == 0) {
            let host = &self.hosts[usize::try_from(ticket.client).unwrap()];
            if host.life == Life::Runs && host.core.state(ticket.lock).is_none() {
                return Err(format!("the lock is reserved for {ticket:?}, which has ended"));
            }
        }
        if !self.may_have_ghosts {
            for ticket in self.store.queue(&resource(), self.true_time()) {
                let host = &self.hosts[usize::try_from(ticket.client).unwrap()];
                if host.life != Life::Dead && host.core.state(ticket.lock).is_none() {
                    return Err(format!("{ticket:?} has ended, and stands in the queue"));
                }
            }
        }
        let holder = self.store.stored(&resource(), self.true_time(), &self.store_now());
        let waits = |n: &usize| self.hosts[*n].life == Life::Runs && self.state(*n) == Some("Waiting");
        if holder.is_some() || !(0..self.hosts.len()).any(|n| waits(&n)) {
            return Ok(());
        }
        if self.is_calm {
            return Err("the lock is free, and nobody was told".into());
        }
        let is_silent = |host: &&Host| match host.life {
            Life::Runs => false,
            Life::Stopped => true,
            Life::Dead => self.keeper == Keeper::File,
        };
        let stopped = self.hosts.iter().filter(is_silent).count() as u64;
        let by = self.now_ms + GRACE_MS * (stopped + 1) + POLL_MS;
        let mut future = self.clone();
        future.may_have_ghosts = true;
        loop {
            if (0..future.hosts.len()).any(|n| future.holds(n) && future.hosts[n].life == Life::Runs) {
                return Ok(());
            }
            if future.now_ms > by {
                return Err(format!(
                    "the lock is free, and nobody has taken it {} ms later",
                    future.now_ms - self.now_ms
                ));
            }
            match future.messages.iter().position(|message| is_under_way(&message)) {
                Some(n) => {
                    let message = future.messages.remove(n);
                    future.deliver(message)?;
                }
                None => future.pass()?,
            }
        }
    }

    fn fresh(&mut self, n: usize) -> Entropy {
        let host = &mut self.hosts[n];
        host.drawn += 1;
        let mut fresh = [u8::try_from(n).unwrap() + 1; 16];
        fresh[..8].copy_from_slice(&host.drawn.to_le_bytes());
        fresh
    }

    fn true_time(&self) -> TrueTime {
        TrueTime(self.now_ms * 1_000_000)
    }

    fn store_now(&self) -> StoreNow {
        let Now { monotonic, unix_ms } = at(self.now_ms);
        StoreNow { boot: BootId([0; 16]), uptime: monotonic, unix_ms }
    }
}

fn at(ms: u64) -> Now {
    Now { monotonic: Monotonic::from_ns(ms * 1_000_000), unix_ms: BEGAN_UNIX_MS + ms }
}

/// Tries everything, and returns how many states there are.
fn search(name: &str, keeper: Keeper, budget: Budget) -> Result<usize, Broken> {
    let mut seen = HashSet::new();
    let mut reached: BTreeMap<String, usize> = BTreeMap::new();
    let mut open = vec![(World::new(keeper, budget), Vec::new())];
    while let Some((world, path)) = open.pop() {
        if !seen.insert(world.digest()) {
            continue;
        }
        let failed = |broken: Broken, path: &[Action]| format!("{name}: {broken}\nafter {path:?}");
        world.check_progress().map_err(|broken| failed(broken, &path))?;
        for action in world.actions() {
            let mut next = world.clone();
            let mut path: Vec<Action> = path.clone();
            path.push(action);
            next.act(action).map_err(|broken| failed(broken, &path))?;
            let words = format!("{action:?}");
            *reached.entry(words.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
            open.push((next, path));
        }
    }
    println!("{name}: {} states, {reached:?}", seen.len());
    Ok(seen.len())
}

#[track_caller]
fn holds(name: &str, budget: Budget) {
    holds_in(Keeper::Redis, name, budget);
}

#[track_caller]
fn holds_in(keeper: Keeper, name: &str, budget: Budget) {
    if let Err(broken) = search(name, keeper, budget) {
        panic!("{broken}");
    }
}

const TWO: Budget = Budget { wants: [2, 2, 0], copies: 0, losses: 0, cancels: 0, deaths: 0, stops: 0, passes: 0 };
const THREE: Budget = Budget { wants: [1, 1, 1], ..TWO };

#[test]
fn grants_follow_the_order_of_joining() {
    holds("two", TWO);
    holds("three", THREE);
}

#[test]
fn tickets_that_are_given_up_stop_nobody() {
    holds("two, cancelled", Budget { wants: [2, 1, 0], cancels: 1, ..TWO });
    holds("two, both cancelled", Budget { wants: [1, 1, 0], cancels: 2, ..TWO });
}

#[test]
fn requests_that_come_twice_or_late_make_no_second_holder() {
    holds("two, copied", Budget { wants: [2, 1, 0], copies: 1, ..TWO });
    holds("two, copied and cancelled", Budget { wants: [1, 1, 0], copies: 1, cancels: 1, ..TWO });
}

#[test]
fn lost_messages_cost_a_poll() {
    holds("two, messages lost", Budget { losses: 1, ..TWO });
    holds("two, messages lost while time passes", Budget { wants: [1, 1, 0], losses: 1, passes: 1, ..TWO });
}

#[test]
fn dead_and_stopped_waiters_stop_nobody() {
    holds("three, one dies", Budget { deaths: 1, ..THREE });
    holds("three, one stops", Budget { stops: 1, ..THREE });
    holds("two, one stops while time passes", Budget { wants: [1, 1, 0], stops: 1, passes: 1, ..TWO });
}

#[test]
fn in_memory_grants_follow_the_order_of_joining() {
    holds_in(Keeper::Memory, "two", TWO);
    holds_in(Keeper::Memory, "three", THREE);
}

#[test]
fn in_memory_tickets_that_are_given_up_or_not_told_stop_nobody() {
    holds_in(Keeper::Memory, "two, cancelled", Budget { wants: [2, 1, 0], cancels: 1, ..TWO });
    holds_in(Keeper::Memory, "two, copied and cancelled", Budget { wants: [1, 1, 0], copies: 1, cancels: 1, ..TWO });
    let lost = Budget { wants: [1, 1, 0], losses: 1, passes: 1, ..TWO };
    holds_in(Keeper::Memory, "two, messages lost while time passes", lost);
}

#[test]
fn in_memory_dead_and_stopped_waiters_stop_nobody() {
    holds_in(Keeper::Memory, "three, one dies", Budget { deaths: 1, ..THREE });
    holds_in(
        Keeper::Memory,
        "two, one stops while time passes",
        Budget { wants: [1, 1, 0], stops: 1, passes: 1, ..TWO },
    );
}

#[test]
fn in_a_file_dead_waiters_stop_nobody() {
    holds_in(Keeper::File, "three, one dies", Budget { deaths: 1, ..THREE });
    holds_in(Keeper::File, "two, one dies while time passes", Budget { wants: [1, 1, 0], deaths: 1, passes: 1, ..TWO });
}
