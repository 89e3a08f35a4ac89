//! The daemon: locks over HTTP, for clients that come, go, lie and die.

use std::io::{BufRead, BufReader, Read};
use std::net::Shutdown;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::daemon::{Daemon, answer, posted};
use crate::common::{Place, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_lock_is_acquired_renewed_and_released_by_calls() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let sent = Instant::now();
    let lease = daemon.acquire("invoice/42");
    let most = sent.elapsed().as_millis() as u64 + 30_000;
    assert!(lease["token"].as_u64().unwrap() > 0 && lease["valid_ms"].as_u64().unwrap() < most, "{lease}");
    assert_eq!((lease["owner"].as_str(), lease["ttl_ms"].as_u64()), (Some("serve:local"), Some(30_000)));
    // Programs that use the store itself see it.
    let seen = place.run(&["inspect", "--json", "invoice/42"]).expect(0).json();
    assert_eq!(seen["token"], lease["token"]);
    let busy = daemon.post("/v1/acquire", &json!({ "resource": "invoice/42" })).expect(409);
    assert_eq!(busy["error"]["kind"], "busy");
    assert_eq!(busy["error"]["holder"]["token"], lease["token"]);
    let renewed = daemon.lease(&lease, "renew").expect(200);
    assert_eq!(renewed["token"], lease["token"]);
    assert_eq!(daemon.lease(&lease, "release").expect(200)["released"], true);
    assert_eq!(daemon.lease(&lease, "finish").expect(404)["error"]["kind"], "unknown_lease");
    assert_eq!(daemon.lease(&lease, "renew").expect(404)["error"]["kind"], "unknown_lease");
    assert!(!daemon.is_held("invoice/42"));
    assert!(daemon.acquire("invoice/42")["token"].as_u64() > lease["token"].as_u64());
}

#[test]
fn a_daemon_may_have_a_session_which_is_revoked_as_a_whole() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &["--session", "serve-7"]);
    for name in ["one", "two"] {
        daemon.acquire(name);
    }
    for (args, is_revoked) in
        [(&["sessions", "--json"][..], false), (&["revoke", "--session", "serve-7", "--yes", "--json"], true)]
    {
        let session = place.run(args).expect(0).json();
        assert_eq!((&session["session"], &session["revoked"]), (&json!("serve-7"), &json!(is_revoked)));
        assert_eq!(session["locks"].as_array().map(Vec::len), Some(2), "{session}");
    }
    place.run(&["serve", "--session", "two words"]).expect(64).says("1 to 64 letters");
}

#[test]
fn a_client_that_does_not_call_loses_its_lease_after_the_ttl() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let lease = daemon.post("/v1/acquire", &json!({ "resource": "job", "ttl_ms": 500 })).expect(200);
    wait_for("the end of the lease", || !daemon.is_held("job"));
    assert_eq!(daemon.lease(&lease, "renew").expect(404)["error"]["kind"], "unknown_lease");
    assert_eq!((daemon.metric("leasehold_serve_abandoned_total"), daemon.metric("leasehold_serve_leases")), (1, 0));
    assert!(daemon.get("/").body.contains("did not renew it in time"));
}

#[test]
fn a_lock_is_held_as_long_as_its_connection() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let body = json!({ "resource": "job", "ttl_ms": 600 }).to_string();
    let stream = daemon.send(&posted("/v1/hold", &body, ""));
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let mut event =
        || lines.find_map(|line| serde_json::from_str::<Value>(&line).ok().filter(Value::is_object)).unwrap();
    assert_eq!(event()["event"], "acquired");
    for _ in 0..5 {
        let held = event();
        assert_eq!(held["event"], "held");
        assert!(held["valid_ms"].as_u64().unwrap() > 0);
    }
    assert!(daemon.is_held("job"));
    stream.shutdown(Shutdown::Both).unwrap();
    wait_for("the release", || !daemon.is_held("job"));
}

#[test]
fn a_holder_learns_that_its_lock_was_broken() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let by_calls = daemon.post("/v1/acquire", &json!({ "resource": "calls", "ttl_ms": 2_000 })).expect(200);
    let body = json!({ "resource": "stream", "ttl_ms": 2_000 }).to_string();
    let mut lines = BufReader::new(daemon.send(&posted("/v1/hold", &body, ""))).lines().map(Result::unwrap);
    wait_for("the other", || daemon.is_held("stream"));
    for name in ["calls", "stream"] {
        place.run(&["break", "--yes", name]).expect(0);
    }
    assert!(lines.any(|line| line.contains("\"event\":\"lost\"")), "the stream ends with the reason");
    wait_for("the loss", || daemon.lease(&by_calls, "renew").status != 200);
    wait_for("both losses", || daemon.metric("leasehold_serve_lost_total") == 2);
}

#[test]
fn work_is_done_once() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let once = || daemon.post("/v1/once", &json!({ "name": "report", "key": "monday" })).expect(200);
    let run = once();
    assert_eq!((run["state"].as_str(), run["resource"].as_str()), (Some("run"), Some("report@monday")));
    assert_eq!(once()["state"], "running");
    assert_eq!(daemon.lease(&run, "finish").expect(200)["finished"], true);
    let done = once();
    assert_eq!((done["state"].as_str(), &done["completion"]["token"]), (Some("done"), &run["token"]));
    for (times, begins) in [
        (
            json!({ "name": "report", "every_ms": 3_000_000_000_000_u64, "offset_ms": 1_000 }),
            "report@1970-01-01T00:00:01Z",
        ),
        (
            json!({ "name": "report", "every_ms": 2_592_000_000_000_u64, "at": "02:30", "tz": "UTC" }),
            "report@1970-01-01T02:30[UTC]",
        ),
        (json!({ "name": "report", "cron": "30 2 29 2 *", "tz": "Asia/Tokyo" }), "report@20"),
    ] {
        let run = daemon.post("/v1/once", &times).expect(200);
        assert!(run["resource"].as_str().is_some_and(|resource| resource.starts_with(begins)), "{run}");
        daemon.lease(&run, "release").expect(200);
    }
    for (settings, says) in [
        (json!({ "name": "report" }), "give key"),
        (json!({ "name": "report", "cron": "0 0 30 2 *", "tz": "UTC" }), "never comes"),
        (json!({ "name": "report", "every_ms": 86_400_000, "tz": "Europe/Berln" }), "is no zone"),
        (json!({ "name": "report", "every_ms": 86_400_000, "at": "02:00" }), "add tz"),
        (json!({ "name": "report", "every_ms": 86_400_000, "key": "monday" }), "one of key, every and cron"),
    ] {
        let message =
            daemon.post("/v1/once", &settings).expect(400)["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(says), "{message}");
    }
    let lock = daemon.acquire("plain");
    assert_eq!(daemon.lease(&lock, "finish").expect(400)["error"]["kind"], "not_a_run");
    assert!(daemon.is_held("plain"), "a mistake ends no lease");
    assert_eq!(daemon.lease(&lock, "renew").expect(200)["token"], lock["token"]);
    daemon.lease(&lock, "release").expect(200);
}

#[test]
fn bad_requests_are_refused_and_say_why() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    for (body, says) in [
        (json!({}), "resource"),
        (json!({ "resource": "" }), ""),
        (json!({ "resource": "a", "ttl_ms": 1 }), "ttl"),
        (json!({ "resource": "a", "wait_ms": 3_600_001 }), "wait_ms"),
        (json!({ "resource": "a", "timeout": 7 }), "timeout"),
        (json!([1]), "a JSON object"),
    ] {
        let error = daemon.post("/v1/acquire", &body).expect(400);
        assert!(error["error"]["message"].as_str().unwrap().contains(says), "{error}");
    }
    let request = |text: &str| answer(daemon.send(text)).status;
    let plain = posted("/v1/acquire", "{}", "").replace("application/json", "text/plain");
    assert_eq!(request(&plain), 415, "a page of another site can send this unasked");
    let other = posted("/v1/acquire", r#"{"resource":"a"}"#, "").replace("Host: localhost", "Host: evil.example");
    assert_eq!(request(&other), 421, "the name of another site that leads here");
    let long = json!({ "resource": "a", "data": "x".repeat(70_000) }).to_string();
    assert_eq!(request(&posted("/v1/acquire", &long, "")), 413);
    for (path, status, says) in [
        ("/v1/acquire", 405, "method"),
        ("/nothing", 404, "/openapi.json"),
        ("/v1/list?prefix=a%0A", 400, "control character"),
        ("/v1/list?limit=-1", 400, "limit"),
        ("/v1/inspect", 400, "the query is not what is expected: missing field `resource`"),
        ("/v1/inspect?resource=a&colour=red", 400, "colour"),
    ] {
        let error = daemon.get(path).expect(status);
        assert!(error["error"]["message"].as_str().unwrap().contains(says), "{error}");
    }
    for id in ["%FF", "..%2f..", "0", "%00"] {
        let error = daemon.post(&format!("/v1/leases/{id}/release"), &json!({})).expect(404);
        assert_eq!(error["error"]["kind"], "unknown_lease");
    }
    let many = "X-Padding: y\r\n".repeat(150);
    assert_eq!(request(&posted("/v1/acquire", r#"{"resource":"a"}"#, &many)), 431);
    let deep = format!("{{\"resource\": {}", "[".repeat(10_000));
    assert_eq!(request(&posted("/v1/acquire", &deep, "")), 400);
    assert_eq!(daemon.metric("leasehold_serve_leases"), 0);
    assert_eq!(daemon.metric("leasehold_serve_failed_total"), 0, "which would alarm the operator");
}

#[test]
fn slow_clients_and_half_bodies_hold_up_nobody() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &["--max-connections", "8"]);
    let whole = posted("/v1/acquire", r#"{"resource":"half"}"#, "");
    let half_head = daemon.send(&whole[..30]);
    let half_body = daemon.send(&whole[..whole.len() - 3]);
    let cut = daemon.send(&whole[..whole.len() - 3]);
    cut.shutdown(Shutdown::Write).unwrap();
    daemon.lease(&daemon.acquire("other"), "release").expect(200);
    // The head of a request, and its body, have their time.
    let mut rest = String::new();
    (&half_head).read_to_string(&mut rest).unwrap();
    assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
    assert_eq!(answer(half_body).status, 408);
    assert!(!daemon.is_held("half"));
}

#[test]
fn a_client_that_gives_up_waiting_leaves_no_lock_behind() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let lease = daemon.acquire("job");
    let body = json!({ "resource": "job", "wait_ms": 600_000 }).to_string();
    let waiter = daemon.send(&posted("/v1/acquire", &body, ""));
    wait_for("a waiter", || daemon.metric("leasehold_serve_waiting") == 1);
    assert!(daemon.get("/").body.contains("<td class=\"number\">1</td>"), "the page shows who waits");
    drop(waiter);
    wait_for("its end", || daemon.metric("leasehold_serve_waiting") == 0);
    daemon.lease(&lease, "release").expect(200);
    daemon.lease(&daemon.acquire("job"), "release").expect(200);
}

#[test]
fn a_client_has_so_many_leases_and_no_more() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &["--max-leases", "2"]);
    let leases = ["a", "b"].map(|name| daemon.acquire(name));
    let error = daemon.post("/v1/acquire", &json!({ "resource": "c" })).expect(429);
    assert_eq!(error["error"]["kind"], "limit");
    daemon.lease(&leases[0], "release").expect(200);
    daemon.acquire("c");
}

#[test]
fn clients_that_wait_leave_room_for_renewals() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &["--max-connections", "4"]);
    let lease = daemon.acquire("job");
    let body = json!({ "resource": "job", "wait_ms": 600_000 }).to_string();
    let waiters = [(); 3].map(|()| daemon.send(&posted("/v1/acquire", &body, "")));
    wait_for("the waiters", || daemon.metric("leasehold_serve_waiting") == 3);
    let error = daemon.post("/v1/acquire", &json!({ "resource": "other", "wait_ms": 1 })).expect(429);
    assert!(error["error"]["message"].as_str().unwrap().contains("--max-connections"), "{error}");
    assert_eq!(daemon.post("/v1/hold", &json!({ "resource": "other" })).status, 429);
    daemon.lease(&lease, "renew").expect(200);
    daemon.post("/v1/acquire", &json!({ "resource": "other" })).expect(200);
    drop(waiters);
}

#[test]
fn a_lease_that_was_waited_for_is_valid_from_its_request_on() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let lease = daemon.acquire("job");
    let body = json!({ "resource": "job", "ttl_ms": 1_000, "wait_ms": 600_000 }).to_string();
    let sent = Instant::now();
    let waiter = daemon.send(&posted("/v1/acquire", &body, ""));
    wait_for("the waiter", || daemon.metric("leasehold_serve_waiting") == 1);
    let waiting = Instant::now();
    wait_for("two ttls of waiting", || waiting.elapsed() > Duration::from_secs(2));
    daemon.lease(&lease, "release").expect(200);
    let valid = answer(waiter).expect(200)["valid_ms"].as_u64().unwrap();
    // From the sending on, the wait is a part of it.
    assert!(valid > 1_900 && u128::from(valid) < sent.elapsed().as_millis() + 1_000, "{valid}");
}

#[test]
fn two_daemons_on_one_store_exclude_each_other() {
    let place = Place::new();
    let (one, two) = (Daemon::start(&place, &[]), Daemon::start(&place, &[]));
    let lease = one.acquire("job");
    assert_eq!(two.post("/v1/acquire", &json!({ "resource": "job" })).expect(409)["error"]["kind"], "busy");
    assert_eq!(two.lease(&lease, "release").expect(404)["error"]["kind"], "unknown_lease");
    let listed = two.get("/v1/list?prefix=j").expect(200);
    assert_eq!((listed["locks"][0]["token"].as_u64(), &listed["complete"]), (lease["token"].as_u64(), &json!(true)));
    one.lease(&lease, "release").expect(200);
    assert!(two.acquire("job")["token"].as_u64() > lease["token"].as_u64());
}

#[test]
fn a_signal_releases_what_clients_hold() {
    let place = Place::new();
    let mut daemon = Daemon::start(&place, &[]);
    daemon.acquire("calls");
    let stream = daemon.send(&posted("/v1/hold", r#"{"resource":"stream"}"#, ""));
    wait_for("both", || daemon.is_held("stream"));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(), Some(0));
    drop(stream);
    place.run(&["list"]).expect(1);
}

#[cfg(feature = "redis")]
#[test]
fn a_store_that_is_down_is_told_apart_from_a_busy_lock() {
    use leasehold_servers::redis::{Data, Server};
    let place = Place::new();
    let server = Server::start();
    let daemon = Daemon::start(&place, &["--store", &server.url()]);
    let lease = daemon.post("/v1/acquire", &json!({ "resource": "job", "ttl_ms": 2_000 })).expect(200);
    server.kill();
    for answer in [
        daemon.post("/v1/acquire", &json!({ "resource": "other" })),
        daemon.get("/v1/inspect?resource=job"),
        daemon.get("/v1/list"),
    ] {
        assert!(answer.head.to_lowercase().contains("retry-after"), "{answer:?}");
        assert_eq!(answer.expect(503)["error"]["kind"], "store_unavailable");
    }
    assert!(daemon.get("/").body.contains("role=\"alert\""), "the page says so, and works");
    wait_for("the loss", || {
        daemon.lease(&lease, "renew").status == 410 || daemon.metric("leasehold_serve_lost_total") == 1
    });
    server.restart(Data::Lost);
    wait_for("the store", || daemon.post("/v1/acquire", &json!({ "resource": "other" })).status == 200);
}

/// Locks that it cannot release run out by their ttl.
#[cfg(feature = "redis")]
#[test]
fn a_signal_ends_it_while_the_store_is_down() {
    use leasehold_servers::redis::Server;
    let place = Place::new();
    let server = Server::start();
    let mut daemon = Daemon::start(&place, &["--store", &server.url()]);
    let held = daemon.acquire("calls");
    let stream = daemon.send(&posted("/v1/hold", r#"{"resource":"stream"}"#, ""));
    wait_for("both", || daemon.is_held("stream"));
    server.stop_process();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(), Some(69), "the releases are not confirmed");
    drop((stream, held));
}

#[test]
fn curl_takes_a_lock() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let guide = include_str!("../../../docs/serve.md");
    let script = guide.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let script = script.replace("127.0.0.1:7070", &daemon.address);
    let run = Command::new("sh").args(["-euc", &script]).current_dir(place.path("")).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("\"released\":true"), "{text}");
}

#[test]
fn java_takes_a_lock() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/infra/Serve.java");
    let run = Command::new("java").args([program, &format!("http://{}", daemon.address)]).output();
    let run = run.expect("a JDK, which DynamoDB Local needs too");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("released"), "{text}");
}
