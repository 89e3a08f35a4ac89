//! Every target without a fuzzer: what was kept of earlier runs, and bytes by chance.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "these are tests, and their helpers are too"
)]
// It is compiled beside the fuzzers, and links as they do: see `xtask/src/fuzz/build.rs`.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
leasehold_fuzz::target!(leasehold_fuzz::with_stores::run);

use std::fs;
use std::path::Path;

use leasehold_fuzz::TARGETS;

/// Enough random inputs to show that a target works at all. Finding bugs is the fuzzers' job.
const ROUNDS: usize = 400;
const LONGEST: usize = 600;

fn holds(name: &str) {
    let (_, run) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target of this name");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        run(&fs::read(path).unwrap());
        count += 1;
    }
    assert!(count > 0, "nothing was kept for {name}");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..ROUNDS {
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_be_bytes()[0]
        };
        let bytes: Vec<u8> = (0..(round * 7) % LONGEST).map(|_| byte()).collect();
        println!("{round}");
        run(&bytes);
    }
}

macro_rules! targets {
    ($($(#[$only:meta])? $name:ident),*) => {
        $(
            $(#[$only])?
            #[test]
            fn $name() {
                holds(stringify!($name));
            }
        )*

        #[test]
        fn all_targets_are_tested() {
            let tested = [$($(#[$only])? stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), tested);
        }
    };
}

targets![
    #[cfg(feature = "client")]
    aws,
    client,
    component,
    dynamodb,
    records,
    redis,
    resp,
    rest,
    settings,
    #[cfg(feature = "client")]
    sqlite,
    #[cfg(feature = "client")]
    urls,
    with_stores
];
