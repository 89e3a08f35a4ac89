//! Rules about what Rust source may name, and how long a file may get.

use super::Finding;
use super::source::{self, Path, Source, Token};

const MOST_LINES: usize = 600;

const CLOCK: &str = "client/src/clock.rs";
const TRANSPORT: &str = "client/src/transport";
const DRIVER: &str = "client/src/driver/";
const FENCE: &str = "client/src/fence";

/// Types whose only use is to read a clock. Naming one counts as reading it, so that no alias hides the read.
const CLOCK_TYPES: [&str; 3] = ["Instant", "SystemTime", "UNIX_EPOCH"];
const CLOCK_CALLS: [&str; 10] = [
    "clock_gettime",
    "clock_gettime_nsec_np",
    "clock_gettime_dynamic",
    "gettimeofday",
    "mach_absolute_time",
    "mach_continuous_time",
    "QueryInterruptTime",
    "QueryUnbiasedInterruptTime",
    "QueryPerformanceCounter",
    "GetSystemTimeAsFileTime",
];
const SOCKET_TYPES: [&str; 6] = ["TcpStream", "TcpListener", "UdpSocket", "UnixStream", "UnixListener", "UnixDatagram"];
const SOCKET_MODULES: [&str; 3] = ["std", "tokio", "rustix"];
const RANDOM_CRATES: [&str; 5] = ["getrandom", "rand", "rand_core", "fastrand", "oorandom"];
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Every rule that looks at one file. `path` is relative to the workspace root, with `/` between folders.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let source = Source::new(text);
    let tokens = source::tokens(&source.code);
    let shipped = source::tokens(&source.shipped);
    let paths = source::paths(&shipped);
    let mut file = File { path, findings: Vec::new() };

    file.unfinished(&tokens);
    if path.contains("src/") {
        file.length(text);
    }
    if is_product(path) {
        file.clock(&paths, &shipped);
        file.sockets(&paths);
        file.sqlite(&paths);
        file.ground(&paths);
    }
    if is_core(path) && !is_test(path) {
        file.pure_core(&paths);
    }
    file.findings.sort_by_key(|finding| finding.line);
    file.findings
}

/// What the compiler itself must enforce for the core: its crate root and manifest say so.
pub fn check_core_root(lib: &str, manifest: &str) -> Vec<Finding> {
    let mut file = File { path: "core/src/lib.rs", findings: Vec::new() };
    let code: String = Source::new(lib).code.split_whitespace().collect();
    if !code.contains("#![no_std]") {
        file.add(
            1,
            "core-is-no-std",
            "`#![no_std]` is missing; it holds in every configuration, so no `cfg_attr`".into(),
        );
    }
    let in_manifest =
        manifest.lines().any(|line| line.split_whitespace().collect::<String>() == "unsafe_code=\"forbid\"");
    if !code.contains("#![forbid(unsafe_code)]") && !in_manifest {
        let message = "`unsafe_code` is not forbidden; add `#![forbid(unsafe_code)]` or the lint in core/Cargo.toml";
        file.add(1, "core-has-no-unsafe", message.into());
    }
    file.findings
}

/// Source that users run and that must leave clocks and sockets to their one place.
fn is_product(path: &str) -> bool {
    let ships = is_core(path)
        || ["bindings/", "cli/", "client/", "node/", "python/"].iter().any(|folder| path.starts_with(folder))
            && path.contains("/src/");
    ships && !is_test(path)
}

fn is_core(path: &str) -> bool {
    ["core/src/", "core/wire/src/"].iter().any(|folder| path.starts_with(folder))
}

/// Modules that only a `#[cfg(test)] mod tests;` elsewhere includes.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

struct File<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl File<'_> {
    fn add(&mut self, line: usize, rule: &'static str, message: String) {
        self.findings.push(Finding { path: self.path.to_owned(), line, rule, message });
    }

    fn length(&mut self, text: &str) {
        let lines = text.lines().count();
        if lines > MOST_LINES {
            let message = format!("the file has {lines} lines, more than {MOST_LINES}; split it by idea");
            self.add(MOST_LINES + 1, "short-files", message);
        }
    }

    fn unfinished(&mut self, tokens: &[Token]) {
        for pair in tokens.windows(2) {
            if UNFINISHED.contains(&pair[0].text) && pair[1].text == "!" {
                let message = format!("`{}!` is left in the code; finish it or return an error", pair[0].text);
                self.add(pair[0].line, "nothing-unfinished", message);
            }
        }
    }

    fn clock(&mut self, paths: &[Path], tokens: &[Token]) {
        if self.path == CLOCK {
            return;
        }
        let instead = if self.path.starts_with("core/") {
            "take the time as an argument".to_owned()
        } else {
            format!("ask the clock of {CLOCK}, the only one that counts suspended time")
        };
        for path in paths {
            let names = |name: &&&str| CLOCK_TYPES.contains(name) || CLOCK_CALLS.contains(name);
            let seen = path.segments.iter().find(names).map(|name| (*name).to_owned());
            let is_time_of_libc = path.segments == ["libc", "time"];
            if let Some(seen) = seen.or_else(|| is_time_of_libc.then(|| "libc::time".to_owned())) {
                self.add(path.line, "one-clock", format!("`{seen}` reads a clock; {instead}"));
            }
        }
        for three in tokens.windows(3) {
            if three[0].text == "." && three[1].text == "elapsed" && three[2].text == "(" {
                self.add(three[1].line, "one-clock", format!("`.elapsed()` reads a clock; {instead}"));
            }
        }
    }

    fn sockets(&mut self, paths: &[Path]) {
        if is_below(self.path, TRANSPORT) {
            return;
        }
        for path in paths {
            let segments = &path.segments;
            let is_type = segments.iter().any(|name| SOCKET_TYPES.contains(name));
            let is_module = segments.contains(&"net") && SOCKET_MODULES.contains(&segments[0]);
            if is_type || is_module || segments[..] == ["libc", "socket"] {
                let message = format!("`{}` is a socket; only {TRANSPORT} knows sockets", segments.join("::"));
                self.add(path.line, "sockets-in-transport", message);
            }
        }
    }

    fn sqlite(&mut self, paths: &[Path]) {
        let may = is_below(self.path, TRANSPORT) || is_below(self.path, FENCE);
        for path in paths.iter().filter(|_| !may) {
            if matches!(path.segments[0], "rusqlite" | "libsqlite3_sys") {
                let message = format!(
                    "`{}` is SQLite; only {TRANSPORT} and {FENCE} know it, give them a function to call",
                    path.segments.join("::")
                );
                self.add(path.line, "sqlite-in-transport", message);
            }
        }
    }

    /// What `testing/concurrency` puts in another's place must not be had behind its back.
    fn ground(&mut self, paths: &[Path]) {
        if !self.path.starts_with(DRIVER) {
            return;
        }
        for path in paths {
            if matches!(path.segments[..], ["std", "sync" | "thread", ..]) {
                let name = path.segments.join("::");
                let message =
                    format!("`{name}`; take it from `crate::sync`, so that testing/concurrency can try interleavings");
                self.add(path.line, "races-see-all", message);
            }
        }
    }

    fn pure_core(&mut self, paths: &[Path]) {
        for path in paths {
            let name = path.segments.join("::");
            if path.segments[0] == "std" {
                let message = format!("`{name}`; the core has `core` and `alloc` only, time and I/O are its caller's");
                self.add(path.line, "pure-core", message);
            } else if path.segments.len() > 1 && RANDOM_CRATES.contains(&path.segments[0]) {
                let message =
                    format!("`{name}` draws randomness; the core derives every value from the seed it is given");
                self.add(path.line, "pure-core", message);
            }
        }
    }
}

/// The folder, the module file beside it, or a file that starts with the name.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(['/', '.', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rule:line` of every finding.
    fn flagged(path: &str, text: &str) -> Vec<String> {
        check(path, text).iter().map(|finding| format!("{}:{}", finding.rule, finding.line)).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_finding_names_place_rule_and_remedy() {
        let findings = check("cli/src/exec.rs", "\nlet now = std::time::Instant::now();");
        assert_eq!(
            findings[0].to_string(),
            "cli/src/exec.rs:2: one-clock: `Instant` reads a clock; ask the clock of \
             client/src/clock.rs, the only one that counts suspended time"
        );
    }

    #[test]
    fn clocks_are_read_in_one_file() {
        for read in [
            "let t = Instant::now();",
            "use std::time::{Duration, SystemTime};",
            "use std::time::Instant as Moment;",
            "std::time::UNIX_EPOCH",
            "rustix::time::clock_gettime(id)",
            "unsafe { libc::time(core::ptr::null_mut()) }",
            "start.elapsed()",
            "start\n    .elapsed()",
        ] {
            for path in ["client/src/driver.rs", "cli/src/exec.rs", "python/src/lib.rs", "node/src/lib.rs"] {
                assert_eq!(check(path, read).len(), 1, "{read} in {path}");
            }
            assert!(!check("core/src/lease.rs", read).is_empty(), "{read} in the core");
            for path in
                [CLOCK, "client/tests/fork.rs", "xtask/src/run.rs", "core/tests/wait.rs", "core/wire/src/tests.rs"]
            {
                assert_eq!(flagged(path, read), NONE, "{read} in {path}");
            }
        }
    }

    #[test]
    fn waiting_with_a_duration_is_no_clock_read() {
        let good =
            "use std::time::Duration;\nlet got = queue.recv_timeout(Duration::from_secs(1)); self.elapsed; time(1)";
        assert_eq!(flagged("client/src/driver.rs", good), NONE);
    }

    #[test]
    fn what_is_only_mentioned_or_tested_is_not_used() {
        let good = "//! Not `Instant::now()`.\nconst HELP: &str = \"Instant::now()\";\n\
                    #[cfg(test)]\nmod tests { fn f() { std::time::Instant::now(); } }";
        assert_eq!(flagged("core/src/time.rs", good), NONE);
    }

    #[test]
    fn the_core_has_no_std_and_no_randomness() {
        for bad in [
            "use std::fs;",
            "fn f() { std::thread::yield_now() }",
            "use std::{env};",
            "extern crate std;",
            "let n: u64 = rand::random();",
            "getrandom::fill(&mut seed)",
        ] {
            assert_eq!(flagged("core/src/client.rs", bad), ["pure-core:1"], "{bad}");
        }
        let good =
            "use alloc::vec::Vec;\nuse core::time::Duration;\nlet rand = prf(seed);\n#[cfg(test)]\nextern crate std;";
        assert_eq!(flagged("core/src/client.rs", good), NONE);
        assert_eq!(flagged("core/tests/wait.rs", "use std::fs;"), NONE);
        assert_eq!(flagged("testing/sim/src/lib.rs", "use std::fs;"), NONE);
    }

    #[test]
    fn sqlite_stays_with_transport_and_fence() {
        let text = "use crate::x;\nuse rusqlite::Connection;";
        for path in ["client/src/driver.rs", "cli/src/doctor.rs", "client/src/fencepost.rs"] {
            assert_eq!(flagged(path, text), ["sqlite-in-transport:2"], "{path}");
        }
        for path in [
            "client/src/transport/sqlite.rs",
            "client/src/fence.rs",
            "client/src/fence/sqlite.rs",
            "client/src/fence_sqlite.rs",
            "testing/bench/src/bin/bench-sqlite.rs",
        ] {
            assert_eq!(flagged(path, text), NONE, "{path}");
        }
    }

    #[test]
    fn the_run_loop_takes_threads_and_locks_from_one_place() {
        let text = "use crate::sync::Mutex;\nuse std::sync::Mutex as Other;\nlet id = std::thread::current();";
        assert_eq!(flagged("client/src/driver/slot.rs", text), ["races-see-all:2", "races-see-all:3"]);
        assert_eq!(flagged("client/src/connect.rs", text), NONE);
    }

    #[test]
    fn the_rig_of_tests_is_no_product() {
        let text = "use std::net::TcpListener;\nlet start = std::time::Instant::now();";
        assert_eq!(flagged("testing/servers/src/proxy/mod.rs", text), NONE);
        assert_eq!(flagged("bindings/rigging/src/lib.rs", text), ["sockets-in-transport:1", "one-clock:2"]);
    }

    #[test]
    fn sockets_stay_with_transport() {
        for text in [
            "use std::net::TcpStream;",
            "use std::{io, net::{IpAddr}};",
            "let (a, b) = UnixStream::pair()?;",
            "use std::os::unix::net::SocketAddr;",
            "use tokio::net;",
            "libc::socket(a, b, c)",
        ] {
            assert_eq!(flagged("client/src/driver.rs", text), ["sockets-in-transport:1"], "{text}");
            assert_eq!(flagged("client/src/transport/resp.rs", text), NONE, "{text}");
        }
        assert_eq!(flagged("client/src/driver.rs", "let net = crate::net::stream;"), NONE);
    }

    #[test]
    fn files_can_be_read_in_a_sitting() {
        assert_eq!(flagged("core/src/lease.rs", &"//\n".repeat(MOST_LINES)), NONE);
        for path in ["core/src/lease.rs", "xtask/src/tidy.rs", "testing/bench/src/bin/demo.rs"] {
            assert_eq!(flagged(path, &"//\n".repeat(MOST_LINES + 1)), ["short-files:601"], "{path}");
        }
        assert_eq!(flagged("core/tests/lease.rs", &"//\n".repeat(MOST_LINES + 1)), NONE);
    }

    #[test]
    fn nothing_is_left_unfinished_not_even_in_tests() {
        for bad in
            ["todo!()", "unimplemented!(\"later\")", "let x = dbg!(y);", "#[cfg(test)]\nmod t { fn f() { todo! {} } }"]
        {
            assert_eq!(check("core/tests/lease.rs", bad).len(), 1, "{bad}");
            assert_eq!(check("xtask/src/run.rs", bad).len(), 1, "{bad}");
        }
        assert_eq!(flagged("core/src/lease.rs", "// todo!()\nlet todo = !dbg;"), NONE);
    }

    #[test]
    fn the_core_root_forbids_std_and_unsafe() {
        let rules = |lib: &str, manifest: &str| {
            check_core_root(lib, manifest).iter().map(|finding| finding.rule).collect::<Vec<_>>()
        };
        assert_eq!(rules("//! Docs.\n#![no_std]\n#![forbid(unsafe_code)]\n", ""), NONE);
        assert_eq!(rules("#![no_std]", "[lints.rust]\nunsafe_code = \"forbid\"\n"), NONE);
        assert_eq!(rules("//! #![no_std]", "unsafe_code = \"forbid\""), ["core-is-no-std"]);
        assert_eq!(rules("#![cfg_attr(not(test), no_std)]", "unsafe_code = \"forbid\""), ["core-is-no-std"]);
        assert_eq!(rules("#![no_std]", "unsafe_code = \"deny\""), ["core-has-no-unsafe"]);
    }
}
