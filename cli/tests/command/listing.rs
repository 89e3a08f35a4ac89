//! `list` and `watch`: for people and for machines.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::common::{Place, Started, wait_for};
use rustix::process::Signal;

fn hold(place: &Place, name: &str, file: &str) -> Started {
    let script = format!("echo > {file}; exec sleep 1000");
    let job = place.start(&["exec", "--owner", "night shift", "--ttl", "1h", name, "--", "sh", "-c", &script]);
    place.wait_for_file_exists(file);
    job
}

#[test]
fn list_shows_the_held_locks_of_a_prefix() {
    let place = Place::new();
    place.run(&["list"]).expect(1).says("no lock is held in sqlite:");
    assert_eq!(place.run(&["list", "--json"]).expect(1).stdout, "");
    let _jobs = [hold(&place, "jobs/1", "one"), hold(&place, "jobs/2", "two"), hold(&place, "other", "three")];
    let text = place.run(&["list", "jobs/"]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("jobs/1: held by night shift, token "), "{text}");
    let json = place.run(&["list", "--json"]).expect(0).stdout;
    let locks: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = locks.iter().map(|lock| lock["resource"].as_str().unwrap()).collect();
    assert_eq!(names, ["jobs/1", "jobs/2", "other"]);
    assert!(locks.iter().all(|lock| lock["owner"] == "night shift" && lock["ttl_ms"] == 3_600_000), "{json}");
    place.run(&["list", "nothing/"]).expect(1).says("no lock is held below \"nothing/\"");
    place.run(&["list", "a\nb"]).expect(64);
}

#[test]
fn watch_tells_each_change_until_it_is_interrupted() {
    let place = Place::new();
    let mut watch =
        place.leasehold(&["watch", "--json", "--every", "100ms", "job"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["change"], "free");
    let holder = hold(&place, "job", "held");
    let held = next();
    assert_eq!((held["change"].as_str(), held["holder"]["owner"].as_str()), (Some("held"), Some("night shift")));
    assert!(held["at"].as_str().unwrap().ends_with('Z'));
    holder.signal(Signal::TERM);
    holder.wait();
    assert_eq!(next()["change"], "free");
    rustix::process::kill_process(rustix::process::Pid::from_child(&watch), Signal::INT).unwrap();
    assert_eq!(watch.wait().unwrap().signal(), Some(2));
}

#[test]
fn watch_ends_when_nobody_reads_it() {
    let place = Place::new();
    let mut watch = place.leasehold(&["watch", "--every", "100ms", "job"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(watch.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.trim_end().ends_with("Z  free"), "{first}");
    drop(reader);
    // It notices when it has something to say.
    let _holder = hold(&place, "job", "held");
    wait_for("the end of the watch", || watch.try_wait().unwrap().is_some());
}

#[test]
fn watch_refuses_what_it_cannot_watch() {
    let place = Place::new();
    place.run(&["watch", ""]).expect(64);
    place.run(&["watch", "--every", "99ms", "job"]).expect(64).says("the shortest is 100 ms");
    place.run(&["watch", "--store", "redis://127.0.0.1:1", "job"]).expect(69);
}

#[test]
fn sessions_are_listed_and_revoked_as_a_whole() {
    let place = Place::new();
    place.run(&["sessions"]).expect(1).says("no client has a session in sqlite:");
    let hold = |name: &str, session: &[&str]| {
        let script = format!("echo > {name}; exec sleep 1000");
        let before = [&["exec", "--ttl", "1m"], session].concat();
        let job = place.start(&[&before[..], &[name, "--", "sh", "-c", &script]].concat());
        place.wait_for_file_exists(name);
        job
    };
    let jobs = ["one", "two"].map(|name| hold(name, &["--session", "ci-42"]));
    let _others = [hold("three", &["--session", "ci-43"]), hold("four", &[])];
    let text = place.run(&["sessions"]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.contains(": 1 lock, since ")), "{text}");
    assert_eq!(lines.iter().map(|line| &line[..6]).collect::<Vec<_>>(), ["ci-42:", "ci-42:", "ci-43:"]);
    let json = place.run(&["inspect", "one", "--json"]).expect(0).json();
    assert_eq!(json["session"], "ci-42");
    assert!(place.run(&["inspect", "one"]).expect(0).stdout.contains("session    ci-42"));
    assert!(place.run(&["list", "four", "--json"]).expect(0).json()["session"].is_null());

    place.run(&["revoke", "--session", "ci-42"]).expect(64).says("--yes");
    place.run(&["revoke", "--session", "ci-4", "--yes"]).expect(1).says("no session \"ci-4\" has locks");
    place.run(&["revoke", "--session", "", "--yes"]).expect(64).says("worker-*");
    place.run(&["revoke", "--session", "ci-42", "one", "--yes"]).expect(64);
    place.run(&["revoke", "--yes"]).expect(64);
    let told = place.run(&["revoke", "--session", "*-42", "--yes", "--json"]).expect(0).stdout;
    let told: Vec<serde_json::Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut names: Vec<_> = told.iter().map(|session| session["locks"][0]["resource"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["one", "two"]);
    assert!(told.iter().all(|session| session["session"] == "ci-42" && session["revoked"] == true), "{told:?}");
    for job in jobs {
        job.wait().expect(76).says("somebody revoked it");
    }
    place.run(&["inspect", "one"]).expect(1);
    place.run(&["inspect", "three"]).expect(0);
    place.run(&["exec", "--session", "two words", "one", "--", "true"]).expect(64).says("1 to 64 letters");
}

#[test]
fn runs_shows_what_is_done_and_under_way() {
    let place = Place::new();
    place.run(&["runs"]).expect(1).says("no run is done or under way in sqlite:");
    place.run(&["once", "--owner", "night shift", "--key", "mon", "jobs", "--", "true"]).expect(0);
    let work = "echo > begun; exec sleep 1000";
    let under_way = place.start(&["once", "--owner", "night shift", "--key", "tue", "jobs", "--", "sh", "-c", work]);
    place.wait_for_file_exists("begun");
    let _lock = hold(&place, "jobs", "held");
    let text = place.run(&["runs", "jobs@"]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("jobs@mon: done ") && lines[0].contains(" s ago ("), "{text}");
    assert!(lines[0].contains(") by night shift, token ") && lines[0].ends_with(", not again for 7.0 days"), "{text}");
    assert!(lines[1].starts_with("jobs@tue: under way, held by night shift, token "), "{text}");
    let json = place.run(&["runs", "--json"]).expect(0).stdout;
    let runs: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2, "{json}");
    assert_eq!((&runs[0]["name"], &runs[0]["key"], &runs[0]["held"]), (&"jobs".into(), &"mon".into(), &false.into()));
    assert_eq!((&runs[0]["done"]["owner"], &runs[0]["holder"]), (&"night shift".into(), &serde_json::Value::Null));
    assert_eq!((&runs[1]["done"], &runs[1]["holder"]["owner"]), (&serde_json::Value::Null, &"night shift".into()));
    place.run(&["runs", "nothing"]).expect(1).says("no run is done or under way below \"nothing\"");
    place.run(&["runs", "a\nb"]).expect(64);
    place.run(&["once", "--save-output", "--key", "wed", "jobs", "--", "echo", "made"]).expect(0);
    let text = place.run(&["runs", "jobs@wed"]).expect(0).stdout;
    assert!(text.contains(") in ") && text.ends_with(", not again for 7.0 days, left 5 bytes of output\n"), "{text}");
    drop(under_way);
}

#[test]
fn inspect_of_a_free_name_says_how_its_runs_are_seen() {
    let place = Place::new();
    let text = place.run(&["inspect", "jobs"]).expect(1).stdout;
    assert!(
        text.starts_with("jobs is free\n  as a job   `leasehold runs jobs@` shows what ran; add the --every"),
        "{text}"
    );
}
