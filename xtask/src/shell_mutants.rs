//! Small changes of the shell, one at a time, made by cargo-mutants: each has to fail a test.
//!
//! All of them together take days, so a run takes one shard of each group. The day chooses it, and successive days cover
//! different shards. Survivors that do no harm are listed in `.cargo/mutants.toml`, each with its reason.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use crate::run::{self, Failure, Result};
use crate::setup;
use crate::steps::Steps;

/// The number of the shard to run, instead of the day's.
const SHARD: &str = "LEASEHOLD_SHARD";
/// The names of the groups to run, instead of all.
const ONLY: &str = "LEASEHOLD_GROUPS";

/// Source files that the same tests cover. No Rust test sees `python/src` and `node/src`.
struct Group {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// The arguments of nextest for them.
    tests: &'static [&'static str],
    /// The most that a shard may take, and its size: a change takes less than a minute on two cores.
    minutes: usize,
}

const CLIENT: &str = "leasehold";
/// Its tests are those of the client, which have stores and processes.
const FENCE: &str = "leasehold-fence";
const COMMAND: &str = "leasehold-cli";
const ONE_PROCESS: &[&str] = &["--lib", "--test=embedded", "-E=not test(/^(aws|quorum|transport|url)::/)"];

/// Two hours in all.
const GROUPS: [Group; 9] = [
    Group {
        name: "driver",
        package: CLIENT,
        files: &["client/src/driver/**", "client/src/host/**"],
        tests: &["--lib", "--test=embedded", "--test=quorum", "-E=not test(/^(aws|transport|url)::/)"],
        minutes: 20,
    },
    Group {
        name: "locks",
        package: CLIENT,
        files: &["client/src/*.rs", "client/src/host/fork/**", "client/src/groups/shards/**"],
        tests: ONE_PROCESS,
        minutes: 20,
    },
    Group {
        name: "fence",
        package: FENCE,
        files: &["client/fence/src/**"],
        tests: &["--test=embedded", "--test=redis", "--test=fence_postgres", "-E=test(fence) | binary(fence_postgres)"],
        minutes: 10,
    },
    Group {
        name: "sqlite",
        package: CLIENT,
        files: &["client/src/transport/*.rs", "client/src/transport/sqlite/**"],
        tests: &["--lib", "--test=embedded", "-E=not test(/^(aws|quorum|url)::/)"],
        minutes: 15,
    },
    Group {
        name: "redis",
        package: CLIENT,
        files: &["client/src/transport/redis/**"],
        tests: &["--lib", "--test=redis", "--test=quorum", "-E=binary(redis) | binary(quorum) | test(redis)"],
        minutes: 15,
    },
    Group {
        name: "quorum",
        package: CLIENT,
        files: &["client/src/quorum/**"],
        tests: &["--lib", "--test=quorum", "-E=binary(quorum) | test(quorum)"],
        minutes: 10,
    },
    Group {
        name: "settings",
        package: CLIENT,
        files: &[
            "client/src/aws/**",
            "client/src/transport/credentials/**",
            "client/src/transport/dynamodb/credentials/**",
            "client/src/transport/http/**",
            "client/src/transport/objects/auth/**",
            "client/src/url/**",
        ],
        tests: &[
            "--lib",
            "-E=test(/^(aws|url|transport::credentials|transport::dynamodb|transport::http|transport::objects)::/)",
        ],
        minutes: 10,
    },
    Group {
        name: "exec",
        package: COMMAND,
        files: &["cli/src/exec/**"],
        tests: &["--lib", "--bins", "--test=lock", "--test=loss", "--test=signals", "--test=terminal"],
        minutes: 10,
    },
    Group {
        name: "command",
        package: COMMAND,
        files: &["cli/src/*.rs"],
        tests: &["--lib", "--bins", "--test=answers", "--test=arguments", "--test=lock", "--test=quorum"],
        minutes: 10,
    },
];

pub fn run(steps: &mut Steps) -> Result {
    setup::subcommand(steps, "mutants")?;
    let target = run::target()?.join("shell-mutants");
    let turn = turn()?;
    let only = env::var(ONLY).ok();
    let is_chosen = |group: &&Group| only.as_ref().is_none_or(|names| names.split(',').any(|name| name == group.name));
    let (mut rows, mut survivors) = (Vec::new(), String::new());
    for group in GROUPS.iter().filter(is_chosen) {
        let (row, survived) = steps.timed(&format!("small changes, {}", group.name), || group.run(&target, turn))?;
        rows.push(row);
        survivors += &survived;
    }
    println!("\n{}", rows.join("\n"));
    if survivors.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "no test notices these changes; each needs a test, or a line with its reason in .cargo/mutants.toml\n{survivors}"
    )))
}

impl Group {
    /// Runs one shard: its figures, and its survivors.
    fn run(&self, target: &Path, turn: usize) -> Result<(String, String)> {
        let mut list = self.command();
        list.arg("--list");
        let all = run::told("the list of small changes", list)?.lines().count();
        let shards = all.div_ceil(self.minutes).max(1);
        let shard = format!("{}/{shards}", turn % shards);
        println!("shard {shard} of {all} changes; to repeat it: {SHARD}={} {ONLY}={}", turn % shards, self.name);

        let output = target.join(self.name);
        let _ = fs::remove_dir_all(&output);
        let status = self
            .shard(&shard, target, &output)
            .status()
            .map_err(|error| Failure::new(format!("cannot run cargo-mutants with timeout (coreutils): {error}")))?;
        // 2 and 3: some survived or hung. 124: the time is over.
        if !matches!(status.code(), Some(0 | 2 | 3 | 124)) {
            return Err(Failure::new(format!("cargo-mutants ended with {status}; see {}", output.display())));
        }
        let of = |name: &str| fs::read_to_string(output.join("mutants.out").join(name)).unwrap_or_default();
        let survived = of("missed.txt");
        let [caught, hung, unviable] =
            ["caught.txt", "timeout.txt", "unviable.txt"].map(|name| of(name).lines().count());
        let survivors = survived.lines().count();
        if caught + hung + unviable + survivors == 0 {
            return Err(Failure::new(format!("no change was tried within {} minutes", self.minutes)));
        }
        let figures = format!("{caught} caught, {hung} hung, {unviable} do not compile, {survivors} survived");
        Ok((format!("{:9} shard {shard} of {all}: {figures}", self.name), survived))
    }

    /// cargo-mutants, for these files.
    fn command(&self) -> Command {
        // The results so far are in its files.
        let mut mutants = Command::new("timeout");
        mutants.args(["--foreground", "--signal=INT", &format!("{}m", self.minutes), "cargo", "mutants"]);
        mutants.current_dir(run::root()).args(["-p", self.package, "--colors", "never"]);
        mutants.args(self.files.iter().flat_map(|file| ["--file", file]));
        run::forget_package(&mut mutants);
        mutants
    }

    fn shard(&self, shard: &str, target: &Path, output: &Path) -> Command {
        let mut mutants = self.command();
        if self.package == FENCE {
            mutants.args(["--test-package", CLIENT]);
        }
        mutants.args(["--shard", shard, "--sharding", "round-robin", "--shuffle", "--test-tool", "nextest"]);
        // Dependencies are compiled once: a cap of lints would do it again for each group.
        mutants.args(["--profile", "ci", "--cap-lints", "false", "--features", "leasehold/metrics", "-C=--locked"]);
        mutants.args(["--timeout", "120", "--build-timeout", "900"]).arg("--output").arg(output);
        // For all commands of Cargo, since the one that builds would build all tests else.
        mutants.args(self.tests.iter().map(|test| format!("-C={test}")));
        // Most tests sleep. One that fails by itself catches nothing.
        mutants.args(["--", "--test-threads=6"]).env("NEXTEST_RETRIES", "1");
        // When its time is over, it needs no stack trace to say so.
        mutants.env("RUST_LIB_BACKTRACE", "0");
        mutants.env("CARGO_TARGET_DIR", target.join("build"));
        mutants.envs([("CARGO_PROFILE_CI_INCREMENTAL", "true"), ("CARGO_PROFILE_CI_DEBUG", "0")]);
        mutants
    }
}

/// The number that chooses the shard: a new one every day, unless one is given.
fn turn() -> Result<usize> {
    match env::var(SHARD) {
        Ok(number) => number.parse().map_err(|_| Failure::new(format!("{SHARD} is `{number}`, and not a number"))),
        Err(_) => {
            let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
            Ok(usize::try_from(days).unwrap_or(0))
        }
    }
}
