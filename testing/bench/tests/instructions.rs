//! A pair of acquire and release does not get dearer unseen: instructions, which are the same on every machine of a kind.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::path::Path;

use leasehold_bench::valgrind::Tool;

/// The instructions of a pair when this was last looked at: the core and the codec of Redis, without a socket.
const NOTED: u64 = 52_078;
/// In percent. Compilers differ by less.
const MOST: u64 = 10;
const FEW: u64 = 200;
const MANY: u64 = 1_200;

fn of_one() -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let count = |pairs: u64| {
        let mut command = Tool::Instructions.command(&log, Path::new(env!("CARGO_BIN_EXE_pairs")));
        let status = command.arg(pairs.to_string()).status();
        let status = status.expect("instructions are counted by Valgrind; on Debian: apt-get install valgrind");
        assert!(status.success(), "{status}");
        Tool::Instructions.counted(&log).unwrap()
    };
    (count(MANY) - count(FEW)) / (MANY - FEW)
}

#[test]
fn a_pair_takes_the_instructions_that_are_noted() {
    let now = of_one();
    println!("{now} instructions for a pair, {NOTED} noted");
    let (least, most) = (NOTED * (100 - MOST) / 100, NOTED * (100 + MOST) / 100);
    assert!(
        now <= most,
        "a pair takes {now} instructions, and took {NOTED}: find out why, or note {now} if it is worth it"
    );
    assert!(now >= least, "a pair takes only {now} instructions, and took {NOTED}: note {now}, so that it stays so");
}
