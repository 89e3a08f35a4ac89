//! Running a search, and telling what it found.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use leasehold_core::op::{Applied, Op, Outcome, Refusal};
use leasehold_sim::clock::TrueTime;
use stateright::{Checker, HasDiscoveries, Model};

use crate::world::{ALL_REACHED, Action, Body, Broken, Message, Setting, State, World};

/// The result of a search.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) unique: usize,
    pub(crate) depth: usize,
    pub(crate) took: Duration,
    pub(crate) counts: [u64; ALL_REACHED.len()],
    pub(crate) broken: Option<(Broken, String)>,
}

/// Looks at every state within the bounds, breadth first, until a promise is broken.
pub(crate) fn search(name: &str, setting: Setting) -> Found {
    let began = Instant::now();
    let checker = World::new(setting).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let counts = std::array::from_fn(|at| checker.model().reached[at].load(Ordering::Relaxed));
    let broken = checker.discoveries().into_values().next().map(|path| {
        let steps = path.into_vec();
        let broken = steps.last().and_then(|(state, _)| state.broken).expect("the path ends where it broke");
        (broken, tell(&steps))
    });
    let found = Found {
        states: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: began.elapsed(),
        counts,
        broken,
    };
    println!("{name}: {} states, {} unique, depth {}, {:.1?}", found.states, found.unique, found.depth, found.took);
    let reached: Vec<_> = ALL_REACHED.iter().zip(counts).map(|(what, count)| format!("{what:?} {count}")).collect();
    println!("  {}", reached.join(", "));
    if let Some((broken, path)) = &found.broken {
        println!("  {broken}:\n{path}");
    }
    found
}

/// A path, one step in a line.
fn tell(steps: &[(State, Option<Action>)]) -> String {
    let mut text = String::new();
    if let Some((first, _)) = steps.first() {
        let [a, b] = first
            .hosts
            .each_ref()
            .map(|host| host.clock.shows(TrueTime(1_000_000_000)) - host.clock.shows(TrueTime(0)));
        let _ = writeln!(text, "    in a true second the clock of A advances {a} ns, that of B {b} ns");
    }
    for pair in steps.windows(2) {
        let [(before, Some(action)), (after, _)] = pair else { continue };
        let ms = Duration::from_nanos(after.time.0).as_secs_f64() * 1000.0;
        let _ = write!(text, "    {ms:8.3} ms  {:60}", describe(before, *action));
        for (at, host) in after.hosts.iter().enumerate() {
            for (id, left) in host.believes(at, after.time) {
                if left > Duration::ZERO {
                    let _ = write!(text, "  {} believes #{id} for {left:.3?}", name(at));
                }
            }
        }
        text.push('\n');
    }
    text
}

fn name(host: usize) -> char {
    if host == 0 { 'A' } else { 'B' }
}

fn describe(before: &State, action: Action) -> String {
    match action {
        Action::Acquire { host } => format!("{} acquires", name(host)),
        Action::Release { host } => format!("{} releases", name(host)),
        Action::Revoke => "somebody revokes the lease that stands".into(),
        Action::Run { host } => format!("{} runs", name(host)),
        Action::Deliver { message, copied, stops } => {
            let copied = if copied { ", and once more later" } else { "" };
            let stops = if stops { ", which then stops" } else { "" };
            format!("{} arrives{copied}{stops}", message_text(&before.wire[message]))
        }
        Action::Lose { message } => format!("{} gets lost", message_text(&before.wire[message])),
        Action::Finish { host } => format!("{} finishes", name(host)),
        Action::Pause { host } => format!("{} stops", name(host)),
        Action::Resume { host } => format!("{} goes on", name(host)),
        Action::Crash { host } => format!("{} crashes", name(host)),
        Action::CutOff { host } => format!("{} is cut off", name(host)),
        Action::Heal { host } => format!("{} can reach the store again", name(host)),
        Action::Wait => "time goes on".into(),
    }
}

fn message_text(message: &Message) -> String {
    let host = name(message.host);
    match &*message.body {
        Body::Request(transmit) => {
            let ops: Vec<_> = transmit.ops.iter().map(|op| op_text(&op.op)).collect();
            format!("request {} of {host} ({})", transmit.id, ops.join(", "))
        }
        Body::Reply((id, outcomes)) => {
            let outcomes: Vec<_> = outcomes.iter().map(outcome_text).collect();
            format!("reply {id} to {host} ({})", outcomes.join(", "))
        }
    }
}

fn op_text(op: &Op) -> String {
    match op {
        Op::Acquire(acquire) => {
            let over = if acquire.expect.is_some() { " taking over" } else { "" };
            format!("acquire {:?} seq {}{over}", acquire.nonce, acquire.seq)
        }
        Op::Renew(renew) => format!("renew {:?} seq {}", renew.nonce, renew.seq),
        Op::Release(release) => format!("release {:?}", release.nonce),
        Op::Finish(finish) => format!("finish {:?}", finish.nonce),
        Op::Revoke(revoke) => format!("revoke {:?}", revoke.nonce),
        Op::Tell(tell) => format!("tell {:?}", tell.nonce),
        Op::Raise(raise) => format!("raise to {}", raise.token),
        Op::Read => "read".into(),
    }
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied(Applied::Acquired { counter }) => format!("acquired, token {counter}"),
        Outcome::Applied(Applied::AcquiredInDoubt { counter, .. }) => format!("acquired, token {counter} in doubt"),
        Outcome::Applied(Applied::Renewed) => "renewed".into(),
        Outcome::Applied(Applied::RenewedTold { told }) => format!("renewed, told {told} times"),
        Outcome::Applied(Applied::Told) => "told".into(),
        Outcome::Applied(Applied::Released) => "released".into(),
        Outcome::Applied(Applied::Finished) => "finished".into(),
        Outcome::Applied(Applied::Revoked) => "revoked".into(),
        Outcome::Applied(Applied::Raised { counter }) => format!("raised to {counter}"),
        Outcome::Applied(Applied::Read(seen)) | Outcome::NotApplied(Refusal::Conflict(seen)) => match &seen.holding {
            Some(holding) if holding.released => format!("released, was {:?}", holding.holder),
            Some(holding) => format!("held by {:?}", holding.holder),
            None => "free".into(),
        },
        Outcome::NotApplied(refusal) => format!("refused: {refusal:?}"),
        Outcome::Unknown(fault) => format!("unknown: {fault}"),
    }
}
