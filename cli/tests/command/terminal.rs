//! `exec` on a terminal, under a shell with job control: Ctrl-C, Ctrl-Z, `fg`, and who may read.

use crate::common::pty::{Pty, shell};
use crate::common::{Place, Started, children_of, is_alive, is_stopped, wait_for, wait_for_death};
use rustix::process::Pid;

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";
const CTRL_D: &str = "\x04";

#[test]
fn a_command_alone_on_the_terminal_reads_it_and_gets_ctrl_c() {
    let place = Place::new();
    let mut pty = shell(&place);
    // Before it asks for anything it looks, and finds itself in the foreground: field 8 is the foreground group.
    let look = "echo $$ > pid; cut -d\\  -f8 /proc/$$/stat > seen";
    pty.type_in(&format!("$L exec job -- sh -c '{look}; read -r x; echo got-$x; exec sleep 1000'\n"));
    let command = place.wait_for_pid("pid");
    assert_eq!(place.wait_for_pid("seen"), command);
    pty.type_in("words\n");
    pty.wait_for("got-words");
    pty.type_in(CTRL_C);
    pty.wait_for("$ ");
    pty.type_in("echo status-$?\n");
    pty.wait_for("status-130");
    assert!(!is_alive(command) && !place.is_held());
    assert_eq!(pty.foreground(), Some(pty.pid()));
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    let place = Place::new();
    let mut pty = shell(&place);
    pty.type_in("$L exec job -- sh -c 'echo $$ > pid; while read -r x; do echo got-$x; done; echo over'\n");
    let command = place.wait_for_pid("pid");
    for word in ["one", "two"] {
        pty.type_in(CTRL_Z);
        pty.wait_for("stopped with its command; nothing renews the lease");
        pty.wait_for("$ ");
        assert!(is_stopped(command));
        pty.type_in("echo $((40 + 2))\n");
        pty.wait_for("42");
        pty.type_in(&format!("fg\n{word}\n"));
        pty.wait_for(&format!("got-{word}"));
    }
    pty.type_in(CTRL_D);
    pty.wait_for("over");
    pty.type_in("echo status-$?\n");
    pty.wait_for("status-0");
    assert!(!place.is_held());
}

#[test]
fn a_continued_job_has_the_terminal_again_without_asking() {
    let place = Place::new();
    let mut pty = shell(&place);
    // It never reads from the terminal, and starts no processes, as below.
    pty.type_in("$L exec job -- sh -c 'mkfifo gate; echo $$ > pid; read -r x < gate; echo over'\n");
    let command = place.wait_for_pid("pid");
    pty.type_in(CTRL_Z);
    pty.wait_for("stopped with its command");
    pty.wait_for("$ ");
    assert!(is_stopped(command));
    pty.type_in("fg\n");
    wait_for("the command to have the terminal", || pty.foreground() == Some(command));
    std::fs::write(place.path("gate"), "go\n").unwrap();
    pty.wait_for("over");
}

#[test]
fn a_job_that_was_stopped_past_its_ttl_is_killed_instead_of_continued() {
    let place = Place::new();
    let mut pty = shell(&place);
    pty.type_in("$L exec --ttl 1500ms job -- sh -c 'trap \"echo alive >> late\" CONT; echo $$ > pid; while :; do read -r x; done'\n");
    let command = place.wait_for_pid("pid");
    pty.type_in(CTRL_Z);
    pty.wait_for("$ ");
    place.run(&["exec", "--wait", "20s", "job", "--", "true"]).expect(0);
    assert!(is_stopped(command));
    pty.type_in("fg\n");
    pty.wait_for("the lease is lost");
    pty.type_in("echo status-$?\n");
    pty.wait_for("status-76");
    wait_for_death(command);
    assert_eq!(place.read("late"), "");
}

#[test]
fn a_job_in_the_background_stops_when_it_reads_and_goes_on_in_the_foreground() {
    let place = Place::new();
    let mut pty = shell(&place);
    pty.type_in("$L exec job -- sh -c 'echo $$ > pid; read -r x; echo got-$x' &\n");
    let command = place.wait_for_pid("pid");
    wait_for("the command to ask for the terminal", || is_stopped(command));
    pty.wait_for("stopped with its command");
    pty.type_in("fg\nwords\n");
    pty.wait_for("got-words");
    wait_for("the release", || !place.is_held());
}

#[test]
fn beside_others_the_command_gets_the_terminal_when_it_asks() {
    let place = Place::new();
    let mut pty = shell(&place);
    let script =
        "'echo $$ > pid; while [ ! -e ask ]; do sleep 0.01; done; read -r x < /dev/tty; echo got-$x; exec sleep 1000'";
    pty.type_in(&format!("$L exec job -- sh -c {script} | (cat; echo reader-done)\n"));
    let command = place.wait_for_pid("pid");
    // The reader is in the foreground, and so is leasehold.
    assert_ne!(pty.foreground(), Some(command));
    std::fs::write(place.path("ask"), "").unwrap();
    wait_for("the command to have the terminal", || pty.foreground() == Some(command));
    pty.type_in("words\n");
    pty.wait_for("got-words");
    pty.type_in(CTRL_C);
    pty.wait_for("reader-done");
    pty.wait_for("$ ");
    wait_for("the release", || !place.is_held());
    assert_eq!(pty.foreground(), Some(pty.pid()));
}

#[test]
fn ctrl_z_reaches_a_command_that_never_had_the_terminal() {
    let place = Place::new();
    let mut pty = shell(&place);
    // It waits without starting processes: one that is stopped while it starts holds up its parent in `vfork`.
    pty.type_in("$L exec job -- sh -c 'mkfifo gate; echo $$ > pid; read -r x < gate; echo over' | cat\n");
    let command = place.wait_for_pid("pid");
    // The shell starts one after the other, and only then gives them the terminal.
    let started = |pid: Pid| std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_pid())).unwrap_or_default();
    wait_for("the pipeline", || children_of(pty.pid()).into_iter().any(|pid| started(pid) == "cat\n"));
    wait_for("the terminal", || pty.foreground() != Some(pty.pid()));
    pty.type_in(CTRL_Z);
    pty.wait_for("$ ");
    wait_for("the stop", || is_stopped(command));
    pty.type_in("fg\n");
    wait_for("the command to go on", || !is_stopped(command));
    std::fs::write(place.path("gate"), "go\n").unwrap();
    pty.wait_for("over");
}

#[test]
fn without_a_job_control_shell_nothing_stays_stopped() {
    let place = Place::new();
    let script = "echo $$ > pid; while read -r x; do echo got-$x; done";
    let mut pty = Pty::start(&mut place.leasehold(&["exec", "job", "--", "sh", "-c", script]));
    let command = place.wait_for_pid("pid");
    pty.type_in(CTRL_Z);
    pty.wait_for("stopped with its command");
    pty.type_in("words\n");
    pty.wait_for("got-words");
    pty.type_in(CTRL_C);
    pty.wait().expect(130);
    wait_for_death(command);
}

#[test]
fn waiting_names_the_holder() {
    let place = Place::new();
    let holder = place.start_job(&["--owner", "night shift"], "echo > held; while [ ! -e done ]; do sleep 0.01; done");
    place.wait_for_file_exists("held");
    let pty = Pty::start(&mut place.leasehold(&["exec", "job", "--", "echo", "now-mine"]));
    pty.wait_for("waiting: held by night shift, token ");
    std::fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    pty.wait_for("now-mine");
    pty.wait().expect(0);
}

#[test]
fn break_asks_and_accepts_no() {
    let place = Place::new();
    let holder = place.start_job(&["--owner", "night shift"], "echo > held; while :; do sleep 0.1; done");
    place.wait_for_file_exists("held");
    for (answer, status) in [("no", 2), ("", 2), ("yes", 0)] {
        assert!(place.is_held());
        let mut pty = Pty::start(&mut place.leasehold(&["break", "job"]));
        pty.wait_for("night shift");
        pty.wait_for("Type yes:");
        pty.type_in(&format!("{answer}\n"));
        pty.wait().expect(status);
    }
    assert!(!place.is_held());
    drop(holder);
}

#[test]
fn revoke_shows_the_sessions_of_the_name_and_asks() {
    let place = Place::new();
    let hold = |name: &str| {
        let script = format!("echo > {name}; exec sleep 1000");
        let job = place.start(&["exec", "--session", name, "--ttl", "1h", name, "--", "sh", "-c", &script]);
        place.wait_for_file_exists(name);
        job
    };
    let _jobs = [hold("ci-42"), hold("other")];
    let ask = || Pty::start(&mut place.leasehold(&["revoke", "--session", "ci-*"]));
    for (answer, status) in [("no", 2), ("yes", 0)] {
        let mut pty = ask();
        pty.wait_until_shown("Type yes:");
        let shown = pty.shown();
        assert!(shown.contains("ci-42: 1 lock, since ") && !shown.contains("other"), "{shown}");
        pty.type_in(&format!("{answer}\n"));
        pty.wait().expect(status);
    }
    Pty::start(&mut place.leasehold(&["revoke", "--session", "nobody"])).wait().expect(1);
}

#[test]
fn break_does_not_take_the_lock_of_a_holder_that_it_has_not_shown() {
    let place = Place::new();
    let script = |name: &str| format!("echo > {name}; while [ ! -e {name}-done ]; do sleep 0.01; done");
    let start = |name: &str| -> Started {
        let started = place.start_job(&[], &script(name));
        place.wait_for_file_exists(name);
        started
    };
    let first = start("first");
    let mut pty = Pty::start(&mut place.leasehold(&["break", "job"]));
    pty.wait_for("Type yes:");
    std::fs::write(place.path("first-done"), "").unwrap();
    first.wait().expect(0);
    let second = start("second");
    pty.type_in("yes\n");
    pty.wait_for("changed hands");
    pty.wait().expect(2);
    assert!(place.is_held());
    std::fs::write(place.path("second-done"), "").unwrap();
    second.wait().expect(0);
}
