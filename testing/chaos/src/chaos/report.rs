//! The result of a run as text, and as JSON.

use leasehold_bench::figures;
use serde_json::{Value, json};

use super::check::{Activity, Findings};
use super::faults::Kind;
use super::run::{Outcome, counts};

/// A column: its head, its name in JSON, and its figure.
type Column = (&'static str, &'static str, fn(&Findings) -> u64);

const COLUMNS: [Column; 16] = [
    ("grants", "grants", |found| found.grants),
    ("no lock", "lost_without_lock", |found| found.lost_bare.unsigned_abs()),
    ("lock", "lost_with_lock", |found| found.lost_locked.unsigned_abs()),
    ("guard", "lost_with_guard", |found| found.lost_guarded.unsigned_abs()),
    ("refused", "refused", |found| found.refused),
    ("overlaps", "overlaps", |found| found.overlaps.len() as u64),
    ("twice", "duplicate_tokens", |found| found.duplicates),
    ("fell", "falling_tokens", |found| found.falling),
    ("revived", "revived", |found| found.revived.len() as u64),
    ("refused valid", "refused_while_valid", |found| found.contradicted),
    ("losses", "losses", |found| found.losses),
    ("unreported", "unreported", |found| found.not_notified),
    ("late", "late", |found| found.late.len() as u64),
    ("late*", "late_stopped", |found| found.late_stopped),
    ("late**", "late_starved", |found| found.late_starved),
    ("false", "false_losses", |found| found.false_losses),
];

const LEGEND: &str = "\
no lock, lock, guard   updates lost without a lock, with the lock alone, and with the guard
refused                late writes and claims that the guard rejected
overlaps, twice, fell  two holders at once; tokens granted twice; tokens below an earlier one
revived, refused valid leases that were valid after their loss was known; leases that were valid though the guard
                       rejected their token
losses, unreported     leases that ended before their release; losses that the client never reported
late, late*, late**    losses that were reported so late (or not before the process was killed) that the store could have
                       granted the lock to another while the process ran; *: while it was stopped; **: while the
                       machine may have kept it from running
false                  losses without a fault of the holder, its store or its network
takeover               from the stop or kill of a holder to the next grant, in ttl, without a fault of a store or a path
                       in between; a worker that is stopped in a SQLite transaction keeps all others waiting
";

/// The percentile of sorted values; `None` if there are none.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64).round() as usize).copied()
}

/// The table with a row for each store.
pub fn table(results: &[(Outcome, Findings)]) -> String {
    let heads = COLUMNS.iter().map(|(head, ..)| *head).chain(["takeover p50", "p99", "of"]);
    let mut rows = vec![std::iter::once("").chain(heads).map(str::to_owned).collect::<Vec<_>>()];
    for (outcome, found) in results {
        let mut row = vec![outcome.store.name().to_owned()];
        row.extend(COLUMNS.iter().map(|(_, _, figure)| figure(found).to_string()));
        row.extend([0.5, 0.99].map(|share| match percentile(&found.takeovers, share) {
            Some(ttl) => format!("{ttl:.2}"),
            None => "-".to_owned(),
        }));
        row.push(found.takeovers.len().to_string());
        rows.push(row);
    }
    format!("{}\n{LEGEND}", figures::table(&rows))
}

/// The faults that were injected in a store, and what else there is to know.
pub fn details(outcome: &Outcome, found: &Findings) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let failures: Vec<String> = found.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let mut text = format!("{:9} {}\n", outcome.store.name(), faults(outcome).join(", "));
    let mut add = |line: String| text.push_str(&format!("{:9} {line}\n", ""));
    if !failures.is_empty() {
        add(format!("errors that passed: {}", failures.join(", ")));
    }
    if found.hindered + found.starved > 0 {
        add(format!(
            "{} takeovers during another fault; {} losses while the machine kept the worker from running",
            found.hindered, found.starved
        ));
    }
    add(format!(
        "the longest wait of a running worker was {:.0} ms; the longest time in which the machine woke no thread was {:.0} ms",
        ms(found.longest_wait),
        ms(found.longest_stall)
    ));
    let never: Vec<&str> = never(outcome).map(Kind::title).collect();
    if !never.is_empty() {
        add(format!("never happened: {}", never.join(", ")));
    }
    if found.refused == 0 {
        add("the guard rejected nothing, so it was not tried".to_owned());
    }
    let activity = found
        .activity
        .iter()
        .map(|(worker, Activity { grants, renewals, writes })| format!("{worker} {grants} {renewals} {writes}"));
    add(format!("grants, renewals, guarded writes: {}", activity.collect::<Vec<_>>().join(", ")));
    if let Some(why) = &outcome.no_network {
        add(format!("no network was cut: {why}"));
    }
    let words = [&found.overlaps, &found.revived, &found.late, &found.stuck];
    words.into_iter().flat_map(|words| words.iter().take(5)).for_each(|what| add(what.clone()));
    text
}

/// The kinds of faults that were possible and never injected.
fn never(outcome: &Outcome) -> impl Iterator<Item = Kind> {
    let counts = counts(&outcome.evidence.faults);
    let can_cut = outcome.no_network.is_none();
    let kinds = outcome.store.kinds().into_iter().filter(move |kind| can_cut || *kind != Kind::Cut);
    kinds.filter(move |kind| !counts.contains_key(kind))
}

/// The counts of faults, such as `worker killed 7`, the most frequent first.
pub fn faults(outcome: &Outcome) -> Vec<String> {
    let mut counts: Vec<(Kind, u64)> = counts(&outcome.evidence.faults).into_iter().collect();
    counts.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    counts.iter().map(|(kind, count)| format!("{} {count}", kind.title())).collect()
}

/// The result as JSON.
pub fn json(results: &[(Outcome, Findings)], seed: u64) -> Value {
    let store = |(outcome, found): &(Outcome, Findings)| {
        let mut figures: serde_json::Map<String, Value> =
            COLUMNS.iter().map(|(_, name, figure)| ((*name).to_owned(), figure(found).into())).collect();
        let faults: serde_json::Map<String, Value> = counts(&outcome.evidence.faults)
            .into_iter()
            .map(|(kind, count)| (kind.title().to_owned(), count.into()))
            .collect();
        let more = json!({
            "ttl_ms": outcome.evidence.ttl / 1_000_000,
            "seconds": (outcome.span.1 - outcome.span.0) as f64 / 1e9,
            "writes": {
                "without_lock": outcome.evidence.bare.tokens.len(),
                "with_lock": outcome.evidence.locked.tokens.len(),
                "with_guard": outcome.evidence.guarded.tokens.len(),
            },
            "takeovers": found.takeovers.len(),
            "takeovers_hindered": found.hindered,
            "takeover_p50_ttl": percentile(&found.takeovers, 0.5),
            "takeover_p99_ttl": percentile(&found.takeovers, 0.99),
            "losses_starved": found.starved,
            "longest_stall_ms": found.longest_stall / 1_000_000,
            "longest_wait_ttl": found.longest_wait as f64 / outcome.evidence.ttl as f64,
            "activity": found.activity.iter().map(|(worker, Activity { grants, renewals, writes })| {
                (worker.clone(), json!({ "grants": grants, "renewals": renewals, "guarded_writes": writes }))
            }).collect::<serde_json::Map<_, _>>(),
            "errors": found.failures,
            "faults": faults,
            "never": never(outcome).map(Kind::title).collect::<Vec<_>>(),
            "no_network": outcome.no_network,
            "broken": found.broken(),
            "doubtful": found.doubtful(),
        });
        if let Value::Object(more) = more {
            figures.extend(more);
        }
        (outcome.store.name().to_owned(), Value::Object(figures))
    };
    json!({ "seed": seed, "stores": results.iter().map(store).collect::<serde_json::Map<_, _>>() })
}
