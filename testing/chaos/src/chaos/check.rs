//! The checker: compares the journals with the promises.

use std::collections::BTreeMap;
use std::time::Duration;

use super::faults::{Fault, Kind, Target};
use super::guarded_counter::CounterLog;
use super::journal::{Event, Journal};
use super::pauses::{Pauses, Span};
use super::timeline::{Lease, leases};

/// The time for which workers wait for the lock, and how much longer an answer may take, in ttl.
const WAIT: u64 = 5;
const SLACK: u64 = 2;
/// The time in which a fault may still cause a loss, in ttl.
const AFTERMATH: u64 = 2;

/// The input of the checker.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The ttl of leases, in nanoseconds.
    pub ttl: u64,
    /// The time for which a store keeps a lease after its holder's deadline, in nanoseconds.
    pub margin: u64,
    /// True for a SQLite file: a worker that is stopped in a transaction blocks all others.
    pub is_file: bool,
    /// Times in which the machine did not wake a thread that slept in short steps.
    pub stalls: Vec<Span>,
    /// Instants, and the total time for which processes had waited for a processor until then, as the kernel counts it,
    /// in nanoseconds.
    pub pressure: Vec<(u64, u64)>,
    /// The journals of the workers.
    pub journals: Vec<Journal>,
    /// The injected faults.
    pub faults: Vec<Fault>,
    /// The counter without a lock.
    pub bare: CounterLog,
    /// The counter under the lock.
    pub locked: CounterLog,
    /// The counter under the lock and checked by the guard.
    pub guarded: CounterLog,
}

/// The result of the check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Grants.
    pub grants: u64,
    /// Updates that were lost without a lock, as a control.
    pub lost_bare: i64,
    /// Updates that were lost under the lock alone.
    pub lost_locked: i64,
    /// Updates that were lost although the guard had checked them.
    pub lost_guarded: i64,
    /// Writes and claims that the guard rejected.
    pub refused: u64,
    /// Tokens that were granted twice.
    pub duplicates: u64,
    /// Tokens below one that had been granted before they were asked for, and accepted writes with such a token.
    pub falling: u64,
    /// Leases that two holders believed in at the same instant, in words.
    pub overlaps: Vec<String>,
    /// Leases that were found valid after their loss was known, in words.
    pub revived: Vec<String>,
    /// Leases that were valid although the guard rejected their token.
    pub contradicted: u64,
    /// Leases that ended without a release.
    pub losses: u64,
    /// Losses that were reported, or had not been reported when the process was killed, so long after the deadline that
    /// the store could have granted the lock to another while the process ran, in words.
    pub late: Vec<String>,
    /// Late losses of a process that was stopped for all of that time, but for the clocks' margin.
    pub late_stopped: u64,
    /// Late losses of a process that the machine may have kept from running for the rest of that time.
    pub late_starved: u64,
    /// Losses that were never reported.
    pub not_notified: u64,
    /// Losses without any fault that could have caused them.
    pub false_losses: u64,
    /// Losses without a fault, but on a machine that kept the holder's process from running.
    pub starved: u64,
    /// Times from the stop or the kill of a holder to the next grant, in ttl, without another fault in between.
    pub takeovers: Vec<f64>,
    /// Takeovers during a fault of a store or a path.
    pub hindered: u64,
    /// Workers that ran, and got no answer for longer than they wanted to wait, in words.
    pub stuck: Vec<String>,
    /// The longest time for which a worker ran and waited for an answer, in nanoseconds.
    pub longest_wait: u64,
    /// The activity of each worker.
    pub activity: BTreeMap<String, Activity>,
    /// Temporary errors, by kind.
    pub failures: BTreeMap<String, u64>,
    /// The longest time for which the machine woke no thread, in nanoseconds.
    pub longest_stall: u64,
}

/// The activity of a worker. A worker that did nothing proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Leases.
    pub grants: u64,
    /// Renewals.
    pub renewals: u64,
    /// Writes that the guard accepted.
    pub writes: u64,
}

impl Activity {
    /// A kind of activity that is missing.
    pub fn missing(self) -> Option<&'static str> {
        let kinds = [(self.grants, "grant"), (self.renewals, "renewal"), (self.writes, "guarded write")];
        kinds.into_iter().find_map(|(count, what)| (count == 0).then_some(what))
    }
}

impl std::ops::AddAssign for Activity {
    fn add_assign(&mut self, other: Self) {
        self.grants += other.grants;
        self.renewals += other.renewals;
        self.writes += other.writes;
    }
}

impl Findings {
    /// Checks the evidence.
    pub fn of(evidence: &Evidence) -> Self {
        let leases = leases(&evidence.journals);
        let mut findings = Self {
            grants: leases.len() as u64,
            lost_bare: evidence.bare.lost(),
            lost_locked: evidence.locked.lost(),
            lost_guarded: evidence.guarded.lost(),
            duplicates: duplicates(&leases),
            falling: falling(&leases, evidence.ttl - evidence.margin)
                + evidence.guarded.tokens.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64,
            overlaps: overlaps(&leases),
            revived: leases.iter().filter(|lease| lease.is_revived()).map(revived).collect(),
            contradicted: leases.iter().filter(|lease| lease.is_contradicted).count() as u64,
            activity: activity(evidence, &leases),
            ..Self::default()
        };
        let pauses = Pauses::of(&evidence.faults, &evidence.stalls, &evidence.pressure);
        findings.longest_stall = pauses.longest_stall();
        // In the order of their tokens.
        let granted = leases.iter().skip(1).map(|lease| lease.granted).chain([u64::MAX]);
        for (lease, next) in leases.iter().zip(granted) {
            findings.loss(evidence, &pauses, lease, next);
        }
        for journal in &evidence.journals {
            findings.waits(evidence, &pauses, journal);
        }
        findings.takeovers(evidence, &leases);
        for entry in evidence.journals.iter().flat_map(|journal| &journal.entries) {
            match &entry.event {
                Event::Refused { .. } => findings.refused += 1,
                Event::Failed { kind } => *findings.failures.entry(kind.clone()).or_default() += 1,
                _ => {}
            }
        }
        findings
    }

    /// The broken promises, in words.
    pub fn broken(&self) -> Vec<String> {
        let counts = [
            (self.lost_guarded.unsigned_abs(), "updates were lost past the guard"),
            (self.duplicates, "tokens were granted twice"),
            (self.falling, "tokens fell"),
            (self.overlaps.len() as u64, "times two holders believed at once"),
            (self.revived.len() as u64, "leases were believed in after they were lost"),
            (self.contradicted, "leases were rejected by the guard and still valid"),
            (self.not_notified, "losses were never reported"),
        ];
        let broken = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let silent = (self.grants == 0).then(|| "the lock was never granted".to_owned());
        broken.chain(silent).collect()
    }

    /// Other failures, which may be the machine's fault, in words.
    pub fn doubtful(&self) -> Vec<String> {
        let counts = [
            (self.late.len() as u64, "losses were reported after the store could grant the lock to another"),
            (self.false_losses, "leases were lost without a reason"),
            (self.stuck.len() as u64, "times a worker waited for longer than it wanted to"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }

    /// True if the control lost no update. Such a run would not have noticed lost updates at all.
    pub fn is_blind(&self) -> bool {
        self.lost_bare == 0
    }

    fn loss(&mut self, evidence: &Evidence, pauses: &Pauses<'_>, lease: &Lease, next: u64) {
        self.not_notified += u64::from(lease.not_notified.is_some());
        // Without a watch thread, the lease was over at the latest at the next grant.
        let (end, ended) = if lease.is_watched { (lease.until, "its own deadline") } else { (next, "the next grant") };
        let notified = match (lease.notified, lease.releasing) {
            (Some(notified), _) => notified,
            // The loss had not been reported when the process was killed.
            (None, None) if lease.gone > end.saturating_add(evidence.margin) => lease.gone,
            (None, _) => return,
        };
        self.losses += 1;
        let late = notified.saturating_sub(end);
        if late > evidence.margin {
            if pauses.ran(&lease.worker, end, notified) > evidence.margin {
                let (Lease { worker, token, .. }, ms) = (lease, late as f64 / 1e6);
                let what = if lease.notified.is_some() { "was told" } else { "was killed before it was told" };
                self.late.push(format!("{worker} {what} that token {token} is lost {ms:.1} ms after {ended}"));
            } else if pauses.not_stopped(&lease.worker, end, notified) > evidence.margin {
                self.late_starved += 1;
            } else {
                self.late_stopped += 1;
            }
        }
        let from = notified.saturating_sub(AFTERMATH * evidence.ttl);
        // A reset that never happened had no effect.
        let has_hurt = |fault: &&Fault| fault.has_hit || fault.kind != Kind::Reset;
        let is_struck = evidence.faults.iter().filter(has_hurt).any(|fault| {
            let keeps_out = evidence.is_file && fault.kind == Kind::Stop && fault.from <= notified && from <= fault.to;
            keeps_out || fault.reaches(&lease.worker, lease.group, from, notified)
        });
        if !is_struck {
            let from = notified.saturating_sub(evidence.ttl);
            let is_starved =
                pauses.stalled(from, notified) > evidence.ttl / 12 || pauses.waited(from, notified) > evidence.ttl / 2;
            *(if is_starved { &mut self.starved } else { &mut self.false_losses }) += 1;
        }
    }

    /// Adds the waits of a worker.
    fn waits(&mut self, evidence: &Evidence, pauses: &Pauses<'_>, journal: &Journal) {
        let most = evidence.ttl * (WAIT + SLACK);
        let mut asked = None;
        let mut wait = |asked: Option<u64>, answered: u64| {
            let Some(asked) = asked else { return };
            let ran = pauses.ran(&journal.worker, asked, answered.max(asked));
            self.longest_wait = self.longest_wait.max(ran);
            if ran > most {
                let (worker, ms) = (&journal.worker, ran as f64 / 1e6);
                self.stuck.push(format!("{worker} had no answer for {ms:.0} ms in which it ran"));
            }
        };
        for entry in &journal.entries {
            match entry.event {
                Event::Asked => asked = Some(entry.at),
                Event::Granted { .. } | Event::Failed { .. } => wait(asked.take(), entry.at),
                _ => {}
            }
        }
        wait(asked, journal.ended);
    }

    /// Adds the takeovers: a holder that was stopped or killed, and the next grant.
    fn takeovers(&mut self, evidence: &Evidence, leases: &[Lease]) {
        for pair in leases.windows(2) {
            let [old, new] = pair else { continue };
            if new.token == old.token || old.releasing.is_some_and(|at| at < new.granted) {
                continue;
            }
            let strikes = |fault: &&Fault| {
                let is_his = fault.target == Target::Worker(old.worker.clone());
                is_his && (old.granted..old.until).contains(&fault.from) && fault.from < new.granted
            };
            let Some(fault) = evidence.faults.iter().filter(strikes).max_by_key(|fault| fault.from) else { continue };
            let hinders = |other: &Fault| {
                !matches!(other.target, Target::Worker(_)) && other.reaches("", new.group, fault.from, new.granted)
            };
            if evidence.faults.iter().any(hinders) {
                self.hindered += 1;
            } else {
                self.takeovers.push((new.granted - fault.from) as f64 / evidence.ttl as f64);
            }
        }
        self.takeovers.sort_by(f64::total_cmp);
    }
}

/// The tokens that were granted twice.
pub(crate) fn duplicates(leases: &[Lease]) -> u64 {
    leases.windows(2).filter(|pair| pair[0].token == pair[1].token).count() as u64
}

pub(crate) fn revived(lease: &Lease) -> String {
    let known = [lease.notified, lease.lost].into_iter().flatten().min().unwrap_or_default();
    let ms = lease.believed.unwrap_or_default().saturating_sub(known) as f64 / 1e6;
    format!("{} knew that token {} is lost, and it was valid {ms:.1} ms later", lease.worker, lease.token)
}

fn activity(evidence: &Evidence, leases: &[Lease]) -> BTreeMap<String, Activity> {
    let mut activity: BTreeMap<String, Activity> = BTreeMap::new();
    // Those that came to nothing as well.
    evidence.journals.iter().for_each(|journal| _ = activity.entry(journal.worker.clone()).or_default());
    let mut writers: BTreeMap<u64, &str> = BTreeMap::new();
    for lease in leases {
        writers.insert(lease.token, &lease.worker);
        let (grants, renewals) = (1, lease.renewals);
        *activity.entry(lease.worker.clone()).or_default() += Activity { grants, renewals, writes: 0 };
    }
    for writer in evidence.guarded.tokens.iter().filter_map(|token| writers.get(token)) {
        *activity.entry((*writer).to_owned()).or_default() += Activity { writes: 1, ..Activity::default() };
    }
    activity
}

/// Counts tokens that fell. A worker that is stopped between the grant and its stamp looks late, so only this is
/// certain: a worker that asks after another has a token gets a higher one. The store was not asked before `valid` of
/// the grant's end.
pub(crate) fn falling(leases: &[Lease], valid: u64) -> u64 {
    // Of a lease that was over before its stamp the end is not known.
    let end = |lease: &Lease| Some(lease.first_until).filter(|end| *end > lease.granted);
    let sent = |lease: &Lease| lease.asked.max(end(lease).map_or(0, |end| end.saturating_sub(valid)));
    let mut by_asking: Vec<&Lease> = leases.iter().collect();
    by_asking.sort_by_key(|lease| sent(lease));
    let mut by_grant: Vec<&Lease> = leases.iter().collect();
    by_grant.sort_by_key(|lease| lease.granted);
    let mut granted = by_grant.into_iter().peekable();
    let (mut highest, mut falling) = (0, 0);
    for lease in by_asking {
        while let Some(earlier) = granted.next_if(|earlier| earlier.granted < sent(lease)) {
            highest = highest.max(earlier.token);
        }
        falling += u64::from(lease.token < highest);
    }
    falling
}

/// Pairs of leases that were believed in at the same instant. A lease counts from the time when its holder knew of it
/// to its end.
pub(crate) fn overlaps(leases: &[Lease]) -> Vec<String> {
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

/// The time for which a store keeps a lease after its holder's deadline.
pub fn margin(ttl: Duration) -> u64 {
    let start = leasehold_core::Monotonic::from_ns(0);
    let Ok(ttl_of_core) = leasehold_core::config::Ttl::new(ttl) else { return 0 };
    let deadline = leasehold_core::time::deadline_of(start, ttl_of_core, leasehold_core::config::Drift::default());
    u64::try_from((ttl - deadline.since(start)).as_nanos()).unwrap_or_default()
}
