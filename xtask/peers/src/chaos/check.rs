//! Holds the books against the promises.

use std::collections::BTreeMap;
use std::time::Duration;

use super::blows::{Blow, Kind, Target};
use super::books::{Book, What};
use super::timeline::{Lease, leases};
use super::vault::Ledger;

/// Of a loss without a reason: a blow may show so many ttl later.
const AFTERMATH: u64 = 2;

/// What a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// How long a lease lasts, in nanoseconds.
    pub ttl: u64,
    /// For how long a store goes on with a lease that its holder does not believe in any more, in nanoseconds.
    pub margin: u64,
    /// Whoever is stopped in a transaction keeps all others out of the store.
    pub is_file: bool,
    /// For how long in all somebody had waited for a processor at an instant, as the kernel counts it, in nanoseconds.
    pub pressure: Vec<(u64, u64)>,
    /// What the workers wrote down.
    pub books: Vec<Book>,
    /// What was done.
    pub blows: Vec<Blow>,
    /// The counter without a lock.
    pub bare: Ledger,
    /// The counter under the lock.
    pub locked: Ledger,
    /// The counter under the lock and past the guard.
    pub guarded: Ledger,
}

/// What the books say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Grants that a worker was told of.
    pub grants: u64,
    /// Updates that were lost without a lock: the control.
    pub lost_bare: i64,
    /// Updates that were lost under the lock alone.
    pub lost_locked: i64,
    /// Updates that were lost although the guard was asked.
    pub lost_guarded: i64,
    /// Writes and claims that the guard refused.
    pub refused: u64,
    /// Tokens that were given out twice.
    pub duplicates: u64,
    /// Tokens below one that had been given out before they were asked for, and accepted writes with such a token.
    pub falling: u64,
    /// Two holders who believed at the same instant, in words.
    pub overlaps: Vec<String>,
    /// Leases that ended without their holder's doing.
    pub losses: u64,
    /// Losses that were told after the store could give the lease away, though the holder's process ran, in words.
    pub late: Vec<String>,
    /// The same where the process was stopped, or did not get to run.
    pub late_unscheduled: u64,
    /// Losses that were never told.
    pub untold: u64,
    /// Losses that nobody had a hand in.
    pub false_losses: u64,
    /// Losses that nobody had a hand in but the machine, which did not let the holder's process run.
    pub starved: u64,
    /// From the stop or the kill of a holder to the next grant, in ttl; where nothing else was in the way.
    pub takeovers: Vec<f64>,
    /// Takeovers with a fault of a store or a path in the way.
    pub hindered: u64,
    /// Errors that pass, by kind.
    pub failures: BTreeMap<String, u64>,
    /// The longest that a worker did not run though nobody had stopped it, in nanoseconds.
    pub longest_stall: u64,
}

impl Evidence {
    /// For how long somebody waited for a processor between these instants; 0 where the kernel does not say.
    fn waited(&self, from: u64, to: u64) -> u64 {
        let before = self.pressure.iter().rev().find(|(at, _)| *at <= from);
        let after = self.pressure.iter().find(|(at, _)| *at >= to).or(self.pressure.last());
        match (before, after) {
            (Some((_, before)), Some((_, after))) => after.saturating_sub(*before).min(to - from),
            _ => 0,
        }
    }
}

impl Findings {
    /// Reads the evidence.
    pub fn of(evidence: &Evidence) -> Self {
        let leases = leases(&evidence.books);
        let mut findings = Self {
            grants: leases.len() as u64,
            lost_bare: evidence.bare.lost(),
            lost_locked: evidence.locked.lost(),
            lost_guarded: evidence.guarded.lost(),
            duplicates: duplicates(&leases),
            falling: falling(&leases)
                + evidence.guarded.tokens.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64,
            overlaps: overlaps(&leases),
            ..Self::default()
        };
        let stalls = Stalls::of(evidence);
        findings.longest_stall = stalls.longest();
        for lease in &leases {
            findings.loss(evidence, &stalls, lease);
        }
        findings.takeovers(evidence, &leases);
        for entry in evidence.books.iter().flat_map(|book| &book.entries) {
            match &entry.what {
                What::Refused { .. } => findings.refused += 1,
                What::Failed { kind } => *findings.failures.entry(kind.clone()).or_default() += 1,
                _ => {}
            }
        }
        findings
    }

    /// What must not happen, in words.
    pub fn broken(&self) -> Vec<String> {
        let counts = [
            (self.lost_guarded.unsigned_abs(), "updates were lost past the guard"),
            (self.duplicates, "tokens were given out twice"),
            (self.falling, "tokens fell"),
            (self.overlaps.len() as u64, "times two holders believed at once"),
            (self.untold, "losses were never told"),
        ];
        let broken = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let silent = (self.grants == 0).then(|| "nobody was granted the lock".to_owned());
        broken.chain(silent).collect()
    }

    /// What must not happen either, but says as much about the machine, in words.
    pub fn doubtful(&self) -> Option<String> {
        let late = self.late.len();
        (late > 0).then(|| format!("{late} losses were told after the store could give the lease away"))
    }

    /// Without a lock nothing was lost: such a run would not have seen it elsewhere.
    pub fn is_blind(&self) -> bool {
        self.lost_bare == 0
    }

    fn loss(&mut self, evidence: &Evidence, stalls: &Stalls<'_>, lease: &Lease) {
        self.untold += u64::from(lease.untold.is_some());
        let Some(told) = lease.told else { return };
        self.losses += 1;
        let late = told.saturating_sub(lease.until);
        if late > evidence.margin {
            let is_stopped = stalls.is_stopped(&lease.worker, lease.until.saturating_sub(evidence.margin), told);
            // The watch and whoever tells wait for the same processors, but not at the same moment.
            let starved = stalls.starved(&lease.worker, lease.until.saturating_sub(evidence.ttl), told);
            let starved = starved.max(evidence.waited(lease.until, told));
            if !is_stopped && late.saturating_sub(starved) > evidence.margin {
                let ms = late as f64 / 1e6;
                self.late.push(format!(
                    "{} was told that token {} is lost {ms:.1} ms after its own deadline",
                    lease.worker, lease.token
                ));
            } else {
                self.late_unscheduled += 1;
            }
        }
        let from = told.saturating_sub(AFTERMATH * evidence.ttl);
        let is_struck = evidence.blows.iter().any(|blow| {
            let keeps_out = evidence.is_file && blow.kind == Kind::Stop && blow.from <= told && from <= blow.to;
            keeps_out || blow.reaches(&lease.worker, lease.group, from, told)
        });
        if !is_struck {
            let starved = stalls.starved(&lease.worker, told.saturating_sub(evidence.ttl), told);
            let is_starved = starved > evidence.ttl / 12;
            *(if is_starved { &mut self.starved } else { &mut self.false_losses }) += 1;
        }
    }

    /// A holder that was struck and did not give the lock back, and whoever came next.
    fn takeovers(&mut self, evidence: &Evidence, leases: &[Lease]) {
        for pair in leases.windows(2) {
            let [old, new] = pair else { continue };
            if new.token == old.token || old.releasing.is_some_and(|at| at < new.granted) {
                continue;
            }
            let strikes = |blow: &&Blow| {
                let is_his = blow.target == Target::Worker(old.worker.clone());
                is_his && (old.granted..old.until).contains(&blow.from) && blow.from < new.granted
            };
            let Some(blow) = evidence.blows.iter().filter(strikes).max_by_key(|blow| blow.from) else { continue };
            let hinders = |other: &Blow| {
                !matches!(other.target, Target::Worker(_)) && other.reaches("", new.group, blow.from, new.granted)
            };
            if evidence.blows.iter().any(hinders) {
                self.hindered += 1;
            } else {
                self.takeovers.push((new.granted - blow.from) as f64 / evidence.ttl as f64);
            }
        }
        self.takeovers.sort_by(f64::total_cmp);
    }
}

fn duplicates(leases: &[Lease]) -> u64 {
    leases.windows(2).filter(|pair| pair[0].token == pair[1].token).count() as u64
}

/// A worker that stands still between the grant and its stamp looks late, so only this is certain: who asks after
/// somebody has a token gets a higher one.
fn falling(leases: &[Lease]) -> u64 {
    let mut by_asking: Vec<&Lease> = leases.iter().collect();
    by_asking.sort_by_key(|lease| lease.asked);
    let mut by_grant: Vec<&Lease> = leases.iter().collect();
    by_grant.sort_by_key(|lease| lease.granted);
    let mut granted = by_grant.into_iter().peekable();
    let (mut highest, mut falling) = (0, 0);
    for lease in by_asking {
        while let Some(earlier) = granted.next_if(|earlier| earlier.granted < lease.asked) {
            highest = highest.max(earlier.token);
        }
        falling += u64::from(lease.token < highest);
    }
    falling
}

/// Pairs of leases that were believed in at one instant. Each counts from when its holder knew of it to when it would not
/// have believed any more, even if it was asked then.
fn overlaps(leases: &[Lease]) -> Vec<String> {
    let mut by_grant: Vec<&Lease> = leases.iter().filter(|lease| lease.granted < lease.ends()).collect();
    by_grant.sort_by_key(|lease| lease.granted);
    let mut found = Vec::new();
    let mut longest: Option<&Lease> = None;
    for lease in by_grant {
        if let Some(other) = longest.filter(|other| lease.granted < other.ends()) {
            let ms = (other.ends().min(lease.ends()) - lease.granted) as f64 / 1e6;
            found.push(format!(
                "{} with token {} and {} with token {} both believed for {ms:.1} ms",
                other.worker, other.token, lease.worker, lease.token
            ));
        }
        if longest.is_none_or(|other| other.ends() < lease.ends()) {
            longest = Some(lease);
        }
    }
    found
}

type Span = (u64, u64);

/// When workers did not run.
struct Stalls<'a> {
    /// They were stopped.
    stopped: BTreeMap<&'a str, Vec<Span>>,
    /// Their watch was not woken, though nobody had stopped them.
    starved: BTreeMap<&'a str, Vec<Span>>,
}

impl<'a> Stalls<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let mut stopped: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for blow in &evidence.blows {
            if let (Kind::Stop, Target::Worker(name)) = (blow.kind, &blow.target) {
                stopped.entry(name).or_default().push((blow.from, blow.to));
            }
        }
        stopped.values_mut().for_each(|stops| stops.sort_unstable());
        let mut starved: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for book in &evidence.books {
            let stops = stopped.get(book.worker.as_str()).map(Vec::as_slice).unwrap_or_default();
            for entry in &book.entries {
                if let What::Stalled { from } = entry.what {
                    starved.entry(&book.worker).or_default().extend(without((from, entry.at), stops));
                }
            }
        }
        Self { stopped, starved }
    }

    /// Whether somebody had stopped the worker for some of the time between these instants.
    fn is_stopped(&self, worker: &str, from: u64, to: u64) -> bool {
        self.stopped.get(worker).is_some_and(|stops| stops.iter().any(|stop| stop.0 <= to && from <= stop.1))
    }

    /// For how long the worker did not run between these instants though nobody had stopped it.
    fn starved(&self, worker: &str, from: u64, to: u64) -> u64 {
        let spans = self.starved.get(worker).into_iter().flatten();
        spans.map(|(start, end)| (*end).min(to).saturating_sub((*start).max(from))).sum()
    }

    /// The longest that nobody had ordered.
    fn longest(&self) -> u64 {
        self.starved.values().flatten().map(|(from, to)| to - from).max().unwrap_or(0)
    }
}

/// What is left of a span outside of others, which are in order.
fn without((mut from, to): Span, others: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    for (start, end) in others.iter().filter(|(start, _)| *start < to) {
        if from < *start {
            left.push((from, *start));
        }
        from = from.max(*end);
    }
    if from < to {
        left.push((from, to));
    }
    left
}

/// For how long a store goes on with a lease that its holder does not believe in any more.
pub fn margin(ttl: Duration) -> u64 {
    let start = leasehold_core::Monotonic::from_ns(0);
    let Ok(ttl_of_core) = leasehold_core::config::Ttl::new(ttl) else { return 0 };
    let deadline = leasehold_core::time::deadline_of(start, ttl_of_core, leasehold_core::config::Drift::default());
    u64::try_from((ttl - deadline.since(start)).as_nanos()).unwrap_or_default()
}
