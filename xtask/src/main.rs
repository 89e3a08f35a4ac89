//! Every chore of the workspace: `cargo xtask <command>`.
//!
//! The crate has no dependencies, so it compiles in about a second and never delays what it starts.

mod bench;
mod chaos;
mod component;
mod conformance;
mod demo;
mod deny;
mod differential;
mod docs;
mod flaky;
mod fuzz;
mod go;
mod interop;
mod logs;
mod mutants;
mod named;
mod node;
mod older;
mod openapi;
mod playground;
mod programs;
mod promtool;
mod prove;
mod python;
mod release;
mod run;
mod servers;
mod setup;
mod shell_mutants;
mod sim;
mod steps;
mod test;
mod tidy;
mod valkey;
mod vectors;
mod windows;

use std::process::ExitCode;

const HELP: &str = "\
Chores of the leasehold workspace.

Usage: cargo xtask <command> [arguments]

  demo                     build, then show two workers, one lock, a stalled holder and its refused write
  demo --clouds            the same lock on DynamoDB, Azure and Google, of which one fails, and then another: on emulators
  test                     everything that must pass before a change is merged
  logs                     look once more at the output that the last `test` has left: for secrets, and for tests that
                           documents name and that have not run
  tidy                     the house rules: who imports whom, where clocks are read, how long files get
  vectors [--bless | --release]
                           whether core/vectors says what the core does; or write it again; or keep it as what this
                           version does, for all later ones to pass
  conformance [--bless]    whether docs/conformance.md says what is tested where; or write it again
  component [--check | --bless | --test]
                           the protocol as a WebAssembly component, proven to import nothing, and one that takes
                           locks by itself; or whether the packages' values of the WIT are up to date, write them
                           again, or run the components in their hosts
  playground [--test]      the protocol in a browser, as one page that needs no server; or test that page
  docs                     the documentation site: every page, references of three languages, the playground; follows
                           all links
  bench [--plot] [core|sqlite|redis|quorum|dynamodb|postgres|etcd|serve|admin|cas|component|python|node...] [--quick]
                           measure, and show what was measured last beside the aims; all benchmarks without a name.
                           With --plot the figures are kept, and drawn, in docs/benchmarks; `bench --plot --draw`
                           draws what is kept again
  interop                  install the lock libraries of other languages that tests share keys with
  go [make | pack]         make the generated part of the Go module, and test the module; or only make it; or leave the
                           modules as they are tagged
  node [pack]              build the Node package and what npm would publish, and run its tests; or only make its
                           packages for this machine, which npm installs anywhere
  openapi                  build the command, and hold `leasehold serve` against its OpenAPI document by schemathesis
  python [sdist]           build the Python package, and run its tests; or build it from its source distribution
  sim [--seed N | --seeds A..B | --minutes M [--from N]] [--html FILE]
                           the simulator: the real core under every fault, checked against every promise
  chaos [sqlite|redis|quorum|dynamodb] [--minutes M | --seconds N] [--seed S] [--json FILE] [--html FILE]
                           workers in Rust, Python, Node and Go on real stores while they, the servers and the ways to
                           them are stopped, killed and cut; counts what was lost, and draws it (60 s)
  chaos cron [STORE...] [--keys N] [--seed S]
                           eight processes start a job in each of 200 keys while they are killed and stopped: as runs
                           and under locks
  chaos http [STORE...] [--requests N] [--seed S]
                           twelve clients send 1,000 requests with an Idempotency-Key to services on FastAPI and Express,
                           in two processes each, which are killed and stopped
  chaos permits [STORE...] [--minutes M | --seconds N] [--seed S]
                           eight processes share three permits while they, the servers and the ways to them are
                           stopped, killed and cut
  chaos shards [STORE...] [--minutes M | --seconds N] [--seed S]
                           five processes that leave and join share 16 shards under the same faults, and between
                           these until the shares are even
  chaos sessions [dynamodb|etcd|azure...] [--minutes M | --seconds N] [--seed S]
                           on all these stores at once, four processes with sessions take locks that another one breaks
                           and revokes, under the same faults
  fuzz [TARGET...] [--seconds N] [--keep] [--list]
                           libFuzzer on decoders, records, urls, files and sequences of inputs (15 s each); what
                           reaches something new is kept in the repository with --keep
  mutants [NAME...] [--bless]
                           break one line at a time, in a copy, and see each bug caught; --list names them,
                           --bless writes docs/deliberate-bugs.md
  release [--check [TAG] | index URL | install | notices | portable]
                           build all that is published, as far as this machine can, use each alone, make an index of it
                           in target/release-files/index, and install from that with pip, npm and cargo; or only see
                           whether the versions agree, and everything is ready for a tag; or make the index of what is
                           built already, with npm's part served at URL; or that, and install; or write the licences of
                           what is compiled in; or build what is the same for all platforms
  prove [PART...]          before a release: test, chaos, deliberate bugs, long simulations and searches; or only some
                           of its parts: test, deny, alerts, docs, stores, valkey, next, release, upgrade, chaos,
                           programs, sim, fuzz, search, mutants, races, properties, handovers, long, shell-mutants,
                           windows
  help                     this text

Arguments after the command go to the program it runs.
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let result = match command.as_deref() {
        Some("demo") => demo::demo(&rest),
        Some("test") => none(&rest).and_then(|()| test::test()),
        Some("logs") => none(&rest).and_then(|()| test::look_again()),
        Some("tidy") => none(&rest).and_then(|()| tidy::tidy()),
        Some("vectors") => vectors::vectors(&rest),
        Some("conformance") => conformance::conformance(&rest),
        Some("component") => component::component(&rest),
        Some("go") => go::go(&rest),
        Some("interop") => none(&rest).and_then(|()| interop::interop()),
        Some("node") => node::node(&rest),
        Some("openapi") => none(&rest).and_then(|()| openapi::openapi()),
        Some("playground") => playground::playground(&rest),
        Some("python") => python::python(&rest),
        Some("docs") => none(&rest).and_then(|()| docs::docs()),
        Some("bench") => bench::bench(&rest),
        Some("chaos") => chaos::chaos(&rest),
        Some("sim") => sim::sim(&rest),
        Some("fuzz") => fuzz::fuzz(&rest),
        Some("mutants") => mutants::mutants(&rest),
        Some("release") => release::release(&rest),
        Some("prove") => prove::prove(&rest),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("error: there is no command `{other}`\n\n{HELP}");
            return ExitCode::from(2);
        }
        None => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nerror: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// For commands without arguments: a mistyped option must not pass in silence.
fn none(args: &[String]) -> run::Result {
    match args.first() {
        None => Ok(()),
        Some(first) => Err(run::Failure::new(format!("this command takes no arguments, but got `{first}`"))),
    }
}
