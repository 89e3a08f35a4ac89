//! The catchers of bugs: the simulator, and test suites that are asked after it.

use std::path::Path;
use std::process::Command;

use super::tree::{Ended, Tree};
use crate::run::{Failure, Result};
use crate::test;

/// Somebody who may catch a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// Seeds of the simulator, all promises checked.
    Simulator,
    /// The same in worlds of several nodes.
    Quorums,
    /// The core's own tests.
    Core,
    /// The simulator's own tests, those of its model stores among them.
    Sim,
    /// The exhaustive search.
    Model,
    /// The golden vectors.
    Vectors,
    /// The kept traces.
    Traces,
    /// The client's run loop, under a scheduler that tries interleavings.
    Races,
    /// The search of transactions.
    Transactions,
    /// The search of queues of waiters.
    Queues,
    /// The own tests of the formats of stores.
    Wire,
}

/// A bug was seen.
pub struct Catch {
    /// By what of the suite.
    pub by: String,
    /// After how many seeds, where there are any.
    pub seeds: Option<u64>,
}

/// Seeds after which the simulator has no more to say. Some bugs need most of them (`docs/deliberate-bugs.md`).
const SEEDS: u64 = 10_000;

impl Suite {
    const ALL: [Self; 11] = [
        Self::Simulator,
        Self::Core,
        Self::Sim,
        Self::Model,
        Self::Vectors,
        Self::Traces,
        Self::Quorums,
        Self::Races,
        Self::Transactions,
        Self::Queues,
        Self::Wire,
    ];
    /// For a bug that names nobody.
    pub const USUAL: [Self; 2] = [Self::Simulator, Self::Core];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Quorums => "quorums",
            Self::Core => "core",
            Self::Sim => "sim",
            Self::Model => "model",
            Self::Vectors => "vectors",
            Self::Traces => "traces",
            Self::Races => "races",
            Self::Transactions => "transactions",
            Self::Queues => "queues",
            Self::Wire => "wire",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The folder and the name of a suite that is one module of a larger program of tests.
    const fn module(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Vectors => Some(("worlds", "vectors")),
            Self::Traces => Some(("worlds", "traces")),
            Self::Transactions => Some(("models", "transactions")),
            Self::Queues => Some(("worlds", "queues")),
            Self::Simulator | Self::Quorums | Self::Core | Self::Sim | Self::Model | Self::Races | Self::Wire => None,
        }
    }

    /// Asks it about the tree as it is.
    pub fn catches(self, tree: &Tree) -> Result<Option<Catch>> {
        let (package, targets): (_, &[&str]) = match self {
            Self::Simulator => return simulate(tree, &[]),
            Self::Quorums => return simulate(tree, &["--quorum"]),
            Self::Core => ("leasehold-core", &["--lib", "--test", "behaviour"]),
            Self::Sim => ("leasehold-sim", &["--lib"]),
            Self::Wire => ("leasehold-wire", &["--lib"]),
            Self::Model => ("leasehold-sim", &["--test", "model"]),
            Self::Vectors | Self::Traces | Self::Queues => ("leasehold-sim", &["--test", "worlds"]),
            Self::Transactions => ("leasehold-sim", &["--test", "models"]),
            Self::Races => ("leasehold-concurrency", &["--test", "handoffs"]),
        };
        tree.compiles(package, targets)?;
        let mut tests = if self == Self::Races { test::races() } else { test::packages() };
        if self != Self::Races {
            tests.args(["-p", package]).args(targets);
        }
        if let Some((_, module)) = self.module() {
            tests.args(["-E", &format!("test(/^{module}::/)")]);
        }
        // What fails by chance must not be tried first against the next bug.
        tests.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        let (ended, said) = tree.run(tests)?;
        match ended {
            Ended::Well => Ok(None),
            // What does not even link has caught nothing.
            Ended::Badly(status) => match first_failure(&said) {
                Some(test) => Ok(Some(Catch { by: test.to_owned(), seeds: None })),
                None => Err(Failure::new(format!("{} ended with {status}, and named no test\n{said}", self.name()))),
            },
            Ended::Never => Ok(Some(Catch { by: "a test that never ends".into(), seeds: None })),
        }
    }
}

fn simulate(tree: &Tree, worlds: &[&str]) -> Result<Option<Catch>> {
    tree.compiles("leasehold-sim", &["--bin", "leasehold-sim"])?;
    let mut command = Command::new(tree.built().join("leasehold-sim"));
    command.args(["--first", "--seeds", &format!("0..{SEEDS}")]).args(worlds);
    let (ended, said) = tree.run(command)?;
    match ended {
        Ended::Well => Ok(None),
        Ended::Never => Ok(Some(Catch { by: "a run that never ends".into(), seeds: None })),
        Ended::Badly(status) => match said.lines().find_map(verdict) {
            Some(catch) => Ok(Some(catch)),
            None => Err(Failure::new(format!("the simulator ended with {status}, and told no verdict\n{said}"))),
        },
    }
}

/// Reads `caught: I1 one holder at a time, seed 12, after 13 seeds`.
fn verdict(line: &str) -> Option<Catch> {
    let (by, after) = line.strip_prefix("caught: ")?.rsplit_once(", after ")?;
    let seeds = after.strip_suffix(" seeds")?.parse().ok()?;
    // The seed is one less than how many there were.
    let by = by.rsplit_once(", seed ").map_or(by, |(by, _)| by);
    Some(Catch { by: by.to_owned(), seeds: Some(seeds) })
}

/// The name of the first test that failed, as either test runner tells it.
fn first_failure(said: &str) -> Option<&str> {
    said.lines().map(str::trim).find_map(|line| {
        // `SIGABRT [   0.1s] …`, and `SIG 24 [   0.1s] …` where it knows no name.
        let status = line.split_once(" [").map_or("", |(status, _)| status);
        let by_nextest = ["FAIL", "TIMEOUT", "ABORT"].contains(&status) || status.starts_with("SIG");
        let by_cargo = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
        by_cargo.or_else(|| line.split_whitespace().next_back().filter(|_| by_nextest))
    })
}

/// Tells if the module of a suite is there.
pub fn exists(suite: Suite, root: &Path) -> bool {
    suite.module().is_none_or(|(folder, module)| {
        root.join("testing/sim/tests").join(folder).join(module).with_extension("rs").exists()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_of_the_simulator_is_understood() {
        let catch = verdict("caught: I1 one holder at a time, seed 12, after 13 seeds").expect("a verdict");
        assert_eq!((catch.by.as_str(), catch.seeds), ("I1 one holder at a time", Some(13)));
        let catch = verdict("caught: never seen: expiring, after 5000 seeds").expect("a verdict");
        assert_eq!((catch.by.as_str(), catch.seeds), ("never seen: expiring", Some(5000)));
        assert!(verdict("kept: 5000 seeds").is_none());
    }

    #[test]
    fn every_suite_is_there() {
        let gone: Vec<_> =
            Suite::ALL.into_iter().filter(|suite| !exists(*suite, &crate::run::root())).map(Suite::name).collect();
        assert_eq!(gone, [""; 0]);
    }

    #[test]
    fn the_first_failed_test_is_named() {
        let nextest = "  PASS [   0.004s] leasehold-core a\n  FAIL [   0.010s] leasehold-core::behaviour renewal::b\n";
        assert_eq!(first_failure(nextest), Some("renewal::b"));
        let nextest = "  TIMEOUT [ 180.004s] (3/9) leasehold-core lease::c\n";
        assert_eq!(first_failure(nextest), Some("lease::c"));
        for status in ["SIGSEGV", "SIGKILL", "SIG 24"] {
            let nextest = format!("  {status} [ 600.004s] (3/9) leasehold-core lease::c\n");
            assert_eq!(first_failure(&nextest), Some("lease::c"), "{status}");
        }
        assert_eq!(first_failure("test fence::d ... ok\ntest fence::e ... FAILED\n"), Some("fence::e"));
        assert_eq!(first_failure("  PASS [   0.004s] leasehold-core FAIL\n"), None);
    }
}
