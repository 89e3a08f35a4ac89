//! Scripts over the real machine that take every row of the table in the module's docs.

extern crate std;

mod runs;
mod scripts;

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use std::format;

use runs::RUNS;
use scripts::{Answer, Do, SCRIPTS, Script};

use super::*;
use crate::about::{About, RunResult};
use crate::config::NodeConfig;
use crate::event::{Failure, LostReason};
use crate::ids::{Owner, Version};
use crate::member::LossId;
use crate::op::{Applied, Completion, Denial, DenialKind, Fault, FaultKind, Holder, Refusal, Seen};
use crate::time::batch_window;

const SOURCE: &str = include_str!("mod.rs");
const START_MS: u64 = 5_000;

struct Bench {
    config: Config,
    nodes: Vec<NodeState>,
    options: LockOptions,
    resource: Resource,
    observations: Observations,
    start: Now,
    now: Now,
    machine: Machine,
    sent: Vec<Send>,
}

impl Bench {
    fn new(script: &Script) -> Self {
        let now = Now { monotonic: Monotonic::from_ns(0).plus(Duration::from_millis(START_MS)), unix_ms: 5 };
        let config = Config::new(alloc::vec![NodeConfig { poll: script.poll, ..NodeConfig::default() }; script.nodes]);
        let options = (script.options)(LockOptions::builder()).build().unwrap();
        Self {
            config: config.unwrap(),
            nodes: alloc::vec![NodeState::default(); script.nodes],
            machine: Machine::Idle(Idle::new(Acquisition::new(options.wait(), now), None)),
            options,
            resource: Resource::new("r").unwrap(),
            observations: Observations::new(8),
            start: now,
            now,
            sent: Vec::new(),
        }
    }

    /// One step as a client does it: the input, then every timer that is due.
    fn give(&mut self, step: Do) -> Vec<Taken> {
        let mut taken = Vec::new();
        match step {
            Do::Start => {
                self.handle(Input::Turn, &mut taken);
                assert!(self.machine.start_at().is_some_and(|at| at <= self.now.monotonic), "a start is due");
                self.handle(Input::Start { fresh: &[7; 16], floor: Token::ZERO }, &mut taken);
            }
            Do::At(ms) => self.now.monotonic = self.start.monotonic.plus(Duration::from_millis(ms)),
            Do::Say(node, answer) => {
                let node = NodeId::new(node);
                let sends: Vec<&Send> = self.sent.iter().filter(|send| send.node == node).collect();
                let last = sends.last().expect("the node was asked");
                let input = Input::Outcome { node, seq: last.seq, outcome: outcome(answer, &sends), since: None };
                self.handle(input, &mut taken);
            }
            Do::Release => self.handle(Input::Release, &mut taken),
            Do::Finish => self.handle(Input::Finish(None), &mut taken),
            Do::FinishWithResult => {
                self.handle(Input::Finish(Some(RunResult::json("1").unwrap())), &mut taken);
            }
            Do::Wake => self.handle(Input::Wake { after: Duration::ZERO }, &mut taken),
            Do::Landed(node) => {
                let outcome = Outcome::Applied(Applied::Acquired { counter: Token::ZERO });
                self.handle(Input::Late { node: NodeId::new(node), seq: Seq::new(0), outcome }, &mut taken);
            }
            Do::RenewAlong => {
                let until = self.now.monotonic.plus(batch_window(self.options.ttl()));
                self.handle(Input::RenewAlong(until), &mut taken);
            }
            Do::NodeFails(node) => {
                let breaker = &mut self.nodes[usize::from(node)].breaker;
                for later in 0..9 {
                    let at = self.now.monotonic.plus(Duration::from_nanos(later));
                    breaker.failed(at, at, false);
                }
            }
            Do::DeclareLost => self.handle(Input::DeclareLost, &mut taken),
        }
        while self.machine.wake_at().is_some_and(|at| at <= self.now.monotonic) {
            let before = taken.len();
            self.handle(Input::Timeout, &mut taken);
            assert!(taken.len() > before && before < 20, "a timer that is due does something, and not forever");
        }
        self.disturb();
        taken
    }

    /// Timers may fire early, and answers come to what was never sent: neither does anything.
    fn disturb(&mut self) {
        let before = self.machine.clone();
        let mut taken = Vec::new();
        self.handle(Input::Timeout, &mut taken);
        for (node, answer) in (0..self.nodes.len()).flat_map(|node| [(node, Answer::Throttled), (node, Answer::Reset)])
        {
            let (node, seq) = (NodeId::new(u16::try_from(node).unwrap()), Seq::new(u32::MAX));
            self.handle(Input::Outcome { node, seq, outcome: outcome(answer, &[]), since: None }, &mut taken);
        }
        if self.machine.start_at().is_none_or(|at| at > self.now.monotonic) {
            self.handle(Input::Start { fresh: &[8; 16], floor: Token::ZERO }, &mut taken);
        }
        let rows: Vec<Row> = taken.iter().map(|taken| taken.row).collect();
        assert!(rows.is_empty(), "{rows:?}");
        assert_eq!(self.machine, before);
    }

    fn handle(&mut self, input: Input<'_>, taken: &mut Vec<Taken>) {
        let mut out = Effects::default();
        let mut ctx = Ctx {
            now: self.now,
            config: &self.config,
            seed: &[1; 32],
            nodes: &mut self.nodes,
            lock: LockId::new(1),
            resource: &self.resource,
            options: &self.options,
            observations: &mut self.observations,
            out: &mut out,
        };
        let before = self.machine.name();
        let (machine, row) = core::mem::replace(&mut self.machine, Machine::Ended).handle(input, &mut ctx);
        self.machine = machine;
        let outputs = outputs(&out);
        match row {
            Some(row) => taken.push(Taken { row, before, after: self.machine.name(), outputs }),
            None => {
                assert_eq!(before, self.machine.name(), "the state changed without a row");
                assert!(outputs.is_empty(), "{outputs:?} without a row");
            }
        }
        self.sent.append(&mut out.sends);
    }
}

struct Taken {
    row: Row,
    before: &'static str,
    after: &'static str,
    outputs: BTreeSet<&'static str>,
}

fn outcome(answer: Answer, sends: &[&Send]) -> Outcome {
    let nonce = sends.iter().rev().find_map(|send| match send.op {
        Op::Acquire(ref op) => Some(op.nonce),
        Op::Renew(op) => Some(op.nonce),
        Op::Raise(_) | Op::Release(_) | Op::Finish(_) | Op::Revoke(_) | Op::Tell(_) | Op::Read => None,
    });
    let holding = |nonce, seq, released| {
        alloc::boxed::Box::new(Holding {
            released,
            counter: Token::new(7),
            record_ttl: Some(Duration::from_secs(30)),
            left: Some(Duration::from_secs(20)),
            ..Holding::of(Holder::Lease { nonce, seq: Some(seq) }, Version::of(&nonce, seq))
        })
    };
    let ours = |back: usize, released| holding(nonce.unwrap(), sends[sends.len() - 1 - back].seq, released);
    let observed = |seq| {
        let theirs = holding(Nonce::from_bytes([0xee; 16]), Seq::new(seq), false);
        Seen { holding: Some(Holding { left: None, ..*theirs }.into()), done: None }
    };
    let theirs = || Seen { holding: Some(holding(Nonce::from_bytes([0xee; 16]), Seq::new(3), false)), done: None };
    let conflict = |holding| Outcome::NotApplied(Refusal::Conflict(Seen { holding, done: None }));
    let token = |counter| Token::new(counter).unwrap();
    let completion = |about| {
        let (token, left, owner) = (token(5), Duration::from_secs(60), Owner::default());
        alloc::boxed::Box::new(Completion { token, owner, at_unix_ms: 0, left, about, unsettled: false })
    };
    let about = || Some(About::new(&Nonce::from_bytes([0xee; 16]), 0, 0, Some(&RunResult::json("1").unwrap())));
    match answer {
        Answer::Granted(counter) => Outcome::Applied(Applied::Acquired { counter: token(counter) }),
        Answer::GrantedInDoubt(counter) => {
            Outcome::Applied(Applied::AcquiredInDoubt { counter: token(counter), stamp: LossId([1; 16]) })
        }
        Answer::Raised(counter) => Outcome::Applied(Applied::Raised { counter: token(counter) }),
        Answer::Renewed => Outcome::Applied(Applied::Renewed),
        Answer::Released => Outcome::Applied(Applied::Released),
        Answer::Finished => Outcome::Applied(Applied::Finished),
        Answer::Done => Outcome::NotApplied(Refusal::Done(completion(None))),
        Answer::DoneWithResult => Outcome::NotApplied(Refusal::Done(completion(about()))),
        Answer::SawDone => Outcome::Applied(Applied::Read(Seen { done: Some(completion(None)), ..theirs() })),
        Answer::SawResult => Outcome::Applied(Applied::Read(Seen { done: Some(completion(about())), ..theirs() })),
        Answer::Timeout => Outcome::Unknown(Fault::of(FaultKind::Timeout)),
        Answer::Reset => Outcome::Unknown(Fault::of(FaultKind::Reset)),
        Answer::Unavailable => Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable))),
        Answer::Throttled => Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy))),
        Answer::Denied => Outcome::NotApplied(Refusal::Denied(Denial::new(DenialKind::Permission, "no"))),
        Answer::Theirs => Outcome::NotApplied(Refusal::Conflict(theirs())),
        Answer::Observed(seq) => Outcome::NotApplied(Refusal::Conflict(observed(seq))),
        Answer::SawObserved(seq) => Outcome::Applied(Applied::Read(observed(seq))),
        Answer::Ours(back) => conflict(Some(ours(back, false))),
        Answer::OursRevoked => conflict(Some(holding(nonce.unwrap(), Seq::LAST, false))),
        Answer::OursFreed => conflict(Some(ours(0, true))),
        Answer::Gone => conflict(None),
        Answer::SawTheirs => Outcome::Applied(Applied::Read(theirs())),
        Answer::SawFree => Outcome::Applied(Applied::Read(Seen::default())),
    }
}

/// Operations and events by the words that the table uses for them.
fn outputs(out: &Effects) -> BTreeSet<&'static str> {
    let sends = out.sends.iter().map(|send| match send.op {
        Op::Acquire(_) => "Acquire",
        Op::Renew(_) => "Renew",
        Op::Release(_) => "Release",
        Op::Finish(_) => "Finish",
        Op::Revoke(_) => "Revoke",
        Op::Raise(_) => "Raise",
        Op::Tell(_) => "Tell",
        Op::Read => "Read",
    });
    let events = out.events.iter().map(|event| match event {
        Event::Acquired { recovered: false, .. } => "Acquired",
        Event::Acquired { recovered: true, .. } => "Acquired, recovered",
        Event::Contended { .. } => "Contended",
        Event::Failed { failure: Failure::Cancelled, .. } => "Failed: cancelled",
        Event::Failed { failure: Failure::Refused(_), .. } => "Failed: refused",
        Event::Failed { failure: Failure::Done(_), .. } => "Failed: done",
        Event::Failed { .. } => "Failed",
        Event::Renewed { recovered: false, .. } => "Renewed",
        Event::Renewed { recovered: true, .. } => "Renewed, recovered",
        Event::RenewDelayed { .. } => "RenewDelayed",
        Event::Shortened { .. } => "Shortened",
        Event::Expiring { .. } => "Expiring",
        Event::Lost { reason: LostReason::Revoked, .. } => "Lost: revoked",
        Event::Lost { .. } => "Lost",
        Event::Released { confirmed: true, .. } => "Released, confirmed",
        Event::Released { confirmed: false, .. } => "Released, unconfirmed",
        Event::Finished { confirmed: true, .. } => "Finished, confirmed",
        Event::Finished { confirmed: false, .. } => "Finished, unconfirmed",
    });
    sends.chain(events).chain(out.orphan.iter().map(|_| "background release")).collect()
}

/// One line of the table in the docs.
struct Documented {
    state: String,
    next: BTreeSet<String>,
    outputs: String,
    row: String,
}

fn documented() -> Vec<Documented> {
    let states = ["Idle", "Acquiring", "Waiting", "Held", "Revoked", "Releasing", "Ended"];
    let lines = SOURCE.lines().filter_map(|line| line.strip_prefix("//! | "));
    lines
        .filter(|line| !line.starts_with("state ") && !line.starts_with("---"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_end_matches('|').split('|').map(str::trim).collect();
            let [state, _, next, outputs, row] = cells[..] else { panic!("five cells in {line:?}") };
            let words = next.split(|c: char| !c.is_alphabetic());
            Documented {
                state: state.to_string(),
                next: words.filter(|word| states.contains(word)).map(ToString::to_string).collect(),
                outputs: outputs.to_string(),
                row: row.trim_matches('`').to_string(),
            }
        })
        .collect()
}

fn declared() -> Vec<String> {
    let body = SOURCE.split_once("pub(crate) enum Row {").unwrap().1.split_once('}').unwrap().0;
    body.split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()
}

/// Every word for an output that the table may use.
const OUTPUTS: [&str; 26] = [
    "Acquire",
    "Raise",
    "Renew",
    "Release",
    "Finish",
    "Read",
    "Acquired",
    "Acquired, recovered",
    "Contended",
    "Failed",
    "Failed: cancelled",
    "Failed: refused",
    "Failed: done",
    "Renewed",
    "Renewed, recovered",
    "RenewDelayed",
    "Shortened",
    "Expiring",
    "Lost",
    "Lost: revoked",
    "Released, confirmed",
    "Released, unconfirmed",
    "Finished, confirmed",
    "Finished, unconfirmed",
    "background release",
    "Released",
];

/// The outputs that a cell of the table names: the longest word at each place.
fn named(cell: &str) -> BTreeSet<&'static str> {
    let mut named = BTreeSet::new();
    let mut rest = cell;
    while !rest.is_empty() {
        match OUTPUTS.iter().filter(|word| rest.starts_with(**word)).max_by_key(|word| word.len()) {
            Some(word) => {
                named.insert(*word);
                rest = &rest[word.len()..];
            }
            None => rest = rest.split_once(' ').map_or("", |(_, rest)| rest),
        }
    }
    named
}

#[test]
fn every_row_of_the_table_is_taken_as_documented() {
    let table = documented();
    assert!(table.iter().map(|doc| &doc.row).eq(&declared()), "the table and `Row` name the same rows in one order");

    let mut not_taken: BTreeSet<&str> = table.iter().map(|doc| &*doc.row).collect();
    let mut not_seen: BTreeSet<(&str, &str)> =
        table.iter().flat_map(|doc| named(&doc.outputs).into_iter().map(|output| (&*doc.row, output))).collect();
    for script in SCRIPTS.iter().chain(RUNS) {
        let mut bench = Bench::new(script);
        for (at, (step, expected)) in script.steps.iter().enumerate() {
            let place = format!("{:?}, step {at}, {step:?}", script.name);
            let taken = bench.give(*step);
            let rows: Vec<Row> = taken.iter().map(|taken| taken.row).collect();
            assert_eq!(rows, **expected, "{place}");
            for Taken { row, before, after, outputs } in taken {
                let name = format!("{row:?}");
                let doc = table.iter().find(|doc| doc.row == name).expect("a documented row");
                assert_eq!(before, doc.state, "{place}: state before {name}");
                assert!(doc.next.contains(after), "{place}: {name} leads to {after}, not to {:?}", doc.next);
                let surprise: Vec<_> = outputs.difference(&named(&doc.outputs)).copied().collect();
                assert!(surprise.is_empty(), "{place}: {name} should not put out {surprise:?}");
                not_taken.remove(&*doc.row);
                not_seen.retain(|(row, output)| *row != name || !outputs.contains(output));
            }
        }
    }
    assert!(not_taken.is_empty(), "rows that no script takes: {not_taken:?}");
    assert!(not_seen.is_empty(), "outputs that no script has seen: {not_seen:?}");
}
