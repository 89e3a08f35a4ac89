//! The component that takes locks by itself, in the hosts that give it the network: wasmtime, under Python, and Node.

mod example;
mod trouble;

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use leasehold_servers::{dynamodb, redis, rest, webdis};
use serde_json::json;

use crate::program::{Running, variable};

/// Longer than a busy machine needs to start three hosts: until then nobody renews.
const TTL: u64 = 20_000;
/// A sixth of the ttl: as long as may be, for a machine that is busy with other things.
const REPLY: u64 = TTL / 6;
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../component/hosts");

/// The runtime that gives the component its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host {
    Wasmtime,
    Node,
}

const HOSTS: [Host; 2] = [Host::Wasmtime, Host::Node];

impl Host {
    /// The program that holds a lock, before its arguments.
    fn hold(self) -> Command {
        match self {
            Self::Wasmtime => {
                let mut command = Command::new(variable("LEASEHOLD_LOCKS_PYTHON"));
                command.arg(PathBuf::from(SOURCES).join("python/hold.py")).arg(variable("LEASEHOLD_LOCKS"));
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
            Self::Node => {
                let mut command = Command::new("node");
                command.arg(PathBuf::from(SOURCES).join("javascript/hold.mjs")).arg(variable("LEASEHOLD_LOCKS_MODULE"));
                command.current_dir(variable("LEASEHOLD_LOCKS_TOOLS"));
                command
            }
        }
    }
}

/// A store, as the programs name it.
struct Place {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Place {
    fn webdis(url: &str) -> Self {
        Self { arguments: ["webdis", url].map(str::to_owned).to_vec(), environment: Vec::new() }
    }

    fn rest(url: &str, token: &str) -> Self {
        let arguments = ["upstash", url].map(str::to_owned).to_vec();
        Self { arguments, environment: vec![("UPSTASH_REDIS_REST_TOKEN", token.to_owned())] }
    }

    fn table(server: &dynamodb::Server) -> Self {
        let table = dynamodb::table_name();
        let key = json!([{"AttributeName": "key", "KeyType": "HASH"}]);
        let kinds = json!([{"AttributeName": "key", "AttributeType": "S"}]);
        server.command(
            "CreateTable",
            &json!({"TableName": table, "KeySchema": key, "AttributeDefinitions": kinds, "BillingMode": "PAY_PER_REQUEST"}),
        );
        let arguments = ["dynamodb", &server.endpoint(), "--table", &table, "--region", dynamodb::REGION];
        Self {
            arguments: arguments.map(str::to_owned).to_vec(),
            environment: vec![
                ("AWS_ACCESS_KEY_ID", dynamodb::ACCESS_KEY_ID.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "hunter2".to_owned()),
            ],
        }
    }

    fn hold(&self, host: Host, name: &str, more: &[&str]) -> Running {
        let mut command = host.hold();
        command.args(&self.arguments[..2]).arg(name);
        command.args(["--ttl-ms", &TTL.to_string(), "--reply-ms", &REPLY.to_string()]);
        command.args(&self.arguments[2..]).args(more).envs(self.environment.iter().map(|(name, value)| (name, value)));
        Running::start(command)
    }
}

/// At once, since most of the time is spent waiting.
fn in_each(test: impl Fn(Host) + Sync) {
    thread::scope(|scope| {
        for host in HOSTS {
            let test = &test;
            scope.spawn(move || test(host));
        }
    });
}

/// The time left of the lease, in ms.
#[track_caller]
fn remaining(lease: &mut Running) -> u64 {
    lease.say("remaining");
    lease.hear("remaining").parse().unwrap()
}

/// The life of a lock between two instances, each with a network of its own.
fn hand_over(place: &Place, one: Host, other: Host) {
    let name = format!("invoice/{one:?} é");
    let mut first = place.hold(one, &name, &["--owner", "alice"]);
    let token = first.token();
    let left = remaining(&mut first);
    assert!(left > 0 && left < TTL, "{left} ms of {TTL}");

    let mut refused = place.hold(other, &name, &["--owner", "bob"]);
    let said = refused.hear("busy");
    assert!(said.contains(&format!("busy: held by alice, token {token}")), "{said}");
    assert_eq!(refused.status(), 1);
    let mut refused = place.hold(other, &name, &["--owner", "bob", "--wait-ms", "1500"]);
    assert!(refused.hear("timed-out").contains("not free within the wait: held by alice"));
    assert_eq!(refused.status(), 1);

    // Longer than the ttl, and it is still there.
    let mut second = place.hold(other, &name, &["--owner", "carol", "--wait-ms", "600000"]);
    first.say(&format!("tend {}", TTL + 500));
    let due = first.hear("tended");
    assert!(due.parse::<u64>().is_ok_and(|due| due <= TTL / 3), "{due}: {first:?}");
    first.say("check 1");
    first.hear("held");
    first.say("release");
    first.hear("released");
    assert_eq!(first.status(), 0);

    let later = second.token();
    assert!(later > token, "{later} comes after {token}");
    second.end_input();
    second.hear("released");
    assert_eq!(second.status(), 0);
}

/// At once as well.
fn each_way(place: &Place) {
    thread::scope(|scope| {
        for (one, other) in [(Host::Wasmtime, Host::Node), (Host::Node, Host::Wasmtime)] {
            scope.spawn(move || hand_over(place, one, other));
        }
    });
}

#[test]
fn a_lock_goes_from_instance_to_instance_over_webdis() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    each_way(&Place::webdis(&server.url()));
}

#[test]
fn a_lock_goes_from_instance_to_instance_over_rest() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    each_way(&Place::rest(&server.url(), server.token()));
}

#[test]
fn a_lock_goes_from_instance_to_instance_on_a_table() {
    each_way(&Place::table(&dynamodb::Server::shared()));
}

#[test]
fn three_stores_are_a_quorum_of_which_one_may_be_gone() {
    let servers = [(); 3].map(|()| redis::Server::start());
    let webdis = [0, 1, 2].map(|n| webdis::Server::start(&servers[n]));
    let urls = webdis.each_ref().map(webdis::Server::url).join(",");
    let place = Place::webdis(&urls);
    // Stores that nobody has told of their quorum vote once the longest lock that they could have forgotten is over.
    let most = (TTL + 1_000).to_string();
    let quorum = ["--quorum", "00112233445566778899aabbccddeeff", "--max-ttl-ms", &most];
    let mut token = 0;
    for (n, host) in HOSTS.into_iter().enumerate() {
        let mut lease = place.hold(host, "invoice/42", &[&quorum[..], &["--wait-ms", "600000"]].concat());
        let later = lease.token();
        assert!(later > token, "{later} comes after {token}");
        token = later;
        let mut refused = place.hold(host, "invoice/42", &quorum);
        refused.hear("busy");
        assert_eq!(refused.status(), 1);
        lease.end_input();
        lease.hear("released");
        assert_eq!(lease.status(), 0);
        if n == 0 {
            webdis[2].kill();
        }
    }
}
