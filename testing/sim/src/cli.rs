//! The simulator as a command: seeds in, a verdict out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_core::trace;

use crate::campaign::{self, Extent, First, Outcome};
use crate::clock::TrueTime;
use crate::counts::{Counts, Sometimes, Struck};
use crate::fault_schedule::FaultSchedule;
use crate::promise::Promise;
use crate::script::Script;
use crate::shrink;
use crate::swarm::{Broken, Family, Lot};
use crate::timeline::Timeline;
use crate::trial::{self, Trial};
use crate::{page, text, world};

/// The help text.
pub const HELP: &str = "\
Runs the real core in a simulated world of faults, and checks every promise.

  --seeds A..B     these seeds (0..10000)
  --seed N         one seed
  --minutes M      one seed after the other, for so long
  --from SEED      where --minutes begins (0)
  --script FILE    a script instead of a seed
  --quorum         worlds of 3 or 5 nodes; a seed means another world there than without. Not with --script or
                   --broken, which say themselves how many nodes there are
  --broken NAME    break an assumption on purpose: rates, server-clock, wiped, evicted, suspend, stale-now, marks,
                   in a quorum majority, undurable; or all
  --first          stop at the first seed that fails, and say no more than what it broke
  --html FILE      draw the run (of one seed, of a script, or of the first failure, made small)
  --text           write the run down as lines
  --out FOLDER     where scripts and pages of failures go (target/sim)

Every seed runs twice and must agree. The status is 1 when a promise was broken; 2 when the arguments make no sense, or
a file cannot be read or written.
";

/// The arguments.
#[derive(Debug)]
pub struct Args {
    what: What,
    broken: Option<Vec<Broken>>,
    family: Family,
    first: bool,
    html: Option<PathBuf>,
    text: bool,
    out: PathBuf,
}

#[derive(Debug)]
enum What {
    Many(Extent),
    Seed(u64),
    Script(PathBuf),
    Help,
}

impl Args {
    /// Reads the arguments.
    ///
    /// # Errors
    /// An argument that makes no sense, with the ones that would.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = args.into_iter();
        let mut from = None;
        let mut parsed = Self {
            what: What::Many(Extent::Seeds(0, 10_000)),
            broken: None,
            family: Family::Store,
            first: false,
            html: None,
            text: false,
            out: "target/sim".into(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match &*arg {
                "--seed" => parsed.what = What::Seed(number(&arg, &value()?)?),
                "--seeds" => {
                    let range = value()?;
                    let (first, end) =
                        range.split_once("..").ok_or_else(|| not(&arg, &range, "a range such as 0..500"))?;
                    let (first, end) = (number(&arg, first)?, number(&arg, end)?);
                    if first >= end {
                        return Err(not(&arg, &range, "a range that holds a seed; its end is not part of it"));
                    }
                    parsed.what = What::Many(Extent::Seeds(first, end));
                }
                "--minutes" => {
                    let minutes = value()?;
                    let time = minutes.parse().ok().filter(|minutes: &f64| *minutes > 0.0 && *minutes < 10_000.0);
                    let time = time.ok_or_else(|| not(&arg, &minutes, "a number of minutes above 0"))?;
                    parsed.what = What::Many(Extent::Time { from: 0, time: Duration::from_secs_f64(time * 60.0) });
                }
                "--from" => from = Some(number(&arg, &value()?)?),
                "--script" => parsed.what = What::Script(value()?.into()),
                "--broken" => {
                    let name = value()?;
                    let all: Vec<Broken> =
                        Broken::ALL.into_iter().filter(|b| name == "all" || b.name() == name).collect();
                    if all.is_empty() {
                        let names: Vec<_> = Broken::ALL.into_iter().map(Broken::name).collect();
                        return Err(not(&arg, &name, &format!("one of {}, all", names.join(", "))));
                    }
                    parsed.broken = Some(all);
                }
                "--quorum" => parsed.family = Family::Quorum,
                "--first" => parsed.first = true,
                "--html" => parsed.html = Some(value()?.into()),
                "--text" => parsed.text = true,
                "--out" => parsed.out = value()?.into(),
                "--help" | "-h" => parsed.what = What::Help,
                _ => return Err(format!("there is no option `{arg}`")),
            }
        }
        match (&mut parsed.what, from) {
            (_, None) | (What::Help, Some(_)) => {}
            (What::Many(Extent::Time { from: begins, .. }), Some(seed)) => *begins = seed,
            (What::Many(Extent::Seeds(..)) | What::Seed(_) | What::Script(_), Some(_)) => {
                return Err("--from goes with --minutes".into());
            }
        }
        let decides = match (&parsed.what, &parsed.broken) {
            (What::Script(_), _) => Some("a script"),
            (What::Many(_) | What::Seed(_), Some(_)) => Some("--broken"),
            (What::Many(_) | What::Seed(_), None) | (What::Help, _) => None,
        };
        if let (Family::Quorum, Some(decides)) = (parsed.family, decides) {
            return Err(format!("--quorum goes with seeds; {decides} says itself how many nodes there are"));
        }
        if parsed.first && (parsed.broken.is_some() || !matches!(parsed.what, What::Many(Extent::Seeds(..)))) {
            return Err("--first goes with --seeds, and with nothing broken on purpose".into());
        }
        Ok(parsed)
    }
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| not(option, text, "a whole number"))
}

fn not(option: &str, given: &str, wanted: &str) -> String {
    format!("{option}: `{given}` is not {wanted}")
}

/// Runs the command, and writes the verdict to `say`. Returns true if every promise was kept.
///
/// # Errors
/// A file that cannot be read, or cannot be written although every promise was kept.
pub fn run(args: &Args, commit: &str, say: &mut dyn FnMut(&str)) -> Result<bool, String> {
    match &args.what {
        What::Help => {
            say(HELP);
            Ok(true)
        }
        What::Seed(seed) => {
            let lots: Vec<_> = args.broken.iter().flatten().copied().map(Lot::Broken).collect();
            let lots = if lots.is_empty() { vec![Lot::Kept(args.family)] } else { lots };
            let mut kept = true;
            for lot in lots {
                kept &= one(args, &trial::seed(*seed, lot), commit, say)?;
            }
            Ok(kept)
        }
        What::Script(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let script = Script::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            one(args, &trial::script(&script), commit, say)
        }
        What::Many(Extent::Seeds(begin, end)) if args.first => Ok(first(*begin, *end, args.family, say)),
        What::Many(extent) => match &args.broken {
            None => Ok(many(args, *extent, commit, say)),
            Some(broken) => Ok(hunt(args, *extent, broken, commit, say)),
        },
    }
}

fn one(args: &Args, trial: &Trial, commit: &str, say: &mut dyn FnMut(&str)) -> Result<bool, String> {
    say(&format!("{} at commit {commit}\n\n{}", trial.script.name, table(&trial.counts)));
    if args.text {
        let timeline = timeline_of(&trial.script, commit);
        say(&format!("\n{}", text::render(&timeline, TrueTime(0), TrueTime::FAR)));
    }
    for violation in &trial.expected {
        say(&format!("expected, since an assumption was broken: {}\n", words(violation)));
    }
    for violation in &trial.broken {
        say(&format!("BROKEN {}\n", words(violation)));
    }
    if trial.differed {
        say("BROKEN the second run differed from the first\n");
    }
    if let Some(path) = &args.html {
        match write(path, &page::render(&timeline_of(&trial.script, commit))) {
            Ok(()) => say(&format!("the picture is in {}\n", path.display())),
            Err(error) if trial.passed() => return Err(error),
            Err(error) => say(&format!("error: {error}\n")),
        }
    }
    Ok(trial.passed())
}

fn many(args: &Args, extent: Extent, commit: &str, say: &mut dyn FnMut(&str)) -> bool {
    let outcome = campaign::run(extent, Lot::Kept(args.family));
    say(&format!("{} seeds, each run twice, at commit {commit}\n\n{}\n", outcome.seeds, table(&outcome.counts)));
    if !outcome.failures.is_empty() {
        told(args, &outcome, commit, say);
        return false;
    }
    let (taken, open): (Vec<_>, Vec<_>) = trace::rows().into_iter().partition(|(_, times)| *times > 0);
    let open: Vec<_> = open.into_iter().map(|(row, _)| row).collect();
    let all = taken.len() + open.len();
    say(&format!("{} of the lease machine's {all} rows were taken; not {}\n", taken.len(), open.join(", ")));
    if outcome.forgot > 0 {
        let fell = |(promise, seed): &(Promise, u64)| format!("{} in seed {seed}", promise.code());
        let fallen: Vec<_> = outcome.expected.iter().map(fell).collect();
        say(&format!(
            "In {} of them nodes forgot the tokens of a lock while clocks on the wall were off, which was not judged from \
             then on; what fell: {}\n",
            outcome.forgot,
            if fallen.is_empty() { "nothing".to_owned() } else { fallen.join(", ") }
        ));
    }
    say("No promise was broken.\n");
    if let Some(missing) = never_seen(args.family, outcome.seeds, &outcome.counts) {
        say(&format!("BROKEN these runs prove too little; never seen: {missing}\n"));
        return false;
    }
    true
}

/// Seeds of which each kind of event and of fault must have come up.
const fn enough(family: Family) -> u64 {
    match family {
        Family::Store => 5_000,
        Family::Quorum => 1_500,
    }
}

/// The things that as many runs should have reached and have not.
fn never_seen(family: Family, seeds: u64, counts: &Counts) -> Option<String> {
    let due =
        |what: &&Sometimes| !what.needs_a_broken_assumption() && what.happens_in(family) && counts.seen(**what) == 0;
    let struck =
        |fault: &&Struck| !fault.breaks_an_assumption() && fault.strikes(family) && counts.struck(**fault) == 0;
    let missing = Sometimes::ALL.iter().filter(due).map(|what| what.words());
    let missing: Vec<_> = missing.chain(Struck::ALL.iter().filter(struck).map(|fault| fault.words())).collect();
    (seeds >= enough(family) && !missing.is_empty()).then(|| missing.join(", "))
}

/// Writes one line, for a run with a deliberate bug in the core. Returns true if every promise was kept.
fn first(begin: u64, end: u64, family: Family, say: &mut dyn FnMut(&str)) -> bool {
    let seeds = end - begin;
    let (what, after) = match campaign::first(begin, end, Lot::Kept(family)) {
        Ok(counts) => match never_seen(family, seeds, &counts) {
            Some(missing) => (format!("never seen: {missing}"), seeds),
            None => {
                say(&format!("kept: {seeds} seeds\n"));
                return true;
            }
        },
        Err(First { seed, trial }) => {
            let what = match trial.as_ref().map(|trial| trial.broken.first()) {
                Some(Some(violation)) => format!("{} {}", violation.promise.code(), violation.promise.words()),
                Some(None) => "the second run differed".into(),
                None => "a panic".into(),
            };
            (format!("{what}, seed {seed}"), seed - begin + 1)
        }
    };
    say(&format!("caught: {what}, after {after} seeds\n"));
    false
}

/// Seeds after which a counterexample that exists should have been found.
const HUNT: u64 = 3_000;

fn hunt(args: &Args, extent: Extent, all: &[Broken], commit: &str, say: &mut dyn FnMut(&str)) -> bool {
    let extent = match extent {
        Extent::Seeds(first, end) => Extent::Seeds(first, end.min(first.saturating_add(HUNT))),
        time @ Extent::Time { .. } => time,
    };
    let mut passed = true;
    for broken in all {
        let outcome = campaign::run(extent, Lot::Broken(*broken));
        if !outcome.failures.is_empty() {
            told(args, &outcome, commit, say);
            passed = false;
        }
        let falls = broken.fells();
        match outcome.expected.iter().find(|(promise, _)| *promise == falls) {
            Some((_, seed)) => say(&format!(
                "{:32} {} seeds: {} falls, as it must, in seed {seed}; every promise that does not rest on it holds\n",
                broken.words(),
                outcome.seeds,
                falls.code()
            )),
            None => {
                say(&format!("BROKEN {}: {} seeds, and no counterexample\n", broken.words(), outcome.seeds));
                passed = false;
            }
        }
    }
    passed
}

/// Reports failures. The first is shrunk and saved as a script and a page.
fn told(args: &Args, outcome: &Outcome, commit: &str, say: &mut dyn FnMut(&str)) {
    for trial in &outcome.failures {
        match trial.broken.first() {
            Some(violation) => say(&format!("BROKEN in {}: {}\n", trial.script.name, words(violation))),
            None => say(&format!("BROKEN in {}: the second run differed\n", trial.script.name)),
        }
    }
    let Some((trial, violation)) = outcome.failures.iter().find_map(|trial| Some((trial, trial.broken.first()?)))
    else {
        return;
    };
    let mut small = shrink::shrink(&trial.script, violation.promise);
    small.name = format!("{}, made small", trial.script.name);
    let timeline = timeline_of(&small, commit);
    say(&format!("\n{} made small:\n{}\n", trial.script.name, text::render(&timeline, TrueTime(0), TrueTime::FAR)));
    let name = trial.script.name.replace(' ', "-");
    let script = args.out.join(format!("{name}.json"));
    let html = args.html.clone().unwrap_or_else(|| args.out.join(format!("{name}.html")));
    let written = write(&script, &small.to_json()).and_then(|()| write(&html, &page::render(&timeline)));
    say(&match written {
        Ok(()) => format!("look at it:  {}\nrun it again: --script {}\n", html.display(), script.display()),
        Err(error) => format!("error: {error}\n"),
    });
}

/// A run, written down.
pub fn timeline_of(script: &Script, commit: &str) -> Timeline {
    let report = world::run(script, FaultSchedule::written(script), true);
    let mut timeline = report.timeline.unwrap_or_default();
    commit.clone_into(&mut timeline.commit);
    timeline.facts.push(("requests".into(), report.counts.requests.to_string()));
    timeline
}

fn words(violation: &crate::promise::Violation) -> String {
    let promise = violation.promise;
    let at = text::seconds(violation.at_ns);
    format!("{} ({}) at {at} s: {}", promise.code(), promise.words(), violation.text)
}

fn table(counts: &Counts) -> String {
    let mut text = String::new();
    let faults = Struck::ALL.iter().map(|what| (what.words(), counts.struck(*what))).filter(|(_, n)| *n > 0);
    let seen = Sometimes::ALL.iter().map(|what| (what.words(), counts.seen(*what)));
    let (faults, seen): (Vec<_>, Vec<_>) = (faults.collect(), seen.collect());
    let _ = writeln!(text, "  {:30} {:>10}    {:30} {:>10}", "faults", "struck", "sometimes", "seen");
    for n in 0..faults.len().max(seen.len()) {
        let cell = |cells: &[(&str, u64)]| match cells.get(n) {
            Some((words, count)) => format!("{words:30} {count:>10}"),
            None => " ".repeat(41),
        };
        let _ = writeln!(text, "  {}    {}", cell(&faults), cell(&seen));
    }
    let _ = writeln!(
        text,
        "  {} steps, {} requests, {} s of true time",
        counts.steps,
        counts.requests,
        counts.time_ms / 1000
    );
    text
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn bad_arguments_are_reported_with_a_hint() {
        for (line, part) in [
            ("--seed", "needs a value"),
            ("--seed x", "`x` is not a whole number"),
            ("--seeds 5", "a range such as"),
            ("--seeds 5..5", "holds a seed"),
            ("--minutes 0", "above 0"),
            ("--minutes 1 --from x", "`x` is not a whole number"),
            ("--from 5", "goes with --minutes"),
            ("--seed 5 --from 5", "goes with --minutes"),
            ("--broken nothing", "rates, server-clock"),
            ("--loud", "no option `--loud`"),
            ("--first --minutes 1", "goes with --seeds"),
            ("--first --broken wiped", "nothing broken on purpose"),
            ("--quorum --broken majority", "--broken says itself how many nodes"),
            ("--seed 5 --broken all --quorum", "--broken says itself how many nodes"),
            ("--quorum --script some.json", "a script says itself how many nodes"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn timed_run_begins_at_the_named_seed() {
        for (line, first) in [("--minutes 2", 0), ("--minutes 2 --from 7", 7), ("--from 7 --minutes 2", 7)] {
            let what = parse(line).expect(line).what;
            let What::Many(Extent::Time { from, time }) = what else { panic!("{line}: {what:?}") };
            assert_eq!((from, time), (first, Duration::from_secs(120)), "{line}");
        }
    }

    #[test]
    fn unreadable_script_is_an_error() {
        let missing = run(&parse("--script no/such/file.json").unwrap(), "abc", &mut |_| {});
        assert!(missing.unwrap_err().starts_with("no/such/file.json: "));
    }

    #[test]
    fn success_is_reported_in_one_line() {
        let mut said = String::new();
        let kept = run(&parse("--seeds 5..9 --first").unwrap(), "abc", &mut |text| said.push_str(text));
        assert_eq!((kept, said.as_str()), (Ok(true), "kept: 4 seeds\n"));
    }

    #[test]
    fn seed_and_its_script_agree() {
        let mut said = String::new();
        let kept = run(&parse("--seed 3").unwrap(), "abc", &mut |text| said.push_str(text));
        assert_eq!(kept, Ok(true));
        assert!(said.contains("seed 3 at commit abc") && said.contains("granted"), "{said}");
    }
}
