//! A process around one client, and what an outside observer remembers of its acquisitions.

use std::time::Duration;

use leasehold_core::op::Op;
use leasehold_core::{
    Client, Entropy, Event, Failure, LockId, LockOptions, LostReason, Monotonic, Nonce, Now, Output, RequestId,
    Resource, Token, Transmit,
};
use leasehold_sim::clock::{Clock, TrueTime};

use crate::frozen::Frozen;
use crate::world::{Broken, Reached, Setting, WALL_MS};

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Host {
    pub(crate) client: Frozen<Client>,
    pub(crate) clock: Clock,
    /// The number of crashes. Answers to an earlier process are dropped.
    pub(crate) life: u8,
    /// True time at which the client wants to run.
    pub(crate) wake_at: TrueTime,
    pub(crate) paused: bool,
    /// Cut off: nothing that it sends arrives, and nothing arrives that is sent to it.
    pub(crate) cut_off: bool,
    /// Entropy handed out so far.
    drawn: u8,
    /// The clock's time at the last look.
    sampled: u64,
    /// The acquisitions of this life, by lock id.
    pub(crate) watched: Vec<Watched>,
}

/// The time at which a host runs that has outputs to drain: at once.
const UNTOLD: TrueTime = TrueTime(0);

/// One acquisition as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Watched {
    pub(crate) phase: Phase,
    /// The attempt under way, or the one that was granted.
    pub(crate) nonce: Option<Nonce>,
    /// The highest token that any client knew when the attempt's first request left.
    outbids: Token,
    /// Its attempt is a run that asks although a finish was confirmed.
    asks_for_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Wanted,
    Held,
    /// Was held, and a check has said LOST.
    Lapsed,
    /// Was held, and is revoked: its record stands until the user releases it.
    Revoked,
    /// The user releases it in this very call, which first does what is due.
    Stopping,
    Releasing,
    /// It was held and released, and the store has confirmed that.
    Freed,
    Over,
}

/// The way in which a host handles an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Orderly,
    /// The process stops before it gets to the outputs.
    Stops,
    /// The clock was read long before the input, which no host should do.
    Early,
}

impl Manner {
    pub(crate) fn of_reply(stops: bool, early: bool) -> Self {
        match (stops, early) {
            (true, _) => Self::Stops,
            (false, true) => Self::Early,
            (false, false) => Self::Orderly,
        }
    }
}

/// The actions of a host in one step.
#[derive(Default)]
pub(crate) struct Doings {
    pub(crate) requests: Vec<Transmit>,
    pub(crate) granted: Vec<Token>,
    pub(crate) reached: Vec<Reached>,
    pub(crate) broken: Option<Broken>,
    /// A finish was confirmed.
    pub(crate) finished: bool,
    /// Attempts that were told lost.
    pub(crate) lost: Vec<Nonce>,
    /// Attempts of which nothing is known after their finish.
    pub(crate) unconfirmed: Vec<Nonce>,
}

impl Host {
    pub(crate) fn new(at: usize, clock: Clock, setting: &Setting) -> Self {
        let now = Now { monotonic: Monotonic::from_ns(clock.shows(TrueTime(0))), unix_ms: 0 };
        Self {
            client: Frozen::new(client(at, now, setting)),
            clock,
            life: 0,
            wake_at: TrueTime::FAR,
            paused: false,
            cut_off: false,
            drawn: 0,
            sampled: now.monotonic.ns(),
            watched: Vec::new(),
        }
    }

    /// The time of its clocks. A host that reads them too early uses an old reading.
    pub(crate) fn now(&self, host: usize, shows: u64) -> Now {
        // One wall clock is an hour ahead, so that tokens cannot grow by wall clocks alone. Neither moves.
        let unix_ms = if host == 0 { WALL_MS + 3_600_000 } else { WALL_MS };
        Now { monotonic: Monotonic::from_ns(shows), unix_ms }
    }

    pub(crate) fn crash(&mut self, at: usize, time: TrueTime, setting: &Setting) {
        let now = self.now(at, self.clock.shows(time));
        self.client = Frozen::new(client(at, now, setting));
        self.life += 1;
        self.wake_at = TrueTime::FAR;
        self.paused = false;
        self.watched.clear();
    }

    /// Runs the client: an input, and then all outputs, unless the process stops before it gets to them.
    pub(crate) fn run(
        &mut self,
        at: usize,
        time: TrueTime,
        manner: Manner,
        input: impl FnOnce(&mut Client, &Entropy, Now),
        (answered, finished): (Token, bool),
    ) -> Doings {
        let mut client = (*self.client).clone();
        let shows = self.clock.shows(time);
        let now = self.now(at, if manner == Manner::Early { self.sampled } else { shows });
        self.sampled = shows;
        let mut fresh = [0x5a; 16];
        fresh[..3].copy_from_slice(&[u8::try_from(at).expect("two hosts"), self.life, self.drawn]);
        input(&mut client, &fresh, now);
        // Bytes that named an attempt are never handed out again.
        let starts = |id: usize| client.state(lock(id)) == Some("Acquiring");
        self.drawn += u8::from((0..=self.watched.len()).any(starts));
        let mut doings = Doings::default();
        if manner == Manner::Stops {
            self.paused = true;
            self.wake_at = UNTOLD;
        } else {
            self.drain(at, time, &mut client, (answered, finished), &mut doings);
        }
        self.client = Frozen::new(client);
        doings
    }

    fn drain(&mut self, at: usize, time: TrueTime, client: &mut Client, before: (Token, bool), doings: &mut Doings) {
        let now = self.now(at, self.clock.shows(time));
        loop {
            match client.poll_output(now) {
                Output::Transmit(transmit) => {
                    self.sends(&transmit, before, doings);
                    doings.requests.push(transmit);
                }
                Output::Event(event) => self.told(&event, doings),
                Output::WakeAt(wake_at) => {
                    let never = wake_at == Monotonic::FAR;
                    self.wake_at = if never { TrueTime::FAR } else { self.clock.when(wake_at.ns()) };
                    break;
                }
                Output::Subscribe { .. }
                | Output::Unsubscribe { .. }
                | Output::NeedCredentials { .. }
                | Output::Rejected { .. } => doings.broken = Some(Broken::Protocol),
            }
        }
        for watched in &mut self.watched {
            if watched.phase == Phase::Stopping {
                watched.phase = Phase::Releasing;
            }
        }
        // A client that has just run has reported every loss.
        if self.watched.iter().any(|watched| watched.phase == Phase::Lapsed) {
            doings.broken = Some(Broken::ToldLate);
        }
    }

    fn sends(&mut self, transmit: &Transmit, (answered, finished): (Token, bool), doings: &mut Doings) {
        // What is sent about a session is part of no attempt.
        for op in transmit.ops.iter().filter(|op| op.resource.as_str() == LOCK) {
            let id = usize::try_from(op.lock.get()).expect("few locks");
            let watched = &mut self.watched[id];
            match &op.op {
                Op::Acquire(acquire) => {
                    if watched.phase != Phase::Wanted {
                        doings.broken = Some(Broken::SentAfterTheEnd);
                    }
                    if watched.nonce == Some(acquire.nonce) {
                        doings.reached.push(Reached::SentAgain);
                    } else {
                        watched.nonce = Some(acquire.nonce);
                        watched.outbids = answered;
                        watched.asks_for_done = finished && acquire.unless_done;
                    }
                }
                Op::Renew(_) => {
                    if watched.phase != Phase::Held {
                        doings.broken = Some(Broken::SentAfterTheEnd);
                    }
                }
                Op::Finish(_) if watched.phase == Phase::Over => doings.broken = Some(Broken::SentAfterTheEnd),
                Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Raise(_) | Op::Read => {}
            }
        }
    }

    fn told(&mut self, event: &Event, doings: &mut Doings) {
        let watched = &mut self.watched[usize::try_from(event.lock().get()).expect("few locks")];
        let mut reach = |reached| doings.reached.push(reached);
        let expected = match event {
            Event::Acquired { token, recovered, .. } => {
                doings.granted.push(*token);
                if watched.asks_for_done {
                    doings.broken = Some(Broken::DoneTwice);
                }
                if *token <= watched.outbids {
                    doings.broken = Some(Broken::Token);
                }
                reach(if *recovered { Reached::Recovered } else { Reached::Granted });
                let wanted = watched.phase == Phase::Wanted;
                watched.phase = Phase::Held;
                wanted
            }
            Event::Renewed { recovered, .. } => {
                reach(if *recovered { Reached::RenewalRecovered } else { Reached::Renewed });
                // The process may have stopped before its report.
                matches!(watched.phase, Phase::Held | Phase::Lapsed)
            }
            Event::Lost { reason: LostReason::Revoked, .. } => {
                reach(Reached::Revoked);
                let held = matches!(watched.phase, Phase::Held | Phase::Lapsed);
                watched.phase = Phase::Revoked;
                held
            }
            Event::Lost { .. } => {
                // A release finds nothing where a copy of it has come before; the simulator sees whether it was one.
                let releasing = matches!(watched.phase, Phase::Stopping | Phase::Releasing);
                let held = matches!(watched.phase, Phase::Held | Phase::Lapsed);
                reach(Reached::Lost);
                doings.lost.extend(watched.nonce);
                watched.phase = Phase::Over;
                held || releasing
            }
            Event::Released { confirmed, .. } => {
                reach(if *confirmed { Reached::Released } else { Reached::ReleaseRanOut });
                let releasing = matches!(watched.phase, Phase::Stopping | Phase::Releasing);
                watched.phase = if *confirmed { Phase::Freed } else { Phase::Over };
                releasing
            }
            Event::Finished { confirmed, .. } => {
                reach(if *confirmed { Reached::Finished } else { Reached::FinishUnconfirmed });
                doings.finished |= *confirmed;
                doings.unconfirmed.extend(watched.nonce.filter(|_| !confirmed));
                let releasing = matches!(watched.phase, Phase::Stopping | Phase::Releasing);
                watched.phase = if *confirmed { Phase::Freed } else { Phase::Over };
                releasing
            }
            Event::Failed { failure, .. } => {
                if matches!(failure, Failure::Done(_)) {
                    reach(Reached::FoundDone);
                }
                let pending = matches!(watched.phase, Phase::Wanted | Phase::Stopping);
                watched.phase = Phase::Over;
                pending
            }
            Event::Contended { .. } => {
                reach(Reached::Contended);
                matches!(watched.phase, Phase::Wanted | Phase::Stopping)
            }
            Event::RenewDelayed { .. } | Event::Expiring { .. } => {
                matches!(watched.phase, Phase::Held | Phase::Lapsed | Phase::Stopping)
            }
            Event::Shortened { .. } => false,
        };
        if !expected && doings.broken.is_none() {
            doings.broken = Some(Broken::ToldTwice);
        }
    }

    /// The attempt whose lease this host believes in, at this true instant.
    pub(crate) fn believes(&self, at: usize, time: TrueTime) -> impl Iterator<Item = (usize, Duration)> {
        let now = self.now(at, self.clock.shows(time));
        (0..self.watched.len()).map(move |id| (id, self.client.remaining(lock(id), now)))
    }

    pub(crate) fn can_acquire(&self) -> bool {
        self.watched
            .iter()
            .all(|watched| matches!(watched.phase, Phase::Lapsed | Phase::Releasing | Phase::Freed | Phase::Over))
    }

    /// True if it stopped before it handled the outputs of the last input.
    pub(crate) fn is_undrained(&self) -> bool {
        self.wake_at == UNTOLD
    }

    pub(crate) fn is_due(&self, time: TrueTime) -> bool {
        self.wake_at <= time
    }
}

impl Watched {
    pub(crate) fn new() -> Self {
        Self { phase: Phase::Wanted, nonce: None, outbids: Token::ZERO, asks_for_done: false }
    }
}

pub(crate) fn lock(id: usize) -> LockId {
    LockId::new(id as u64)
}

/// The name of the lock.
pub(crate) const LOCK: &str = "r";

pub(crate) fn resource() -> Resource {
    Resource::new(LOCK).expect("a good name")
}

pub(crate) fn acquire(client: &mut Client, id: usize, options: &LockOptions, fresh: &Entropy, now: Now) {
    client.acquire(lock(id), resource(), options.clone(), fresh, now).expect("a new lock id");
}

/// The request that an answer belongs to.
pub(crate) type Reply = (RequestId, Vec<leasehold_core::op::Outcome>);

fn client(at: usize, now: Now, setting: &Setting) -> Client {
    Client::new(setting.config.clone(), [u8::try_from(at + 1).expect("two hosts"); 32], now)
}
