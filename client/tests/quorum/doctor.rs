//! Findings of `doctor` on replicas and on rights on nodes of a quorum.

use std::time::Duration;

use crate::common::PATIENCE;
use crate::common::quorum::{MAX_TTL, settings};
use leasehold::blocking::Client;
use leasehold::quorum::Quorum;
use leasehold::{Error, ErrorKind, Finding, Severity};
use leasehold_servers::redis::Server;
use leasehold_servers::wait_until;

/// The sample of a user with least rights.
const SAMPLE: &str = include_str!("../../../docs/infra/redis.acl");
/// With these the doctor finds out which names the user may lock.
const TO_FIND_NAMES: [&str; 2] = ["+acl|whoami", "+acl|getuser"];
/// Rights that votes need beyond those for locks.
const OF_VOTES: [&str; 3] = ["+get", "+info", "~leasehold?quorum"];

fn servers() -> [Server; 3] {
    [(); 3].map(|()| Server::start())
}

fn connect(urls: &[String]) -> Result<Client, Error> {
    Client::connect_with(settings().request_timeout(PATIENCE / 2).create_quorum(), urls)
}

fn urls(servers: &[Server]) -> Vec<String> {
    servers.iter().map(Server::url).collect()
}

/// The finding about one of the servers.
#[track_caller]
fn of<'a>(server: &Server, findings: &'a [Finding], check: &str) -> &'a Finding {
    let port = format!(":{}", server.port());
    let found = findings.iter().find(|finding| finding.check == check && is_of(&port, finding));
    found.unwrap_or_else(|| panic!("no {check} of {port} in {findings:#?}"))
}

fn is_of(port: &str, finding: &Finding) -> bool {
    finding.node.as_ref().is_some_and(|node| node.contains(port))
}

fn set(server: &Server, name: &str, value: &str) {
    assert!(!server.command(&["CONFIG", "SET", name, value]).is_error());
}

#[test]
fn replicas_of_a_node_need_a_fence() {
    let servers = servers();
    let client = connect(&urls(&servers)).unwrap();
    assert_eq!(of(&servers[0], &client.doctor().unwrap(), "redis.replicas").severity, Severity::Good, "there are none");
    let _replica = Server::builder().replica_of(&servers[0]).start();
    servers[0].wait_replicas_in_sync(1);
    let expect = |severity: Severity, says: &str| {
        let findings = client.doctor().unwrap();
        let found = of(&servers[0], &findings, "redis.replicas");
        assert!(found.severity == severity && found.what.contains(says), "no {severity:?} {says:?}: {found:#?}");
        if severity == Severity::Problem {
            for word in ["min-replicas-to-write 1", "min-replicas-max-lag", "no replicas", "start empty"] {
                assert!(found.advice.contains(word), "no {word:?} in {found:#?}");
            }
        }
    };
    expect(Severity::Problem, "min-replicas-to-write is 0");
    set(&servers[0], "min-replicas-to-write", "1");
    expect(Severity::Good, "without 1 of them it stops within 10 s");
    set(&servers[0], "min-replicas-max-lag", "0");
    expect(Severity::Problem, "min-replicas-max-lag is 0");
    assert_eq!(of(&servers[1], &client.doctor().unwrap(), "redis.replicas").severity, Severity::Good);
}

#[test]
fn durable_is_untrue_where_a_replica_may_be_promoted() {
    let servers = [(); 3].map(|()| Server::builder().appendonly().start());
    let durable: Vec<String> = servers.iter().map(|server| format!("{}?durable=yes", server.url())).collect();
    let client = connect(&durable).unwrap();
    assert_eq!(of(&servers[0], &client.doctor().unwrap(), "redis.durable").severity, Severity::Good);
    let _replica = Server::builder().replica_of(&servers[0]).start();
    servers[0].wait_replicas_in_sync(1);
    let findings = client.doctor().unwrap();
    let found = of(&servers[0], &findings, "redis.durable");
    assert!(found.severity == Severity::Problem && found.what.contains("promoted"), "{found:#?}");
    assert_eq!(of(&servers[1], &findings, "redis.durable").severity, Severity::Good);
}

/// Makes the user of the sample again, with some rules left out and others added.
fn set_sample(server: &Server, without: &str, more: &[&str]) {
    let rules = SAMPLE.split_whitespace().skip(2).filter(|rule| *rule != without);
    let words: Vec<&str> = ["ACL", "SETUSER", "leasehold", "reset"].into_iter().chain(rules).collect();
    let reply = server.command(&[&words, more].concat());
    assert!(!reply.is_error(), "{reply:?}");
}

fn sample_urls(servers: &[Server], parameters: &str) -> Vec<String> {
    let url = |server: &Server| format!("redis://leasehold:change-me@127.0.0.1:{}/{parameters}", server.port());
    servers.iter().map(url).collect()
}

fn problems(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.severity == Severity::Problem).collect()
}

#[test]
fn least_rights_suffice_for_votes() {
    let servers = servers();
    servers.iter().for_each(|server| set_sample(server, "", &TO_FIND_NAMES));
    let client = connect(&sample_urls(&servers, "")).unwrap();
    let first = client.lock("jobs/a").ttl(MAX_TTL).acquire().unwrap();
    // Found, waited out, and raised: all that votes ever do.
    servers[1].command(&["FLUSHALL"]);
    wait_until("trust", || servers[1].command(&["EXISTS", "{jobs/a}\u{1f}trust of name"]).integer() == 1);
    first.release().unwrap();
    let findings = client.doctor().unwrap();
    assert!(problems(&findings).is_empty(), "{findings:#?}");
    for server in &servers {
        assert_eq!(of(server, &findings, "redis.rights").severity, Severity::Good);
    }
    // With a name of its own, a join does with names of its own as well.
    let join = |more: &[&str]| {
        servers.iter().for_each(|server| set_sample(server, "", more));
        servers[2].command(&["DEL", "leasehold\u{1f}quorum"]);
        let mut heard = String::new();
        let quorum = Quorum::connect(&settings(), sample_urls(&servers, "")).unwrap();
        let patience = if more.is_empty() { Duration::from_secs(2) } else { Duration::from_secs(60) };
        let done = quorum.join(Some(patience), |progress| heard = progress.reasons.join("; ")).unwrap();
        (done, heard)
    };
    let (done, heard) = join(&[]);
    assert!(matches!(done, leasehold::quorum::Join::TimedOut { .. }), "{done:?}");
    assert!(heard.contains("no node can be asked") && heard.contains("NOPERM"), "{heard}");
    let (done, _) = join(&["~leasehold:join", "~{leasehold:join}*"]);
    assert!(matches!(done, leasehold::quorum::Join::Complete { .. }), "{done:?}");
}

#[test]
fn without_any_one_right_of_votes_nothing_is_locked() {
    let servers = servers();
    for right in OF_VOTES {
        servers.iter().for_each(|server| drop(server.command(&["FLUSHALL"])));
        servers.iter().for_each(|server| set_sample(server, right, &[]));
        let works = || connect(&sample_urls(&servers, ""))?.lock("jobs/a").ttl(MAX_TTL).try_acquire();
        let error = works().expect_err(right);
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{right}: {error}");
    }
}

#[test]
fn without_a_right_that_only_spares_questions_votes_are_given() {
    let servers = servers();
    for right in ["+client|getname", "+client|setname", "+multi", "+exec"] {
        servers.iter().for_each(|server| drop(server.command(&["FLUSHALL"])));
        servers.iter().for_each(|server| set_sample(server, right, &TO_FIND_NAMES));
        let client = connect(&sample_urls(&servers, "")).unwrap();
        for _ in 0..3 {
            client.lock("jobs/a").ttl(MAX_TTL).acquire().expect(right).release().expect(right);
        }
        let findings = client.doctor().unwrap();
        let found = of(&servers[0], &findings, "redis.rights");
        assert!(found.severity == Severity::Warning && found.what.contains(right), "{right}: {found:#?}");
    }
}

#[test]
fn each_right_that_votes_lack_is_named() {
    let servers = servers();
    let more = |rules: &[&'static str]| [&TO_FIND_NAMES, rules].concat();
    servers.iter().for_each(|server| set_sample(server, "", &more(&[])));
    let client = connect(&sample_urls(&servers, "")).unwrap();
    let keys = || servers[0].command(&["DBSIZE"]).integer();
    let marked = keys();
    let named = |client: &Client, right: &str| {
        let findings = client.doctor().unwrap();
        let names = |finding: &&Finding| {
            let port = format!(":{}", servers[0].port());
            finding.check == "redis.rights"
                && finding.severity == Severity::Problem
                && is_of(&port, finding)
                && finding.advice.split([' ', ',', ':']).any(|word| word == right)
        };
        findings.iter().filter(names).count() == 1
    };
    for right in OF_VOTES {
        set_sample(&servers[0], right, &more(&[]));
        assert!(named(&client, right), "{right}: {:#?}", client.doctor());
    }
    // The marker may be read, and not written.
    set_sample(&servers[0], "~leasehold?quorum", &more(&["%R~leasehold?quorum"]));
    assert!(named(&client, "~leasehold?quorum"), "{:#?}", client.doctor());
    // The counter may be used, and what is beside it not.
    set_sample(&servers[0], "~{jobs/*", &more(&["~{jobs/*?fence"]));
    assert!(named(&client, "~{jobs/*"), "{:#?}", client.doctor());
    set_sample(&servers[0], "+info", &more(&[]));
    let durable = connect(&sample_urls(&servers, "?durable=yes")).unwrap();
    assert!(named(&durable, "+info"), "a marker that is written again names the run");
    set_sample(&servers[0], "", &more(&[]));
    let findings = client.doctor().unwrap();
    assert!(problems(&findings).is_empty(), "{findings:#?}");
    assert_eq!(keys(), marked, "nothing is left there");
}
