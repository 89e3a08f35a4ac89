//! `elect`: a command on the leader.

use crate::common::{Place, Started, wait_for_death};
use rustix::process::Signal;

/// A candidate whose command writes its token into a file, and its process id into another.
fn candidate(place: &Place, name: &str) -> Started {
    let script = format!("echo $LEASEHOLD_TOKEN >> tokens; echo {name} >> leaders; echo $$ > pid; exec sleep 1000");
    place.start(&["elect", "--ttl", "3s", "job", "--", "sh", "-c", &script])
}

fn lines(place: &Place, name: &str) -> Vec<String> {
    place.read(name).lines().map(str::to_owned).collect()
}

#[test]
fn the_next_machine_leads_when_the_leader_has_died() {
    let place = Place::new();
    let first = candidate(&place, "first");
    let command = place.wait_for_pid("pid");
    let _second = candidate(&place, "second");
    first.signal(Signal::KILL);
    wait_for_death(command);
    crate::common::wait_for("the second leader", || lines(&place, "leaders") == ["first", "second"]);
    let tokens: Vec<u64> = lines(&place, "tokens").iter().map(|token| token.parse().unwrap()).collect();
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}

#[test]
fn a_leader_that_lost_its_lease_stands_again() {
    let place = Place::new();
    let leader = candidate(&place, "it");
    let command = place.wait_for_pid("pid");
    place.run(&["break", "job", "--yes"]).expect(0);
    wait_for_death(command);
    crate::common::wait_for("it leads again", || lines(&place, "leaders") == ["it", "it"]);
    leader.signal(Signal::TERM);
    leader.wait().expect(143).says("no longer the leader; this machine stands again");
    assert!(!place.is_held());
}

#[test]
fn the_end_of_the_command_is_the_end_of_the_election() {
    let place = Place::new();
    place.run(&["elect", "job", "--", "sh", "-c", "exit 7"]).expect(7);
    place.run(&["elect", "job", "--", "./nothing"]).expect(127).says("nothing");
    place.run(&["elect", "job"]).expect(64);
    assert!(!place.is_held());
}

/// Between two renewals nobody tells the command; the release finds it.
#[test]
fn a_lock_broken_since_the_last_renewal_is_reported_at_the_end() {
    let place = Place::new();
    let mut elect =
        place.leasehold(&["elect", "--ttl", "1h", "job", "--", "sh", "-c", "$L break job --yes > broken; exit 7"]);
    let ran = crate::common::Ran::from(elect.env("L", env!("CARGO_BIN_EXE_leasehold")).output().unwrap());
    ran.expect(76).says("the lease is lost").says("may not have been protected");
    assert!(!place.is_held());
}

#[test]
fn a_candidate_can_be_told_to_give_up() {
    let place = Place::new();
    let _leader = candidate(&place, "first");
    place.wait_for_pid("pid");
    let other = candidate(&place, "second");
    crate::common::wait_for("the handlers of a candidate", || crate::common::caught_by(other.pid()) & 1 << 14 != 0);
    other.signal(Signal::TERM);
    other.wait().expect(143);
    assert_eq!(lines(&place, "leaders"), ["first"]);
}
