//! Two clients, stores, clocks with the largest allowed error, pauses, and a network that loses, delays and duplicates
//! messages: never two holders, never a token twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::common::*;
use leasehold_core::config::{Limits, Poll};
use leasehold_core::op::{Op, Outcome};
use leasehold_core::store::BootId;
use leasehold_core::{Config, Event, Monotonic, NodeConfig, RequestId, Token, Transmit, Wait};
use proptest::collection::vec;
use proptest::prelude::*;

/// Random choices, in the order in which they are asked for. Once they run out everything goes well.
struct Chances<'a>(std::slice::Iter<'a, u8>);

impl Chances<'_> {
    fn pick(&mut self, of: u8) -> u8 {
        self.0.next().map_or(0, |byte| byte % of)
    }
}

/// Events that are due at a later time.
#[derive(Clone)]
enum Due {
    Request(usize, Transmit),
    Reply(usize, RequestId, Vec<Outcome>),
    Tick(usize),
    Command(usize),
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    nodes: usize,
    poll: Poll,
    /// Each host on a kernel of its own, so that only observation tells a dead holder.
    kernels_apart: bool,
    rates: [i64; 3],
    /// Wall clocks that stand still, so that tokens grow by the stores' counters alone.
    walls_stand: bool,
}

/// The events that happened, to check that a test reaches something.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    grants: usize,
    recovered: usize,
    handed_over: usize,
    lost: usize,
    renewed: usize,
    released: usize,
    failed: usize,
    raised: usize,
    ignored: u64,
}

struct Run<'a> {
    world: World,
    setting: Setting,
    chances: Chances<'a>,
    due: BTreeMap<(Duration, u64), Due>,
    numbered: u64,
    next_lock: u64,
    /// The locks of each host that have not ended.
    alive: [BTreeSet<u64>; 2],
    asked_at: BTreeMap<(usize, u64), Duration>,
    grants: Vec<(Duration, Token)>,
    last_holder: Option<usize>,
    seen: Seen,
}

const END: Duration = secs(300);

impl<'a> Run<'a> {
    fn new(setting: Setting, chances: &'a [u8]) -> Self {
        let nodes = vec![NodeConfig { poll: setting.poll, ..NodeConfig::default() }; setting.nodes];
        let limits = Limits { orphans: 50, ..Limits::default() };
        let config = Config::new(nodes).unwrap().with_limits(limits).unwrap();
        let mut world = World::with_config(&config, 2);
        for (host, rate) in world.hosts.iter_mut().zip(setting.rates) {
            host.rate_ppm = rate;
            host.unix_ms = setting.walls_stand.then_some(7);
        }
        for (store, rate) in world.stores.iter_mut().zip(setting.rates.iter().rev()) {
            store.rate_ppm = *rate;
        }
        let mut run = Self {
            world,
            setting,
            chances: Chances(chances.iter()),
            due: BTreeMap::new(),
            numbered: 0,
            next_lock: 0,
            alive: [BTreeSet::new(), BTreeSet::new()],
            asked_at: BTreeMap::new(),
            grants: Vec::new(),
            last_holder: None,
            seen: Seen::default(),
        };
        for host in 0..2 {
            run.after(ms(1), Due::Command(host));
        }
        run
    }

    fn after(&mut self, delay: Duration, due: Due) {
        self.numbered += 1;
        self.due.insert((self.world.time + delay, self.numbered), due);
    }

    fn run(mut self) -> Result<Seen, TestCaseError> {
        while let Some(((at, _), due)) = self.due.pop_first() {
            if at > EPOCH + END {
                break;
            }
            self.world.time = at;
            let host = match due {
                Due::Request(host, transmit) => {
                    self.arrives(host, &transmit);
                    continue;
                }
                Due::Reply(host, id, outcomes) => {
                    let now = self.world.now(host);
                    self.world.hosts[host].client.handle_response(id, Ok(outcomes), now);
                    host
                }
                Due::Tick(host) => host,
                Due::Command(host) => {
                    self.command(host);
                    if !self.chances.0.as_slice().is_empty() {
                        let pause = ms(u64::from(self.chances.pick(30)) * 100 + 50);
                        self.after(pause, Due::Command(host));
                    }
                    host
                }
            };
            self.world.tick(host);
            self.check(host)?;
            self.carry_on(host);
        }
        for host in &self.world.hosts {
            self.seen.ignored += host.client.stats().ignored_responses;
        }
        Ok(self.seen)
    }

    fn command(&mut self, host: usize) {
        let oldest = self.alive[host].first().copied();
        match (self.chances.pick(4), oldest) {
            (0 | 1, Some(id)) => {
                // It may have ended a moment ago.
                let now = self.world.now(host);
                let _ = self.world.hosts[host].client.release(lock(id), now);
            }
            (_, _) if self.alive[host].len() < 3 => {
                let ttl = [secs(1), secs(2), ms(300)][usize::from(self.chances.pick(3))];
                let waits = [Wait::Forever, Wait::Once, Wait::For(secs(2)), Wait::Watch(secs(1))];
                let wait = waits[usize::from(self.chances.pick(4))];
                let id = self.next_lock;
                self.next_lock += 1;
                self.alive[host].insert(id);
                self.asked_at.insert((host, id), self.world.time);
                self.world.acquire(host, id, "r", with(|o| o.ttl(ttl).wait(wait)));
            }
            (_, _) => {}
        }
    }

    /// A request reaches its node, which answers; the answer travels by itself.
    fn arrives(&mut self, host: usize, transmit: &Transmit) {
        self.seen.raised += transmit.ops.iter().filter(|op| matches!(op.op, Op::Raise(_))).count();
        let outcomes = if self.setting.kernels_apart {
            let (kernel, uptime) = (u8::try_from(host + 1).unwrap(), self.world.now(host).monotonic);
            let store = &mut self.world.stores[transmit.node.index()];
            let now = leasehold_core::store::StoreNow { boot: BootId([kernel; 16]), uptime, unix_ms: 0 };
            let mut outcomes = Vec::new();
            for op in &transmit.ops {
                let decision = leasehold_core::store::apply(store.records.get(&op.resource), &op.op, &now);
                store.records.extend(decision.write.map(|record| (op.resource.clone(), record)));
                outcomes.push(decision.outcome);
            }
            outcomes
        } else {
            self.world.perform(transmit)
        };
        if let Some(delay) = self.fate() {
            self.after(delay, Due::Reply(host, transmit.id, outcomes.clone()));
            if self.chances.pick(12) == 11 {
                self.after(delay * 2, Due::Reply(host, transmit.id, outcomes));
            }
        }
    }

    /// The time that a message takes; `None` if it gets lost.
    fn fate(&mut self) -> Option<Duration> {
        match self.chances.pick(16) {
            0..10 => Some(ms(1)),
            10..13 => Some(ms(u64::from(self.chances.pick(20)) * 10)),
            13 => Some(ms(u64::from(self.chances.pick(250)) * 10)),
            _ => None,
        }
    }

    fn check(&mut self, host: usize) -> Result<(), TestCaseError> {
        for event in self.world.take_events(host) {
            match &event {
                Event::Acquired { lock, token, recovered, .. } => {
                    let asked = self.asked_at[&(host, lock.get())];
                    for (answered, before) in &self.grants {
                        prop_assert_ne!(token, before, "a token granted twice");
                        prop_assert!(*answered >= asked || token > before, "requested after, and yet lower");
                    }
                    let highest = self.grants.iter().map(|(_, token)| *token).max();
                    prop_assert!(self.setting.nodes > 1 || Some(*token) > highest);
                    self.grants.push((self.world.time, *token));
                    self.seen.grants += 1;
                    self.seen.recovered += usize::from(*recovered);
                    self.seen.handed_over += usize::from(self.last_holder.is_some_and(|last| last != host));
                    self.last_holder = Some(host);
                }
                Event::Failed { .. } => self.seen.failed += 1,
                Event::Released { .. } | Event::Finished { .. } => self.seen.released += 1,
                Event::Lost { .. } => self.seen.lost += 1,
                Event::Renewed { .. } => self.seen.renewed += 1,
                Event::Contended { .. }
                | Event::RenewDelayed { .. }
                | Event::Shortened { .. }
                | Event::Expiring { .. } => {}
            }
            if matches!(event, Event::Failed { .. } | Event::Released { .. } | Event::Lost { .. }) {
                self.alive[host].remove(&event.lock().get());
            }
        }
        let believes = |host: usize| {
            let valid = |id: &&u64| self.world.remaining(host, **id) > Duration::ZERO;
            self.alive[host].iter().filter(valid).count()
        };
        prop_assert!(believes(0) + believes(1) <= 1, "two holders at {:?}", self.world.time - EPOCH);
        for host in 0..2 {
            let stats = self.world.hosts[host].client.stats();
            prop_assert_eq!(stats.locks, self.alive[host].len());
            prop_assert!(stats.orphans <= 50 && stats.in_flight <= (3 + 50) * self.setting.nodes, "{:?}", stats);
            prop_assert_eq!(stats.undrained, 0);
        }
        Ok(())
    }

    /// Sends the requests of the host, and schedules its next run: sometimes late.
    fn carry_on(&mut self, host: usize) {
        for transmit in std::mem::take(&mut self.world.hosts[host].wire) {
            if let Some(delay) = self.fate() {
                if self.chances.pick(12) == 11 {
                    self.after(delay * 3, Due::Request(host, transmit.clone()));
                }
                self.after(delay, Due::Request(host, transmit));
            }
        }
        let wake_at = self.world.hosts[host].wake_at;
        if wake_at < Monotonic::FAR {
            let late = if self.chances.pick(20) == 19 { ms(u64::from(self.chances.pick(40)) * 100) } else { ms(0) };
            let at = self.world.hosts[host].true_time_of(wake_at).max(self.world.time) + late;
            self.due.retain(|_, due| !matches!(due, Due::Tick(of) if *of == host));
            self.numbered += 1;
            self.due.insert((at, self.numbered), Due::Tick(host));
        }
    }
}

fn settings() -> impl Strategy<Value = Setting> {
    let rate = || prop_oneof![Just(0_i64), Just(-10_000), Just(10_000)];
    let poll = prop_oneof![Just(Poll::Acquire), Just(Poll::Read)];
    let stores = prop_oneof![Just((1, false)), Just((1, true)), Just((3, false))];
    (stores, poll, [rate(), rate(), rate()], any::<bool>()).prop_map(
        |((nodes, kernels_apart), poll, rates, walls_stand)| Setting { nodes, poll, kernels_apart, rates, walls_stand },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn one_holder_at_a_time_and_growing_tokens(setting in settings(), chances in vec(any::<u8>(), 0..3_000)) {
        Run::new(setting, &chances).run()?;
    }
}

/// The runs above prove something only if interesting events happen in them.
#[test]
fn random_runs_reach_every_interesting_event() {
    let mut total = Seen::default();
    for n in 0..120_u64 {
        let chances: Vec<u8> = (0..3_000_u64)
            .map(|at| {
                let mixed = (n * 7_919 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as u8
            })
            .collect();
        let setting = Setting {
            nodes: if n % 3 == 2 { 3 } else { 1 },
            poll: if n % 2 == 0 { Poll::Acquire } else { Poll::Read },
            kernels_apart: n % 3 == 1,
            rates: [10_000, -10_000, 0],
            walls_stand: n % 4 < 2,
        };
        let seen = Run::new(setting, &chances).run().expect("one holder");
        total.grants += seen.grants;
        total.recovered += seen.recovered;
        total.handed_over += seen.handed_over;
        total.lost += seen.lost;
        total.renewed += seen.renewed;
        total.released += seen.released;
        total.failed += seen.failed;
        total.raised += seen.raised;
        total.ignored += seen.ignored;
    }
    assert!(total.grants > 1_000 && total.handed_over > 100, "{total:?}");
    assert!(total.recovered > 20 && total.renewed > 200 && total.released > 200, "{total:?}");
    assert!(total.lost > 20 && total.failed > 100 && total.raised > 5 && total.ignored > 20, "{total:?}");
}
