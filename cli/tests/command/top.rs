//! `top` on a terminal.

use crate::common::pty::{Pty, shell};
use crate::common::{Place, Started, children_of, wait_for, wait_for_death};
use leasehold_servers::redis::{Data, Server};
use rustix::process::Signal;

/// The bytes that give a terminal its former screen back.
const FORMER_SCREEN: &str = "\u{1b}[?1049l";

fn top(place: &Place, arguments: &[&str]) -> Pty {
    let mut command = place.leasehold(&[&["top", "--every", "500ms"], arguments].concat());
    let pty = Pty::start(command.env("TERM", "xterm-256color"));
    pty.resize(80, 24);
    pty
}

fn hold(place: &Place, name: &str, file: &str) -> Started {
    let script = format!("echo > {file}; exec sleep 1000");
    let job = place.start(&["exec", "--owner", "night-shift", name, "--", "sh", "-c", &script]);
    place.wait_for_file_exists(file);
    job
}

#[test]
fn the_table_follows_the_store_and_the_size_of_the_terminal() {
    let place = Place::new();
    let mut pty = top(&place, &["jobs/"]);
    pty.wait_until_shown("held");
    let _other = hold(&place, "other", "one");
    let _job = hold(&place, "jobs/1", "two");
    pty.wait_until_shown("TOKEN");
    pty.wait_until_shown("jobs/1");
    pty.wait_until_shown("night-shift");
    pty.resize(42, 10);
    wait_for("the narrow table", || {
        let shown = pty.shown();
        shown.contains("HOLDER") && !shown.contains("TOKEN")
    });
    pty.type_in("s");
    pty.resize(120, 30);
    pty.wait_until_shown("oldest first");
    pty.wait_until_shown("TOKEN");
    assert!(!pty.shown().contains("other"));
    pty.type_in("q");
    pty.wait_for(FORMER_SCREEN);
    pty.wait().expect(0);
}

#[test]
fn the_terminal_is_given_back() {
    let place = Place::new();
    for (end, status) in [("q", 0), ("\u{3}", 130), ("TERM", 143)] {
        let mut pty = top(&place, &[]);
        pty.wait_until_shown("held");
        assert!(!pty.echoes());
        if end == "TERM" {
            pty.signal(Signal::TERM)
        } else {
            pty.type_in(end)
        }
        pty.wait_for(FORMER_SCREEN);
        assert!(pty.echoes(), "{end:?}");
        pty.wait().expect(status);
    }
}

#[test]
fn it_can_be_stopped_and_continued() {
    let place = Place::new();
    let mut pty = shell(&place);
    pty.resize(80, 24);
    for command in ["TERM=xterm $L top\n", "fg\n"] {
        pty.type_in(command);
        pty.wait_until_shown("held");
        pty.type_in("\u{1a}");
        pty.wait_for(FORMER_SCREEN);
        pty.wait_for("Stopped");
        pty.wait_for("$ ");
    }
    pty.type_in("fg\n");
    pty.wait_until_shown("held");
    pty.type_in("q");
    pty.wait_for(FORMER_SCREEN);
    pty.wait_for("$ ");
    pty.type_in("echo status-$?\n");
    pty.wait_for("status-0");
}

#[test]
fn it_ends_with_its_terminal() {
    let place = Place::new();
    let mut pty = shell(&place);
    pty.resize(80, 24);
    pty.type_in("TERM=xterm $L top\n");
    pty.wait_until_shown("held");
    let [top] = children_of(pty.pid())[..] else { panic!("the shell has one child") };
    drop(pty);
    wait_for_death(top);
}

#[test]
fn a_store_that_goes_away_and_comes_back_is_told() {
    let place = Place::new();
    let server = Server::start();
    let url = server.url();
    let mut pty = top(&place, &["--store", &url]);
    pty.wait_until_shown("held");
    server.kill();
    pty.wait_until_shown("answer,");
    server.restart(Data::Kept);
    let exec = ["exec", "--store", &url, "--wait", "60s", "after-the-restart", "--", "sleep", "1000"];
    let _jobs = [place.start(&exec), place.start(&exec)];
    pty.wait_until_shown("after-the-restart");
    pty.wait_until_shown("WAIT");
    pty.type_in("q");
    pty.wait_for(FORMER_SCREEN);
    pty.wait().expect(0);
}

#[test]
fn without_a_terminal_it_names_what_to_use() {
    let place = Place::new();
    place.run(&["top"]).expect(64).says("use `leasehold list`");
    let dumb = Pty::start(place.leasehold(&["top"]).env("TERM", "dumb"));
    dumb.wait_for("use `leasehold list`");
    dumb.wait().expect(64);
    place.run(&["top", "--every", "499ms"]).expect(64).says("the shortest is 500ms");
    let far = Pty::start(place.leasehold(&["top", "--store", "redis://127.0.0.1:1"]).env("TERM", "xterm"));
    far.wait_for("127.0.0.1:1");
    far.wait().expect(69);
}
