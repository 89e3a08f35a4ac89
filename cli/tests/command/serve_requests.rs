//! Requests to the daemon that are wrong, foreign, too long, or sent again.

use crate::common::daemon::{Daemon, answer, posted};
use crate::common::{Place, wait_for};
use serde_json::{Value, json};

fn got(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n")
}

#[test]
fn pages_of_other_sites_reach_nothing() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let lease = daemon.acquire("job");
    let request = |text: &str| answer(daemon.send(text));
    let id = lease["id"].as_str().unwrap();
    for foreign in ["Origin: http://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        for path in ["/", "/v1/list", "/v1/inspect?resource=job", "/metrics", "/openapi.json", "/healthz", "/nothing"] {
            let error = request(&got(path, foreign)).expect(403);
            assert_eq!(error["error"]["kind"], "foreign_origin", "{path}");
        }
        for what in ["renew", "release", "finish"] {
            let json = posted(&format!("/v1/leases/{id}/{what}"), "{}", foreign);
            for text in [json.replace("application/json", "text/plain"), json] {
                assert_eq!(request(&text).status, 403, "{text}");
            }
        }
    }
    for what in ["renew", "release", "finish"] {
        let json = posted(&format!("/v1/leases/{id}/{what}"), "{}", "");
        for wrong in ["Content-Type: text/plain", "X: y", "Content-Type: application/json\r\nContent-Type: text/plain"]
        {
            assert_eq!(request(&json.replace("Content-Type: application/json", wrong)).status, 415, "{wrong}");
        }
    }
    assert!(daemon.is_held("job"));
    assert_eq!(daemon.metric("leasehold_serve_renewed_total"), 0);
    // The page of the daemon itself may ask.
    let own = format!("Host: {0}\r\nOrigin: http://{0}\r\nSec-Fetch-Site: same-origin", daemon.address);
    assert_eq!(request(&got("/", "").replace("Host: localhost", &own)).status, 200);
}

#[cfg(feature = "redis")]
#[test]
fn pages_of_other_sites_let_the_store_alone() {
    let place = Place::new();
    let server = leasehold_servers::redis::Server::start();
    let daemon = Daemon::start(&place, &["--store", &server.url()]);
    for path in ["/", "/v1/list", "/v1/list?prefix=a"] {
        for foreign in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
            assert_eq!(answer(daemon.send(&got(path, foreign))).status, 403, "{path}");
        }
    }
    assert_eq!(server.commands_processed("scan"), 0);
    daemon.get("/v1/list").expect(200);
    assert_eq!(server.commands_processed("scan"), 1);
}

#[test]
fn a_request_is_for_one_host() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let request = |text: &str| answer(daemon.send(text)).status;
    assert_eq!(request(&got("/healthz", "Host: localhost\r\n")), 400, "two, even if they agree");
    assert_eq!(request(&got("/healthz", "Host: evil.example\r\n")), 400);
    assert_eq!(request(&got("/healthz", "").replace("Host: localhost\r\n", "")), 400);
    assert_eq!(request(&got("http://localhost/healthz", "")), 200);
    assert_eq!(request(&got("http://evil.example/healthz", "")), 400, "the first line says another one");
    let evil = got("http://evil.example/healthz", "").replace("Host: localhost", "Host: evil.example");
    assert_eq!(request(&evil), 421);
}

#[test]
fn heads_and_bodies_are_no_longer_than_documented() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let padded = |bytes: usize| answer(daemon.send(&got("/healthz", &format!("X: {}\r\n", "y".repeat(bytes))))).status;
    assert_eq!(padded(65_000), 200);
    for bytes in [65_536, 70_000, 100_000] {
        assert_eq!(padded(bytes), 431, "{bytes}");
    }
    let path = format!("/v1/list?prefix={}", "y".repeat(65_500));
    assert_eq!(daemon.get(&path).status, 431);
    // No byte of the body comes, and none is waited for.
    for path in ["/v1/acquire", "/v1/leases/0/release", "/nothing"] {
        let announced = posted(path, "", "").replace("Content-Length: 0", "Content-Length: 1000000000");
        assert_eq!(answer(daemon.send(&announced)).status, 413, "{path}");
    }
    let get = got("/healthz", "Content-Length: 1000000000\r\n");
    assert_eq!(answer(daemon.send(&get)).status, 413);
}

#[test]
fn fields_that_do_nothing_are_refused() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let lease = daemon.acquire("job");
    let path = |what: &str| format!("/v1/leases/{}/{what}", lease["id"].as_str().unwrap());
    for what in ["renew", "release", "finish"] {
        let error = daemon.post(&path(what), &json!({ "ttl_ms": 60_000 })).expect(400);
        assert!(error["error"]["message"].as_str().unwrap().contains("unknown field `ttl_ms`"), "{error}");
        daemon.post(&path(what), &json!([])).expect(400);
    }
    for body in [json!(["job", null, null, null, null]), json!({ "resource": "a", "ttl_ms": 500.5 })] {
        daemon.post("/v1/acquire", &body).expect(400);
    }
    daemon.post("/v1/acquire?ttl_ms=60000", &json!({ "resource": "a" })).expect(400);
    for limit in ["0", "10001", "-1", "x"] {
        daemon.get(&format!("/v1/list?limit={limit}")).expect(400);
    }
    assert!(daemon.is_held("job") && !daemon.is_held("a"));
    let whole = daemon.post("/v1/acquire", &json!({ "resource": "a", "ttl_ms": 30_000.0 })).expect(200);
    assert_eq!(whole["ttl_ms"], 30_000);
}

#[test]
fn a_finish_that_is_asked_for_again_gets_the_same_answer() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let run = daemon.post("/v1/once", &json!({ "name": "report", "key": "monday" })).expect(200);
    let first = daemon.lease(&run, "finish").expect(200);
    assert_eq!((&first["finished"], &first["repeated"]), (&json!(true), &json!(false)));
    let again = daemon.lease(&run, "finish").expect(200);
    assert_eq!((&again["token"], &again["repeated"]), (&run["token"], &json!(true)));
    assert_eq!(daemon.lease(&run, "release").expect(404)["error"]["kind"], "unknown_lease");
    assert_eq!(daemon.post("/v1/leases/0/finish", &json!({})).expect(404)["error"]["kind"], "unknown_lease");
    let lock = daemon.acquire("plain");
    for is_repeated in [false, true, true] {
        let released = daemon.lease(&lock, "release").expect(200);
        assert_eq!((&released["token"], &released["repeated"]), (&lock["token"], &json!(is_repeated)));
    }
    assert_eq!(daemon.metric("leasehold_serve_released_total"), 2);
    // A failure is repeated as well.
    let lost = daemon.post("/v1/once", &json!({ "name": "report", "key": "tuesday" })).expect(200);
    place.run(&["break", "--yes", "report@tuesday"]).expect(0);
    for _ in 0..2 {
        assert_eq!(daemon.lease(&lost, "finish").expect(410)["error"]["kind"], "lost");
    }
}

fn keyed(daemon: &Daemon, path: &str, key: &str, body: &Value, more: &str) -> crate::common::daemon::Answer {
    answer(daemon.send(&posted(path, &body.to_string(), &format!("Idempotency-Key: {key}\r\n{more}"))))
}

#[test]
fn an_acquisition_whose_answer_was_lost_is_asked_for_again() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &["--max-leases", "1"]);
    let job = json!({ "resource": "job", "ttl_ms": 60_000 });
    let first = keyed(&daemon, "/v1/acquire", "k-1", &job, "").expect(200);
    let again = keyed(&daemon, "/v1/acquire", "k-1", &job, "").expect(200);
    assert_eq!((&first["repeated"], &again["repeated"]), (&json!(false), &json!(true)));
    for field in ["id", "token", "owner", "ttl_ms"] {
        assert_eq!(first[field], again[field], "{field}");
    }
    // As the same request, however it is written.
    let rewritten = r#"{ "ttl_ms":60000, "wait_ms":null,"resource":"\u006aob"}"#;
    let rewritten = answer(daemon.send(&posted("/v1/acquire", rewritten, "Idempotency-Key: k-1\r\n"))).expect(200);
    assert_eq!(first["id"], rewritten["id"]);
    let other = keyed(&daemon, "/v1/acquire", "k-1", &json!({ "resource": "other" }), "").expect(422);
    assert_eq!(other["error"]["kind"], "key_used");
    daemon.lease(&first, "release").expect(200);
    let over = keyed(&daemon, "/v1/acquire", "k-1", &job, "").expect(422);
    assert!(over["error"]["message"].as_str().unwrap().contains("is over"), "a late repetition takes no lock: {over}");
    assert!(!daemon.is_held("job"));
    // A key stands for nothing before something is granted.
    keyed(&daemon, "/v1/acquire", "k-0", &json!({ "resource": "job", "ttl_ms": 1 }), "").expect(400);
    let mended = keyed(&daemon, "/v1/acquire", "k-0", &job, "").expect(200);
    daemon.lease(&mended, "release").expect(200);
    let taken = daemon.acquire("other");
    place.run(&["break", "--yes", "other"]).expect(0);
    daemon.lease(&taken, "release").expect(410);
    let rival = Daemon::start(&place, &[]);
    let held = rival.acquire("job");
    assert_eq!(keyed(&daemon, "/v1/acquire", "k-2", &job, "").status, 409);
    rival.lease(&held, "release").expect(200);
    let granted = keyed(&daemon, "/v1/acquire", "k-2", &job, "").expect(200);
    assert_eq!(granted["repeated"], false);
    daemon.lease(&granted, "release").expect(200);
    let run = json!({ "name": "report", "key": "monday" });
    let first = keyed(&daemon, "/v1/once", "k-1", &run, "").expect(200);
    let again = keyed(&daemon, "/v1/once", "k-1", &run, "").expect(200);
    assert_eq!((&first["id"], &again["state"], &again["repeated"]), (&again["id"], &json!("run"), &json!(true)));
    for bad in ["", "a,b", "a b", "a\tb", "k\r\nIdempotency-Key: l", &"k".repeat(256)] {
        assert_eq!(keyed(&daemon, "/v1/acquire", bad, &job, "").status, 400, "{bad}");
    }
    assert_eq!(keyed(&daemon, "/v1/hold", "k-3", &job, "").status, 400);
}

#[test]
fn requests_with_one_key_that_wait_get_one_lease() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    let lease = daemon.acquire("job");
    let body = json!({ "resource": "job", "wait_ms": 600_000 }).to_string();
    let request = posted("/v1/acquire", &body, "Idempotency-Key: k\r\n");
    let gone = daemon.send(&request);
    wait_for("the first", || daemon.metric("leasehold_serve_waiting") == 1);
    let others = [(); 2].map(|()| daemon.send(&request));
    // Its client goes: another one waits in its place, or gets what it was granted.
    drop(gone);
    daemon.lease(&lease, "release").expect(200);
    let granted = others.map(|other| answer(other).expect(200));
    assert_eq!((&granted[0]["id"], &granted[0]["token"]), (&granted[1]["id"], &granted[1]["token"]));
    daemon.lease(&granted[0], "release").expect(200);
    assert!(!daemon.is_held("job"));
}

#[test]
fn keys_are_forgotten_only_for_newer_ones() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &["--max-leases", "2"]);
    let ask = |number: usize| {
        keyed(&daemon, "/v1/acquire", &format!("k-{number}"), &json!({ "resource": format!("job-{number}") }), "")
    };
    let kept = ask(0).expect(200);
    for number in 1..20 {
        daemon.lease(&ask(number).expect(200), "release").expect(200);
    }
    assert_eq!(ask(19).status, 422, "one of the newest");
    assert_eq!(ask(0).expect(200)["id"], kept["id"], "its lease is held");
    assert_eq!(ask(1).status, 422, "its lease is over, and it is not forgotten for as few as these");
}

fn all_pages(daemon: &Daemon, prefix: &str, limit: usize) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = daemon.get(&format!("/v1/list?prefix={prefix}&limit={limit}{cursor}")).expect(200);
        let locks = page["locks"].as_array().unwrap();
        assert!(locks.len() <= limit, "{page}");
        names.extend(locks.iter().map(|lock| lock["resource"].as_str().unwrap().to_owned()));
        assert_eq!(page["complete"], page["cursor"].is_null());
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return names,
        }
    }
}

#[track_caller]
fn pages_have_all(daemon: &Daemon, may_repeat: bool) {
    // More than the store's own pages have.
    let wanted: Vec<_> = (0..270).map(|number| format!("job-{number:03}")).collect();
    for name in &wanted {
        daemon.acquire(name);
    }
    daemon.acquire("other");
    for limit in [1, 7, 250, 10_000] {
        let mut names = all_pages(daemon, "job", limit);
        names.sort();
        if may_repeat {
            names.dedup();
        }
        assert_eq!(names, wanted, "by {limit}");
    }
}

#[test]
fn a_list_has_pages() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &[]);
    pages_have_all(&daemon, false);
    let page = daemon.get("/v1/list?prefix=job&limit=2").expect(200);
    let cursor = page["cursor"].as_str().unwrap();
    daemon.get(&format!("/v1/list?cursor={cursor}")).expect(400);
    daemon.get("/v1/list?cursor=0").expect(400);
    // The same page again, as often as it is asked for.
    let next = || daemon.get(&format!("/v1/list?prefix=job&limit=2&cursor={cursor}")).expect(200)["locks"].clone();
    let first = next();
    assert_eq!(first[0]["resource"], next()[0]["resource"]);
    assert_ne!(first[0]["resource"], page["locks"][0]["resource"]);
}

#[cfg(feature = "redis")]
#[test]
fn a_list_of_redis_has_pages() {
    let place = Place::new();
    let server = leasehold_servers::redis::Server::start();
    // `SCAN` gives some names twice while a table grows.
    pages_have_all(&Daemon::start(&place, &["--store", &server.url()]), true);
}

#[cfg(feature = "redis")]
#[test]
fn locks_that_end_between_two_pages_hide_no_others() {
    let place = Place::new();
    let server = leasehold_servers::redis::Server::start();
    let daemon = Daemon::start(&place, &["--store", &server.url()]);
    let (ends, stays): (Vec<_>, Vec<_>) =
        (0..600).map(|number| (number, daemon.acquire(&format!("job-{number:03}")))).partition(|(n, _)| n % 2 == 0);
    let page = daemon.get("/v1/list?prefix=job&limit=60").expect(200);
    let mut names: Vec<String> = page["locks"].as_array().unwrap().iter().map(name_of).collect();
    // The table of Redis shrinks, so that one of its pages reaches further.
    for (_, lease) in &ends {
        daemon.lease(lease, "release").expect(200);
    }
    let mut cursor = page["cursor"].as_str().map(str::to_owned);
    while let Some(next) = cursor {
        let page = daemon.get(&format!("/v1/list?prefix=job&limit=60&cursor={next}")).expect(200);
        names.extend(page["locks"].as_array().unwrap().iter().map(name_of));
        cursor = page["cursor"].as_str().map(str::to_owned);
    }
    let missing: Vec<_> =
        stays.iter().map(|(n, _)| format!("job-{n:03}")).filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[cfg(feature = "redis")]
fn name_of(lock: &Value) -> String {
    lock["resource"].as_str().unwrap().to_owned()
}
