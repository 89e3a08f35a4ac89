//! Runs each program in `src/bin` and compares what it prints with the comment at its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An empty folder: a run that was stopped may have left locks.
fn new_folder(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if place.exists() {
        fs::remove_dir_all(&place).unwrap();
    }
    fs::create_dir_all(&place).unwrap();
    place
}

#[test]
fn every_example_prints_its_output() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let listed: Vec<_> = fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!listed.is_empty());
    let place = new_folder("output");
    for source in listed {
        // All programs of a package are built into one folder.
        let program = Path::new(env!("CARGO_BIN_EXE_blocking")).with_file_name(source.file_stem().unwrap());
        let text = fs::read_to_string(&source).unwrap();
        let (_, output) = text.split_once("\n// Output:\n").expect("the example ends with its output");
        let output: String = output.split_inclusive('\n').map(|line| line.trim_start_matches("// ")).collect();
        let ran = Command::new(&program).current_dir(&place).output().unwrap();
        assert!(ran.status.success(), "{source:?}: {ran:?}");
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), output, "{source:?}");
    }
}

#[test]
fn workers_of_the_quickstart_take_turns() {
    let page = include_str!("../../../docs/start-rust.md");
    let (_, console) = page.split_once("```console\n$ cargo run -q & ").expect("the page starts two workers");
    let (line, output) = console.split_once("```").unwrap().0.split_once('\n').unwrap();
    let place = new_folder("quickstart");
    let line = format!("$WORKER & {}", line.replace("cargo run -q", "$WORKER"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(&place).env("WORKER", env!("CARGO_BIN_EXE_worker"));
    let ran = shell.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), output);
}
