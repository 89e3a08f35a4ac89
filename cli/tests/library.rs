//! The command line as a function leaves the process as it was. One test, since signals belong to the whole process.

#[path = "command/common/mod.rs"]
mod common;

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

use common::Place;

fn run(arguments: &[&str]) -> ExitCode {
    leasehold_cli::run(std::iter::once("leasehold").chain(arguments.iter().copied()).map(OsString::from))
}

#[test]
fn handlers_live_as_long_as_exec_and_no_longer() {
    let place = Place::new();
    let store = place.store();
    // What is caught, ignored, and blocked in this thread.
    let treatment = || -> Vec<String> {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let names = ["SigCgt", "SigIgn", "SigBlk"];
        status.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).map(str::to_owned).collect()
    };
    let before = treatment();
    let out = place.path("during");
    let script = format!("grep -E '^Sig(Cgt|Ign)' /proc/$PPID/status > {}", out.display());
    // Twice: the second finds nothing left over from the first.
    for _ in 0..2 {
        let ended = run(&["exec", "--store", &store, "job", "--", "sh", "-c", &script]);
        assert_eq!(ended, ExitCode::SUCCESS);
        assert_eq!(treatment(), before);
        let during = place.read("during");
        let caught = during.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        let caught = u64::from_str_radix(caught, 16).unwrap();
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGTSTP, libc::SIGCONT] {
            assert!(caught & (1 << (signal - 1)) != 0, "signal {signal} is caught: {during}");
        }
    }
    // And it still works: without a handler this would be the end of the tests.
    let script = "kill -TERM $PPID; exec sleep 1000";
    assert_eq!(run(&["exec", "--store", &store, "job", "--", "sh", "-c", script]), ExitCode::from(143));
    let status = |arguments: &[&str]| leasehold_cli::status_of(arguments.iter().map(OsString::from));
    assert_eq!(status(&["leasehold", "exec", "--store", &store, "job", "--", "sh", "-c", "exit 7"]), 7);
    assert_eq!(treatment(), before);
    for arguments in [
        &["exec", "--store", &store, "job", "--", "no-such-command"][..],
        &["exec", "--store", "nonsense", "job", "--", "true"],
        &["inspect", "--store", &store, "job"],
        &["nonsense"],
    ] {
        let _ = run(arguments);
        assert_eq!(treatment(), before, "{arguments:?}");
    }
}
