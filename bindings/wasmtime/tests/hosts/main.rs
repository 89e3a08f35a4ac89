//! Hosts in other languages: they take real locks on real servers, with their own HTTP clients and nothing else.
//!
//! The programs are those in `bindings/component/hosts`. `cargo xtask component --test` compiles them, and names what they
//! need in variables.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests, and their helpers are too")]

mod answers;
mod locks;
mod program;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use leasehold_servers::proxy::Proxy;
use leasehold_servers::{dynamodb, redis, rest, webdis};
use serde_json::json;

use program::{Language, Running};

const TTL: Duration = Duration::from_secs(12);
/// Renewed much more often than a host would, so that there is something to wait for.
const RENEWAL: Duration = Duration::from_millis(500);

/// A store and the way to it.
struct Place {
    proxy: Proxy,
    /// As the programs call it.
    store: &'static str,
    path: &'static str,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Place {
    fn lock(&self, language: Language, resource: &str, owner: &str, more: &[&str]) -> Running {
        let mut command: Command = language.program("lock");
        command.arg(self.store).arg(format!("http://{}{}", self.proxy.address(), self.path)).arg(resource);
        command.args(["--owner", owner, "--ttl-ms", &TTL.as_millis().to_string()]);
        command.args(["--renew-ms", &RENEWAL.as_millis().to_string()]);
        command.args(&self.arguments).args(more).envs(self.environment.iter().map(|(name, value)| (name, value)));
        Running::start(command)
    }

    fn go_down(&self) {
        self.proxy.refuse();
        self.proxy.cut_all();
    }
}

/// The life of a lock between two programs, each behind a network of its own.
fn take_turns(one: (Language, Place), other: (Language, Place)) {
    let ((one, here), (other, there)) = (one, other);
    let resource = format!("invoice/{one:?} é");
    let mut first = here.lock(one, &resource, "alice", &["--wait-ms", "600000"]);
    let token = first.token();
    let granted = Instant::now();

    let mut refused = there.lock(other, &resource, "bob", &[]);
    assert_eq!(refused.hear("failed"), "busy alice");
    assert_eq!(refused.status(), 1);
    let mut second = there.lock(other, &resource, "carol", &["--wait-ms", "600000"]);
    assert_eq!(second.hear("contended"), "alice");

    here.go_down();
    first.hear("renew-delayed");
    here.proxy.pass();
    first.hear("renewed");
    // A waiting caller keeps waiting, and a caller that asks once gets an error.
    there.go_down();
    let mut unlucky = there.lock(other, "invoice/down", "dave", &[]);
    assert!(unlucky.hear("failed").starts_with("unavailable"), "{unlucky:?}");
    there.proxy.pass();
    assert_eq!(unlucky.status(), 1);

    while granted.elapsed() < TTL + RENEWAL {
        first.hear("renewed");
    }
    let mut refused = there.lock(other, &resource, "bob", &[]);
    assert_eq!(refused.hear("failed"), "busy alice");
    first.end_input();
    assert_eq!(first.hear("released"), "");
    assert_eq!(first.status(), 0);

    let later = second.token();
    assert!(later > token, "{later} comes after {token}");
    // A server that says nothing keeps nobody from knowing that time is up.
    there.proxy.black_hole();
    assert_eq!(second.hear("lost"), "expired");
    there.proxy.pass();
    assert_eq!(second.status(), 3);

    let mut third = here.lock(one, &resource, "alice", &["--wait-ms", "600000"]);
    let latest = third.token();
    assert!(latest > later, "{latest} comes after {later}");
    // The host in Python has no guard of its own.
    for language in [one, other].into_iter().filter(|language| *language != Language::Python) {
        fence(language, later, latest);
    }
    third.end_input();
    assert_eq!(third.status(), 0);
}

/// The protected resource refuses the former holder and accepts the current one.
fn fence(language: Language, earlier: u64, now: u64) {
    let folder = tempfile::tempdir().unwrap();
    let claim = |token: u64| {
        let mut guard = language.program("guard");
        let output = guard.arg(folder.path().join("mark")).arg(token.to_string()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(claim(earlier), (Some(0), format!("claimed {earlier}\n")));
    assert_eq!(claim(now), (Some(0), format!("claimed {now}\n")));
    assert_eq!(claim(earlier), (Some(1), "refused: stale\n".into()));
    assert_eq!(claim(now), (Some(0), format!("claimed {now}\n")));
    // A mark that was there and cannot be read is not one that was never there.
    for mark in ["", "garbage", "1e3"] {
        std::fs::write(folder.path().join("mark"), mark).unwrap();
        assert_eq!(claim(earlier), (Some(2), String::new()), "{mark:?}");
    }
}

/// At once, since most of the time is spent waiting.
fn each_way(place: impl Fn() -> Place + Sync) {
    thread::scope(|scope| {
        for (one, other) in [(Language::Python, Language::C), (Language::CheckedC, Language::Python)] {
            let place = &place;
            scope.spawn(move || take_turns((one, place()), (other, place())));
        }
    });
}

#[test]
fn they_take_turns_over_webdis() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    each_way(|| Place {
        proxy: Proxy::to(server.address()),
        store: "webdis",
        path: "/",
        arguments: Vec::new(),
        environment: Vec::new(),
    });
}

#[test]
fn they_take_turns_over_rest() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    each_way(|| Place {
        proxy: Proxy::to(server.address()),
        store: "upstash",
        path: "",
        arguments: Vec::new(),
        environment: vec![("UPSTASH_REDIS_REST_TOKEN", server.token().to_owned())],
    });
}

#[test]
fn they_take_turns_on_a_table() {
    let server = dynamodb::Server::shared();
    let table = dynamodb::table_name();
    let key = json!([{"AttributeName": "key", "KeyType": "HASH"}]);
    let kinds = json!([{"AttributeName": "key", "AttributeType": "S"}]);
    server.command(
        "CreateTable",
        &json!({"TableName": table, "KeySchema": key, "AttributeDefinitions": kinds, "BillingMode": "PAY_PER_REQUEST"}),
    );
    each_way(|| Place {
        proxy: Proxy::to(server.address()),
        store: "dynamodb",
        path: "",
        arguments: ["--table", &table, "--region", dynamodb::REGION].map(str::to_owned).to_vec(),
        environment: vec![
            ("AWS_ACCESS_KEY_ID", dynamodb::ACCESS_KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "hunter2".to_owned()),
        ],
    });
}

#[test]
fn their_benchmarks_run() {
    for language in [Language::C, Language::CheckedC] {
        let output = language.program("bench").arg("0").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.contains("for acquire and release, 10 calls"), "{language:?}: {said}");
    }
}
