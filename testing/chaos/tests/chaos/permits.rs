//! The tally of `cargo xtask chaos permits` against lines written by hand.

use leasehold_chaos::permits::{Counts, Tally};

/// A line: the process, when, what, the permit, its token, and the end of the lease.
type Line = (usize, u64, &'static str, u64, u64, u64);

fn counts(lines: &[Line]) -> Counts {
    let mut tally = Tally::default();
    let processes: Vec<_> = (0..4).map(|_| tally.open()).collect();
    for (process, at, what, permit, token, until) in lines {
        let line = format!(
            r#"{{"at":{at},"what":"{what}","permit":{permit},"token":{token},"until":{until},"watched":true}}"#
        );
        tally.hear(processes[*process], &line);
    }
    tally.counts(3)
}

const THREE: [Line; 3] = [(0, 10, "granted", 0, 7, 100), (1, 20, "granted", 1, 7, 100), (2, 30, "granted", 2, 1, 100)];

#[test]
fn three_holders_of_three_permits_break_nothing() {
    let counts = counts(&[&THREE[..], &[(0, 90, "releasing", 0, 7, 0), (3, 95, "granted", 0, 8, 200)]].concat());
    assert_eq!((counts.grants, counts.most_at_once, counts.broken()), (4, 3, Vec::new()));
}

#[test]
fn a_permit_that_two_hold_is_found() {
    let counts = counts(&[&THREE[..], &[(3, 95, "granted", 0, 8, 200)]].concat());
    assert_eq!(counts.most_at_once, 4);
    let broken = counts.broken().join("\n");
    assert!(
        broken.contains("4 held one of 3 permits") && broken.contains("of permit 0, worker-0 with token 7"),
        "{broken}"
    );
}

#[test]
fn a_permit_beyond_their_number_is_found() {
    let counts = counts(&[&THREE[..], &[(3, 95, "granted", 3, 1, 200)]].concat());
    assert_eq!(counts.broken(), ["4 held one of 3 permits at once"]);
}

#[test]
fn a_token_that_was_granted_twice_is_found() {
    let counts = counts(&[&THREE[..], &[(0, 90, "lost", 0, 7, 0), (3, 95, "granted", 0, 7, 200)]].concat());
    assert_eq!(counts.broken(), ["1 tokens were granted twice"]);
    assert_eq!(counts.losses, 1);
}

#[test]
fn a_run_in_which_nobody_had_to_wait_proves_nothing() {
    assert!(counts(&THREE[..2]).broken()[0].contains("run it for longer"));
    let mut tally = Tally::default();
    let process = tally.open();
    tally.hear(process, "no line");
    assert!(tally.counts(0).broken()[0].contains("no line"));
}
