//! The command does not outlive its lease.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::common::{Place, Started, is_alive, wait_for, wait_for_death};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;

/// Ignores every polite request to end, and so does its child.
const STUBBORN: &str = "trap '' HUP INT QUIT TERM USR1 USR2
    sh -c 'echo $$ > child; while :; do sleep 0.1; done' &
    echo $$ > pid
    while :; do sleep 0.1; done";

#[test]
fn a_holder_that_was_stopped_past_its_ttl_kills_its_command_when_it_wakes() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "1500ms"], STUBBORN);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    job.signal(Signal::STOP);
    place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
    // Nobody could have told the command.
    assert!(is_alive(pid) && is_alive(child));
    job.signal(Signal::CONT);
    job.wait().expect(76).says("the lease is lost").says("the command was killed");
    wait_for_death(pid);
    wait_for_death(child);
}

#[test]
fn a_broken_lock_ends_the_command_with_the_next_renewal() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "1s"], STUBBORN);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    place.run(&["break", "job", "--yes"]).expect(0);
    job.wait().expect(76).says("the lease is lost");
    wait_for_death(pid);
    wait_for_death(child);
}

#[test]
fn a_revoked_command_gets_term_at_once_and_its_lock_is_free_when_it_has_ended() {
    let place = Place::new();
    let script = "trap 'echo > told; while [ ! -e held ]; do sleep 0.01; done; exit 3' TERM
        echo > begun; while :; do sleep 0.1; done";
    let job = place.start_job(&["--ttl", "24s"], script);
    place.wait_for_file_exists("begun");
    place.run(&["revoke", "job"]).expect(64).says("--yes");
    place.run(&["revoke", "job", "--token", "7", "--yes"]).expect(2).says("not the holder that was named");
    place.run(&["revoke", "job", "--yes"]).expect(0);
    place.wait_for_file_exists("told");
    let json = place.run(&["inspect", "job", "--json"]).expect(0).json();
    assert_eq!((&json["held"], &json["revoked"]), (&true.into(), &true.into()), "it still works");
    assert!(place.run(&["inspect", "job"]).expect(0).stdout.contains("revoked"));
    let again = place.run(&["revoke", "job", "--yes", "--json"]).expect(0).json();
    assert_eq!((&again["revoked"], &again["holder"]["token"]), (&true.into(), &json["token"]));
    fs::write(place.path("held"), "").unwrap();
    job.wait().expect(76).says("somebody revoked it").says("the command was told to end");
    place.run(&["inspect", "job"]).expect(1);
    let free = place.run(&["revoke", "job", "--yes", "--json"]).expect(1).json();
    assert_eq!((&free["revoked"], &free["holder"]), (&false.into(), &serde_json::Value::Null));
}

#[test]
fn a_revoked_command_that_ignores_term_is_killed_before_the_ttl_is_over() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "9s"], STUBBORN);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    place.run(&["revoke", "job", "--yes"]).expect(0);
    job.wait()
        .expect(76)
        .says("somebody revoked it")
        .says("the command was told to end")
        .says("the command was killed");
    assert!(!is_alive(pid) && !is_alive(child));
    assert!(!place.is_held());
}

/// Between two renewals nobody tells the command; the release finds it.
#[test]
fn a_lock_broken_since_the_last_renewal_is_reported_at_the_end() {
    let place = Place::new();
    let exec = |options: &[&str], script: &str| {
        let mut command =
            place.leasehold(&[&["exec", "--ttl", "1h"], options, &["job", "--", "sh", "-c", script]].concat());
        crate::common::Ran::from(command.env("L", env!("CARGO_BIN_EXE_leasehold")).output().unwrap())
    };
    let breaks = "$L break job --yes > broken; exit 7";
    exec(&[], breaks).expect(76).says("the lease is lost").says("may not have been protected");
    assert!(!place.is_held());
    exec(&["--lost-status", "9"], breaks).expect(9);
    exec(&["--on-lost", "ignore"], breaks).expect(7).says("the lease is lost");

    let job = place.start_job(&["--ttl", "1h"], "echo > begun; while [ ! -e held ]; do sleep 0.01; done");
    place.wait_for_file_exists("begun");
    place.run(&["break", "job", "--yes"]).expect(0);
    let rival = place.start_job(&[], "echo > held; while [ ! -e done ]; do sleep 0.01; done");
    job.wait().expect(76).says("somebody else holds the lock now");
    assert!(place.is_held(), "the rival's lock stands");
    fs::write(place.path("done"), "").unwrap();
    rival.wait().expect(0);
}

#[test]
fn a_command_that_ignores_term_is_killed_before_the_next_holder_starts() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "2s", "--max-hold", "2s"], STUBBORN);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    // Ended and not reaped yet is ended.
    let look = "for name in pid child; do ! grep -qs '^State:.[^ZX]' /proc/$(cat $name)/status || exit 1; done";
    place.run(&["exec", "--wait", "20s", "job", "--", "sh", "-c", look]).expect(0);
    job.wait().expect(76).says("the command was told to end").says("the command was killed");
    assert!(!is_alive(pid) && !is_alive(child));
}

#[test]
fn a_command_that_ignores_term_is_killed_while_the_lease_has_time_left() {
    let place = Place::new();
    // A third of a second is left for that: long enough on a slow machine.
    let job = place.start_job(&["--ttl", "8s", "--max-hold", "8s"], STUBBORN);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    let ran = job.wait().expect(76).says(" left; the command was killed");
    assert!(!ran.stderr.contains("the lease is lost"), "{}", ran.stderr);
    wait_for_death(pid);
    wait_for_death(child);
}

/// Only root can start a process that its parent may not signal.
#[test]
fn a_command_of_another_user_goes_on_with_a_message() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    // As sudo does it: from a program with the rights of root to another user altogether.
    let sudo = place.path("sudo");
    fs::copy("/usr/bin/setpriv", &sudo).unwrap();
    fs::set_permissions(&sudo, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(place.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    // Where anybody may run it.
    fs::copy(env!("CARGO_BIN_EXE_leasehold"), place.path("leasehold")).unwrap();
    let nobody = 65_534;
    let start = |script: &str| {
        let options = ["exec", "--ttl", "2s", "--max-hold", "2s", "job", "--", "sh", "-c", script];
        let mut command = Command::new(place.path("leasehold"));
        command.args(options).current_dir(place.path(".")).env("LEASEHOLD_STORE", place.store());
        Started::new(command.stdin(Stdio::null()).uid(nobody).gid(nobody))
    };
    let work = "./sudo --reuid 0 sh -c 'echo $$ > pid; while [ ! -e done ]; do sleep 0.01; done'";
    for (script, says) in [
        (format!("exec {work}"), "the command could not be killed, because it runs as another user"),
        (format!("trap '' TERM; {work}; true"), "processes of the command could not be killed"),
    ] {
        let job = start(&script);
        let pid = place.wait_for_pid("pid");
        // The lease is over once another has had the lock.
        place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
        assert!(is_alive(pid), "{script}");
        fs::write(place.path("done"), "").unwrap();
        wait_for_death(pid);
        job.wait().expect(76).says(says).says("without the lock");
        fs::remove_file(place.path("pid")).unwrap();
        fs::remove_file(place.path("done")).unwrap();
    }
}

/// As in a container whose first process reaps nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_process_that_nobody_reaps_is_not_told_as_alive() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let place = Place::new();
    let job = place.start_job(&["--ttl", "2s", "--max-hold", "2s"], STUBBORN);
    let child = place.wait_for_pid("child");
    let ran = job.wait().expect(76).says("the command was killed");
    assert!(!ran.stderr.contains("could not be killed"), "{}", ran.stderr);
    match fs::read_to_string(format!("/proc/{}/stat", child.as_raw_pid())) {
        Ok(stat) => assert!(stat.contains(") Z "), "{stat}"),
        // It was killed before the shell that started it, which has reaped it then.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}

#[test]
fn a_command_in_danger_can_wind_up_and_gives_the_lock_back() {
    let place = Place::new();
    let script = "trap 'echo bye > bye; exit 0' TERM; echo $$ > pid; while :; do sleep 0.1; done";
    let job = place.start_job(&["--ttl", "3s", "--max-hold", "3s", "--lost-status", "9"], script);
    place.wait_for_pid("pid");
    let ran = job.wait().expect(9).says("the command was told to end");
    assert!(!ran.stderr.contains("killed"), "{}", ran.stderr);
    assert_eq!(place.read("bye"), "bye\n");
    assert!(!place.is_held(), "half a second of the lease is left, but it was released");
}

#[test]
fn children_have_until_the_end_of_the_lease_when_the_command_itself_ends_on_term() {
    let place = Place::new();
    let script = "sh -c 'trap \"echo bye > bye; exit\" TERM; echo $$ > polite; while :; do sleep 0.1; done' &
        sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 0.1; done' &
        echo $$ > pid; wait";
    // The last sixth is for the children: long enough on a slow machine.
    let job = place.start_job(&["--ttl", "12s", "--max-hold", "12s"], script);
    place.wait_for_pid("pid");
    let (polite, stubborn) = (place.wait_for_pid("polite"), place.wait_for_pid("stubborn"));
    job.wait().expect(76).says("the command was killed");
    assert_eq!(place.read("bye"), "bye\n");
    assert!(!is_alive(polite));
    wait_for_death(stubborn);
}

#[test]
fn a_stderr_that_nobody_reads_delays_nothing() {
    let place = Place::new();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let script = format!("exec 2> /dev/null; {STUBBORN}");
    let mut command = place.leasehold(&["exec", "--ttl", "1s", "--max-hold", "1s", "job", "--", "sh", "-c", &script]);
    let job = Started::unseen(command.stderr(writer).stdout(Stdio::null()));
    drop(command);
    let (pid, child) = (place.wait_for_pid("pid"), place.wait_for_pid("child"));
    wait_for_death(pid);
    wait_for_death(child);
    place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    job.wait().expect(76);
    assert!(reading.join().unwrap().unwrap().contains("the command was killed"));
}

#[test]
fn with_on_lost_ignore_the_command_goes_on_and_the_loss_is_reported() {
    let place = Place::new();
    let script = "trap 'echo > termed' TERM; echo $$ > pid; while [ ! -e done ]; do sleep 0.01; done; exit 3";
    let job = place.start_job(&["--ttl", "1500ms", "--on-lost", "ignore"], script);
    let pid = place.wait_for_pid("pid");
    place.run(&["break", "job", "--yes"]).expect(0);
    place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
    // The holder learns of it with its next renewal, and its own deadline is over after the ttl.
    place
        .run(&["exec", "--ttl", "700ms", "--max-hold", "700ms", "job", "--", "sh", "-c", "while :; do sleep 0.1; done"])
        .expect(76);
    assert!(is_alive(pid));
    fs::write(place.path("done"), "").unwrap();
    job.wait().expect(76).says("the lease is lost").says("the command goes on");
    assert!(!place.path("termed").exists());
}

#[test]
fn a_lost_lease_outweighs_the_command_s_own_status() {
    let place = Place::new();
    let job = place.start_job(&["--ttl", "1500ms"], "echo $$ > pid; while [ ! -e done ]; do sleep 0.01; done; exit 0");
    let pid = place.wait_for_pid("pid");
    job.signal(Signal::STOP);
    place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
    // It ends well, but nobody can say any more that it was alone.
    fs::write(place.path("done"), "").unwrap();
    wait_for("the end of the command", || !is_alive(pid));
    job.signal(Signal::CONT);
    job.wait().expect(76).says("the lease is lost");
}
