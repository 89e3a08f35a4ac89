//! `exec --permits`: up to N commands at a time.

use std::fs;

use crate::common::Place;

#[test]
fn as_many_commands_run_at_a_time_as_there_are_permits() {
    let place = Place::new();
    // A folder for each permit: `mkdir` tells if two commands have the same one.
    let script = "mkdir inside-$LEASEHOLD_PERMIT || exit 9; echo \"$LEASEHOLD_PERMIT $LEASEHOLD_RESOURCE\" >> ran; sleep 0.02; \
                  rmdir inside-$LEASEHOLD_PERMIT";
    let arguments = ["exec", "--ttl", "5s", "--permits", "2", "convert", "--", "sh", "-c", script];
    let workers: Vec<_> = (0..6).map(|_| place.start(&arguments)).collect();
    for worker in workers {
        worker.wait().expect(0);
    }
    let ran = place.read("ran");
    assert_eq!(ran.lines().count(), 6, "{ran}");
    assert!(ran.lines().all(|line| ["0 convert#0", "1 convert#1"].contains(&line)), "{ran}");
}

#[test]
fn all_permits_held_is_busy() {
    let place = Place::new();
    let script = "echo > held; while [ ! -e done ]; do sleep 0.01; done";
    let holder =
        place.start(&["exec", "--owner", "night shift", "--permits", "1", "convert", "--", "sh", "-c", script]);
    place.wait_for_file_exists("held");
    let again = ["exec", "--no-wait", "--permits", "1", "convert", "--", "touch", "ran"];
    place.run(&again).expect(75).says("held by night shift");
    place.run(&["permits", "set", "convert", "2"]).expect(75).says("held by night shift");
    fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    assert!(!place.path("ran").exists());
}

#[test]
fn everybody_names_the_same_number() {
    let place = Place::new();
    let run = |permits: &str| place.run(&["exec", "--permits", permits, "convert", "--", "touch", "ran"]);
    run("2").expect(0);
    run("3").expect(64).says("permits is 3 here, and 2 in the store").says("leasehold permits set");
    assert_eq!(place.run(&["permits", "set", "convert", "3"]).expect(0).stdout, "\"convert\" has 3 permits\n");
    run("3").expect(0);
    run("2").expect(64);
    for wrong in ["0", "65"] {
        run(wrong).expect(64).says("it can be 1 to 64");
        place.run(&["permits", "set", "convert", wrong]).expect(64).says("it can be 1 to 64");
    }
    assert_eq!(
        place.run(&["permits", "set", "--readers", "catalog", "8"]).expect(0).stdout,
        "\"catalog\" has 8 readers\n"
    );
}
