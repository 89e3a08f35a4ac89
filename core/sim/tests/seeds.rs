//! The simulator itself: what it keeps, what it finds, and what it makes of a failure.

#![allow(clippy::unwrap_used)]

use leasehold_sim::campaign::{self, Extent};
use leasehold_sim::cli;
use leasehold_sim::promise::{Assumptions, Promise};
use leasehold_sim::script::Script;
use leasehold_sim::shrink::shrink;
use leasehold_sim::swarm::Broken;
use leasehold_sim::{page, trial};

#[test]
fn seeds_keep_their_promises() {
    let outcome = campaign::run(Extent::Seeds(500_000, 500_500), None);
    assert_eq!(outcome.seeds, 500);
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures[0].broken);
}

/// Seeds that accused the core of what the checkers had got wrong, each in a way that few seeds show.
#[test]
fn seeds_that_were_judged_wrongly_keep_their_promises() {
    // A waiter hears after the world got well that it was throttled before.
    const JUDGED_WRONGLY: &[u64] = &[61_679];
    for seed in JUDGED_WRONGLY.iter().copied() {
        let trial = trial::seed(seed, None);
        assert!(trial.passed(), "seed {seed}: {:?}", trial.broken);
    }
}

#[test]
fn one_thread_or_many_add_up_to_the_same() {
    let together = campaign::run(Extent::Seeds(0, 60), None).counts;
    let mut one_by_one = leasehold_sim::counts::Counts::default();
    for seed in 0..60 {
        one_by_one.add(&trial::seed(seed, None).counts);
    }
    assert_eq!(together, one_by_one);
}

/// The first seed in which two holders believe at once, once clocks stand still in suspend.
fn counterexample() -> Script {
    let two_holders = |seed| {
        let trial = trial::seed(seed, Some(Broken::Suspend));
        assert!(trial.passed(), "what does not rest on the clocks must hold: {:?}", trial.broken);
        let found = trial.expected.iter().any(|violation| violation.promise == Promise::OneHolder);
        found.then_some(trial.script)
    };
    (0..500).find_map(two_holders).expect("a counterexample among the first seeds")
}

#[test]
fn a_failure_is_made_small_and_stays_a_failure() {
    let script = counterexample();
    let small = shrink(&script, Promise::OneHolder);
    let jobs = |script: &Script| script.hosts.iter().flat_map(|host| host.workers.iter().flatten()).count();
    assert!(trial::breaks(&small, Promise::OneHolder));
    assert_eq!(jobs(&small), 2, "one to hold the lock and one to take it: {}", small.to_json());
    assert!(jobs(&script) > 2 && small.faults.len() <= 2 && small.messages.is_empty(), "{}", small.to_json());
    assert!(!Assumptions::of(&small).suspend, "what broke it is still in it");
}

#[test]
fn a_script_says_the_same_after_it_was_written_and_read() {
    let script = counterexample();
    let again = Script::from_json(&script.to_json()).unwrap();
    assert_eq!(again, script);
    let story = cli::story_of(&again, "0123abc");
    let page = page::render(&story);
    assert!(story.marks.iter().any(|mark| mark.label.contains("both hold the lock")));
    assert!(page.contains("both hold the lock") && page.contains("0123abc"));
}
