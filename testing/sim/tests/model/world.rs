//! Two clients, one store and the network between them: every state that they can get into, and every step from it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::config::{Drift, Poll, RunOptions};
use leasehold_core::op::{Applied, Op, Outcome, Revoke, Seen};
use leasehold_core::{
    Client, Config, Entropy, LockOptions, NodeConfig, NodeId, Nonce, Now, Resource, SessionLabel, Token, Transmit,
    session,
};
use leasehold_sim::clock::{Clock, TrueTime};
use stateright::{Model, Property};

use crate::frozen::Frozen;
use crate::host::{Doings, Host, Manner, Phase, Reply, Watched, acquire, lock, resource};
use crate::stores::{Bug, Kind, Store};

/// The time of the wall clocks, which stand still.
pub(crate) const WALL_MS: u64 = 1_700_000_000_000;
/// The shortest ttl there is.
pub(crate) const TTL: Duration = Duration::from_millis(100);
/// How long the completions of runs stand: longer than any search.
pub(crate) const KEEP: Duration = Duration::from_secs(60);

/// The setting of a search, and its bounds.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) store: Kind,
    pub(crate) bug: Option<Bug>,
    /// Hosts look at their clocks before they read a reply, not after.
    pub(crate) samples_early: bool,
    /// The excess of the rates of both hosts' and the store's clocks over true time, in parts per million.
    pub(crate) rates_ppm: Vec<[i32; 3]>,
    /// Only this broken promise ends the search.
    pub(crate) only: Option<Broken>,
    pub(crate) budget: Budget,
    /// True time at which the search ends.
    pub(crate) horizon: Duration,
    /// Instants at which time may stop though nothing is due.
    pub(crate) grid: Option<Duration>,
    pub(crate) config: Config,
    pub(crate) options: LockOptions,
}

/// The faults and the users' actions that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) losses: u8,
    pub(crate) copies: u8,
    /// Messages that take any time they like; all others arrive before time goes on.
    pub(crate) delays: u8,
    pub(crate) pauses: u8,
    pub(crate) crashes: u8,
    /// Times that a host is cut off from the store for as long as the network likes.
    pub(crate) cuts: u8,
    pub(crate) acquires: [u8; 2],
    pub(crate) releases: u8,
    /// Runs whose work is done.
    pub(crate) finishes: u8,
    /// Times that somebody revokes the lease that stands.
    pub(crate) revokes: u8,
}

impl Setting {
    pub(crate) fn new(store: Kind, budget: Budget, horizon_ms: u64) -> Self {
        let poll = if store == Kind::Redis { Poll::Acquire } else { Poll::Read };
        let mut config = Config::new(vec![NodeConfig { poll, ..NodeConfig::default() }]).expect("one node");
        if store == Kind::Sessions {
            let label = SessionLabel::new("s").expect("a good label");
            config = config.with_observed([NodeId::new(0)]).with_session(label);
        }
        Self {
            store,
            bug: None,
            samples_early: false,
            only: None,
            rates_ppm: vec![[0; 3]],
            budget,
            horizon: Duration::from_millis(horizon_ms),
            grid: None,
            config,
            options: LockOptions::builder().ttl(TTL).build().expect("good options"),
        }
    }

    /// The clients want to do work once.
    pub(crate) fn of_runs(mut self) -> Self {
        let run = RunOptions { keep: KEEP, ..RunOptions::default() };
        self.options = LockOptions::builder().ttl(TTL).run(run).build().expect("good options");
        self
    }

    /// One host as slow, and the other as fast as the drift allows, either way round. The store is fast, too.
    pub(crate) fn drifting(mut self) -> Self {
        // Enough for the margins to rest on the drift: with the smallest ttl the fixed margin covers a percent or two.
        let ppm = 50_000;
        let rate = i32::try_from(ppm).expect("small");
        self.rates_ppm = vec![[-rate, rate, rate], [rate, -rate, rate]];
        self.config = self.config.with_drift(Drift::from_ppm(ppm).expect("within bounds"));
        self
    }
}

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// Two clients believe in a lease at one instant.
    TwoHolders,
    /// A client believes in a lease of which the store has no record.
    WithoutRecord,
    /// A token was given twice, or is not above one that was answered before it was asked for.
    Token,
    /// A lease is valid again after a check had said LOST.
    Revived,
    /// The client ran after the deadline and reported no loss.
    ToldLate,
    /// An event that contradicts an earlier one, such as a second loss.
    ToldTwice,
    /// A renewal or an acquire that left after the end of its lock.
    SentAfterTheEnd,
    /// A lease whose release was confirmed stands in the store again.
    StandsAgain,
    /// A run was granted, or finished, after another one's finish was confirmed.
    DoneTwice,
    /// A run was told lost although its own completion stands.
    LostThoughDone,
    /// A finish was refused although the completion of its run stands.
    RefusedThoughDone,
    /// A completion was written for an attempt that did not hold the record.
    MarkedByAnother,
    /// An output without a cause.
    Protocol,
    /// A panic, in the core unless it says otherwise.
    Panic,
}

/// Things that a search worth its name gets to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Granted,
    Recovered,
    SentAgain,
    Contended,
    Renewed,
    RenewalRecovered,
    Lost,
    Released,
    ReleaseRanOut,
    TakenOver,
    FoundFree,
    GrantedAfterLoss,
    LateReply,
    Finished,
    FinishUnconfirmed,
    FoundDone,
    Revoked,
}

/// Events that happen to runs only.
pub(crate) const OF_RUNS: [Reached; 3] = [Reached::Finished, Reached::FinishUnconfirmed, Reached::FoundDone];

pub(crate) const ALL_REACHED: [Reached; 17] = [
    Reached::Granted,
    Reached::Recovered,
    Reached::SentAgain,
    Reached::Contended,
    Reached::Renewed,
    Reached::RenewalRecovered,
    Reached::Lost,
    Reached::Released,
    Reached::ReleaseRanOut,
    Reached::TakenOver,
    Reached::FoundFree,
    Reached::GrantedAfterLoss,
    Reached::LateReply,
    Reached::Finished,
    Reached::FinishUnconfirmed,
    Reached::FoundDone,
    Reached::Revoked,
];

/// The world at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) time: TrueTime,
    pub(crate) hosts: [Host; 2],
    pub(crate) store: Store,
    pub(crate) store_clock: Clock,
    /// Sorted, so that the order in which messages were sent makes no difference.
    pub(crate) wire: Vec<Message>,
    pub(crate) budget: Budget,
    /// All tokens that were answered, in order.
    pub(crate) tokens: Vec<Token>,
    /// True if a lease was lost.
    lost: bool,
    /// True if a finish was confirmed.
    finished: bool,
    pub(crate) broken: Option<Broken>,
}

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    pub(crate) host: usize,
    life: u8,
    /// Time has gone on since it was sent, or it is a copy.
    pub(crate) late: bool,
    pub(crate) body: Frozen<Body>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Body {
    Request(Transmit),
    Reply(Reply),
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Acquire {
        host: usize,
    },
    /// Gives the lease back, or gives up getting it.
    Release {
        host: usize,
    },
    /// The work of a run is done.
    Finish {
        host: usize,
    },
    /// Somebody revokes the lease that stands in the store.
    Revoke,
    /// The client handles its timers.
    Run {
        host: usize,
    },
    /// A message arrives; perhaps a copy of it stays under way. Who receives it may stop before it acts on it.
    Deliver {
        message: usize,
        copied: bool,
        stops: bool,
    },
    Lose {
        message: usize,
    },
    /// The process does not run though it should.
    Pause {
        host: usize,
    },
    Resume {
        host: usize,
    },
    Crash {
        host: usize,
    },
    CutOff {
        host: usize,
    },
    Heal {
        host: usize,
    },
    /// Time goes on to the next instant at which something happens.
    Wait,
}

/// The model that is handed to the checker.
pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) reached: [AtomicU64; ALL_REACHED.len()],
}

impl World {
    pub(crate) fn new(setting: Setting) -> Self {
        Self { setting, reached: Default::default() }
    }

    fn reach(&self, what: Reached) {
        self.reached[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn next_instant(&self, state: &State) -> Option<TrueTime> {
        let wakes = state.hosts.iter().map(|host| host.wake_at);
        let ends = state.hosts.iter().enumerate().flat_map(|(at, host)| {
            let shows = host.clock.shows(state.time);
            host.believes(at, state.time).map(move |(_, left)| {
                let left = u64::try_from(left.as_nanos()).expect("short");
                host.clock.when(shows + left)
            })
        });
        let grid = self.setting.grid.and_then(|grid| {
            let grid = u64::try_from(grid.as_nanos()).ok()?;
            Some(TrueTime((state.time.0 / grid + 1) * grid))
        });
        let all = wakes.chain(ends).chain(state.store.expires().map(|at| state.store_clock.when(at.0))).chain(grid);
        all.filter(|at| *at > state.time).min().filter(|at| at.since(TrueTime(0)) <= self.setting.horizon)
    }

    fn perform(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Acquire { host } => {
                let id = state.hosts[host].watched.len();
                state.hosts[host].watched.push(Watched::new());
                state.budget.acquires[host] -= 1;
                let options = &self.setting.options;
                self.run(state, host, Manner::Orderly, |client, fresh, now| acquire(client, id, options, fresh, now));
            }
            Action::Release { host } => {
                let id = state.hosts[host].watched.len() - 1;
                state.budget.releases -= 1;
                let phase = &mut state.hosts[host].watched[id].phase;
                // Nothing more is told of a lease that was revoked.
                *phase = if *phase == Phase::Revoked { Phase::Over } else { Phase::Stopping };
                self.run(state, host, Manner::Orderly, |client, _, now| {
                    // The lease may have been lost at this very instant.
                    let _ = client.release(lock(id), now);
                });
            }
            Action::Finish { host } => {
                let id = state.hosts[host].watched.len() - 1;
                state.budget.finishes -= 1;
                state.hosts[host].watched[id].phase = Phase::Stopping;
                self.run(state, host, Manner::Orderly, |client, _, now| {
                    // As above.
                    let _ = client.finish(lock(id), None, now);
                });
            }
            Action::Revoke => {
                state.budget.revokes -= 1;
                let at = state.store_time();
                let op = Op::Revoke(Revoke { nonce: state.store.holder(at)? });
                let mut perform = |resource: &Resource, op| {
                    state.store.perform(resource, &op, at, self.setting.store, self.setting.bug)
                };
                perform(&resource(), op);
                if let Outcome::Applied(Applied::Read(Seen { holding: Some(holding), .. })) =
                    perform(&resource(), Op::Read)
                    && let Some(session) = &holding.session
                    && let Some(record) = session::resource_of(&session.label)
                {
                    perform(&record, session::tell(session));
                }
            }
            Action::Run { host } => {
                self.run(state, host, Manner::Orderly, Client::handle_timeout);
            }
            Action::Deliver { message, copied, stops } => {
                let arrived = if copied {
                    state.budget.copies -= 1;
                    let arrived = state.wire[message].clone();
                    state.wire[message].late = true;
                    arrived
                } else {
                    state.wire.remove(message)
                };
                state.budget.pauses -= u8::from(stops);
                self.arrive(state, &arrived, stops);
            }
            Action::Lose { message } => {
                state.budget.losses -= 1;
                state.wire.remove(message);
            }
            Action::Pause { host } => {
                state.budget.pauses -= 1;
                state.hosts[host].paused = true;
            }
            Action::Resume { host } => state.hosts[host].paused = false,
            Action::Crash { host } => {
                state.budget.crashes -= 1;
                state.hosts[host].crash(host, state.time, &self.setting);
                state.wire.retain(|message| message.host != host || matches!(*message.body, Body::Request(_)));
            }
            Action::CutOff { host } => {
                state.budget.cuts -= 1;
                state.hosts[host].cut_off = true;
            }
            Action::Heal { host } => state.hosts[host].cut_off = false,
            Action::Wait => {
                let next = self.next_instant(state)?;
                let State { hosts, wire, .. } = state;
                wire.retain(|message| message.late || !hosts[message.host].cut_off);
                let delayed = state.must_arrive().count();
                state.budget.delays -= u8::try_from(delayed).expect("few messages");
                state.wire.iter_mut().for_each(|message| message.late = true);
                state.time = next;
            }
        }
        state.wire.sort_by_key(|message| {
            let is_reply = matches!(*message.body, Body::Reply(_));
            (message.host, message.life, is_reply, message.late, message.body.digest())
        });
        self.check(state);
        state.broken = state.broken.filter(|broken| self.setting.only.is_none_or(|only| only == *broken));
        Some(())
    }

    fn arrive(&self, state: &mut State, message: &Message, stops: bool) {
        match &*message.body {
            Body::Request(transmit) => {
                let mut outcomes = Vec::new();
                for op in &transmit.ops {
                    let before = state.store.last();
                    let (holder, done) = (state.store.holder(state.store_time()), state.store.done_by());
                    outcomes.push(state.store.perform(
                        &op.resource,
                        &op.op,
                        state.store_time(),
                        self.setting.store,
                        self.setting.bug,
                    ));
                    let after = state.store.last();
                    if state.store.done_by() != done && state.store.done_by() != holder {
                        state.broken = Some(Broken::MarkedByAnother);
                    }
                    if after.is_some() && after != before {
                        self.reach(if before.is_some() { Reached::TakenOver } else { Reached::FoundFree });
                    }
                }
                if message.life == state.hosts[message.host].life {
                    let body = Frozen::new(Body::Reply((transmit.id, outcomes)));
                    state.wire.push(Message { late: false, body, ..message.clone() });
                }
            }
            Body::Reply((id, outcomes)) => {
                let before = state.hosts[message.host].client.stats().ignored_responses;
                let manner = Manner::of_reply(stops, self.setting.samples_early);
                let unconfirmed = self.run(state, message.host, manner, |client, _, now| {
                    client.handle_response(*id, Ok(outcomes.clone()), now);
                });
                let is_refused = outcomes.iter().any(|outcome| matches!(outcome, Outcome::NotApplied(_)));
                if is_refused && unconfirmed.iter().any(|nonce| state.store.done_by() == Some(*nonce)) {
                    state.broken = Some(Broken::RefusedThoughDone);
                }
                if state.hosts[message.host].client.stats().ignored_responses > before {
                    self.reach(Reached::LateReply);
                }
            }
        }
    }

    /// Returns the attempts whose finish stays unconfirmed.
    fn run(
        &self,
        state: &mut State,
        at: usize,
        manner: Manner,
        input: impl FnOnce(&mut Client, &Entropy, Now),
    ) -> Vec<Nonce> {
        let answered = state.tokens.iter().copied().max().unwrap_or(Token::ZERO);
        let Doings { requests, granted, reached, broken, finished, lost, unconfirmed } =
            state.hosts[at].run(at, state.time, manner, input, (answered, state.finished));
        state.broken = state.broken.or(broken);
        for token in granted {
            if state.tokens.contains(&token) {
                state.broken = Some(Broken::Token);
            }
            state.tokens.push(token);
            if state.lost {
                self.reach(Reached::GrantedAfterLoss);
            }
        }
        if finished && state.finished {
            state.broken = Some(Broken::DoneTwice);
        }
        if lost.iter().any(|nonce| state.store.done_by() == Some(*nonce)) {
            state.broken = Some(Broken::LostThoughDone);
        }
        state.finished |= finished;
        for what in reached {
            state.lost |= what == Reached::Lost;
            self.reach(what);
        }
        let life = state.hosts[at].life;
        for transmit in requests {
            let body = Frozen::new(Body::Request(transmit));
            state.wire.push(Message { host: at, life, late: false, body });
        }
        unconfirmed
    }

    /// Looks at all promises at this true instant.
    fn check(&self, state: &mut State) {
        let time = state.time;
        let standing = state.store.holder(state.store_time());
        let mut holders = 0;
        for (at, host) in state.hosts.iter_mut().enumerate() {
            let believes: Vec<_> = host.believes(at, time).collect();
            for (id, left) in believes {
                let watched = &mut host.watched[id];
                let valid = left > Duration::ZERO;
                if valid {
                    holders += 1;
                    if standing.is_none() || standing != watched.nonce {
                        state.broken = state.broken.or(Some(Broken::WithoutRecord));
                    }
                }
                match watched.phase {
                    Phase::Held if !valid => watched.phase = Phase::Lapsed,
                    Phase::Lapsed
                    | Phase::Revoked
                    | Phase::Stopping
                    | Phase::Releasing
                    | Phase::Freed
                    | Phase::Over
                        if valid =>
                    {
                        state.broken = Some(Broken::Revived);
                    }
                    Phase::Freed if watched.nonce == standing && self.setting.store != Kind::Redis => {
                        state.broken = state.broken.or(Some(Broken::StandsAgain));
                    }
                    _ => {}
                }
            }
        }
        if holders > 1 {
            state.broken = Some(Broken::TwoHolders);
        }
    }
}

impl State {
    fn store_time(&self) -> TrueTime {
        TrueTime(self.store_clock.shows(self.time))
    }

    /// Messages that are not late, and that can arrive.
    fn must_arrive(&self) -> impl Iterator<Item = &Message> {
        self.wire.iter().filter(|message| {
            let host = &self.hosts[message.host];
            let unread = matches!(*message.body, Body::Reply(_)) && host.paused;
            !message.late && !unread && !host.cut_off
        })
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let state = |rates: &[i32; 3]| State {
            time: TrueTime(0),
            hosts: [0, 1]
                .map(|at| Host::new(at, Clock::new(77_000_000_000 * (at as u64 + 1), rates[at]), &self.setting)),
            store: Store::new(self.setting.store),
            store_clock: Clock::new(0, rates[2]),
            wire: Vec::new(),
            budget: self.setting.budget,
            tokens: Vec::new(),
            lost: false,
            finished: false,
            broken: None,
        };
        self.setting.rates_ppm.iter().map(state).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let budget = &state.budget;
        for (at, message) in state.wire.iter().enumerate() {
            if at > 0 && state.wire[at - 1] == *message {
                continue;
            }
            let is_reply = matches!(*message.body, Body::Reply(_));
            let host = &state.hosts[message.host];
            if host.cut_off || (is_reply && host.paused) {
                continue;
            }
            actions.push(Action::Deliver { message: at, copied: false, stops: false });
            if is_reply && budget.pauses > 0 {
                actions.push(Action::Deliver { message: at, copied: false, stops: true });
            }
            if budget.copies > 0 {
                actions.push(Action::Deliver { message: at, copied: true, stops: false });
            }
            // A late message may also be lost.
            if budget.losses > 0 && !message.late {
                actions.push(Action::Lose { message: at });
            }
        }
        if budget.revokes > 0 && state.store.holder(state.store_time()).is_some() {
            actions.push(Action::Revoke);
        }
        let mut somebody_is_due = false;
        for (at, host) in state.hosts.iter().enumerate() {
            if host.cut_off {
                actions.push(Action::Heal { host: at });
            } else if budget.cuts > 0 {
                actions.push(Action::CutOff { host: at });
            }
            if host.paused {
                actions.push(Action::Resume { host: at });
                continue;
            }
            if host.is_due(state.time) {
                somebody_is_due = true;
                actions.push(Action::Run { host: at });
                if budget.pauses > 0 {
                    actions.push(Action::Pause { host: at });
                }
            }
            // A user's reaction to an event that was not published yet is checked elsewhere.
            if host.is_undrained() {
                continue;
            }
            if budget.acquires[at] > 0 && host.can_acquire() {
                actions.push(Action::Acquire { host: at });
            }
            let pending = host
                .watched
                .last()
                .is_some_and(|last| matches!(last.phase, Phase::Wanted | Phase::Held | Phase::Revoked));
            if budget.releases > 0 && pending {
                actions.push(Action::Release { host: at });
            }
            if budget.finishes > 0 && host.watched.last().is_some_and(|last| last.phase == Phase::Held) {
                actions.push(Action::Finish { host: at });
            }
            if budget.crashes > 0 && !host.watched.is_empty() {
                actions.push(Action::Crash { host: at });
            }
        }
        if !somebody_is_due && state.must_arrive().count() <= usize::from(budget.delays) {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        match catch_unwind(AssertUnwindSafe(|| self.perform(&mut next, action))) {
            Ok(done) => done.map(|()| next),
            Err(_) => Some(State { broken: Some(Broken::Panic), ..last.clone() }),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every promise is kept", |_, state: &State| state.broken.is_none())]
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoHolders => "two clients believe that they hold the lock",
            Self::WithoutRecord => "a client believes in a lease that the store does not know",
            Self::Token => "a token was given twice, or fell",
            Self::Revived => "a lease is valid again after it was over",
            Self::ToldLate => "a client ran after its deadline and did not tell",
            Self::ToldTwice => "an event that does not fit what was told before",
            Self::SentAfterTheEnd => "an acquire or a renewal left after the end of its lock",
            Self::StandsAgain => "a record stands again after its release was confirmed",
            Self::DoneTwice => "work was begun again after its finish was confirmed",
            Self::LostThoughDone => "a run was told lost although its own completion stands",
            Self::RefusedThoughDone => "a finish was refused although the completion of its run stands",
            Self::MarkedByAnother => "a completion was written for an attempt that did not hold the record",
            Self::Protocol => "an output that nobody asked for",
            Self::Panic => "something panicked, which the core must not",
        })
    }
}
