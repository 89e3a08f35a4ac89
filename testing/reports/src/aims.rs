//! The limits of what a lock may cost, beside what the last runs have measured.

use crate::pictures::amount;
use crate::record::{Figure, Record, significant};
use crate::svg::times;
use std::fmt::Write;

const OURS: &str = "leasehold";
/// The measure of many pairs at once, which people know as a rate.
const OVERALL: &str = "time per pair, overall";

/// The most that a figure may be, or the least.
enum Limit {
    /// The cost, as a multiple of the peer's.
    Cost(f64),
    /// Pairs in a second, as a multiple of the peer's.
    Rate(f64),
    /// The value itself, in the unit of the figure.
    Value(f64),
}

use Limit::{Cost, Rate, Value};

/// A figure that has a limit: a title, the benchmark, the language, the case, the measure, ours, and a peer.
struct Aim(&'static str, [&'static str; 5], Option<&'static str>, Limit);

/// A kind of figure: the benchmark, the language, the case, the measure, and the name that ours has there.
const fn of(name: [&'static str; 4]) -> [&'static str; 5] {
    let [benchmark, language, case, measure] = name;
    [benchmark, language, case, measure, OURS]
}

const AIMS: [Aim; 23] = [
    Aim("Rust, one at a time", of(["redis", "Rust", "one client, async", "p50"]), Some("rslock"), Cost(1.05)),
    Aim(
        "Rust, 64 tasks, two threads",
        of(["redis", "Rust", "64 tasks on two threads", OVERALL]),
        Some("rslock"),
        Rate(1.0),
    ),
    Aim(
        "Rust, 64 tasks, one thread",
        of(["redis", "Rust", "64 tasks on one thread", OVERALL]),
        Some("rslock"),
        Rate(0.9),
    ),
    Aim("Python, one at a time", of(["python", "Python", "without asyncio", "p50"]), Some("redis-py Lock"), Cost(0.8)),
    Aim(
        "asyncio, one at a time",
        ["python", "Python", "asyncio, 1 task", "p50", "leasehold.aio"],
        Some("redis-py Lock"),
        Cost(0.8),
    ),
    Aim(
        "asyncio, 64 tasks",
        ["python", "Python", "asyncio, 64 tasks", OVERALL, "leasehold.aio"],
        Some("redis-py Lock"),
        Rate(8.0),
    ),
    Aim("Node, one at a time", of(["node", "Node", "one at a time", "p50"]), Some("redlock"), Cost(0.95)),
    Aim("Node, 64 at a time", of(["node", "Node", "64 at a time", OVERALL]), Some("redlock"), Rate(2.5)),
    Aim("quorum of 5, Rust", of(["quorum", "Rust", "one client, async", "p50"]), Some("rslock"), Cost(1.05)),
    Aim("quorum of 5, Node", of(["node", "Node", "quorum of 5", "p50"]), Some("redlock"), Cost(1.1)),
    Aim(
        "4 processes, one key: commands of a hand-over",
        of(["redis", "Rust", "8 workers want one lock, in 4 processes", "commands"]),
        Some("rslock"),
        Value(12.0),
    ),
    Aim(
        "4 processes, one key for 1 ms: hand-over",
        of(["redis", "Rust", "4 workers want one lock for 1 ms without pauses, in 4 processes", "hand-over p50"]),
        Some("BLPOP"),
        Cost(1.5),
    ),
    Aim(
        "4 processes, one key for 1 ms: locks per second",
        of([
            "redis",
            "Rust",
            "4 workers want one lock for 1 ms without pauses, in 4 processes",
            "time per lock, overall",
        ]),
        Some("BLPOP"),
        Rate(0.93),
    ),
    Aim(
        "CPU of Redis, 64 tasks",
        of(["redis", "Rust", "64 tasks on one thread", "CPU in Redis"]),
        Some("rslock"),
        Value(4.0),
    ),
    Aim("DynamoDB Local", of(["dynamodb", "Rust", "one client, async", "p50"]), Some("two bare writes"), Cost(1.15)),
    Aim("PostgreSQL", of(["postgres", "Rust", "one client, async", "p50"]), Some("two bare statements"), Cost(1.15)),
    Aim("etcd", of(["etcd", "Rust", "one client, async", "p50"]), Some("two bare txns"), Cost(1.15)),
    Aim("S3", of(["objects", "Rust", "one client, async", "p50"]), Some("two bare writes"), Cost(1.15)),
    Aim(
        "core alone, acquire, renew and release",
        of(["core", "Rust", "acquire, renew and release", "time"]),
        None,
        Value(2.0),
    ),
    Aim("core alone, allocations", of(["core", "Rust", "acquire, renew and release", "allocations"]), None, Value(4.0)),
    Aim("Python package", of(["python", "Python", "installed", "size"]), Some("redis"), Value(6.0)),
    Aim("Node package", of(["node", "Node", "installed", "size"]), Some("redlock"), Value(6.0)),
    Aim("component", of(["component", "WebAssembly", "the component", "size"]), None, Value(0.4)),
];

/// All aims as a table in Markdown; what was not measured has no figure.
pub fn table(record: &Record) -> String {
    let mut text = "| | peer | leasehold | aim | now | | measured |\n|---|---:|---:|---:|---:|---|---|\n".to_owned();
    for Aim(title, name, peer, limit) in &AIMS {
        let [benchmark, .., who] = *name;
        let run = record.of(benchmark);
        let figures = run.map_or(&[][..], |run| &run.figures);
        let ours = find(figures, name, who);
        let theirs = peer.and_then(|peer| find(figures, name, peer));
        let peer = theirs.map_or_else(|| "-".to_owned(), |figure| format!("{} {}", figure.who, shown(figure)));
        let (aim, now) = (limit.text(), ours.and_then(|ours| limit.now(ours, theirs)));
        let (now, verdict) = match now {
            Some(now) => (limit.value(now), if limit.is_met(now) { "met" } else { "missed" }),
            None => ("-".to_owned(), "not measured"),
        };
        let date = run.filter(|_| ours.is_some()).map_or("-", |run| &run.facts.date);
        let ours = ours.map_or_else(|| "-".to_owned(), shown);
        let _ = writeln!(text, "| {title} | {peer} | {ours} | {aim} | {now} | {verdict} | {date} |");
    }
    text
}

fn find<'a>(figures: &'a [Figure], [_, language, case, measure, _]: &[&str; 5], who: &str) -> Option<&'a Figure> {
    let names = [*language, *case, *measure, who];
    figures.iter().find(|figure| [&figure.language, &figure.case, &figure.measure, &figure.who] == names)
}

/// The value, as a rate where many pairs were under way.
fn shown(figure: &Figure) -> String {
    match (figure.measure.as_str(), figure.unit.as_str()) {
        (OVERALL, "us") => format!("{:.0}/s", 1e6 / figure.value),
        _ => amount(figure),
    }
}

impl Limit {
    /// The number that the limit is for, if everything is there that it depends on.
    fn now(&self, ours: &Figure, theirs: Option<&Figure>) -> Option<f64> {
        match self {
            Value(_) => Some(ours.value),
            Cost(_) => cost(ours, theirs?),
            Rate(_) => cost(ours, theirs?).map(f64::recip),
        }
    }

    fn is_met(&self, now: f64) -> bool {
        match self {
            Cost(most) | Value(most) => now <= *most,
            Rate(least) => now >= *least,
        }
    }

    fn text(&self) -> String {
        match self {
            Cost(most) | Value(most) => format!("at most {}", self.value(*most)),
            Rate(least) => format!("at least {}", self.value(*least)),
        }
    }

    fn value(&self, number: f64) -> String {
        match self {
            Cost(_) | Rate(_) => times(number),
            Value(_) => significant(number, 3),
        }
    }
}

/// Through the base that both were held against in turns, if there is one.
fn cost(ours: &Figure, theirs: &Figure) -> Option<f64> {
    let ratio = match (&ours.beside, &theirs.beside) {
        (Some(ours), Some(theirs)) if ours.base == theirs.base => ours.ratio / theirs.ratio,
        (_, _) => ours.value / theirs.value,
    };
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::SAMPLE;

    fn row(figures: &str, title: &str) -> String {
        let text = SAMPLE.replace("| one client |", "| one client, async |") + figures;
        let table = table(&Record::read(&text).expect("the sample is fine"));
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with(&format!("| {title} |"))).collect();
        let [row] = rows[..] else { panic!("one row: {rows:?}") };
        row.to_owned()
    }

    #[test]
    fn a_cost_is_held_against_the_peer_of_the_same_turns() {
        let row = row("", "Rust, one at a time");
        assert_eq!(row, "| Rust, one at a time | rslock 162 µs | 97.5 µs | at most 1.05× | 0.6× | met | 2026-01-02 |");
    }

    #[test]
    fn many_at_once_are_a_rate() {
        let case = "figure | Rust | 64 tasks on one thread | time per pair, overall | us";
        let figures = format!("{case} | rslock | 10 | 1 | rslock\n{case} | leasehold | 20 | 2 | rslock\n");
        let row = row(&figures, "Rust, 64 tasks, one thread");
        assert!(row.ends_with("| rslock 100000/s | 50000/s | at least 0.9× | 0.5× | missed | 2026-01-02 |"), "{row}");
    }

    #[test]
    fn what_was_not_measured_meets_no_aim() {
        assert!(row("", "component").ends_with("| - | - | at most 0.4 | - | not measured | - |"));
    }

    #[test]
    fn every_aim_names_a_benchmark_that_exists() {
        let known = crate::benchmarks::ALL;
        assert!(AIMS.iter().all(|Aim(_, [benchmark, ..], ..)| known.contains(benchmark)));
    }
}
