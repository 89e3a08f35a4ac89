//! `exec` runs one command at a time, tells it what it holds, and ends as it does.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Place, wait_for};

#[test]
fn commands_under_one_lock_never_overlap() {
    let place = Place::new();
    fs::write(place.path("counter"), "0\n").unwrap();
    // Nothing but the lock keeps the two steps together, and `mkdir` tells if it does not.
    let script = "mkdir inside || exit 9; n=$(cat counter); sleep 0.02; echo $((n + 1)) > counter; rmdir inside";
    let workers: Vec<_> = (0..6).map(|_| place.start_job(&["--ttl", "5s"], script)).collect();
    for worker in workers {
        worker.wait().expect(0);
    }
    assert_eq!(place.read("counter"), "6\n");
}

#[test]
fn a_held_lock_is_busy_and_the_holder_is_named() {
    let place = Place::new();
    let holder = place.start_job(&["--owner", "night shift"], "echo > held; while [ ! -e done ]; do sleep 0.01; done");
    place.wait_for_file_exists("held");
    for once in [&["--no-wait"][..], &["--wait", "0s"]] {
        let script = ["job", "--", "touch", "ran"];
        place.run(&[&["exec"], once, &script].concat()).expect(75).says("held by night shift");
    }
    let again = ["exec", "--no-wait", "--busy-status", "0", "job", "--", "touch", "ran"];
    assert_eq!(place.run(&again).expect(0).stderr, "");
    place
        .run(&["exec", "--wait", "1ms", "--busy-status", "9", "job", "--", "touch", "ran"])
        .expect(9)
        .says("not free within the wait");
    assert!(!place.path("ran").exists());
    place.run(&["exec", "--no-wait", "another job", "--", "touch", "ran"]).expect(0);
    assert!(place.path("ran").exists());
    fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released() {
    let place = Place::new();
    let holder = place.start_job(&[], "echo > held; while [ ! -e done ]; do sleep 0.01; done; echo first >> order");
    place.wait_for_file_exists("held");
    let waiter = place.start_job(&["--wait", "30s"], "echo second >> order");
    fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    waiter.wait().expect(0);
    assert_eq!(place.read("order"), "first\nsecond\n");
}

#[test]
fn the_command_is_told_what_it_holds() {
    let place = Place::new();
    let script = "echo \"$LEASEHOLD_RESOURCE|$LEASEHOLD_TOKEN|$LEASEHOLD_STORE\"";
    let words = |ran: crate::common::Ran| -> Vec<String> { ran.stdout.trim().split('|').map(str::to_owned).collect() };
    let first = words(place.run(&["exec", "invoice/42", "--", "sh", "-c", script]).expect(0));
    let second = words(place.run(&["exec", "invoice/42", "--", "sh", "-c", script]).expect(0));
    assert_eq!((first[0].as_str(), first[2].as_str()), ("invoice/42", place.store().as_str()));
    let tokens: Vec<u64> = [&first, &second].map(|words| words[1].parse().unwrap()).into();
    assert!(0 < tokens[0] && tokens[0] < tokens[1] && tokens[1] < 1 << 53, "{tokens:?}");
}

#[test]
fn the_store_is_passed_on_so_that_it_holds_in_another_folder() {
    let place = Place::new();
    let ran = place
        .leasehold(&["exec", "--store", "sqlite:other.db", "job", "--", "printenv", "LEASEHOLD_STORE"])
        .output()
        .map(crate::common::Ran::from)
        .unwrap()
        .expect(0);
    let real = place.path("other.db").canonicalize().unwrap();
    let told = ran.stdout.trim().strip_prefix("sqlite:").unwrap();
    assert_eq!(std::path::Path::new(told).canonicalize().unwrap(), real);
    assert!(told.starts_with('/'));
}

#[test]
fn a_file_of_many_slashes_is_the_same_file_for_the_command() {
    let place = Place::new();
    let store = format!("sqlite:///{}", place.path("other.db").display());
    let looks = [env!("CARGO_BIN_EXE_leasehold"), "inspect", "job"];
    assert!(store.starts_with("sqlite:////"), "{store}");
    place.run(&[&["exec", "--store", &store, "job", "--"], &looks[..]].concat()).expect(0);
}

#[test]
fn exec_ends_as_its_command_does() {
    let place = Place::new();
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137)] {
        place.run(&["exec", "job", "--", "sh", "-c", script]).expect(status);
        assert!(!place.is_held(), "released after {script}");
    }
    place.run(&["exec", "job", "--", "sh", "-c", "kill -TERM $$"]).expect(143);
}

#[test]
fn input_and_output_are_those_of_the_command() {
    let place = Place::new();
    fs::write(place.path("input"), "words\n").unwrap();
    let mut command = place.leasehold(&["exec", "job", "--", "sh", "-c", "cat; echo problem >&2"]);
    let ran = crate::common::Ran::from(command.stdin(fs::File::open(place.path("input")).unwrap()).output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "words\n", "problem\n"));
}

#[test]
fn a_command_that_cannot_be_started_gives_the_lock_back_at_once() {
    let place = Place::new();
    fs::write(place.path("plain"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(place.path("plain"), fs::Permissions::from_mode(0o644)).unwrap();
    for (command, status, says) in [
        ("no-such-command", 127, "no-such-command: command not found"),
        ("./nothing-here", 127, "./nothing-here: command not found"),
        ("./plain", 126, "./plain cannot be executed: Permission denied"),
    ] {
        place.run(&["exec", "--ttl", "1h", "job", "--", command]).expect(status).says(says);
        assert!(!place.is_held(), "released after {command}");
    }
}

#[test]
fn the_lease_is_renewed_for_as_long_as_the_command_runs() {
    let place = Place::new();
    let holder = place.start_job(&["--ttl", "1500ms"], "echo > held; while [ ! -e done ]; do sleep 0.01; done");
    place.wait_for_file_exists("held");
    let since = |place: &Place| place.run(&["inspect", "job", "--json"]).expect(0).json()["since_unix_ms"].clone();
    let granted = since(&place);
    // More than a ttl passes while others try in vain.
    place.run(&["exec", "--wait", "2500ms", "job", "--", "true"]).expect(75);
    assert_eq!(since(&place), granted);
    fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    wait_for("the release", || !place.is_held());
}

#[test]
fn a_failed_release_is_reported_and_the_command_s_status_counts() {
    let place = Place::new();
    // The folder is the database's only home: without it nothing can be confirmed.
    let ran = place.run(&["exec", "job", "--", "sh", "-c", "rm -f locks.db*; mkdir locks.db; exit 7"]).expect(7);
    assert!(ran.stderr.starts_with("leasehold: "), "{}", ran.stderr);
}

#[test]
fn a_command_that_waits_for_its_own_lock_gets_a_warning() {
    let place = Place::new();
    let script = "$L exec --wait 50ms job -- true; echo $?; $L exec --wait 50ms other -- true; echo $?";
    let mut command = place.leasehold(&["exec", "job", "--", "sh", "-c", script]);
    let ran = crate::common::Ran::from(command.env("L", env!("CARGO_BIN_EXE_leasehold")).output().unwrap()).expect(0);
    assert_eq!(ran.stdout, "75\n0\n");
    assert_eq!(ran.stderr.matches("not reentrant").count(), 1, "{}", ran.stderr);
    // With the variables of a lease that is over there is nothing to warn of.
    let mut command = place.leasehold(&["exec", "job", "--", "true"]);
    command.env("LEASEHOLD_RESOURCE", "job").env("LEASEHOLD_TOKEN", "1");
    assert_eq!(crate::common::Ran::from(command.output().unwrap()).expect(0).stderr, "");
}

#[test]
fn a_waiter_without_a_terminal_says_for_whom_it_waits_and_then_ever_more_seldom() {
    let place = Place::new();
    let script = "echo > begun; while [ ! -e done ]; do sleep 0.05; done";
    let holder = place.start_job(&["--owner", "night shift"], script);
    place.wait_for_file_exists("begun");
    let waiter = place.start(&["exec", "--wait", "2m", "job", "--", "true"]);
    for times in 1..=2 {
        wait_for("the report of the wait", || {
            waiter.said().matches("waiting: held by night shift, token ").count() == times
        });
    }
    std::fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    waiter.wait().expect(0).says("; for 5").says("; for 1");
}

#[test]
fn a_store_that_others_cannot_see_is_refused() {
    let place = Place::new();
    for url in ["memory:", "memory:jobs"] {
        let ran = place.run(&["exec", "--store", url, "job", "--", "touch", "ran"]).expect(64);
        ran.says("locks out nobody else").says("sqlite:locks.db");
    }
    assert!(!place.path("ran").exists());
}
