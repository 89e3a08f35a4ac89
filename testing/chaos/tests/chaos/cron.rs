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
    assert_eq!(unmarked.broken().unwrap(), "1 of 1 keys have no completion");
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
}
