//! `once` runs a command unless it was done, and writes down that it is.

use std::time::Duration;
use std::{fs, thread};

use crate::common::{Place, Ran, Started, wait_for, wait_for_death};
use rustix::process::Signal;
use serde_json::json;

/// Counts its runs, and holds on until it is told to end.
const WAITS: &str = "echo $LEASEHOLD_TOKEN >> ran; echo $$ > pid; while [ ! -e done ]; do sleep 0.01; done";

fn once(place: &Place, options: &[&str], script: &str) -> Ran {
    place.run(&arguments(options, script))
}

fn start(place: &Place, options: &[&str], script: &str) -> Started {
    place.start(&arguments(options, script))
}

fn arguments<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let says_when =
        options.iter().any(|option| ["--key", "--every", "--cooldown", "--keep", "--forget"].contains(option));
    let keep: &[&str] = if says_when { &[] } else { &["--keep", "7d"] };
    [&["once"], options, keep, &["job", "--", "sh", "-c", script]].concat()
}

fn runs(place: &Place) -> usize {
    place.read("ran").lines().count()
}

#[test]
fn a_job_is_done_once_for_each_key() {
    let place = Place::new();
    let ran = once(&place, &["--key", "monday", "--owner", "night shift"], "echo >> ran");
    assert_eq!(ran.expect(0).stderr, "");
    let again = once(&place, &["--key", "monday"], "echo >> ran").expect(0);
    assert_eq!(again.stderr.lines().count(), 1, "{}", again.stderr);
    again.says("\"job@monday\": done already, by night shift, token ");
    once(&place, &["--key", "monday", "--done-status", "9"], "echo >> ran").expect(9).says("done already");
    assert_eq!(runs(&place), 1);
    once(&place, &["--key", "tuesday"], "echo >> ran").expect(0);
    once(&place, &[], "echo >> ran").expect(0);
    once(&place, &[], "echo >> ran").expect(0).says("\"job@\": done already");
    assert_eq!(runs(&place), 3);
    // A plain lock does not look at completions.
    place.run(&["exec", "job@monday", "--", "touch", "locked"]).expect(0);
    assert!(place.path("locked").exists());
}

#[test]
fn many_machines_do_it_once() {
    let place = Place::new();
    let workers: Vec<_> = (0..6).map(|_| start(&place, &["--key", "monday", "--wait", "60s"], WAITS)).collect();
    for worker in &workers {
        wait_for("a worker's handlers", || crate::common::caught_by(worker.pid()) & 1 << 14 != 0);
    }
    fs::write(place.path("done"), "").unwrap();
    for worker in workers {
        worker.wait().expect(0);
    }
    assert_eq!(runs(&place), 1);
}

#[test]
fn the_command_is_told_what_it_holds() {
    let place = Place::new();
    let script = "echo \"$LEASEHOLD_RESOURCE|$LEASEHOLD_TOKEN|$LEASEHOLD_STORE\"";
    let told = once(&place, &["--key", "a@b%"], script).expect(0).stdout;
    let words: Vec<&str> = told.trim().split('|').collect();
    assert_eq!((words[0], words[2]), ("job@a%40b%25", place.store().as_str()));
    assert!(words[1].parse::<u64>().unwrap() > 0);
}

#[test]
fn who_comes_while_it_runs_steps_aside() {
    let place = Place::new();
    let runner = start(&place, &["--key", "monday", "--owner", "night shift"], WAITS);
    place.wait_for_pid("pid");
    let late = &["--key", "monday"];
    once(&place, late, "touch late").expect(75).says("\"job@monday\": somebody else runs it: held by night shift");
    once(&place, &[&late[..], &["--wait", "50ms"]].concat(), "touch late").expect(75).says("night shift");
    once(&place, &[&late[..], &["--running-status", "9"]].concat(), "touch late").expect(9);
    let quiet = once(&place, &[&late[..], &["--running-status", "0"]].concat(), "touch late").expect(0);
    assert_eq!(quiet.stderr, "");
    once(&place, &["--key", "tuesday"], "touch other").expect(0);
    assert!(!place.path("late").exists() && place.path("other").exists());
    fs::write(place.path("done"), "").unwrap();
    runner.wait().expect(0);
    once(&place, late, "touch late").expect(0).says("done already");
}

#[test]
fn who_waits_learns_that_it_was_done() {
    let place = Place::new();
    let runner = start(&place, &["--key", "monday", "--owner", "night shift"], WAITS);
    place.wait_for_pid("pid");
    let waiter = start(&place, &["--key", "monday", "--wait", "60s"], "touch late");
    fs::write(place.path("done"), "").unwrap();
    runner.wait().expect(0);
    waiter.wait().expect(0).says("done already, by night shift");
    assert!(!place.path("late").exists());
}

#[test]
fn who_waits_takes_over_with_a_higher_token_when_the_runner_is_killed() {
    let place = Place::new();
    let options = ["--key", "monday", "--ttl", "1500ms", "--wait", "60s"];
    let mut runner = start(&place, &options, WAITS);
    let command = place.wait_for_pid("pid");
    let waiter = start(&place, &options, "echo $LEASEHOLD_TOKEN >> ran");
    runner.signal(Signal::KILL);
    wait_for("the end of the runner", || !runner.runs());
    wait_for_death(command);
    waiter.wait().expect(0);
    let tokens: Vec<u64> = place.read("ran").lines().map(|line| line.parse().unwrap()).collect();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
    once(&place, &options, "echo >> ran").expect(0).says("done already");
}

#[test]
fn a_command_that_fails_leaves_the_work_to_the_next() {
    let place = Place::new();
    let on_monday = ["--key", "monday", "--ttl", "1h"];
    for (script, status) in [("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)] {
        once(&place, &on_monday, &format!("echo >> ran; {script}")).expect(status);
    }
    let missing = place.run(&["once", "--key", "monday", "--keep-failures", "job", "--", "no-such-command"]);
    missing.expect(127).says("command not found");
    assert_eq!(runs(&place), 3);
    once(&place, &on_monday, "echo >> ran").expect(0);
    once(&place, &on_monday, "echo >> ran").expect(0).says("done already");
    assert_eq!(runs(&place), 4);
}

#[test]
fn with_keep_failures_a_failure_counts_as_done() {
    let place = Place::new();
    for (key, script, status) in [("monday", "exit 7", 7), ("tuesday", "kill -KILL $$", 137)] {
        once(&place, &["--key", key, "--keep-failures"], script).expect(status);
        once(&place, &["--key", key], "touch again").expect(0).says("done already");
    }
    assert!(!place.path("again").exists());
}

#[test]
fn a_signal_ends_the_command_or_the_wait_and_nothing_is_marked() {
    let place = Place::new();
    let options = ["--key", "monday", "--ttl", "1h", "--wait", "60s"];
    let runner = start(&place, &options, "echo $$ > pid; exec sleep 1000");
    place.wait_for_pid("pid");
    let waiter = start(&place, &options, "touch late");
    wait_for("the waiter's handlers", || crate::common::caught_by(waiter.pid()) & 1 << 14 != 0);
    waiter.signal(Signal::TERM);
    waiter.wait().expect(143);
    runner.signal(Signal::TERM);
    runner.wait().expect(143);
    once(&place, &options, "touch next").expect(0);
    assert!(place.path("next").exists() && !place.path("late").exists());
}

#[test]
fn a_run_that_lost_its_lease_is_not_marked() {
    let place = Place::new();
    let options = ["--key", "monday", "--ttl", "1500ms", "--wait", "60s"];
    let runner = start(&place, &options, WAITS);
    let command = place.wait_for_pid("pid");
    runner.signal(Signal::STOP);
    once(&place, &options, "echo >> ran; exit 7").expect(7);
    // It ends well, and too late.
    fs::write(place.path("done"), "").unwrap();
    wait_for("the end of the command", || !crate::common::is_alive(command));
    runner.signal(Signal::CONT);
    runner.wait().expect(76).says("the lease is lost").says("no completion was written");
    once(&place, &options, "echo >> ran").expect(0);
    assert_eq!(runs(&place), 3);
}

#[test]
fn a_lock_broken_since_the_last_renewal_leaves_no_completion() {
    let place = Place::new();
    let run = |options: &[&str]| {
        let options = [&["--key", "monday", "--ttl", "1h"], options].concat();
        let mut command = place.leasehold(&arguments(&options, "$L break job@monday --yes > broken"));
        Ran::from(command.env("L", env!("CARGO_BIN_EXE_leasehold")).output().unwrap())
    };
    run(&[]).expect(76).says("the lease is lost").says("may be run again");
    run(&["--lost-status", "9"]).expect(9).says("the lease is lost");
    run(&["--on-lost", "ignore"]).expect(76).says("may be run again");
    place.run(&["inspect", "job@monday"]).expect(1);
}

#[test]
fn a_completion_that_cannot_be_written_is_told() {
    let place = Place::new();
    // The folder is the database's only home: without it nothing can be confirmed.
    let options = ["--key", "monday", "--ttl", "2s"];
    let ran = once(&place, &options, "rm -f locks.db*; mkdir locks.db");
    assert!([73, 76, 77].contains(&ran.status), "{ran:?}");
    ran.says("may be run again");
}

#[test]
fn the_wait_for_a_mark_ends_with_the_second_signal() {
    let place = Place::new();
    let options = ["--key", "monday", "--ttl", "1h"];
    let script =
        "trap '' TERM; echo $$ > pid; while [ ! -e done ]; do sleep 0.01; done; rm -f locks.db*; mkdir locks.db";
    let runner = start(&place, &options, script);
    let command = place.wait_for_pid("pid");
    fs::write(place.path("done"), "").unwrap();
    // A signal before that would end the command, and not the wait.
    wait_for_death(command);
    wait_for("the wait for the completion", || {
        runner.signal(Signal::TERM);
        // Not again before it can have been heard: the one after the second would kill it.
        thread::sleep(Duration::from_millis(200));
        runner.said().contains("another signal ends the wait")
    });
    runner.signal(Signal::TERM);
    runner.wait().expect(73).says("may be run again");
}

#[test]
fn a_completion_stands_as_long_as_it_is_kept() {
    let place = Place::new();
    let options = ["--ttl", "2s", "--keep", "2s", "--key", "monday"];
    once(&place, &options, "echo >> ran").expect(0);
    wait_for("the end of the completion", || once(&place, &options, "echo >> ran").expect(0).stderr.is_empty());
    assert_eq!(runs(&place), 2);
    let cooldown = ["--ttl", "2s", "--cooldown", "2s"];
    once(&place, &cooldown, "echo >> ran").expect(0);
    wait_for("the end of the cooldown", || once(&place, &cooldown, "echo >> ran").expect(0).stderr.is_empty());
    assert_eq!(runs(&place), 4);
}

#[test]
fn every_period_has_a_run() {
    let place = Place::new();
    // No test takes as long as that, and no period of it begins now.
    let every = ["--every", "36500d"];
    let told = once(&place, &every, "echo $LEASEHOLD_RESOURCE").expect(0).stdout;
    assert_eq!(told, "job@1970-01-01T00:00:00Z\n");
    once(&place, &every, "touch again").expect(0).says("\"job@1970-01-01T00:00:00Z\": done already");
    let moved = ["--every", "36500d", "--offset", "1d"];
    assert_eq!(once(&place, &moved, "echo $LEASEHOLD_RESOURCE").expect(0).stdout, "job@1970-01-02T00:00:00Z\n");
    assert!(!place.path("again").exists());
}

#[test]
fn times_of_a_zone_have_a_run_each() {
    let place = Place::new();
    let resource = |options: &[&str]| once(&place, options, "echo $LEASEHOLD_RESOURCE").expect(0).stdout;
    let by_period = ["--every", "36500d", "--at", "02:30", "--tz", "Europe/Berlin"];
    assert_eq!(resource(&by_period), "job@1970-01-01T02:30[Europe/Berlin]\n");
    // No test runs at the border of such a time, but once in four years.
    let by_cron = ["--cron", "30 2 29 FEB *", "--tz", "America/New_York"];
    let shown = resource(&by_cron);
    assert!(shown.starts_with("job@20") && shown.ends_with("-02-29T02:30[America/New_York]\n"), "{shown}");
    for times in [&by_period[..], &by_cron] {
        once(&place, times, "touch again").expect(0).says("]\": done already");
        let asked = |command: &[&str]| place.run(&[command, &["job"], times].concat());
        assert!(asked(&["inspect"]).expect(0).stdout.contains("] is done\n"));
        assert!(asked(&["once", "--forget"]).expect(0).stdout.contains("] may be done again; it was done by "));
        asked(&["inspect"]).expect(1);
    }
    assert!(!place.path("again").exists());
}

#[test]
fn a_completion_can_be_forgotten() {
    let place = Place::new();
    let forget = |arguments: &[&str]| place.run(&[&["once", "--forget"], arguments].concat());
    assert_eq!(forget(&["job", "--key", "monday"]).expect(1).stdout, "job@monday has no completion\n");
    for key in [&["--key", "monday"][..], &[]] {
        let options = [key, &["--owner", "night shift"]].concat();
        once(&place, &options, "echo >> ran").expect(0);
        let told = forget(&[&["job"], key].concat()).expect(0).stdout;
        assert!(told.contains("may be done again; it was done by night shift, token "), "{told}");
        let again = once(&place, &options, "echo >> ran").expect(0);
        assert_eq!(again.stderr, "", "at once");
    }
    assert_eq!(runs(&place), 4);
}

#[test]
fn what_was_done_can_be_repeated_by_hand() {
    let place = Place::new();
    for options in [&["--key", "monday"][..], &["--key", "monday", "--even-if-done"], &["--key", "monday"]] {
        once(&place, options, "echo >> ran").expect(0);
    }
    assert_eq!(runs(&place), 2);
}

#[test]
fn the_present_period_is_shown_and_forgotten() {
    let place = Place::new();
    // No test runs long enough to see another one begin, except once in ten years.
    let (every, other) = (["--every", "3650d"], ["--every", "3650d", "--offset", "7d"]);
    let inspect = |period: &[&str]| place.run(&[&["inspect", "job"], period].concat());
    assert!(inspect(&every).expect(1).stdout.contains(" is not done, and nobody runs it\n"));
    once(&place, &every, "true").expect(0);
    let shown = inspect(&every).expect(0).stdout;
    assert!(shown.starts_with("job@") && shown.contains("T00:00:00Z is done\n"), "{shown}");
    assert!(inspect(&other).expect(1).stdout.contains(" is not done"));
    let forget = |period: &[&str]| place.run(&[&["once", "--forget", "job"], period].concat());
    assert!(forget(&other).expect(1).stdout.ends_with("T00:00:00Z has no completion\n"));
    assert!(forget(&every).expect(0).stdout.contains("T00:00:00Z may be done again; it was done by "));
    inspect(&every).expect(1);
    for (bad, wrong) in [
        (&["--offset", "1d"][..], "--every"),
        (&["--every", "1d", "--key", "a"], "--key"),
        (&["--every", "0s"], "must be at least"),
        (&["--every", "1d", "--offset", "1d"], "offset"),
    ] {
        inspect(bad).expect(64).says(wrong);
        forget(bad).expect(64).says(wrong);
    }
}

#[test]
fn inspect_shows_the_completion() {
    let place = Place::new();
    let by_key = ["inspect", "job", "--key", "monday"];
    let inspect = |more: &[&str]| place.run(&[&by_key, more].concat());
    let nothing = inspect(&[]).expect(1).stdout;
    assert_eq!(nothing, format!("job@monday is not done, and nobody runs it\n  store      {}\n", place.store()));
    let nothing = json!({ "resource": "job@monday", "held": false, "done": null, "store": place.store() });
    assert_eq!(inspect(&["--json"]).expect(1).json(), nothing);

    let runner = start(&place, &["--key", "monday", "--owner", "night shift"], WAITS);
    let token = place.wait_for_file("ran");
    place.wait_for_pid("pid");
    assert!(inspect(&[]).expect(0).stdout.contains("job@monday is held\n  owner      night shift"));
    assert_eq!(inspect(&["--json"]).expect(0).json()["done"], json!(null));
    fs::write(place.path("done"), "").unwrap();
    runner.wait().expect(0);

    let shown = inspect(&[]).expect(0).stdout;
    let token_line = format!("done with  token {token}\n");
    for part in
        ["job@monday is done\n", "done by    night shift\n", &token_line, "done       ", "not again  for 7.0 days\n"]
    {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let json = inspect(&["--json"]).expect(0).json();
    assert_eq!((&json["held"], &json["done"]["owner"]), (&json!(false), &json!("night shift")));
    assert_eq!(json["done"]["token"].to_string(), token);
    assert!(json["done"]["at"].as_str().unwrap().ends_with('Z'));
    let left = json["done"]["left_ms"].as_u64().unwrap();
    assert!(604_000_000 < left && left <= 604_800_000, "{left}");
    let by_resource = place.run(&["inspect", "job@monday", "--json"]).expect(0).json();
    assert_eq!(by_resource["done"]["token"], json["done"]["token"]);
    // A lock of that name has no completion.
    assert!(place.run(&["inspect", "job", "--json"]).expect(1).json().get("done").is_none());
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let place = Place::new();
    let long = "s".repeat(1_025);
    for (options, wrong) in [
        (&["--key", ""][..], "key is empty"),
        (&["--key", "a\nb"], "key has the control character U+000A"),
        (&["--key", &long], "key has 1025 bytes"),
        (&["--key", "s", "--every", "1d"], "--every"),
        (&["--key", "s", "--cooldown", "1h"], "--cooldown"),
        (&["--every", "1d", "--cooldown", "1h"], "--cooldown"),
        (&["--cooldown", "1h", "--keep", "1d"], "--keep"),
        (&["--offset", "1h"], "--every"),
        (&["--every", "0s"], "must be at least 1 s"),
        (&["--every", "1"], "the unit is missing"),
        (&["--every", "1d", "--offset", "1d"], "below the period"),
        (&["--every", "1d", "--offset", "-1h"], "cannot be negative"),
        (&["--every", "1d", "--at", "02:00"], "add tz"),
        (&["--every", "1d", "--at", "24:00", "--tz", "UTC"], "\"24:00\" is no time of day"),
        (&["--key", "s", "--at", "02:00", "--tz", "UTC"], "add every"),
        (&["--every", "1d", "--tz", "Europe/Berln"], "\"Europe/Berln\" is no zone"),
        (&["--key", "s", "--tz", "UTC"], "leave tz out"),
        (&["--cron", "0 2 * * *"], "add tz"),
        (&["--cron", "0 0 30 2 *", "--tz", "UTC"], "never comes"),
        (&["--cron", "0 2 * * *", "--tz", "UTC", "--key", "s"], "--key"),
        (&["--cron", "0 2 * * *", "--tz", "UTC", "--every", "1d"], "--every"),
        (&["--cron", "0 2 * * *", "--tz", "UTC", "--cooldown", "1h"], "--cooldown"),
        (&["--keep", "29s"], "29 s, less than the ttl of 30 s"),
        (&["--cooldown", "0s"], "0 s, less than the ttl of 30 s"),
        (&["--every", "1d", "--keep", "23h"], "shorter than the period"),
        (&["--keep", "36501d"], "too long; the longest is 876000h"),
        (&["--ttl", "50ms"], "ttl is 50 ms, but must be at least 100 ms"),
        (&["--forget"], "--forget"),
    ] {
        once(&place, options, "touch ran").expect(64).says(wrong);
    }
    place.run(&["once", "", "--", "touch", "ran"]).expect(64).says("no name");
    place.run(&["once", "job", "--", "touch", "ran"]).expect(64).says("say when the work may be done again: key");
    place.run(&["once", "job"]).expect(64).says("<COMMAND>");
    place.run(&["once", "--forget"]).expect(64).says("<NAME>");
    place.run(&["once", "--forget", "--keep", "1d", "job"]).expect(64).says("--keep");
    place.run(&["once", "--forget", "--key", "", "job"]).expect(64).says("key is empty");
    place.run(&["inspect", "job", "--key", ""]).expect(64).says("key is empty");
    place
        .run(&["once", "--store", "memory:", "--key", "monday", "job", "--", "touch", "ran"])
        .expect(64)
        .says("locks out nobody else");
    assert!(!place.path("ran").exists());
}

#[test]
fn a_start_that_just_misses_its_cooldown_is_warned_and_no_other_is() {
    let place = Place::new();
    let start = || place.run(&["once", "poll", "--ttl", "1s", "--cooldown", "6s", "--", "true"]).expect(0).stderr;
    let doubt = "is skipped every second time";
    start();
    let skipped = start();
    assert!(skipped.contains("done already") && !skipped.contains(doubt), "{skipped}");
    wait_for("the last moments of the cooldown", || start().contains(doubt));
}
