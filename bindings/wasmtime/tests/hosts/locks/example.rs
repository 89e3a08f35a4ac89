//! The examples of `docs/component.md`, as they stand there.

use std::fs;
use std::process::Command;

use leasehold_servers::{redis, webdis};

use crate::program::variable;

const PAGE: &str = include_str!("../../../../../docs/component.md");

/// The one block of code in this language that speaks of the component.
fn block(language: &str) -> &'static str {
    let blocks = PAGE.split("```").skip(1).step_by(2);
    let mut found = blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    let block = found.find(|block| block.contains("leasehold:locks") || block.contains("leasehold-locks"));
    block.unwrap_or_else(|| panic!("the page has no example in {language}"))
}

/// Runs an example in a folder that has the files it needs, and returns its output.
#[track_caller]
fn run(mut program: Command, file: &str, text: &str) -> String {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    let folder = tempfile::tempdir().unwrap();
    let text = text.replace("http://127.0.0.1:7379", server.url().trim_end_matches('/'));
    fs::write(folder.path().join(file), text).unwrap();
    for entry in fs::read_dir(variable("LEASEHOLD_LOCKS_MODULE")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    fs::copy(variable("LEASEHOLD_LOCKS_WASM"), folder.path().join("leasehold-locks.wasm")).unwrap();
    let modules = variable("LEASEHOLD_LOCKS_TOOLS").join("node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let output = program.arg(file).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", readable(&String::from_utf8_lossy(&output.stderr)));
    said
}

/// The text without the ends of very long lines: Node shows the line of an error, and a module that was made small has one.
fn readable(text: &str) -> String {
    text.lines().map(|line| line.chars().take(400).chain(['\n']).collect::<String>()).collect()
}

#[test]
fn the_reason_of_a_failure_is_not_buried() {
    let shown = readable(&format!("a.mjs:1\n{}\n^\nError: why\n", "x".repeat(30_000)));
    assert!(shown.ends_with("^\nError: why\n") && shown.len() < 500, "{shown}");
}

#[test]
fn in_python_it_works() {
    let said = run(Command::new(variable("LEASEHOLD_LOCKS_PYTHON")), "example.py", block("python"));
    assert!(said.starts_with("token 1"), "{said}");
}

#[test]
fn in_javascript_it_works() {
    let said = run(Command::new("node"), "example.mjs", block("js"));
    assert!(said.starts_with("token 1"), "{said}");
}
