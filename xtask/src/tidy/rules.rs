//! Rules about Rust source that neither the compiler nor `clippy.toml` can hold.

use super::Finding;

const MOST_LINES: usize = 600;
/// Other languages, whose tests are held to it as well.
const SCRIPTS: [&str; 4] = [".py", ".cjs", ".mjs", ".go"];
const DRIVER: &str = "client/src/driver/";
/// Where the crates that users run hold to `clippy.toml`. Tests may read clocks and open sockets.
const PRODUCTS: [&str; 7] = [
    "client/src/lib.rs",
    "client/fence/src/lib.rs",
    "cli/src/lib.rs",
    "bindings/protocol/src/lib.rs",
    "bindings/wasmtime/src/lib.rs",
    "node/src/lib.rs",
    "python/src/lib.rs",
];
const HELD: &str = "#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]";

/// Every rule that looks at one file. `path` is relative to the workspace root, with `/` between folders.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line: usize, rule, message| findings.push(Finding { path: path.to_owned(), line, rule, message });
    let lines = text.lines().count();
    let is_script = SCRIPTS.iter().any(|end| path.ends_with(end));
    if (is_script || path.contains("src/")) && lines > MOST_LINES {
        let message = format!("the file has {lines} lines, more than {MOST_LINES}; split it by idea");
        add(MOST_LINES + 1, "short-files", message);
    }
    if PRODUCTS.contains(&path) && !text.contains(HELD) {
        add(1, "products-hold-to-clippy", format!("`{HELD}` is missing"));
    }
    if path.starts_with(DRIVER) && !path.contains("/tests") {
        let shipped = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
        for (number, line) in shipped.filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if let Some(name) = ["std::sync", "std::thread"].into_iter().find(|name| line.contains(name)) {
                let message =
                    format!("`{name}`; take it from `crate::sync`, so that testing/concurrency can try interleavings");
                add(number + 1, "races-see-all", message);
            }
        }
    }
    findings
}

/// The rules that the compiler itself must enforce for the core: its crate root and manifest say so.
pub fn check_core_root(lib: &str, manifest: &str) -> Vec<Finding> {
    let has = |text: &str, wanted: &str| text.lines().any(|line| line.replace(' ', "") == wanted);
    let forbids_unsafe = has(lib, "#![forbid(unsafe_code)]") || has(manifest, "unsafe_code=\"forbid\"");
    let rules = [
        (has(lib, "#![no_std]"), "core-is-no-std", "`#![no_std]` is missing; it holds in every configuration"),
        (forbids_unsafe, "core-has-no-unsafe", "`unsafe_code` is not forbidden; add the lint in core/Cargo.toml"),
    ];
    let broken = rules.into_iter().filter(|(holds, _, _)| !holds);
    let finding = |(_, rule, message): (bool, &'static str, &str)| Finding {
        path: "core/src/lib.rs".into(),
        line: 1,
        rule,
        message: message.into(),
    };
    broken.map(finding).collect()
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
    fn the_run_loop_takes_threads_and_locks_from_one_place() {
        let text = "use crate::sync::Mutex;\nuse std::sync::Mutex as Other;\n// Not std::thread.\nlet id = std::thread::current();\n#[cfg(test)]\nuse std::thread;";
        assert_eq!(flagged("client/src/driver/slot.rs", text), ["races-see-all:2", "races-see-all:4"]);
        assert_eq!(flagged("client/src/connect.rs", text), NONE);
        let finding = check("client/src/driver/slot.rs", text).remove(0).to_string();
        assert!(finding.starts_with("client/src/driver/slot.rs:2: races-see-all: `std::sync`; take it"), "{finding}");
    }

    #[test]
    fn files_can_be_read_in_a_sitting() {
        assert_eq!(flagged("core/src/lease.rs", &"//\n".repeat(MOST_LINES)), NONE);
        for path in [
            "core/src/lease.rs",
            "testing/bench/src/bin/demo.rs",
            "python/leasehold/aio.py",
            "node/testing.cjs",
            "go/lease.go",
        ] {
            assert_eq!(flagged(path, &"//\n".repeat(MOST_LINES + 1)), ["short-files:601"], "{path}");
        }
        assert_eq!(flagged("core/tests/lease.rs", &"//\n".repeat(MOST_LINES + 1)), NONE);
    }

    #[test]
    fn crates_of_users_hold_to_what_clippy_is_told() {
        assert_eq!(flagged("cli/src/lib.rs", "//! A command."), ["products-hold-to-clippy:1"]);
        assert_eq!(flagged("cli/src/lib.rs", &format!("//! A command.\n{HELD}\n")), NONE);
        assert_eq!(flagged("testing/servers/src/lib.rs", "//! Servers."), NONE);
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
