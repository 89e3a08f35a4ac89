//! The commands of the documentation, run as they stand there.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::common::{Place, Ran, wait_for};
use leasehold_servers::redis::Server;

const README: &str = include_str!("../../../README.md");
const RUNS: &str = include_str!("../../../docs/once.md");
const NODE: &str = include_str!("../../../docs/recipes-node.md");
const SERVICE: &str = include_str!("../../../docs/infra/nightly-report.service");
const TIMER: &str = include_str!("../../../docs/infra/nightly-report.timer");
const CRONJOB: &str = include_str!("../../../docs/infra/cronjob.yaml");

/// Servers in pages, and one for each here.
const SERVERS: [&str; 4] = ["redis://localhost", "redis://a", "redis://b", "redis://c"];

/// A machine on which `leasehold` and the report are installed.
struct Machine {
    place: Place,
}

impl Machine {
    fn new() -> Self {
        wait_for("a day that does not end at once", || {
            SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() % 86_400 < 86_370
        });
        Self { place: Place::new() }
    }

    fn bin(&self) -> PathBuf {
        self.place.install()
    }

    fn run(&self, line: &str) -> Ran {
        self.place.run_lines(line)
    }

    /// As a program that does not read `PATH`, from where it is installed.
    fn run_installed(&self, line: &str) -> Ran {
        self.run(&line.replace("/usr/local/bin", self.bin().to_str().unwrap()))
    }

    #[track_caller]
    fn does_it_once(&self, mut run: impl FnMut() -> Ran) {
        assert_eq!(run().expect(0).stdout, "report written\n");
        let again = run().expect(0).stdout;
        assert!(again.contains("done already"), "{again}");
    }
}

/// The lines of each block of a page that shows a terminal.
fn consoles(page: &str) -> impl Iterator<Item = &str> {
    page.split("```console\n").skip(1).map(|rest| rest.split_once("```").unwrap().0)
}

/// Each command of a block, with the output that follows it.
fn commands(block: &str) -> impl Iterator<Item = (&str, &str)> {
    let block = block.strip_prefix("$ ").expect("the block begins with a command");
    block.split("\n$ ").map(|part| part.split_once('\n').unwrap_or((part, "")))
}

/// Returns true if the output has the parts of the expected one that `...` divides, in their order. Ages of some seconds are
/// like each other.
fn is_like(output: &str, expected: &str) -> bool {
    let timeless = |text: &str| {
        // The last part has no number of seconds at its end.
        let text = format!("{}\n", text.trim_end());
        let parts = text.split(" s ago").map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()));
        parts.collect::<Vec<_>>().join(" s ago")
    };
    let (output, expected) = (timeless(output), timeless(expected));
    let parts: Vec<&str> = expected.split("...").collect();
    let [first, between @ .., last] = &parts[..] else { return output == expected };
    let Some(mut rest) = output.strip_prefix(first) else { return false };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn dots_stand_for_any_text() {
    assert!(is_like("done by a, token 7\n", "done by ..., token ...") && is_like("same\n", "same"));
    assert!(is_like("a, 12 s ago\nb, 3 s ago", "..., 0 s ago\nb, 0 s ago") && !is_like("a, 12", "a, 0"));
    assert!(!is_like("done by a\n", "done by ..., token ...") && !is_like("more\nsame\n", "same"));
}

/// Runs the commands one after the other on one machine, and returns how many there were.
fn run_all<'a>(blocks: impl Iterator<Item = &'a str>) -> usize {
    let mut blocks = blocks.peekable();
    if blocks.peek().is_none() {
        return 0;
    }
    let machine = Machine::new();
    let servers = SERVERS.map(|_| OnceCell::new());
    let with_servers = |text: &str| {
        let found = SERVERS.iter().enumerate().filter(|(_, name)| text.contains(*name));
        found.fold(text.to_owned(), |text, (n, name)| text.replace(name, &servers[n].get_or_init(Server::start).url()))
    };
    let commands = blocks.flat_map(commands).inspect(|(command, expected)| {
        let output = machine.run(&with_servers(command)).stdout;
        assert!(is_like(&output, expected), "{command}\nprints:\n{output}\nand not:\n{expected}");
    });
    commands.count()
}

/// The pages in a folder of the documentation, and those below it.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { pages(&path) } else { vec![path] }).collect()
}

/// The blocks with commands that no comment in the page excuses.
fn unmarked(page: &str) -> Vec<&str> {
    let is_mark = |line: &str, start: &str| {
        ["run by ", "not run: "].iter().any(|completion| line.starts_with(&format!("<!-- {start}{completion}")))
    };
    if page.lines().any(|line| is_mark(line, "console ")) {
        return Vec::new();
    }
    let before = page.split("```console\n").map(|text| text.trim_end().lines().last().unwrap_or_default());
    consoles(page).zip(before).filter(|(_, line)| !is_mark(line, "")).map(|(block, _)| block).collect()
}

#[test]
fn pages_show_what_happens() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut counts = BTreeMap::new();
    for path in pages(&docs).into_iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let page = fs::read_to_string(&path).unwrap();
        let count = run_all(unmarked(&page).into_iter());
        counts.insert(path.strip_prefix(&docs).unwrap().to_owned(), count);
    }
    assert!(counts[Path::new("once.md")] > 10, "{counts:?}");
    assert!(counts[Path::new("start-command.md")] > 5, "{counts:?}");
}

#[test]
fn comments_excuse_blocks() {
    let page = "```console\n$ a\n```\n<!-- not run: b -->\n```console\n$ b\n```\n\n```console\n$ c\n```\n";
    assert_eq!(unmarked(page), ["$ a\n", "$ c\n"]);
    assert_eq!(unmarked(&format!("<!-- console run by it -->\n{page}")), [""; 0]);
}

#[test]
fn the_first_example_of_the_readme_is_true() {
    assert_eq!(run_all(consoles(README).take(1)), 2);
}

#[test]
fn the_line_for_a_crontab_does_it_once() {
    let (_, line) = RUNS.split_once("`0 2 * * * ").unwrap();
    let machine = Machine::new();
    machine.does_it_once(|| machine.run_installed(line.split_once('`').unwrap().0));
}

#[test]
fn the_service_does_it_once_and_systemd_understands_it() {
    let machine = Machine::new();
    let (_, start) = SERVICE.split_once("\nExecStart=").unwrap();
    machine.does_it_once(|| machine.run_installed(start.lines().next().unwrap()));

    let units = [("nightly-report.service", SERVICE), ("nightly-report.timer", TIMER)];
    for (name, unit) in units {
        fs::write(machine.place.path(name), unit.replace("/usr/local/bin", machine.bin().to_str().unwrap())).unwrap();
    }
    let verify = |name: &str| {
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(machine.place.path(name)).output()
    };
    for (name, _) in units {
        match verify(name) {
            Ok(verified) => {
                let verified = Ran::from(verified).expect(0);
                assert_eq!(verified.stderr, "", "{name}");
            }
            Err(error) => eprintln!("{name} is not verified, since there is no systemd here: {error}"),
        }
    }
}

#[test]
fn the_command_of_the_cronjob_does_it_once_for_each_job() {
    let (_, command) = CRONJOB.split_once("command: ").unwrap();
    let words: Vec<String> = serde_json::from_str(command.lines().next().unwrap()).unwrap();
    assert!(Path::new(&words[0]).is_relative(), "it is found in PATH");
    let machine = Machine::new();
    for job in ["nightly-report-29384760", "nightly-report-29386200"] {
        // As the kubelet fills it in.
        let line: Vec<String> = words.iter().map(|word| word.replace("$(KEY)", job)).collect();
        machine.does_it_once(|| machine.run(&line.join(" ")));
    }
}

/// With a stand-in for `npx`: Prisma downloads an engine.
#[test]
fn migrations_of_prisma_run_under_a_lock_or_once() {
    let machine = Machine::new();
    let npx = machine.bin().join("npx");
    fs::write(&npx, "#!/bin/sh\necho \"$LEASEHOLD_RESOURCE: $*\" >> migrations\n").unwrap();
    fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
    for _ in 0..2 {
        for (command, expected) in consoles(NODE).flat_map(commands) {
            let ran = machine.run(command).expect(0).stdout;
            assert!(ran == expected || ran.contains("done already"), "{command}: {ran}");
        }
    }
    let locked = "migrate: prisma migrate deploy\n";
    let once = "migrate@release-17: prisma migrate deploy\n";
    let migrations = fs::read_to_string(machine.place.path("migrations")).unwrap();
    assert_eq!(migrations, [locked, once, locked].concat());
}
