//! The board of `cargo xtask chaos cron` against lines written by hand.

use leasehold_chaos::cron::{Board, Counts};

fn counts(lines: &[&str]) -> Counts {
    let mut board = Board::new(1);
    lines.iter().for_each(|line| board.hear(line));
    Counts { marked: 1, ..board.counts() }
}

#[test]
fn a_key_that_is_done_once_breaks_nothing() {
    let counts = counts(&["begun 0 7", "written 0 7", "finished 0 0", "skipped 0 0"]);
    assert_eq!((counts.finished_once, counts.written_again, counts.broken()), (1, 0, None));
}

#[test]
fn a_key_that_is_done_twice_is_found() {
    let counts = counts(&["begun 0 7", "written 0 7", "finished 0 0", "begun 0 8", "written 0 8", "finished 0 0"]);
    assert_eq!((counts.begun_again, counts.written_again), (1, 1));
    assert_eq!(counts.broken().unwrap(), "1 of 1 keys were finished more than once");
}

#[test]
fn a_key_that_nobody_begins_or_marks_is_found() {
    assert_eq!(counts(&["skipped 0 0"]).broken().unwrap(), "1 of 1 keys were never begun");
    let unmarked = Counts { marked: 0, ..counts(&["begun 0 7", "written 0 7", "finished 0 0"]) };
    assert_eq!(unmarked.broken().unwrap(), "1 of 1 keys are neither done nor given up");
}

#[test]
fn a_late_writer_is_refused() {
    let counts = counts(&["begun 0 7", "begun 0 8", "written 0 7", "written 0 8", "lost 0 0", "finished 0 0"]);
    assert_eq!((counts.refused, counts.written_again, counts.lost, counts.broken()), (1, 0, 1, None));
}

#[test]
fn a_line_that_nothing_explains_is_shown() {
    assert_eq!(counts(&["begun 0 7", "failed 0 0 why"]).broken().unwrap(), "a machine told: failed 0 0 why");
    assert_eq!(counts(&["begun 0 7", "left 3 0"]).broken().unwrap(), "a machine told: left 3 0");
    let never = counts(&["left 0 0", "failed 0 0 why"]).broken().unwrap();
    assert_eq!(never, "1 of 1 keys were never begun; a machine told: left 0 0");
}

#[test]
fn attempts_beyond_the_limit_and_those_that_are_given_up_early_are_found() {
    let of = |lines: &[&str]| Counts { marked: 0, ..counts(lines) };
    let thrice = ["begun 0 7", "failing 0 0", "begun 0 8", "failing 0 0", "begun 0 9", "failing 0 0", "given_up 0 0"];
    assert_eq!((of(&thrice).given_up, of(&thrice).broken_by_attempts()), (1, None));
    let too_often = of(&[&thrice[..], &["begun 0 10"]].concat());
    assert_eq!(too_often.broken_by_attempts().unwrap(), "1 of 1 keys were begun more than 3 times");
    let early = of(&["begun 0 7", "failing 0 0", "given_up 0 0"]);
    assert_eq!(early.broken_by_attempts().unwrap(), "1 keys were given up early");
    let killed = Counts { kills: 1, ..early };
    assert_eq!(killed.broken_by_attempts(), None, "an attempt that died before its work counts");
}

#[test]
fn another_result_than_that_of_the_completion_is_found() {
    assert_eq!(counts(&["begun 0 7", "different 0 0"]).broken().unwrap(), "a machine told: different 0 0");
    assert_eq!(counts(&["begun 0 7", "missing 0 0"]).missing, 1);
}
