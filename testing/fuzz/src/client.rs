//! The core under any commands, answers and clocks.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use leasehold_core::config::{Drift, Limits, Poll, Quorum};
use leasehold_core::op::Outcome;
use leasehold_core::{
    Client, Config, LockId, LockOptions, Monotonic, NodeConfig, NodeId, Now, Output, RequestId, Wait,
};

use crate::ledger::{Ledger, MOST_OUTPUTS};
use crate::values;

/// Runs a client on input made of these bytes.
pub fn run(bytes: &[u8]) {
    let u = &mut Unstructured::new(bytes);
    if let Ok(mut story) = Story::new(u) {
        // The run ends where the bytes end.
        let _ = story.told(u);
        story.ended();
    }
}

/// The settings of a client, any that there can be.
pub(crate) fn config(u: &mut Unstructured<'_>) -> Result<Config> {
    let node = NodeConfig {
        poll: *u.choose(&[Poll::Acquire, Poll::Read])?,
        watch: u.arbitrary()?,
        batch: *u.choose(&[1, 3, 100])?,
        durability: values::durability(u)?,
    };
    let count = *u.choose(&[1, 1, 2, 3, 5])?;
    let limits = Limits { locks: *u.choose(&[2, 8])?, orphans: *u.choose(&[1, 4])?, observations: *u.choose(&[1, 2])? };
    let config = Config::new(vec![node; count]).expect("a few nodes").with_limits(limits).expect("no limit is 0");
    let config = config.with_drift(Drift::from_ppm(*u.choose(&[100, 10_000, 100_000])?).expect("within bounds"));
    let timeout = Duration::from_millis(*u.choose(&[10, 500, 60_000])?);
    let config = config.with_request_timeout(timeout).expect("within bounds");
    if u.arbitrary()? {
        let quorum = Quorum::new(values::quorum_id(u)?, Duration::from_secs(60)).expect("within bounds");
        return Ok(config.with_quorum(quorum));
    }
    Ok(config)
}

/// The options of an acquisition, always valid.
pub(crate) fn options(u: &mut Unstructured<'_>) -> Result<LockOptions> {
    let ttl = Duration::from_millis(*u.choose(&[100, 1_000, 30_000, 86_400_000])?);
    let wait = match u.int_in_range(0..=4)? {
        0 => Wait::Once,
        1 => Wait::For(values::length(u)?),
        2 => Wait::Watch(values::length(u)?),
        _ => Wait::Forever,
    };
    let mut wanted = LockOptions::builder().ttl(ttl).wait(wait).owner("me");
    if values::chance(u, 40) {
        wanted = wanted.lock_delay(Duration::from_secs(1));
    }
    if values::chance(u, 40) {
        wanted = wanted.max_hold(ttl * 2);
    }
    if values::chance(u, 40) {
        wanted = wanted.no_renewal();
    }
    Ok(wanted.build().expect("within bounds"))
}

/// Some time, rarely much: all of it together ends far from the end of the clock.
pub(crate) fn pause(u: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match u.int_in_range(0..=3)? {
        0 => Duration::from_millis(u.int_in_range(0..=20)?),
        1 => Duration::from_millis(u.int_in_range(0..=2_000)?),
        2 => Duration::from_secs(u.int_in_range(0..=60)?),
        _ => Duration::from_secs(u.int_in_range(0..=200_000)?),
    })
}

struct Story {
    client: Client,
    ledger: Ledger,
    now: Now,
    wake_at: Monotonic,
    drawn: u64,
}

impl Story {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let config = config(u)?;
        let now = Now { monotonic: Monotonic::from_ns(1 << u.int_in_range(0..=50)?), unix_ms: values::number(u)? };
        let ledger = Ledger::new(config.limits(), config.drift(), config.nodes().len(), true, now.monotonic);
        let client = Client::new(config, [7; 32], now);
        Ok(Self { client, ledger, now, wake_at: Monotonic::FAR, drawn: 0 })
    }

    fn fresh(&mut self) -> [u8; 16] {
        self.drawn += 1;
        u128::from(self.drawn).to_be_bytes()
    }

    fn told(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        self.drain();
        while !u.is_empty() {
            // All due timers have been handled.
            self.input(u)?;
            self.drain();
        }
        Ok(())
    }

    fn input(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let (now, lock) = (self.now, LockId::new(u.int_in_range(0..=5)?));
        let node = NodeId::new(u.int_in_range(0..=5)?);
        match u.int_in_range(0..=19)? {
            0..=3 => {
                let (resource, options, fresh) = (values::resource(u)?, options(u)?, self.fresh());
                let answer = self.client.acquire(lock, resource, options.clone(), &fresh, now);
                self.ledger.asked(lock, &options, answer);
            }
            4 | 5 => {
                let answer = self.client.release(lock, now);
                self.ledger.released(lock, answer);
            }
            6 => {
                // It is lost if it is held, and else nothing changes.
                let _ = self.client.declare_lost(lock, now);
            }
            7..=12 => self.answer(u)?,
            13 => {
                let id = RequestId::new(u.int_in_range(0..=60)?);
                if !self.ledger.open().iter().any(|open| open.id == id) {
                    self.client.handle_response(id, Ok(vec![values::outcome(u, None)?]), now);
                }
            }
            14 | 15 => self.now.monotonic = now.monotonic.plus(pause(u)?),
            16 => self.now.monotonic = if self.wake_at < Monotonic::FAR { self.wake_at } else { now.monotonic },
            17 => self.now.monotonic = Monotonic::from_ns(u.int_in_range(0..=now.monotonic.ns())?),
            18 => self.now.unix_ms = values::number(u)?,
            _ => match u.int_in_range(0..=6)? {
                0 => self.client.notified(&values::resource(u)?, now),
                1 => self.client.subscribed(node, &values::resource(u)?, now),
                2 => self.client.credentials_renewed(node, now),
                3 => self.client.node_votes(node, values::maybe(u, values::stamp)?, now),
                4 => self.client.reseed(u.arbitrary()?),
                5 => {
                    self.client.close(now);
                    self.ledger.closed();
                }
                _ => {}
            },
        }
        self.ledger.tick(self.now.monotonic);
        Ok(())
    }

    /// To one of the requests that are open: outcomes of any kind, of any number, or none.
    fn answer(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.ledger.open().is_empty() {
            return Ok(());
        }
        let at = u.choose_index(self.ledger.open().len())?;
        let open = self.ledger.open()[at].clone();
        if values::chance(u, 30) {
            let fault = Err::<Vec<Outcome>, _>(values::transport_fault(u)?);
            self.ledger.answered(at, &[]);
            self.client.handle_response(open.id, fault, self.now);
            return Ok(());
        }
        let mut outcomes: Vec<Outcome> =
            open.ops.iter().map(|op| values::outcome(u, Some(&op.op))).collect::<Result<_>>()?;
        if values::chance(u, 10) {
            outcomes.truncate(u.int_in_range(0..=outcomes.len())?);
            outcomes.extend(values::some(u, 2, |u| values::outcome(u, None))?);
        }
        self.ledger.answered(at, &outcomes);
        self.client.handle_response(open.id, Ok(outcomes), self.now);
        Ok(())
    }

    /// Takes all outputs, and checks them and the state.
    fn drain(&mut self) {
        self.ledger.tick(self.now.monotonic);
        for _ in 0..4 {
            self.take();
            let fresh = self.fresh();
            self.client.handle_timeout(&fresh, self.now);
            self.take();
            if self.wake_at > self.ledger.now() {
                let (client, now) = (&self.client, self.now);
                self.ledger.drained(&client.stats(), |lock| client.remaining(lock, now));
                return;
            }
        }
        panic!("it wants to be woken at once, again and again");
    }

    fn take(&mut self) {
        for _ in 0..MOST_OUTPUTS {
            match self.client.poll_output(self.now) {
                Output::Event(event) => self.ledger.event(&event),
                Output::Transmit(transmit) => self.ledger.sent(transmit),
                Output::WakeAt(at) => {
                    self.wake_at = at;
                    return;
                }
                Output::Rejected { .. } => panic!("only a step rejects"),
                Output::Subscribe { .. } | Output::Unsubscribe { .. } | Output::NeedCredentials { .. } => {}
            }
        }
        panic!("outputs without end");
    }

    /// Without a single further answer everything comes to an end, once the client is closed.
    fn ended(&mut self) {
        self.drain();
        self.client.close(self.now);
        self.ledger.closed();
        for _ in 0..20_000 {
            self.drain();
            if self.client.is_idle() {
                assert!(self.ledger.is_empty());
                return;
            }
            assert!(self.wake_at < Monotonic::FAR, "asleep forever, and not at rest: {:?}", self.client.stats());
            self.now.monotonic = self.wake_at;
        }
        panic!("a closed client that never comes to rest: {:?}", self.client.stats());
    }
}
