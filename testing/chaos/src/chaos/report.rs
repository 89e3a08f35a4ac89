//! What a run came to, for people and for machines.

use leasehold_bench::figures;
use serde_json::{Value, json};

use super::blows::Kind;
use super::check::{Deeds, Findings};
use super::run::{Outcome, counts};

/// A column: its head, its name for machines, and its figure.
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
    ("untold", "untold", |found| found.untold),
    ("late", "late", |found| found.late.len() as u64),
    ("late*", "late_stopped", |found| found.late_stopped),
    ("late**", "late_starved", |found| found.late_starved),
    ("false", "false_losses", |found| found.false_losses),
];

const LEGEND: &str = "\
no lock, lock, guard   updates lost on the counter without a lock, with the lock alone, and past the guard
refused                late writes and claims that the guard kept out
overlaps, twice, fell  two holders who believed at once; tokens given out twice; tokens below an earlier one
revived, refused valid leases that were valid after their loss was known; that the guard refused and that were valid
losses, untold         leases lost before they were given back; how often a worker waited in vain to be told
late, late*, late**    told, or not told when the process was killed, so late that the store could have given the lease
                       away while the process ran; *: it was stopped then; **: the machine may not have let it run
false                  lost though nothing had been done to the holder, its store or its way there
takeover               from the stop or kill of a holder to the next grant, in ttl, where no fault of a store or a way
                       came between; whoever is stopped in a transaction of a SQLite file keeps all others waiting
";

/// The percentile of sorted values; `None` of nothing.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64).round() as usize).copied()
}

/// A row for each arena.
pub fn table(results: &[(Outcome, Findings)]) -> String {
    let heads = COLUMNS.iter().map(|(head, ..)| *head).chain(["takeover p50", "p99", "of"]);
    let mut rows = vec![std::iter::once("").chain(heads).map(str::to_owned).collect::<Vec<_>>()];
    for (outcome, found) in results {
        let mut row = vec![outcome.arena.name().to_owned()];
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

/// What was done in an arena, and what else there is to know.
pub fn story(outcome: &Outcome, found: &Findings) -> String {
    let ms = |ns: u64| ns as f64 / 1e6;
    let failures: Vec<String> = found.failures.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let mut text = format!("{:9} {}\n", outcome.arena.name(), blows(outcome).join(", "));
    let mut add = |line: String| text.push_str(&format!("{:9} {line}\n", ""));
    if !failures.is_empty() {
        add(format!("errors that passed: {}", failures.join(", ")));
    }
    if found.hindered + found.starved > 0 {
        add(format!(
            "{} takeovers with a fault in their way; {} losses where the machine let nobody run",
            found.hindered, found.starved
        ));
    }
    add(format!(
        "nobody waited for an answer for longer than {:.0} ms in which it ran; the machine woke nobody for {:.0} ms at most",
        ms(found.longest_wait),
        ms(found.longest_stall)
    ));
    let never: Vec<&str> = never(outcome).map(Kind::title).collect();
    if !never.is_empty() {
        add(format!("never happened: {}", never.join(", ")));
    }
    if found.refused == 0 {
        add("the guard had nothing to refuse, so it was not tried".to_owned());
    }
    let deeds = found
        .deeds
        .iter()
        .map(|(worker, Deeds { grants, renewals, writes })| format!("{worker} {grants} {renewals} {writes}"));
    add(format!("grants, renewals, guarded writes: {}", deeds.collect::<Vec<_>>().join(", ")));
    if let Some(why) = &outcome.no_network {
        add(format!("no network was cut: {why}"));
    }
    let words = [&found.overlaps, &found.revived, &found.late, &found.stuck];
    words.into_iter().flat_map(|words| words.iter().take(5)).for_each(|what| add(what.clone()));
    text
}

/// What could have been done, and was not.
fn never(outcome: &Outcome) -> impl Iterator<Item = Kind> {
    let counts = counts(&outcome.evidence.blows);
    let can_cut = outcome.no_network.is_none();
    let kinds = outcome.arena.kinds().into_iter().filter(move |kind| can_cut || *kind != Kind::Cut);
    kinds.filter(move |kind| !counts.contains_key(kind))
}

/// Such as `worker killed 7`, the most frequent first.
pub fn blows(outcome: &Outcome) -> Vec<String> {
    let mut counts: Vec<(Kind, u64)> = counts(&outcome.evidence.blows).into_iter().collect();
    counts.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    counts.iter().map(|(kind, count)| format!("{} {count}", kind.title())).collect()
}

/// The same for machines.
pub fn json(results: &[(Outcome, Findings)], seed: u64) -> Value {
    let arena = |(outcome, found): &(Outcome, Findings)| {
        let mut figures: serde_json::Map<String, Value> =
            COLUMNS.iter().map(|(_, name, figure)| ((*name).to_owned(), figure(found).into())).collect();
        let blows: serde_json::Map<String, Value> = counts(&outcome.evidence.blows)
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
            "deeds": found.deeds.iter().map(|(worker, Deeds { grants, renewals, writes })| {
                (worker.clone(), json!({ "grants": grants, "renewals": renewals, "guarded_writes": writes }))
            }).collect::<serde_json::Map<_, _>>(),
            "errors": found.failures,
            "blows": blows,
            "never": never(outcome).map(Kind::title).collect::<Vec<_>>(),
            "no_network": outcome.no_network,
            "broken": found.broken(),
            "doubtful": found.doubtful(),
        });
        if let Value::Object(more) = more {
            figures.extend(more);
        }
        (outcome.arena.name().to_owned(), Value::Object(figures))
    };
    json!({ "seed": seed, "arenas": results.iter().map(arena).collect::<serde_json::Map<_, _>>() })
}
