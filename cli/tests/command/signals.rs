//! Signals to `exec` reach the command, and end the wait for a lock. A killed `exec` takes its command along.

use std::fs;
use std::process::Command;

use crate::common::{Place, Ran, Started, caught_by, children_of, is_alive, is_stopped, wait_for, wait_for_death};
use rustix::process::{Signal, kill_process};

const HOLD: &str = "echo > held; while [ ! -e done ]; do sleep 0.01; done";

#[test]
fn signals_are_passed_on_to_the_whole_group() {
    let place = Place::new();
    let script = "
        for name in HUP INT QUIT TERM USR1 USR2; do trap \"echo $name >> caught\" $name; done
        sh -c 'trap \"\" HUP TERM USR2; trap \"echo child >> caught\" USR1; echo $$ > child; while :; do sleep 0.1; done' &
        echo $$ > pid
        while [ ! -e done ]; do sleep 0.01; done
        kill -KILL $(cat child)
        exit 3";
    let job = place.start_job(&[], script);
    place.wait_for_pid("pid");
    place.wait_for_pid("child");
    for (signal, name) in [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::TERM, "TERM"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        job.signal(signal);
        wait_for(name, || place.read("caught").contains(name));
        if signal == Signal::USR1 {
            wait_for("the child's trap", || place.read("caught").contains("child"));
        }
    }
    fs::write(place.path("done"), "").unwrap();
    job.wait().expect(3);
    assert!(!place.is_held());
}

#[test]
fn a_command_that_a_passed_signal_ends_gives_its_status() {
    let place = Place::new();
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let job = place.start(&["exec", "job", "--", "sh", "-c", "echo $$ > pid; exec sleep 1000"]);
        place.wait_for_pid("pid");
        job.signal(signal);
        job.wait().expect(status);
        assert!(!place.is_held());
        fs::remove_file(place.path("pid")).unwrap();
    }
}

#[test]
fn waiting_ends_at_once_and_leaves_nothing_behind() {
    let place = Place::new();
    let holder = place.start_job(&["--ttl", "1h"], HOLD);
    place.wait_for_file_exists("held");
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::USR1, 138)] {
        let waiter = place.start_job(&["--ttl", "1h"], "echo > ran");
        wait_for_waiting(&waiter);
        waiter.signal(signal);
        waiter.wait().expect(status);
    }
    fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    // A waiter that had left anything would hold it for an hour.
    place.run(&["exec", "--wait", "5s", "job", "--", "true"]).expect(0);
    assert!(!place.path("ran").exists());
}

/// Handlers are installed just before the wait begins.
fn wait_for_waiting(waiter: &Started) {
    wait_for("the handlers of a waiter", || caught_by(waiter.pid()) & (1 << (libc::SIGUSR2 - 1)) != 0);
}

#[test]
fn what_was_ignored_at_the_start_stays_ignored() {
    let place = Place::new();
    let script = "trap '' HUP; exec \"$0\" exec job -- sh -c 'echo $$ > pid; while [ ! -e done ]; do sleep 0.01; done'";
    let mut nohup = Command::new("sh");
    nohup.args(["-c", script, env!("CARGO_BIN_EXE_leasehold")]).current_dir(place.path("."));
    let mut job = Started::new(nohup.env("LEASEHOLD_STORE", place.store()));
    let pid = place.wait_for_pid("pid");
    job.signal(Signal::HUP);
    kill_process(pid, Signal::HUP).unwrap();
    place.run(&["inspect", "job"]).expect(0);
    assert!(job.runs() && is_alive(pid));
    fs::write(place.path("done"), "").unwrap();
    job.wait().expect(0);
}

#[test]
fn the_status_is_known_even_where_the_end_of_children_is_ignored() {
    let place = Place::new();
    // Not every `sh` can ignore this one.
    let mut careless = Command::new("bash");
    careless.args(["-c", "trap '' CHLD; exec \"$0\" exec job -- sh -c 'exit 7'", env!("CARGO_BIN_EXE_leasehold")]);
    let output = careless.current_dir(place.path(".")).env("LEASEHOLD_STORE", place.store()).output().unwrap();
    crate::common::Ran::from(output).expect(7);
}

#[test]
fn a_command_that_is_stopped_alone_keeps_its_lock_and_can_be_ended() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "1500ms"], "echo $$ > pid; while :; do sleep 0.1; done");
    let pid = place.wait_for_pid("pid");
    kill_process(pid, Signal::STOP).unwrap();
    wait_for("the stop", || is_stopped(pid));
    place.run(&["exec", "--wait", "2500ms", "job", "--", "true"]).expect(75);
    assert!(is_stopped(pid));
    job.signal(Signal::CONT);
    wait_for("the command to go on", || !is_stopped(pid));
    kill_process(pid, Signal::STOP).unwrap();
    wait_for("the stop", || is_stopped(pid));
    job.signal(Signal::TERM);
    job.wait().expect(143).says("the command was stopped; the lock stays held");
}

#[test]
fn a_killed_exec_takes_its_command_along_and_a_successor_gets_in() {
    let place = Place::new();
    let script = "sh -c 'trap \"\" HUP TERM; echo $$ > child; while :; do sleep 0.1; done' & echo $$ > pid; wait";
    let job = place.start_job(&["--ttl", "2s"], script);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    job.signal(Signal::KILL);
    job.wait().expect(1_009);
    wait_for_death(pid);
    wait_for_death(child);
    place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
}

#[test]
fn a_killed_exec_takes_its_command_along_even_without_the_guard() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "2s"], "echo $$ > pid; while :; do sleep 0.1; done");
    let pid = place.wait_for_pid("pid");
    let mut guard = pid;
    wait_for("the guard", || {
        guard = children_of(job.pid()).into_iter().find(|child| *child != pid).unwrap_or(pid);
        guard != pid
    });
    kill_process(guard, Signal::KILL).unwrap();
    wait_for_death(guard);
    job.signal(Signal::KILL);
    wait_for_death(pid);
}

#[test]
fn what_the_command_leaves_behind_is_left_alone() {
    let place = Place::new();
    let script = "sh -c 'echo $$ > child; while [ ! -e done ]; do sleep 0.01; done; echo > finished' >&- 2>&- &
        while [ ! -s child ]; do sleep 0.01; done; exit 5";
    place.run(&["exec", "job", "--", "sh", "-c", script]).expect(5);
    assert!(!place.is_held());
    let child = place.wait_for_pid("child");
    assert!(is_alive(child));
    fs::write(place.path("done"), "").unwrap();
    place.wait_for_file("finished");
}

/// As under `nsenter`: there the group of this process has no number.
#[cfg(target_os = "linux")]
#[test]
fn a_process_whose_group_is_outside_of_its_namespace_runs_its_command() {
    let place = Place::new();
    let inside = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child"]).args(command);
        unshare.env("LEASEHOLD_STORE", place.store()).env("XDG_CONFIG_HOME", place.path("."));
        unshare.output()
    };
    if !inside(&["true"]).is_ok_and(|tried| tried.status.success()) {
        eprintln!("not tried, since this user may not make namespaces here");
        return;
    }
    let exec = [env!("CARGO_BIN_EXE_leasehold"), "exec", "job", "--", "sh", "-c", "exit 3"];
    Ran::from(inside(&exec).unwrap()).expect(3);
    assert!(!place.is_held());
}
