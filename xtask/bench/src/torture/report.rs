//! What the processes tell, what it comes to, and how it is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Mode;
use crate::figures;
use crate::protected::Logged;

/// What the processes tell, and what is done to them.
#[derive(Default)]
pub struct Tally {
    /// The process that was granted the lock last, unless it has told that its lease is over.
    holder: Option<(u64, Instant)>,
    /// For how long the processes held the lock, as far as they told.
    pub held: Duration,
    /// By fencing token: whether the lease was released.
    grants: BTreeMap<u64, bool>,
    refused_writes: u64,
    refused_claims: u64,
    leases_lost: u64,
    /// Refused although the lease said that it was good: two holders at once.
    overlaps: u64,
    store_errors: u64,
}

impl Tally {
    /// A line of the process with this number.
    pub fn hear(&mut self, who: u64, line: &str) {
        let (what, token) = line.split_once(' ').unwrap_or((line, ""));
        if what == "granted" {
            self.is_over();
            self.holder = Some((who, Instant::now()));
        } else {
            self.is_gone(who);
        }
        match (what, token.parse()) {
            ("granted", Ok(token)) => drop(self.grants.insert(token, false)),
            ("released", Ok(token)) => drop(self.grants.insert(token, true)),
            ("write-refused", _) => self.refused_writes += 1,
            ("claim-refused", _) => self.refused_claims += 1,
            ("lost", _) => self.leases_lost += 1,
            ("overlap", _) => self.overlaps += 1,
            _ => self.store_errors += 1,
        }
    }

    /// The process that is believed to hold the lock.
    pub fn holder(&self) -> Option<u64> {
        self.holder.map(|(who, _)| who)
    }

    /// The process holds nothing any more.
    pub fn is_gone(&mut self, who: u64) {
        if self.holder() == Some(who) {
            self.is_over();
        }
    }

    /// Nobody holds anything any more.
    pub fn is_over(&mut self) {
        if let Some((_, since)) = self.holder.take() {
            self.held += since.elapsed();
        }
    }

    /// Grants that followed a lease which was not released.
    fn takeovers(&self) -> u64 {
        let abandoned = self.grants.values().filter(|released| !**released).count() as u64;
        let last_is_open = self.grants.last_key_value().is_some_and(|(_, released)| !released);
        abandoned - u64::from(last_is_open)
    }
}

/// What a mode came to.
#[derive(Default)]
pub struct Report {
    pub(super) increments: u64,
    pub(super) lost: i64,
    pub(super) tally: Tally,
    pub(super) stops: u64,
    pub(super) kills: u64,
    pub(super) disorder: Disorder,
    /// Between two increments.
    pub(super) longest_gap: Duration,
    /// From the first process to the last.
    pub(super) time: Duration,
    pub(super) held: Duration,
}

impl Report {
    fn held_percent(&self) -> i64 {
        (100.0 * self.held.as_secs_f64() / self.time.as_secs_f64().max(f64::EPSILON)).round() as i64
    }

    /// How many updates were lost.
    pub fn lost(&self) -> i64 {
        self.lost
    }

    /// What a lock with a guard must not let happen, in words.
    pub fn broken(&self) -> Vec<String> {
        let Disorder { falling, twice } = self.disorder;
        let mut broken = Vec::new();
        if self.increments == 0 {
            broken.push("nothing was written".to_owned());
        }
        if self.lost != 0 {
            broken.push(format!("{} updates are lost", self.lost));
        }
        if self.tally.overlaps != 0 {
            broken.push(format!("{} times a lease was good while a later one was out", self.tally.overlaps));
        }
        if falling + twice != 0 {
            broken.push(format!("{falling} tokens fell, {twice} were given out twice"));
        }
        broken
    }
}

/// What fencing tokens of accepted writes must never do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Writes with a lower token than the one before.
    falling: u64,
    /// Tokens that served two leases.
    twice: u64,
}

impl Disorder {
    /// Of the accepted writes, in order.
    pub fn of(log: &[Logged]) -> Self {
        let falling = log.windows(2).filter(|pair| pair[1].token < pair[0].token).count() as u64;
        let mut leases: BTreeMap<u64, BTreeSet<(&str, i64)>> = BTreeMap::new();
        for entry in log {
            if let Some(token) = entry.token {
                leases.entry(token).or_default().insert((&entry.writer, entry.lease));
            }
        }
        Self { falling, twice: leases.values().filter(|leases| leases.len() > 1).count() as u64 }
    }
}

/// A measure: its name for people, its name for machines, and whether it needs a lock to make sense.
type Measure = (&'static str, &'static str, bool, fn(&Report) -> i64);

const MEASURES: [Measure; 15] = [
    ("increments", "increments", false, |report| report.increments.cast_signed()),
    ("lost updates", "lost_updates", false, |report| report.lost),
    ("writes refused by the guard", "writes_refused", true, |report| report.tally.refused_writes.cast_signed()),
    ("claims refused by the guard", "claims_refused", true, |report| report.tally.refused_claims.cast_signed()),
    ("accepted writes with a falling token", "falling_tokens", true, |report| report.disorder.falling.cast_signed()),
    ("tokens given out twice", "duplicate_tokens", true, |report| report.disorder.twice.cast_signed()),
    ("leases", "leases", true, |report| report.tally.grants.len() as i64),
    ("leases lost", "leases_lost", true, |report| report.tally.leases_lost.cast_signed()),
    ("leases good beside a later one", "overlaps", true, |report| report.tally.overlaps.cast_signed()),
    ("takeovers", "takeovers", true, |report| report.tally.takeovers().cast_signed()),
    ("errors of the lock store", "store_errors", true, |report| report.tally.store_errors.cast_signed()),
    ("stops", "stops", false, |report| report.stops.cast_signed()),
    ("kills", "kills", false, |report| report.kills.cast_signed()),
    ("share of the time that the lock was held, %", "held_percent", true, Report::held_percent),
    ("longest gap between increments, ms", "longest_gap_ms", false, |report| report.longest_gap.as_millis() as i64),
];

/// A column for each mode.
pub fn table(reports: &[(Mode, Report)]) -> String {
    let heads = reports.iter().map(|(mode, _)| mode.title().to_owned());
    let mut rows = vec![std::iter::once(String::new()).chain(heads).collect()];
    for (name, _, of_locks, measure) in MEASURES {
        let cells = reports.iter().map(|(mode, report)| match mode {
            Mode::Bare if of_locks => "-".to_owned(),
            Mode::Bare | Mode::Locked | Mode::Guarded => measure(report).to_string(),
        });
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    figures::table(&rows)
}

/// The same for machines: an object for each mode, by its key.
pub fn json(reports: &[(Mode, Report)]) -> String {
    let modes: Vec<String> = reports
        .iter()
        .map(|(mode, report)| {
            let figures: Vec<String> =
                MEASURES.iter().map(|(_, key, _, measure)| format!("\"{key}\":{}", measure(report))).collect();
            format!("\"{}\":{{{}}}", mode.key(), figures.join(","))
        })
        .collect();
    modes.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(token: u64, writer: &str, lease: i64) -> Logged {
        Logged { token: Some(token), writer: writer.to_owned(), lease, at_ns: 0 }
    }

    #[test]
    fn tokens_that_fall_or_serve_twice_are_found() {
        let good = [write(1, "a", 1), write(1, "a", 1), write(2, "b", 1), write(3, "a", 2)];
        assert_eq!(Disorder::of(&good), Disorder::default());
        let bad = [write(1, "a", 1), write(2, "b", 1), write(1, "a", 1), write(2, "a", 2)];
        assert_eq!(Disorder::of(&bad), Disorder { falling: 1, twice: 1 });
    }

    #[test]
    fn the_guard_must_have_had_work_and_have_done_it() {
        let broken_by = |change: fn(&mut Report)| {
            let mut guarded = Report { increments: 10, ..Report::default() };
            change(&mut guarded);
            guarded.broken().len()
        };
        assert_eq!(broken_by(|_| {}), 0);
        assert_eq!(broken_by(|guarded| guarded.increments = 0), 1);
        assert_eq!(broken_by(|guarded| guarded.lost = 1), 1);
        assert_eq!(broken_by(|guarded| guarded.disorder.falling = 1), 1);
        assert_eq!(broken_by(|guarded| guarded.disorder.twice = 1), 1);
        assert_eq!(broken_by(|guarded| guarded.tally.overlaps = 1), 1);
    }

    #[test]
    fn a_takeover_follows_a_lease_that_was_not_released() {
        let mut tally = Tally::default();
        for line in ["granted 5", "released 5", "granted 7", "granted 9", "released 9", "granted 11"] {
            tally.hear(1, line);
        }
        assert_eq!(tally.takeovers(), 1, "7 was taken over by 9, and nobody has followed 11");
        assert_eq!(tally.holder(), Some(1));
        tally.is_gone(2);
        assert_eq!(tally.holder(), Some(1), "another one");
        tally.is_gone(1);
        assert_eq!(tally.holder(), None);
    }
}
