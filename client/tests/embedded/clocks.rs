//! Which clock leases go by. Time namespaces give two processes of one machine clocks that differ.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::time::Duration;

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold::ffi;

use crate::common::{PATIENCE, Role, ms, role_args, say, stay, url};

/// Ahead of the machine's, in seconds: the clock that counts suspended time, and the one that does not.
const BOOTTIME: u64 = 1_000_000;
const MONOTONIC: u64 = 5_000_000;

/// A command that runs a program with clocks that are so far ahead; `None` where the system forbids that.
fn elsewhere(boottime: u64) -> Option<Vec<String>> {
    let clocks = ["--time".into(), format!("--boottime={boottime}"), format!("--monotonic={MONOTONIC}")];
    // Root may, and others where they may have a namespace of users to themselves.
    [None, Some("--map-root-user")].into_iter().find_map(|user| {
        let mut program: Vec<String> = vec!["unshare".into()];
        program.extend(user.map(str::to_owned));
        program.extend(clocks.clone());
        // Replaced by the program itself, so that signals reach it.
        program.extend(["--fork".into(), "--kill-child".into()]);
        let tried = Command::new(&program[0]).args(&program[1..]).arg("true").output();
        tried.is_ok_and(|output| output.status.success()).then_some(program)
    })
}

fn role_elsewhere(name: &str, args: &str) -> Option<Role> {
    role_ahead_by(BOOTTIME, name, args)
}

fn role_ahead_by(boottime: u64, name: &str, args: &str) -> Option<Role> {
    let program = elsewhere(boottime);
    if program.is_none() {
        #[allow(clippy::print_stderr, reason = "a skipped test is told on the terminal")]
        {
            eprintln!("not tested: this system gives us no time namespace");
        }
    }
    let program = program?;
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    Some(Role::start_through(&program, name, args))
}

#[test]
#[ignore = "a role of other tests"]
fn role_tells_the_time() {
    let Some(_) = role_args() else { return };
    say(ffi::clocks().0);
}

#[test]
fn leases_go_by_the_clock_that_counts_suspended_time() {
    let Some(role) = role_elsewhere("clocks::role_tells_the_time", "") else { return };
    let there: u64 = role.says().parse().unwrap();
    let ahead = Duration::from_nanos(there).saturating_sub(Duration::from_nanos(ffi::clocks().0));
    let boottime = Duration::from_secs(BOOTTIME);
    assert!(ahead > boottime - PATIENCE && ahead < boottime + PATIENCE, "{ahead:?} ahead");
}

#[test]
#[ignore = "a role of other tests"]
fn role_holds() {
    let Some(store) = role_args() else { return };
    let client = Client::connect(store).unwrap();
    let lease = client.lock("job").ttl(ms(2_000)).wait(PATIENCE).acquire().unwrap();
    lease.on_lost(|error| say(format!("lost: {error}")));
    say(lease.token());
    stay();
    lease.release().unwrap();
    say("released");
    stay();
}

#[test]
fn holders_with_other_clocks_are_respected_and_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    let client = Client::connect(&store).unwrap();
    let ours = client.lock("job").ttl(ms(2_000)).acquire().unwrap();

    // Theirs is ahead by days: a record of ours would have run out long ago by that clock.
    let Some(mut role) = role_elsewhere("clocks::role_holds", &store) else { return };
    let held = std::time::Instant::now();
    while held.elapsed() < 2 * ms(2_000) {
        ours.check(Duration::ZERO).unwrap();
        std::thread::sleep(ms(50));
    }
    let token = ours.token();
    drop(ours);
    let theirs: u64 = role.says().parse().unwrap();
    assert!(theirs > token, "{theirs} after {token}");

    // And ours is behind: a record of theirs would stand for days.
    let error = client.lock("job").wait(2 * ms(2_000)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "it is renewed");
    role.close_input();
    assert_eq!(role.says(), "released");
    let next = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(next.token() > theirs);
    drop(next);

    let role = role_elsewhere("clocks::role_holds", &store).unwrap();
    let theirs: u64 = role.says().parse().unwrap();
    // Killed, with the one that it was started by.
    drop(role);
    let next = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(next.token() > theirs);
}

/// The number of a namespace that has ended is given to the next one.
#[test]
fn the_lock_of_a_dead_holder_with_another_clock_is_taken_over_in_any_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    let mut last = 0;
    for boottime in [BOOTTIME, 2, BOOTTIME / 2] {
        let Some(role) = role_ahead_by(boottime, "clocks::role_holds", &store) else { return };
        let said = role.says();
        let token: u64 = said.parse().unwrap_or_else(|_| panic!("it cannot acquire the lock: {said}"));
        assert!(token > last, "{token} after {last}");
        last = token;
    }
    let client = Client::connect(&store).unwrap();
    assert!(client.lock("job").wait(PATIENCE).acquire().unwrap().token() > last);
}
