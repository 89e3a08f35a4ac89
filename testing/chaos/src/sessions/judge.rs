//! The judge: compares what workers believed, what was done to them, and what the counters show with the promises.

use std::fmt;
use std::time::Duration;

use super::breaker::Act;
use super::worker::session_of;
use crate::chaos::by_lock::Journals;
use crate::chaos::check::{duplicates, falling, overlaps, revived};
use crate::chaos::faults::{Fault, Kind};
use crate::chaos::guarded_counter::CounterLog;
use crate::chaos::pauses::{Pauses, Span};
use crate::chaos::timeline::{Lease, leases};

/// How much later than at its deadline a running process may be told of a loss, beside the clocks' margin: a machine that is
/// busy with three stores wakes nobody at once.
const LATE: u64 = 100_000_000;

/// The input of the judge. Times are the machine's monotonic clock in nanoseconds.
#[derive(Default)]
pub struct Evidence {
    /// The longest ttl of a lease.
    pub ttl: u64,
    /// The time for which a store keeps such a lease after its holder's deadline.
    pub margin: u64,
    /// Times in which the machine did not wake a thread that slept in short steps.
    pub stalls: Vec<Span>,
    /// Instants, and the total time for which processes had waited for a processor until then.
    pub pressure: Vec<(u64, u64)>,
    /// Times in which the store kept even a client beside all faults waiting for too long.
    pub slow: Vec<Span>,
    /// The journals of all processes.
    pub journals: Journals,
    /// All that was done to holders.
    pub acts: Vec<Act>,
    /// The injected faults.
    pub faults: Vec<Fault>,
    /// The counter of each lock.
    pub counters: Vec<CounterLog>,
    /// The dead holders whose locks others waited for.
    pub burials: Vec<Burial>,
}

/// A holder that was killed, and revoked again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burial {
    /// Its lock.
    pub lock: usize,
    /// Its token.
    pub token: u64,
    /// The time from its death to the next grant of the lock; `None` if that did not come in time.
    pub took: Option<Duration>,
    /// The time in which it had to come.
    pub bound: Duration,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The locks that were granted.
    pub grants: u64,
    /// Writes that the guards accepted.
    pub writes: u64,
    /// Claims and writes that the guards refused.
    pub refused: u64,
    /// Leases that ended without a release, as their holders were told.
    pub losses: u64,
    /// Locks that were broken or released for their holders, holders that were revoked, and sessions that were.
    pub acts: [u64; 3],
    /// Acts whose answers were lost.
    pub unknown: u64,
    /// Leases that lived on while another lock of their session was broken or revoked.
    pub spared: u64,
    /// The longest time until the lock of a dead holder was granted to another, and the number of such locks.
    pub burials: (Duration, u64),
    /// Workers stopped and killed, and faults of the store and the ways to it.
    pub faults: [u64; 3],
    /// Losses without a fault, but on a machine that kept processes from running, or the store from answering.
    pub starved: u64,
    /// Errors of all processes.
    pub errors: u64,
    /// The promises that were broken, in words.
    pub broken: Vec<String>,
}

impl Verdict {
    /// Judges the evidence.
    pub fn of(evidence: &Evidence) -> Self {
        let pauses = Pauses::of(&evidence.faults, &evidence.stalls, &evidence.pressure);
        let count = |test: &dyn Fn(&Fault) -> bool| evidence.faults.iter().filter(|fault| test(fault)).count() as u64;
        let acts = |test: &dyn Fn(&Act) -> bool| evidence.acts.iter().filter(|act| test(act)).count() as u64;
        let is_answered = |act: &Act| act.token.is_some();
        let mut verdict = Self {
            acts: [
                acts(&|act| is_answered(act) && act.is_break()),
                acts(&|act| is_answered(act) && !act.is_break()),
                acts(&|act| act.session.is_some()),
            ],
            unknown: acts(&|act| !is_answered(act) && act.session.is_none()),
            faults: [
                count(&|fault| fault.kind == Kind::Stop),
                count(&|fault| fault.kind == Kind::Kill),
                count(&|fault| !fault.kind.is_of_a_worker()),
            ],
            errors: evidence.journals.errors,
            ..Self::default()
        };
        verdict.broken.extend(evidence.journals.strange.as_ref().map(|line| format!("a worker told: {line}")));
        let by_lock: Vec<Vec<Lease>> = evidence.journals.by_lock().iter().map(|journals| leases(journals)).collect();
        for (lock, held) in by_lock.iter().enumerate() {
            verdict.lock(evidence, &pauses, lock, held);
        }
        for (lock, log) in evidence.counters.iter().enumerate() {
            verdict.counter(lock, log);
        }
        verdict.spared = evidence.acts.iter().map(|act| spared(act, &by_lock)).sum();
        for Burial { lock, token, took, bound } in &evidence.burials {
            verdict.burials.1 += 1;
            match took {
                Some(took) => verdict.burials.0 = verdict.burials.0.max(*took),
                None => verdict.broken.push(format!(
                    "lock {lock}: nobody was granted it for {bound:.1?} after the holder with token {token} had died"
                )),
            }
        }
        verdict
    }

    fn lock(&mut self, evidence: &Evidence, pauses: &Pauses<'_>, lock: usize, held: &[Lease]) {
        self.grants += held.len() as u64;
        let mut broken = Vec::new();
        let mut standing = Vec::new();
        for lease in held {
            self.refused += lease.refusals;
            let hits: Vec<&Act> = evidence.acts.iter().filter(|act| hits(act, lock, lease)).collect();
            broken.extend(told_too_late(evidence, lease, &hits));
            let freed = hits.iter().filter(|act| act.is_break()).map(|act| act.from).min();
            broken.extend(lease.is_revived().then(|| revived(lease)));
            if lease.is_contradicted && freed.is_none() {
                broken.push(format!("the guard refused token {} of {}, which was valid", lease.token, lease.worker));
            }
            if lease.not_notified.is_some() {
                broken.push(format!("{} was never told that token {} is lost", lease.worker, lease.token));
            }
            broken.extend(self.loss(evidence, pauses, lease, hits.is_empty()));
            standing.push(freed.map_or_else(|| lease.clone(), |at| cut(lease, at)));
        }
        broken.extend(overlaps(&standing).into_iter().map(|what| format!("two holders: {what}")));
        let (twice, fallen) = (duplicates(held), falling(held, u64::MAX));
        broken.extend((twice > 0).then(|| format!("{twice} tokens were granted twice")));
        broken.extend((fallen > 0).then(|| format!("{fallen} tokens fell")));
        self.broken.extend(broken.into_iter().map(|what| format!("lock {lock}: {what}")));
    }

    /// Looks at a lease that ended without a release.
    fn loss(&mut self, evidence: &Evidence, pauses: &Pauses<'_>, lease: &Lease, is_untouched: bool) -> Option<String> {
        let told = match lease.notified {
            Some(told) if lease.releasing.is_none_or(|at| told < at) => told,
            Some(_) => return None,
            None if lease.releasing.is_some() || !lease.is_watched => return None,
            // The loss had not been told when the process was killed.
            None if lease.gone > lease.until + evidence.margin => lease.gone,
            None => return None,
        };
        self.losses += 1;
        let (Lease { worker, token, .. }, late) = (lease, pauses.ran(&lease.worker, lease.until.min(told), told));
        if late > evidence.margin + LATE {
            let ms = late as f64 / 1e6;
            return Some(format!("{worker} ran for {ms:.0} ms after the end of token {token} before it was told"));
        }
        let from = told.saturating_sub(evidence.ttl + evidence.ttl / 5);
        let is_struck = evidence.faults.iter().any(|fault| fault.reaches(worker, lease.group, from, told));
        if !is_untouched || is_struck {
            return None;
        }
        let is_slow = evidence.slow.iter().any(|(start, end)| *start < told && from < *end);
        if is_slow || pauses.stalled(from, told) > evidence.ttl / 12 || pauses.waited(from, told) > evidence.ttl / 2 {
            self.starved += 1;
            return None;
        }
        Some(format!("{worker} lost token {token}, which nobody had touched, without a fault"))
    }

    fn counter(&mut self, lock: usize, log: &CounterLog) {
        self.writes += log.tokens.len() as u64;
        let stale = log.tokens.windows(2).filter(|pair| pair[1] < pair[0]).count();
        if stale > 0 {
            self.broken.push(format!("lock {lock}: {stale} writes were accepted after one with a later token"));
        }
        if log.lost() != 0 {
            self.broken.push(format!("lock {lock}: {} updates were lost past the guard", log.lost()));
        }
    }

    /// The reasons why the run proves nothing, in words.
    pub fn blind(&self) -> Vec<String> {
        let [breaks, revocations, sessions] = self.acts;
        let [stops, kills, store_faults] = self.faults;
        let counts = [
            (self.grants, "locks were granted"),
            (self.writes, "writes were accepted"),
            (self.losses, "losses were told"),
            (breaks, "locks were broken"),
            (revocations, "holders were revoked"),
            (sessions, "sessions were revoked"),
            (self.spared, "leases lived on beside a broken or revoked one"),
            (self.burials.1, "locks of dead holders were waited for"),
            (stops, "workers were stopped"),
            (kills, "workers were killed"),
            (store_faults, "faults of the store were injected"),
        ];
        let missing = counts.iter().filter(|(count, _)| *count == 0);
        missing.map(|(_, what)| format!("no {what}: run it for longer")).collect()
    }
}

/// True if this may have ended the lease, or freed its lock.
fn hits(act: &Act, lock: usize, lease: &Lease) -> bool {
    if let Some(session) = &act.session {
        return session_of(&lease.worker) == session && lease.granted < act.to;
    }
    let is_meant = match act.token {
        Some(token) => token == lease.token,
        // Nobody knows what it hit, but that it was the holder that was seen before, or a later one.
        None => lease.token >= act.least && lease.granted < act.to,
    };
    act.lock == Some(lock) && is_meant
}

/// The lease of a holder that was broken at this instant: others may have the lock from then on.
fn cut(lease: &Lease, at: u64) -> Lease {
    let believed = lease.believed.filter(|believed| *believed < at);
    Lease { until: lease.until.min(at), believed, ..lease.clone() }
}

/// The complaint about a lease that was believed in for longer than a renewal from before the act could last.
fn told_too_late(evidence: &Evidence, lease: &Lease, hits: &[&Act]) -> Option<String> {
    let act = hits.iter().filter(|act| act.token.is_some()).min_by_key(|act| act.to)?;
    let late = lease.ends().checked_sub(act.to + evidence.ttl)?;
    let (Lease { worker, token, .. }, ms) = (lease, late as f64 / 1e6);
    (late > 0).then(|| format!("{worker} believed in token {token} for {ms:.0} ms too long after {}", act.what))
}

/// The leases that had been granted to the same process before this act on another lock, and were released after it.
fn spared(act: &Act, by_lock: &[Vec<Lease>]) -> u64 {
    let (Some(lock), Some(token)) = (act.lock, act.token) else { return 0 };
    let hit = by_lock.get(lock).and_then(|held| held.iter().find(|lease| lease.token == token));
    let Some(hit) = hit.filter(|hit| hit.releasing.is_none_or(|at| act.to < at)) else { return 0 };
    let lives_on = |lease: &&Lease| {
        lease.worker == hit.worker && lease.granted < act.from && lease.releasing.is_some_and(|at| act.to < at)
    };
    let others = by_lock.iter().enumerate().filter(|(other, _)| *other != lock).flat_map(|(_, held)| held);
    others.filter(lives_on).filter(|lease| lease.notified.is_none_or(|at| act.to < at)).count() as u64
}

/// The columns of the table.
pub const COLUMNS: &str = "grants | writes | refused | losses told | broken | revoked | sessions revoked | answers lost | \
                           lived on beside | dead, longest | stopped | killed | store faults | starved | errors | violations";

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grants, writes, refused, losses, acts, unknown, spared, burials, faults, starved, errors, broken } =
            self;
        let [breaks, revocations, sessions] = acts;
        let [stops, kills, store_faults] = faults;
        let (longest, dead) = (burials.0.as_secs_f64(), burials.1);
        write!(
            f,
            "{grants} | {writes} | {refused} | {losses} | {breaks} | {revocations} | {sessions} | {unknown} | {spared} | \
             {dead}, {longest:.1} s | {stops} | {kills} | {store_faults} | {starved} | {errors} | {}",
            broken.len()
        )
    }
}
