//! Which figures are drawn, and what is said about them.

use crate::record::{Beside, Facts, Figure, Record, Run, significant};
use crate::svg::{Group, Picture, Row};

/// The title of a benchmark, and what it measures.
pub struct About {
    pub benchmark: &'static str,
    pub title: &'static str,
    pub what: &'static str,
}

const ABOUT: [About; 15] = [
    About {
        benchmark: "core",
        title: "The protocol alone",
        what: "What the state machine costs, without a clock, a store or a socket. Allocations and bytes are exact.",
    },
    About {
        benchmark: "sqlite",
        title: "On a SQLite file",
        what: "Acquire and release in one file, beside a bare loop of the same two transactions.",
    },
    About {
        benchmark: "redis",
        title: "On Redis, in Rust",
        what: "Acquire and release, beside the two commands that nobody can do without and beside rslock; waiting, \
               holding and taking over.",
    },
    About {
        benchmark: "quorum",
        title: "On a quorum of five Redis servers",
        what: "Acquire and release, beside five bare commands at once and beside two libraries that follow Redlock.",
    },
    About {
        benchmark: "dynamodb",
        title: "On DynamoDB Local",
        what: "Acquire and release, beside two bare conditional writes; requests, and the units of capacity that they \
               consume.",
    },
    About {
        benchmark: "postgres",
        title: "On PostgreSQL",
        what: "Acquire and release, beside two bare statements on the same driver and beside advisory locks; hand-over \
               between processes, and what holding costs.",
    },
    About {
        benchmark: "etcd",
        title: "On etcd",
        what: "Acquire and release, beside two bare transactions on the same HTTP client and beside the locks of etcd; \
               hand-over between processes, and what holding costs.",
    },
    About {
        benchmark: "objects",
        title: "On S3",
        what: "Acquire and release on the S3 of moto, beside two bare conditional writes on the same HTTP client.",
    },
    About {
        benchmark: "instructions",
        title: "Instructions and allocations",
        what: "One acquire, renewal and release on Redis, counted by Valgrind in the client and in the server, beside bare \
               commands and rslock.",
    },
    About {
        benchmark: "serve",
        title: "Through the daemon",
        what: "Acquire and release over HTTP from `leasehold serve`, beside the client in the same process.",
    },
    About {
        benchmark: "admin",
        title: "Looking and steering",
        what: "A list of all locks by one process, with its time and memory, and the time from a revoke until the lock is \
               free, beside the ttl.",
    },
    About {
        benchmark: "cas",
        title: "Compare-and-set beside a lock",
        what: "An increment of one item on one Redis by several writers, without a lock and under one.",
    },
    About {
        benchmark: "component",
        title: "The component in its hosts",
        what: "Acquire and release by the protocol as WebAssembly, with answers that are made up: no network.",
    },
    About {
        benchmark: "python",
        title: "In Python, on Redis",
        what: "Acquire and release beside two commands on a socket, written by hand, and beside other libraries.",
    },
    About {
        benchmark: "node",
        title: "In Node, on Redis",
        what: "Acquire and release beside SET and DEL over ioredis, and beside other libraries.",
    },
];

/// In the table, but not in a picture: made of chance on any machine but a quiet one, or of little interest.
const TABLE_ONLY: [&str; 2] = ["p99", "lost"];

/// A language of which every host is ours.
const COMPONENT: &str = "WebAssembly";

pub const OVERVIEW_TITLE: &str = "What a lock costs";
const OVERVIEW_WHAT: &str = "One acquire and one release, median, as a multiple of the least that anybody can do by hand \
                             on the same store. Shorter is better.";
/// Store, benchmark, language, case, measure.
pub const OVERVIEW: [[&str; 5]; 9] = [
    ["SQLite file, Rust", "sqlite", "Rust", "1 process", "p50"],
    ["Redis, Rust", "redis", "Rust", "one client, async", "p50"],
    ["Redis, Python", "python", "Python", "without asyncio", "p50"],
    ["Redis, Node", "node", "Node", "one at a time", "p50"],
    ["Quorum of five Redis servers, Rust", "quorum", "Rust", "one client, async", "p50"],
    ["DynamoDB Local, Rust", "dynamodb", "Rust", "one client, async", "p50"],
    ["PostgreSQL, Rust", "postgres", "Rust", "one client, async", "p50"],
    ["etcd, Rust", "etcd", "Rust", "one client, async", "p50"],
    ["S3 of moto, Rust", "objects", "Rust", "one client, async", "p50"],
];
/// Faces for users of other libraries: of interest beside these, and not at first sight.
const COMPATIBLE: &str = "leasehold.compat";

pub fn about(benchmark: &str) -> &'static About {
    ABOUT.iter().find(|about| about.benchmark == benchmark).unwrap_or(&ABOUT[0])
}

/// All pictures, with the names of their files.
pub fn all(record: &Record) -> Vec<(String, Picture)> {
    let each = record.runs.iter().map(|run| (format!("{}.svg", run.benchmark), of_run(run)));
    std::iter::once(("overview.svg".to_owned(), overview(record))).chain(each).collect()
}

fn overview(record: &Record) -> Picture {
    let mut picture =
        Picture { title: OVERVIEW_TITLE.to_owned(), subtitle: OVERVIEW_WHAT.to_owned(), ..Picture::default() };
    let mut runs: Vec<&Run> = Vec::new();
    for [title, benchmark, language, case, measure] in OVERVIEW {
        let Some(run) = record.of(benchmark) else { continue };
        let is_there =
            |figure: &&Figure| figure.language == language && figure.case == case && figure.measure == measure;
        let figures: Vec<&Figure> = run.figures.iter().filter(is_there).collect();
        let group = group(title.to_owned(), &figures, &run.facts);
        picture.groups.extend(group.map(|mut group| {
            group.rows.retain(|row| !row.who.replace('/', ".").starts_with(COMPATIBLE));
            group
        }));
        runs.push(run);
    }
    picture.foot = foot(&runs.iter().map(|run| &run.facts).collect::<Vec<_>>(), true);
    picture
}

fn of_run(run: &Run) -> Picture {
    let about = about(&run.benchmark);
    let mut picture = Picture { title: about.title.to_owned(), subtitle: about.what.to_owned(), ..Picture::default() };
    let drawn = run.figures.iter().filter(|figure| !TABLE_ONLY.contains(&figure.measure.as_str()));
    let mut seen: Vec<&Figure> = Vec::new();
    for figure in drawn {
        if figure.beside.is_none() {
            let name = if figure.who == "leasehold" { String::new() } else { format!("{}, ", figure.who) };
            let (what, how_much) = (format!("{name}{}", figure.case), format!("{} {}", figure.measure, amount(figure)));
            match picture.numbers.iter_mut().find(|(known, _)| *known == what) {
                Some((_, known)) => known.push_str(&format!(" · {how_much}")),
                None => picture.numbers.push((what, how_much)),
            }
        } else if !seen.iter().any(|other| other.goes_with(figure)) {
            let title = format!("{}: {}", figure.case, figure.measure);
            let together: Vec<&Figure> = run.figures.iter().filter(|other| other.goes_with(figure)).collect();
            picture.groups.extend(group(title, &together, &run.facts));
            seen.push(figure);
        }
    }
    if !picture.groups.is_empty() {
        picture.subtitle.push_str(" As multiples of the cost of what stands at 1×; shorter is better.");
    }
    picture.foot = foot(&[&run.facts], !picture.groups.is_empty());
    picture
}

/// All but the base, which is where the line is; ours first. `None` where nothing is held against it.
fn group(title: String, figures: &[&Figure], facts: &Facts) -> Option<Group> {
    let base = figures.iter().find(|figure| figure.is_base())?;
    // Where others had the processors, how long it took says nothing.
    let absolute = |figure: &Figure| if facts.are_calm() { format!(", {}", amount(figure)) } else { String::new() };
    let mut rows: Vec<Row> = figures
        .iter()
        .filter(|figure| !figure.is_base())
        .filter_map(|figure| {
            let Beside { ratio, .. } = figure.beside.as_ref()?;
            let is_ours = figure.who.starts_with("leasehold") || figure.language == COMPONENT;
            Some(Row { who: figure.who.clone(), ratio: *ratio, value: absolute(figure), is_ours })
        })
        .collect();
    rows.sort_by_key(|row| !row.is_ours);
    (!rows.is_empty()).then(|| Group { title, base: format!("{}{}", base.who, absolute(base)), rows })
}

/// The value with its unit.
pub fn amount(figure: &Figure) -> String {
    with_unit(&significant(figure.value, 3), &figure.unit)
}

/// A number as people write it: lines of figures are plain ASCII.
pub fn with_unit(value: &str, unit: &str) -> String {
    match unit {
        "1" => value.to_owned(),
        "us" => format!("{value} µs"),
        unit => format!("{value} {unit}"),
    }
}

/// When and where, and how far to believe it.
fn foot(facts: &[&Facts], has_ratios: bool) -> String {
    let mut places: Vec<String> =
        facts.iter().map(|facts| format!("{}, {} cores of {}", facts.date, facts.cores, facts.processor)).collect();
    places.sort();
    places.dedup();
    let mut foot = format!("{}.", places.join("; "));
    if facts.iter().any(|facts| facts.is_quick) {
        foot.push_str(" From short runs.");
    }
    if facts.iter().any(|facts| !facts.are_calm()) {
        foot.push_str(" The machine was busy with other work: ");
        foot.push_str(if has_ratios {
            "only the ratios mean something, and these roughly."
        } else {
            "its times mean little."
        });
    }
    foot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::SAMPLE;

    fn redis(text: &str) -> Picture {
        of_run(&Record::read(text).expect("the sample is fine").runs[0])
    }

    #[test]
    fn the_base_is_where_the_line_is_and_no_bar() {
        let picture = redis(SAMPLE);
        let [group] = &picture.groups[..] else { panic!("one group: {picture:?}") };
        assert_eq!((group.title.as_str(), group.base.as_str()), ("one client: p50", "bare commands, 81.2 µs"));
        let rows = group.rows.iter().map(|row| (row.who.as_str(), row.ratio, row.value.as_str(), row.is_ours));
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows, [("leasehold", 1.2, ", 97.5 µs", true), ("rslock", 2.0, ", 162 µs", false)]);
    }

    #[test]
    fn ours_comes_first() {
        let mut lines: Vec<&str> = SAMPLE.lines().collect();
        lines.swap(16, 17);
        let rows = redis(&lines.join("\n")).groups.remove(0).rows;
        assert_eq!(rows.iter().map(|row| row.who.as_str()).collect::<Vec<_>>(), ["leasehold", "rslock"]);
    }

    #[test]
    fn a_figure_without_a_peer_is_a_number() {
        let more = "figure | Rust | 1000 leases | renewals | 1 | leasehold | 300 | - | -\n";
        let numbers = redis(&format!("{SAMPLE}{more}")).numbers;
        assert_eq!(numbers, [("1000 leases".to_owned(), "memory 1034 bytes · renewals 300".to_owned())]);
    }

    #[test]
    fn a_busy_machine_tells_ratios_only() {
        let picture = redis(&SAMPLE.replace("others | 0.0", "others | 30.0"));
        assert_eq!(picture.groups[0].base, "bare commands");
        assert!(picture.foot.ends_with("these roughly."), "{}", picture.foot);
        assert!(!redis(SAMPLE).foot.contains("roughly"));
    }

    #[test]
    fn a_short_run_is_called_one() {
        assert!(redis(&SAMPLE.replace("| full", "| quick")).foot.ends_with("From short runs."));
        assert!(!redis(SAMPLE).foot.contains("short"));
    }

    #[test]
    fn what_was_not_measured_is_not_in_the_overview() {
        let record = Record::read(&SAMPLE.replace("| one client |", "| one client, async |")).expect("fine");
        let titles: Vec<_> = overview(&record).groups.into_iter().map(|group| group.title).collect();
        assert_eq!(titles, ["Redis, Rust"]);
    }

    #[test]
    fn every_benchmark_has_a_title() {
        let described: Vec<_> = ABOUT.iter().map(|about| about.benchmark).collect();
        assert_eq!(described, crate::benchmarks::ALL);
    }
}
