//! Setups that connecting to a quorum refuses, and those that it only warns of.

use crate::common::log::Log;
use crate::common::quorum::{MAX_TTL, Nodes, settings};
use crate::common::{PATIENCE, eventually, ms};
use leasehold::blocking::Client;
use leasehold::quorum::{Force, Init, Quorum, Standing};
use leasehold::{Client as AsyncClient, ClientBuilder, Error, ErrorKind, Finding, Severity, Stores};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::Server;

fn refused(settings: ClientBuilder, stores: impl Stores) -> Error {
    Client::connect_with(settings, stores).expect_err("must be refused")
}

#[track_caller]
fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

#[test]
fn settings_of_a_quorum_need_one() {
    for (settings, name) in [
        (AsyncClient::builder().max_ttl(MAX_TTL), "max_ttl"),
        (AsyncClient::builder().quorum_id("mine"), "quorum_id"),
        (AsyncClient::builder().create_quorum(), "create_quorum"),
    ] {
        says(&refused(settings, "memory:"), ErrorKind::Config, &[name, "one store is named"]);
    }
    let three = ["memory:a1", "memory:a2", "memory:a3"];
    says(&refused(AsyncClient::builder().max_ttl(ms(1)), three), ErrorKind::Config, &["max_ttl", "1 ms", "100 ms"]);
    says(&refused(AsyncClient::builder().quorum_id(""), three), ErrorKind::Config, &["quorum_id", "0 bytes"]);
    let many: Vec<String> = (0..32).map(|n| format!("memory:many{n}")).collect();
    says(&refused(AsyncClient::builder(), many), ErrorKind::Config, &["32", "31"]);
}

#[test]
fn a_lock_must_not_outlast_the_abstention() {
    let client = Client::connect_with(settings().create_quorum(), ["memory:", "memory:", "memory:"]).unwrap();
    let error = client.lock("job").ttl(ms(1_500)).lock_delay(ms(501)).acquire().unwrap_err();
    says(&error, ErrorKind::Config, &["2.001 s", "2 s", "max_ttl"]);
    client.lock("job").ttl(ms(1_500)).lock_delay(ms(500)).acquire().unwrap().release().unwrap();
}

#[test]
fn one_store_under_two_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    says(&refused(settings(), ["memory:x", "memory:y", "memory:x"]), ErrorKind::Config, &["memory:x", "named twice"]);
    Client::connect(path("a.db")).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("a.db"), folder.path().join("symbolic.db")).unwrap();
        let stores = [path("a.db"), path("symbolic.db"), path("c.db")];
        says(&refused(settings(), stores), ErrorKind::Config, &["named twice"]);
    }
    std::fs::hard_link(folder.path().join("a.db"), folder.path().join("hard.db")).unwrap();
    let error = refused(settings(), [path("a.db"), path("hard.db"), path("c.db")]);
    says(&error, ErrorKind::Config, &["a.db", "hard.db", "the same server under two names", "two votes"]);

    let nodes = Nodes::start(2);
    let (direct, proxied) = (nodes.direct(), nodes.urls());
    let error = refused(settings(), [&direct[0], &direct[1], &proxied[1]]);
    says(
        &error,
        ErrorKind::Config,
        &["the same server under two names", "two votes", &nodes.proxies[1].port().to_string()],
    );
    let error = refused(settings(), [direct[0].clone(), direct[1].clone(), format!("{}1", direct[1])]);
    says(&error, ErrorKind::Config, &["databases of the same server", "two votes"]);
}

#[test]
fn a_node_of_another_quorum_is_refused() {
    let nodes = Nodes::start(4);
    nodes.create();
    let three = nodes.direct()[..3].to_vec();
    let error = refused(settings().quorum_id("another"), nodes.direct());
    let ours = Quorum::connect(&settings(), nodes.direct()).unwrap().id();
    says(&error, ErrorKind::Config, &[&ours, "quorum init --force", "redis://127.0.0.1:"]);
    let error = refused(settings(), three);
    says(&error, ErrorKind::Config, &[&ours, "the two could grant the same lock"]);
    let error = refused(settings().max_ttl(MAX_TTL * 2), nodes.direct());
    says(&error, ErrorKind::Config, &["max_ttl of 2 s", "one of 4 s", "quorum init --force"]);
    nodes.servers[1].command(&["SET", "leasehold\u{1f}quorum", "leasehold/9 whatever"]);
    says(&refused(settings(), nodes.direct()), ErrorKind::Config, &["does not know", "update leasehold"]);
    assert_eq!(nodes.standings()[1], Standing::Unreadable);
}

#[test]
fn an_id_is_given_or_follows_from_the_nodes() {
    let id = |settings: &ClientBuilder, stores: [&str; 3]| Quorum::connect(settings, stores).unwrap().id();
    let (plain, given) = (AsyncClient::builder(), AsyncClient::builder().quorum_id("mine"));
    let derived = id(&plain, ["memory:p", "memory:q", "memory:r"]);
    assert_eq!(derived, id(&plain, ["memory:r", "memory:p", "memory:q"]), "in any order");
    assert_ne!(derived, id(&plain, ["memory:p", "memory:q", "memory:s"]));
    assert_eq!(id(&given, ["memory:p", "memory:q", "memory:r"]), id(&given, ["memory:1", "memory:2", "memory:3"]));
    let verbatim = AsyncClient::builder().quorum_id(&derived);
    assert_eq!(derived, id(&verbatim, ["memory:1", "memory:2", "memory:3"]), "as it is shown");
}

#[test]
fn a_minority_may_be_away_and_a_majority_not() {
    let nodes = Nodes::start(3);
    nodes.create();
    nodes.servers[0].kill();
    let client = nodes.connect_directly();
    let lease = client.lock("job").ttl(MAX_TTL).wait(PATIENCE).acquire().unwrap();
    nodes.servers[2].kill();
    let error = refused(settings(), nodes.direct());
    let ports = [0, 2].map(|node: usize| nodes.servers[node].port().to_string());
    says(&error, ErrorKind::StoreUnavailable, &["2 of 3", "majority of 2", &ports[0], &ports[1], "refused"]);
    drop(lease);
}

#[test]
fn a_node_that_was_opened_and_not_seen_is_taken_in_later_unless_it_is_another_one() {
    let nodes = Nodes::start(3);
    nodes.create();
    let marker = || Request::containing("leasehold\u{1f}quorum");
    let lost = nodes.proxies[2].reset_before_forwarding(marker());
    let client = nodes.connect();
    assert_eq!(lost.hits(), 1);
    let lease = client.lock("job").ttl(MAX_TTL).wait(PATIENCE).acquire().unwrap();
    let votes = || client.inspect("job").unwrap().map(|info| (info.votes, info.nodes));
    eventually("the third is asked along", || votes() == Some((3, 3)));
    lease.release().unwrap();

    // The third is the second by another name, which nobody can see at first.
    let double = Proxy::to(nodes.servers[1].address());
    let [first, second, _] = nodes.direct().try_into().unwrap();
    let url = nodes.servers[1].url_at(double.port());
    let lost = double.reset_before_forwarding(marker());
    let client = Client::connect_with(settings(), [&first, &second, &url]).unwrap();
    assert_eq!(lost.hits(), 1);
    let is_told = |finding: &Finding| finding.check == "store.open" && finding.what.contains("is the same server as");
    eventually("it is told", || client.doctor().unwrap().iter().any(is_told));
    let lease = client.lock("job").ttl(MAX_TTL).wait(PATIENCE).acquire().unwrap();
    let info = client.inspect("job").unwrap().unwrap();
    assert_eq!((info.votes, info.nodes), (2, 3), "it has no vote of its own");
    lease.release().unwrap();
    nodes.servers[0].kill();
    let error = client.lock("job").ttl(MAX_TTL).wait(ms(500)).acquire().unwrap_err();
    says(&error, ErrorKind::StoreUnavailable, &["is the same server as"]);
}

#[test]
fn a_node_that_refuses_is_no_node_that_is_away() {
    let nodes = Nodes::start(2);
    let locked = Server::builder().password("hunter2").start();
    let wrong = locked.url().replace("hunter2", "hunter2-guess");
    let error = refused(settings(), [&nodes.direct()[0], &nodes.direct()[1], &wrong]);
    says(&error, ErrorKind::StoreRefused, &["password"]);
    assert!(!error.to_string().contains("hunter2-guess"));
}

#[test]
fn marks_are_made_once_and_by_force_only_again() {
    let nodes = Nodes::start(3);
    let init = |force| nodes.look().unwrap().init(force);
    assert_eq!(nodes.standings(), [Standing::Unmarked; 3]);
    assert_eq!(init(Force::No).unwrap(), Init::Marked { nodes: 3, left_out: vec![] });
    assert_eq!(nodes.standings(), [Standing::Member; 3]);
    assert_eq!(init(Force::No).unwrap(), Init::Exists);
    nodes.servers[1].command(&["FLUSHALL"]);
    let Init::Recovering { nodes: lost } = init(Force::No).unwrap() else { panic!("one has lost its memory") };
    assert!(lost.len() == 1 && lost[0].contains(&nodes.servers[1].port().to_string()));
    assert_eq!(nodes.standings()[1], Standing::Unmarked, "nothing was done");
    let other = Quorum::connect(&settings().quorum_id("another"), nodes.direct()).unwrap();
    says(&other.init(Force::No).unwrap_err(), ErrorKind::Config, &["nothing was marked", "quorum init --force"]);
    assert_eq!(other.init(Force::Yes).unwrap(), Init::Marked { nodes: 3, left_out: vec![] });
    assert_eq!(nodes.standings(), [Standing::Stranger; 3]);
    nodes.servers[2].kill();
    says(&init(Force::No).unwrap_err(), ErrorKind::Config, &["nothing was marked"]);
    let Init::Marked { nodes: 2, left_out } = init(Force::Yes).unwrap() else { panic!("two are there") };
    assert!(left_out.len() == 1 && left_out[0].contains(&nodes.servers[2].port().to_string()));
    assert_eq!(nodes.standings(), [Standing::Member, Standing::Member, Standing::Unreachable]);
}

#[test]
fn a_quorum_is_made_of_all_nodes_or_not_at_all() {
    let nodes = Nodes::start(3);
    nodes.servers[2].kill();
    let error = refused(settings().create_quorum(), nodes.direct());
    says(&error, ErrorKind::StoreUnavailable, &["nothing was marked", &nodes.servers[2].port().to_string()]);
    assert_eq!(nodes.standings()[..2], [Standing::Unmarked; 2]);
    nodes.servers[2].restart(leasehold_servers::redis::Data::Lost);
    nodes.create();
    nodes.servers[2].kill();
    nodes.create();
}

#[test]
fn a_weak_quorum_is_warned_of() {
    let log = Log::default();
    let nodes = Nodes::start(3);
    nodes.create();
    nodes.servers[1].command(&["FLUSHALL"]);
    nodes.servers[2].kill();
    // On this thread only, where connecting tells.
    let (client, pair) = tracing::subscriber::with_default(log.clone(), || {
        let pair = Client::connect_with(settings(), ["memory:", "memory:"]).unwrap();
        Client::connect_with(settings(), ["memory:", "memory:", "memory:", "memory:"]).unwrap();
        (Client::connect_with(settings(), nodes.direct()).unwrap(), pair)
    });
    assert!(log.has("quorum.even WARN", &["2 nodes survives no failure"]), "{log:?}");
    assert!(log.has("quorum.even WARN", &["4 nodes survives 1 failure, as one of 3 does"]), "{log:?}");
    assert!(log.has("quorum.node_unreachable WARN", &[&nodes.servers[2].port().to_string(), "connected to later"]));
    let wait = "3.0 s";
    assert!(
        log.has("lock.node_abstains INFO", &[&nodes.servers[1].port().to_string(), "does not vote", "FLUSHALL", wait])
    );
    assert_eq!(client.stores().len(), 3);
    let found = pair.doctor().unwrap();
    assert!(found.iter().any(|one| one.check == "quorum.size" && one.severity == Severity::Warning));
}

#[test]
fn a_doctor_looks_at_nodes_and_quorum() {
    let durable = Server::builder().appendonly().start();
    let (claims, plain) = (Server::builder().with_clock_offset().start(), Server::start());
    claims.set_clock_ms(5_000);
    let urls = [format!("{}?durable=yes", durable.url()), format!("{}?durable=yes", claims.url()), plain.url()];
    let client = Client::connect_with(settings().create_quorum(), &urls).unwrap();
    let findings = client.doctor().unwrap();
    let find = |check: &str, node: &Server, severity: Severity| {
        let port = node.port().to_string();
        let is_about_it = |one: &leasehold::Finding| one.node.as_ref().unwrap_or(&one.what).contains(&port);
        findings.iter().any(|one| one.check == check && is_about_it(one) && one.severity == severity)
    };
    assert!(find("redis.durable", &durable, Severity::Good) && find("redis.durable", &claims, Severity::Problem));
    let durables = [Severity::Good, Severity::Warning, Severity::Problem];
    assert!(!durables.iter().any(|severity| find("redis.durable", &plain, *severity)), "it is not declared durable");
    assert!(find("quorum.durability", &plain, Severity::Good) && !find("quorum.durability", &durable, Severity::Good));
    assert!(find("quorum.clock", &claims, Severity::Warning) && find("quorum.clock", &plain, Severity::Good));
    assert!(find("quorum.independence", &plain, Severity::Warning), "all are on this machine");
    let votes = |findings: &[leasehold::Finding], words: &str, severity: Severity| {
        findings.iter().any(|one| one.check == "quorum.votes" && one.what.contains(words) && one.severity == severity)
    };
    assert!(votes(&findings, "3 of 3 nodes answer, 3 vote", Severity::Good), "{findings:#?}");
    plain.command(&["FLUSHALL"]);
    let findings = client.doctor().unwrap();
    assert!(votes(&findings, "3 of 3 nodes answer, 2 vote", Severity::Warning), "{findings:#?}");
    plain.kill();
    claims.kill();
    let findings = client.doctor().unwrap();
    assert!(votes(&findings, "1 of 3 nodes answer, 1 vote", Severity::Problem), "{findings:#?}");
}
