//! `once --save-output` keeps what the command writes, for those who come later.

use crate::common::{Place, Ran};

fn once(place: &Place, options: &[&str], script: &str) -> Ran {
    place.run(&[&["once"], options, &["job", "--", "sh", "-c", script]].concat())
}

const MONDAY: [&str; 3] = ["--save-output", "--key", "monday"];

#[test]
fn who_comes_later_gets_the_output_and_nothing_else() {
    let place = Place::new();
    let first = once(&place, &MONDAY, "echo '{\"rows\": 7}'; echo noise >&2").expect(0);
    assert_eq!((first.stdout.as_str(), first.stderr.as_str()), ("{\"rows\": 7}\n", "noise\n"));
    let later = once(&place, &MONDAY, "touch again").expect(0);
    assert_eq!(later.stdout, "{\"rows\": 7}\n");
    later.says("done already");
    assert!(!place.path("again").exists());
    let quiet = once(&place, &["--key", "monday"], "touch again").expect(0);
    assert_eq!(quiet.stdout, "", "it was not asked for");
}

#[test]
fn output_that_is_too_long_is_passed_on_and_the_job_counts() {
    let place = Place::new();
    let long = once(&place, &MONDAY, "head -c 5000 /dev/zero | tr '\\0' x").expect(74);
    assert_eq!(long.stdout.len(), 5_000);
    long.says("its result was not kept: result has 4097 bytes; at most 4096 are allowed");
    let later = once(&place, &MONDAY, "touch again").expect(0);
    assert_eq!(later.stdout, "");
    later.says("its output was not kept");
    assert!(!place.path("again").exists());
}

#[test]
fn output_of_a_job_that_fails_is_not_kept() {
    let place = Place::new();
    once(&place, &MONDAY, "echo half; exit 3").expect(3);
    let next = once(&place, &MONDAY, "printf whole").expect(0);
    assert_eq!(next.stdout, "whole");
    assert_eq!(once(&place, &MONDAY, "touch again").expect(0).stdout, "whole");
}

#[test]
fn a_part_of_the_output_is_no_result() {
    let place = Place::new();
    let first = once(&place, &MONDAY, "echo early; sleep 10 2>/dev/null &").expect(74);
    assert_eq!(first.stdout, "early\n");
    first.says("a process that the command has left behind may still write to it");
    let later = once(&place, &MONDAY, "touch again").expect(0);
    assert_eq!(later.stdout, "");
    later.says("its output was not kept");
    assert!(!place.path("again").exists());
}
