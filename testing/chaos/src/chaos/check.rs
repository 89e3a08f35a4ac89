//! Holds the books against the promises.

use std::collections::BTreeMap;
use std::time::Duration;

use super::blows::{Blow, Kind, Target};
use super::books::{Book, What};
use super::pauses::{Pauses, Span};
use super::timeline::{Lease, leases};
use super::vault::Ledger;

/// For how long workers wait for the lock, and how much longer an answer may take, in ttl.
const WAIT: u64 = 5;
const SLACK: u64 = 2;
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
    /// When the machine woke nobody, as somebody saw who did nothing but ask for it.
    pub stalls: Vec<Span>,
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
    /// Leases that were believed in after their loss was known, in words.
    pub revived: Vec<String>,
    /// Leases that the guard refused and that were valid all the same.
    pub contradicted: u64,
    /// Leases that ended without their holder's doing.
    pub losses: u64,
    /// Losses that were told, or had not been told when the process was killed, so long after the deadline that the store
    /// could have given the lease away while the process ran, in words.
    pub late: Vec<String>,
    /// The same where the process was stopped for all of that time but what clocks may be off.
    pub late_stopped: u64,
    /// The same where the machine may not have let it run for the rest of that time.
    pub late_starved: u64,
    /// Losses for which a worker waited in vain.
    pub untold: u64,
    /// Losses that nobody had a hand in.
    pub false_losses: u64,
    /// Losses that nobody had a hand in but the machine, which did not let the holder's process run.
    pub starved: u64,
    /// From the stop or the kill of a holder to the next grant, in ttl; where nothing else was in the way.
    pub takeovers: Vec<f64>,
    /// Takeovers with a fault of a store or a path in the way.
    pub hindered: u64,
    /// Workers who ran, and had no answer for longer than they wanted to wait, in words.
    pub stuck: Vec<String>,
    /// The longest that anybody waited for an answer while it ran, in nanoseconds.
    pub longest_wait: u64,
    /// What each worker came to.
    pub deeds: BTreeMap<String, Deeds>,
    /// Errors that pass, by kind.
    pub failures: BTreeMap<String, u64>,
    /// The longest that the machine woke nobody, in nanoseconds.
    pub longest_stall: u64,
}

/// What was seen of a worker: of one that did nothing, nothing is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Leases.
    pub grants: u64,
    /// Renewals.
    pub renewals: u64,
    /// Writes that the guard let through.
    pub writes: u64,
}

impl Deeds {
    /// What is missing.
    pub fn missing(self) -> Option<&'static str> {
        let kinds = [(self.grants, "grant"), (self.renewals, "renewal"), (self.writes, "guarded write")];
        kinds.into_iter().find_map(|(count, what)| (count == 0).then_some(what))
    }
}

impl std::ops::AddAssign for Deeds {
    fn add_assign(&mut self, other: Self) {
        self.grants += other.grants;
        self.renewals += other.renewals;
        self.writes += other.writes;
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
            falling: falling(&leases, evidence.ttl - evidence.margin)
                + evidence.guarded.tokens.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64,
            overlaps: overlaps(&leases),
            revived: leases.iter().filter(|lease| lease.is_revived()).map(revived).collect(),
            contradicted: leases.iter().filter(|lease| lease.is_contradicted).count() as u64,
            deeds: deeds(evidence, &leases),
            ..Self::default()
        };
        let pauses = Pauses::of(&evidence.blows, &evidence.stalls, &evidence.pressure);
        findings.longest_stall = pauses.longest_stall();
        // In the order of their tokens.
        let granted = leases.iter().skip(1).map(|lease| lease.granted).chain([u64::MAX]);
        for (lease, next) in leases.iter().zip(granted) {
            findings.loss(evidence, &pauses, lease, next);
        }
        for book in &evidence.books {
            findings.waits(evidence, &pauses, book);
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
            (self.revived.len() as u64, "leases were believed in after they were lost"),
            (self.contradicted, "leases were refused by the guard and still valid"),
            (self.untold, "losses were never told"),
        ];
        let broken = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let silent = (self.grants == 0).then(|| "nobody was granted the lock".to_owned());
        broken.chain(silent).collect()
    }

    /// What must not happen either, but says as much about the machine, in words.
    pub fn doubtful(&self) -> Vec<String> {
        let counts = [
            (self.late.len() as u64, "losses were told after the store could give the lease away"),
            (self.false_losses, "leases were lost without a reason"),
            (self.stuck.len() as u64, "times somebody waited for longer than it wanted to"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }

    /// Without a lock nothing was lost: such a run would not have seen it elsewhere.
    pub fn is_blind(&self) -> bool {
        self.lost_bare == 0
    }

    fn loss(&mut self, evidence: &Evidence, pauses: &Pauses<'_>, lease: &Lease, next: u64) {
        self.untold += u64::from(lease.untold.is_some());
        // Where nobody looked for renewals, it was over at the latest when somebody else was let in.
        let (end, ended) = if lease.is_watched { (lease.until, "its own deadline") } else { (next, "the next grant") };
        let told = match (lease.told, lease.releasing) {
            (Some(told), _) => told,
            // Until it was killed nobody had told it.
            (None, None) if lease.gone > end.saturating_add(evidence.margin) => lease.gone,
            (None, _) => return,
        };
        self.losses += 1;
        let late = told.saturating_sub(end);
        if late > evidence.margin {
            if pauses.ran(&lease.worker, end, told) > evidence.margin {
                let (Lease { worker, token, .. }, ms) = (lease, late as f64 / 1e6);
                let what = if lease.told.is_some() { "was told" } else { "was killed, and had not been told," };
                self.late.push(format!("{worker} {what} that token {token} is lost {ms:.1} ms after {ended}"));
            } else if pauses.not_stopped(&lease.worker, end, told) > evidence.margin {
                self.late_starved += 1;
            } else {
                self.late_stopped += 1;
            }
        }
        let from = told.saturating_sub(AFTERMATH * evidence.ttl);
        // A connection that was to be reset and was not has hurt nobody.
        let has_hurt = |blow: &&Blow| blow.has_hit || blow.kind != Kind::Reset;
        let is_struck = evidence.blows.iter().filter(has_hurt).any(|blow| {
            let keeps_out = evidence.is_file && blow.kind == Kind::Stop && blow.from <= told && from <= blow.to;
            keeps_out || blow.reaches(&lease.worker, lease.group, from, told)
        });
        if !is_struck {
            let from = told.saturating_sub(evidence.ttl);
            let is_starved =
                pauses.stalled(from, told) > evidence.ttl / 12 || pauses.waited(from, told) > evidence.ttl / 2;
            *(if is_starved { &mut self.starved } else { &mut self.false_losses }) += 1;
        }
    }

    /// What a worker asked for, and waited for longer than it wanted to.
    fn waits(&mut self, evidence: &Evidence, pauses: &Pauses<'_>, book: &Book) {
        let most = evidence.ttl * (WAIT + SLACK);
        let mut asked = None;
        let mut wait = |asked: Option<u64>, answered: u64| {
            let Some(asked) = asked else { return };
            let ran = pauses.ran(&book.worker, asked, answered.max(asked));
            self.longest_wait = self.longest_wait.max(ran);
            if ran > most {
                let (worker, ms) = (&book.worker, ran as f64 / 1e6);
                self.stuck.push(format!("{worker} had no answer for {ms:.0} ms in which it ran"));
            }
        };
        for entry in &book.entries {
            match entry.what {
                What::Asked => asked = Some(entry.at),
                What::Granted { .. } | What::Failed { .. } => wait(asked.take(), entry.at),
                _ => {}
            }
        }
        wait(asked, book.ended);
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

fn revived(lease: &Lease) -> String {
    let known = [lease.told, lease.lost].into_iter().flatten().min().unwrap_or_default();
    let ms = lease.believed.unwrap_or_default().saturating_sub(known) as f64 / 1e6;
    format!("{} knew that token {} is lost, and it was valid {ms:.1} ms later", lease.worker, lease.token)
}

fn deeds(evidence: &Evidence, leases: &[Lease]) -> BTreeMap<String, Deeds> {
    let mut deeds: BTreeMap<String, Deeds> = BTreeMap::new();
    // Those that came to nothing as well.
    evidence.books.iter().for_each(|book| _ = deeds.entry(book.worker.clone()).or_default());
    let mut writers: BTreeMap<u64, &str> = BTreeMap::new();
    for lease in leases {
        writers.insert(lease.token, &lease.worker);
        let (grants, renewals) = (1, lease.renewals);
        *deeds.entry(lease.worker.clone()).or_default() += Deeds { grants, renewals, writes: 0 };
    }
    for writer in evidence.guarded.tokens.iter().filter_map(|token| writers.get(token)) {
        *deeds.entry((*writer).to_owned()).or_default() += Deeds { writes: 1, ..Deeds::default() };
    }
    deeds
}

/// A worker that stands still between the grant and its stamp looks late, so only this is certain: who asks after
/// somebody has a token gets a higher one. The store was not asked before `valid` of the end that the grant had.
fn falling(leases: &[Lease], valid: u64) -> u64 {
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

/// For how long a store goes on with a lease that its holder does not believe in any more.
pub fn margin(ttl: Duration) -> u64 {
    let start = leasehold_core::Monotonic::from_ns(0);
    let Ok(ttl_of_core) = leasehold_core::config::Ttl::new(ttl) else { return 0 };
    let deadline = leasehold_core::time::deadline_of(start, ttl_of_core, leasehold_core::config::Drift::default());
    u64::try_from((ttl - deadline.since(start)).as_nanos()).unwrap_or_default()
}
