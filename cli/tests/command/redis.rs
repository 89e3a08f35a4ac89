//! The program on a real Redis.

use crate::common::pty::Pty;
use crate::common::{Place, wait_for};
use leasehold_servers::redis::{Data, Server};

#[test]
fn doctors_status_shows_the_worst_finding() {
    let place = Place::new();
    let server = Server::builder().appendonly().start();
    let doctor = |status| place.run(&["doctor", "--store", &server.url()]).expect(status).stdout;
    let text = doctor(0);
    assert!(text.starts_with(&format!("store redis://127.0.0.1:{}/", server.port())), "{text}");
    assert!(text.contains("good     redis.trial: ") && !text.contains("-> "), "{text}");

    server.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    let text = doctor(1);
    assert!(text.contains("warning  redis.persistence: ") && text.contains("-> set appendfsync always"), "{text}");

    server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let text = doctor(2);
    assert!(
        text.contains("problem  redis.eviction: ") && text.contains("-> set maxmemory-policy noeviction"),
        "{text}"
    );
    let json = place.run(&["doctor", "--store", &server.url(), "--json"]).expect(2).json();
    assert_eq!(json["worst"], "problem");
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["check"] == "redis.eviction" && finding["severity"] == "problem"));
}

#[test]
fn exec_waits_for_a_server_that_is_being_restarted() {
    let place = Place::new();
    let server = Server::start();
    let url = server.url();
    server.kill();
    let exec = |wait: &[&'static str]| [&["exec", "--store", &url], wait, &["job", "--", "touch", "ran"]].concat();
    for wait in [&[][..], &["--no-wait"], &["--wait", "300ms"]] {
        place.run(&exec(wait)).expect(69).says("refused");
    }
    let pty = Pty::start(&mut place.leasehold(&exec(&["--wait", "60s"])));
    pty.wait_for("waiting for the store: ");
    assert!(!place.path("ran").exists());
    server.restart(Data::Kept);
    pty.wait().expect(0);
    assert!(place.path("ran").exists());
}

#[test]
fn a_command_that_ends_for_its_lease_is_told_why_that_could_not_be_renewed() {
    let place = Place::new();
    let server = Server::start();
    let script = "echo > begun; exec sleep 1000";
    let job = place.start(&["exec", "--store", &server.url(), "--ttl", "3s", "job", "--", "sh", "-c", script]);
    place.wait_for_file_exists("begun");
    server.kill();
    job.wait().expect(76).says("(no renewal has succeeded: ").says("; the command was told to end");
}

#[test]
fn inspect_shows_who_stands_in_queue() {
    let place = Place::new();
    let server = Server::start();
    let url = server.url();
    let script = "echo > begun; while [ ! -e done ]; do sleep 0.01; done";
    let holder = place.start(&["exec", "--store", &url, "job", "--", "sh", "-c", script]);
    place.wait_for_file_exists("begun");
    let pty = Pty::start(&mut place.leasehold(&["exec", "--store", &url, "job", "--", "true"]));
    pty.wait_for("waiting: held by ");
    wait_for("it stands in the queue", || server.command(&["ZCARD", "{job}\x1fline of name"]).integer() == 1);
    let inspect = ["inspect", "--store", &url, "job"];
    let shown = place.run(&inspect).expect(0).stdout;
    assert!(shown.contains("\n  waiting    1, the first came "), "{shown}");
    let json = |status| place.run(&[&inspect[..], &["--json"]].concat()).expect(status).json();
    assert_eq!(json(0)["waiting"]["count"], 1);
    std::fs::write(place.path("done"), "").unwrap();
    holder.wait().expect(0);
    pty.wait().expect(0);
    assert!(json(1).get("waiting").is_none());
}

#[test]
fn once_is_done_once_by_all_who_share_a_server() {
    let place = Place::new();
    let server = Server::start();
    let url = server.url();
    let once = |script: &str| place.run(&["once", "--store", &url, "--key", "monday", "job", "--", "sh", "-c", script]);
    once("exit 7").expect(7);
    once("echo $LEASEHOLD_TOKEN").expect(0);
    once("touch again").expect(0).says("\"job@monday\": done already");
    let shown = place.run(&["inspect", "--store", &url, "job", "--key", "monday"]).expect(0).stdout;
    assert!(shown.contains("job@monday is done") && shown.contains("not again  for "), "{shown}");
    let forget = ["once", "--store", &url, "--forget", "--key", "monday", "job"];
    assert!(place.run(&forget).expect(0).stdout.contains("may be done again"));
    place.run(&forget).expect(1);
    assert!(!place.path("again").exists());
    once("touch again").expect(0);
    assert!(place.path("again").exists());
}

#[test]
fn a_server_that_is_gone_when_the_command_has_ended_leaves_the_mark_unconfirmed() {
    let place = Place::new();
    let server = Server::start();
    let url = server.url();
    let script = "echo > begun; while [ ! -e done ]; do sleep 0.01; done";
    let once = ["once", "--store", &url, "--key", "monday", "--ttl", "6s", "job", "--", "sh", "-c", script];
    let runner = place.start(&once);
    place.wait_for_file_exists("begun");
    server.kill();
    std::fs::write(place.path("done"), "").unwrap();
    runner.wait().expect(73).says("it may be done again").says("may be run again");
}

#[test]
fn doctor_shows_no_password_and_tells_which_one_is_wrong() {
    let place = Place::new();
    let server = Server::builder().password("hunter2-sesame").start();
    let right = place.run(&["doctor", "--store", &server.url()]).expect(1);
    assert!(!format!("{right:?}").contains("hunter2-sesame"), "{right:?}");
    let url = format!("redis://:hunter2-fish@127.0.0.1:{}", server.port());
    let wrong = place.run(&["doctor", "--store", &url]).expect(2);
    assert!(wrong.stdout.contains("problem  store.open: ") && wrong.stdout.contains("password"), "{wrong:?}");
    assert!(!format!("{wrong:?}").contains("hunter2"), "{wrong:?}");
}

#[test]
fn a_command_under_its_own_lock_is_recognised_by_any_spelling_of_the_store() {
    let place = Place::new();
    let server = Server::start();
    let [short, long] = ["", "/0"].map(|end| format!("redis://127.0.0.1:{}{end}", server.port()));
    let inner = [env!("CARGO_BIN_EXE_leasehold"), "exec", "--store", &long, "--wait", "50ms", "job", "--", "true"];
    let ran = place.run(&[&["exec", "--store", &short, "job", "--"], &inner[..]].concat()).expect(75);
    assert_eq!(ran.stderr.matches("not reentrant").count(), 1, "{}", ran.stderr);
}

#[test]
fn the_command_reaches_the_store_that_exec_was_given() {
    let place = Place::new();
    let server = Server::builder().password("hunter2-sesame").start();
    let looks = [env!("CARGO_BIN_EXE_leasehold"), "inspect", "job"];
    let by_option = place.run(&[&["exec", "--store", &server.url(), "job", "--"], &looks[..]].concat());
    let mut by_environment = place.leasehold(&[&["exec", "job", "--"], &looks[..]].concat());
    let by_environment =
        crate::common::Ran::from(by_environment.env("LEASEHOLD_STORE", server.url()).output().unwrap());
    for ran in [by_option, by_environment] {
        assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
        ran.expect(0);
    }
}
