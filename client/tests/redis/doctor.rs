//! Findings of `doctor` on real Redis servers; it leaves nothing there.

use std::time::Duration;

use leasehold::blocking::{Client, Once};
use leasehold::{ErrorKind, Finding, Severity};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::Server;
use leasehold_servers::resp::{Connection, Reply};
use leasehold_servers::wait_until;

/// The sample of a user with least rights: its name, its password, and its rules.
const SAMPLE: &str = include_str!("../../../docs/infra/redis.acl");

fn doctor(url: &str) -> Vec<Finding> {
    Client::connect(url).unwrap().doctor().unwrap()
}

#[track_caller]
fn find<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("no {check} in {findings:#?}"))
}

#[track_caller]
fn expect(findings: &[Finding], check: &str, severity: Severity, says: &str) {
    let finding = find(findings, check);
    assert!(finding.severity == severity && finding.what.contains(says), "no {severity:?} {says:?}: {finding:#?}");
    assert_eq!(finding.advice.is_empty(), severity == Severity::Good, "{finding:#?}");
}

fn severities(findings: &[Finding], severity: Severity) -> Vec<&'static str> {
    findings.iter().filter(|finding| finding.severity == severity).map(|finding| finding.check).collect()
}

/// Commands as the user of the sample.
fn as_sample(server: &Server, words: &[&str]) -> Reply {
    let mut connection = Connection::open(server.address()).unwrap();
    assert!(!connection.command(&["AUTH", "leasehold", "change-me"]).unwrap().is_error());
    connection.command(words).unwrap()
}

fn sample_url(server: &Server) -> String {
    format!("redis://leasehold:change-me@127.0.0.1:{}/", server.port())
}

/// Makes the user of the sample again, with some rules left out and others added.
fn set_sample(server: &Server, without: Option<&str>, more: &[&str]) {
    let rules = SAMPLE.split_whitespace().skip(2).filter(|rule| Some(*rule) != without);
    let words: Vec<&str> = ["ACL", "SETUSER", "leasehold", "reset"].into_iter().chain(rules).collect();
    let reply = server.command(&[&words, more].concat());
    assert!(!reply.is_error(), "{reply:?}");
}

/// Returns the rules of the sample that grant rights of locks. Those of items and of nodes of a
/// quorum have tests there.
fn rights() -> Vec<&'static str> {
    let of_others = ["+get", "+info", "+client|getname", "+client|setname", "~leasehold?quorum", "+hmget", "+hset"];
    let rights = SAMPLE.split_whitespace().filter(|rule| rule.starts_with(['+', '~', '&']));
    rights.filter(|rule| !of_others.contains(rule)).collect()
}

#[test]
fn a_good_server_is_good_and_stays_as_it_was() {
    let server = Server::builder().appendonly().start();
    let findings = doctor(&server.url());
    assert_eq!(severities(&findings, Severity::Good).len(), findings.len(), "{findings:#?}");
    for check in ["reachable", "clock", "version", "role", "eviction", "persistence", "replicas"] {
        find(&findings, &format!("redis.{check}"));
    }
    expect(&findings, "redis.persistence", Severity::Good, "before it is answered");
    expect(&findings, "redis.rights", Severity::Good, "all permissions that locks need");
    expect(&findings, "redis.trial", Severity::Good, "taken, renewed and released, and a run was begun and finished");
    expect(&findings, "redis.wakeups", Severity::Good, "are notified");
    expect(&findings, "redis.queue", Severity::Good, "in their order");
    expect(&findings, "redis.items", Severity::Good, "can be kept");
    let version = server.info("redis_version").unwrap();
    expect(&findings, "redis.version", Severity::Good, &format!("Redis {version}"));
    assert_eq!(server.command(&["DBSIZE"]).integer(), 0);
}

#[test]
fn rights_that_only_items_need_are_told_and_no_fault() {
    let server = Server::start();
    let sees_names = ["+acl|whoami", "+acl|getuser"];
    set_sample(&server, None, &sees_names);
    expect(&doctor(&sample_url(&server)), "redis.items", Severity::Good, "can be kept");
    for (rule, says) in [("+hmget", "lacks +hmget for"), ("+hset", "lacks +hset for")] {
        set_sample(&server, Some(rule), &sees_names);
        expect(&doctor(&sample_url(&server)), "redis.items", Severity::Good, says);
    }
    assert_eq!(server.command(&["DBSIZE"]).integer(), 0);
}

#[test]
fn without_a_count_of_listeners_patterns_are_named() {
    let server = Server::start();
    let more = ["+acl|whoami", "+acl|getuser", "+pubsub|numpat"];
    set_sample(&server, Some("+pubsub|numsub"), &more);
    expect(&doctor(&sample_url(&server)), "redis.queue", Severity::Warning, "NUMPAT is 0");
    let mut tool = server.connect();
    assert!(!tool.command(&[&b"PSUBSCRIBE"[..], b"*"]).unwrap().is_error());
    expect(&doctor(&sample_url(&server)), "redis.queue", Severity::Warning, "NUMPAT is 1");
    set_sample(&server, None, &more);
    expect(&doctor(&sample_url(&server)), "redis.queue", Severity::Good, "in their order");
}

#[test]
fn evicting_policies_are_problems_once_there_is_a_limit() {
    let server = Server::start();
    for policy in ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl", "noeviction"] {
        server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        expect(&doctor(&server.url()), "redis.eviction", Severity::Good, "maxmemory is 0");
        server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
        let severity = if policy == "noeviction" { Severity::Good } else { Severity::Problem };
        expect(&doctor(&server.url()), "redis.eviction", severity, policy);
    }
}

#[test]
fn a_full_server_is_found_by_trying() {
    let server = Server::builder().maxmemory(1).start();
    expect(&doctor(&server.url()), "redis.trial", Severity::Problem, "maxmemory");
}

#[test]
fn data_that_a_restart_loses_is_reported() {
    let server = Server::start();
    let persistence = |says| expect(&doctor(&server.url()), "redis.persistence", Severity::Warning, says);
    persistence("nothing is written to disk");
    server.command(&["CONFIG", "SET", "save", "3600 1"]);
    persistence("save 3600 1");
    server.command(&["CONFIG", "SET", "appendonly", "yes"]);
    server.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    persistence("two seconds");
    server.command(&["CONFIG", "SET", "appendfsync", "no"]);
    persistence("appendfsync no");
}

#[test]
fn replicas_are_a_risk_unless_they_are_waited_for() {
    let primary = Server::start();
    let url = |count: u32| format!("{}?wait_replicas={count}", primary.url());
    let lonely = doctor(&url(1));
    expect(&lonely, "redis.replicas", Severity::Problem, "0 are connected");
    expect(&lonely, "redis.trial", Severity::Problem, "replica");
    assert_eq!(primary.command(&["DBSIZE"]).integer(), 0, "{lonely:#?}");
    let replica = Server::builder().replica_of(&primary).start();
    primary.wait_replicas_in_sync(1);
    let findings = doctor(&primary.url());
    expect(&findings, "redis.replicas", Severity::Warning, "1 connected, asynchronously");
    assert!(find(&findings, "redis.replicas").advice.contains("wait_replicas=1"));
    let waited = doctor(&url(1));
    expect(&waited, "redis.replicas", Severity::Good, "all of them have it");
    expect(&waited, "redis.trial", Severity::Good, "taken");

    let findings = doctor(&replica.url());
    expect(&findings, "redis.role", Severity::Problem, "read-only replica");
    assert!(find(&findings, "redis.role").advice.contains(&format!("127.0.0.1:{}", primary.port())));
    assert_eq!(severities(&findings, Severity::Problem), ["redis.role"], "{findings:#?}");
    assert!(findings.iter().all(|finding| finding.check != "redis.trial"), "{findings:#?}");
    assert_eq!(primary.command(&["DBSIZE"]).integer(), 0);
}

#[test]
fn a_node_of_a_cluster_is_reported() {
    let server = Server::builder().arg("--cluster-enabled", "yes").start();
    let findings = doctor(&server.url());
    expect(&findings, "redis.role", Severity::Warning, "this node alone");
    assert_eq!(severities(&findings, Severity::Problem), [""; 0], "{findings:#?}");
}

#[test]
fn a_clock_that_is_far_off_is_reported() {
    let server = Server::builder().with_clock_offset().start();
    expect(&doctor(&server.url()), "redis.clock", Severity::Good, "within");
    server.set_clock_ms(3_600_000);
    expect(&doctor(&server.url()), "redis.clock", Severity::Warning, "s ahead of this host's");
    server.set_clock_ms(-3_600_000);
    expect(&doctor(&server.url()), "redis.clock", Severity::Warning, "s behind this host's");
}

#[test]
fn a_server_without_password_that_only_its_host_reaches_is_no_finding() {
    let server = Server::start();
    server.command(&["CONFIG", "SET", "protected-mode", "no"]);
    let findings = doctor(&server.url());
    assert!(findings.iter().all(|finding| finding.check != "redis.password"), "it listens on loopback: {findings:#?}");
}

#[test]
fn a_proxy_that_ends_connections_on_time_is_no_silent_server() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    proxy.reset_before_forwarding(Request::matching(|bytes| bytes == b"*1\r\n$4\r\nTIME\r\n").always());
    let url = server.url_at(proxy.port());
    Client::connect(&url).unwrap().lock("a").acquire().unwrap().release().unwrap();
    let findings = doctor(&url);
    assert!(severities(&findings, Severity::Problem).is_empty(), "{findings:?}");
    expect(&findings, "redis.reachable", Severity::Warning, "TIME gets no answer");
}

#[test]
fn a_server_that_hangs_does_not_block_the_doctor() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    server.stop_process();
    let findings = client.doctor().unwrap();
    server.continue_process();
    let of_the_server = findings.iter().filter(|finding| !finding.check.starts_with("host.")).count();
    assert_eq!(of_the_server, 1, "{findings:#?}");
    expect(&findings, "redis.reachable", Severity::Problem, "no answer");
}

#[test]
fn least_rights_suffice_for_locks_and_for_nothing_else() {
    let server = Server::builder().acl_file(SAMPLE).start();
    let client = Client::connect(sample_url(&server)).unwrap();
    let lease = client.lock("jobs/a").ttl(Duration::from_secs(3600)).acquire().unwrap();
    assert!(client.inspect("jobs/a").unwrap().is_some());

    // That the message arrives is tried by the doctor itself, below.
    let waiter = std::thread::spawn({
        let client = Client::connect(sample_url(&server)).unwrap();
        move || client.lock("jobs/a").wait(Duration::from_secs(60)).acquire().map(|lease| lease.release())
    });
    leasehold_servers::wait_until("a subscriber", || {
        server.command(&["PUBSUB", "NUMSUB", "{jobs/a}\u{1f}wake of name"]).array()[1].integer() == 1
    });
    lease.release().unwrap();
    waiter.join().unwrap().unwrap().unwrap();
    assert!(client.inspect("jobs/a").unwrap().is_none());
    let broken = client.lock("jobs/a").acquire().unwrap();
    assert_eq!(client.break_lock("jobs/a").unwrap().unwrap().token, Some(broken.token()));
    drop(broken);

    for words in [
        &["GET", "other"][..],
        &["GETRANGE", "other", "0", "1"],
        &["SET", "other", "1"],
        &["KEYS", "*"],
        &["SCAN", "0"],
        &["FLUSHALL"],
        &["CONFIG", "GET", "*"],
        &["PUBLISH", "other", "x"],
        &["EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "other"],
    ] {
        let reply = as_sample(&server, words);
        assert!(reply.is_error() && reply.text().starts_with("NOPERM"), "{words:?}: {reply:?}");
    }
    let error = client.lock("other").wait(Duration::ZERO).acquire().unwrap_err().to_string();
    assert!(error.contains("on the locked names") && error.contains("NOPERM"), "{error}");

    let findings = doctor(&sample_url(&server));
    assert_eq!(severities(&findings, Severity::Problem), [""; 0], "{findings:#?}");
    expect(&findings, "redis.rights", Severity::Warning, "cannot be seen");
    expect(&findings, "redis.persistence", Severity::Warning, "'config");

    // Only votes need these; the greeting needs no right.
    set_sample(&server, None, &["-info", "-get"]);
    let findings = doctor(&sample_url(&server));
    assert_eq!(severities(&findings, Severity::Problem), [""; 0], "{findings:#?}");
    expect(&findings, "redis.eviction", Severity::Warning, "'info'");
    expect(&findings, "redis.persistence", Severity::Warning, "'info'");
    expect(&findings, "redis.replicas", Severity::Warning, "'info'");
    expect(&findings, "redis.role", Severity::Good, "a master");
    let server = if std::env::var_os("LEASEHOLD_REDIS_SERVER").is_some() { "valkey" } else { "Redis" };
    expect(&findings, "redis.version", Severity::Good, server);
}

#[test]
fn a_user_who_may_not_write_marks_can_lock_and_not_run() {
    let server = Server::start();
    let narrow = ["+acl|whoami", "+acl|getuser", "~{jobs/*fence?of?name"];
    set_sample(&server, Some("~{jobs/*"), &narrow);
    let findings = doctor(&sample_url(&server));
    expect(&findings, "redis.rights", Severity::Warning, "\\x1fdone of name, which holds the completion");
    assert!(find(&findings, "redis.rights").advice.contains("leasehold ~{jobs/*"), "{findings:#?}");
    expect(&findings, "redis.trial", Severity::Good, "taken, renewed and released");
    let client = Client::connect(sample_url(&server)).unwrap();
    client.lock("jobs/a").acquire().unwrap().release().unwrap();
    let error = client.once("jobs/a").key("monday").begin().unwrap_err();
    assert!(error.kind() == ErrorKind::StoreRefused && error.to_string().contains("NOPERM"), "{error}");
    assert!(server.command(&["KEYS", "*doctor*"]).array().is_empty());

    set_sample(&server, None, &narrow);
    let Once::Run(run) = client.once("jobs/a").key("monday").begin().unwrap() else { panic!("it is to be done") };
    run.finish().unwrap();
    assert!(matches!(client.once("jobs/a").key("monday").begin().unwrap(), Once::Done(_)));
}

#[test]
fn each_right_that_is_missing_is_named_by_the_doctor() {
    let server = Server::start();
    // With these two it finds out which names the user may lock.
    let more = ["+acl|whoami", "+acl|getuser"];
    set_sample(&server, None, &more);
    let whole = doctor(&sample_url(&server));
    for check in ["redis.rights", "redis.trial", "redis.wakeups", "redis.queue"] {
        assert_eq!(find(&whole, check).severity, Severity::Good, "{whole:#?}");
    }
    for right in rights() {
        set_sample(&server, Some(right), &more);
        let findings = doctor(&sample_url(&server));
        let names = |finding: &Finding| {
            let of_rights = ["redis.rights", "redis.wakeups", "redis.queue"].contains(&finding.check);
            of_rights
                && finding.severity > Severity::Good
                && finding.advice.split([' ', ',', ':']).any(|word| word == right)
        };
        assert!(findings.iter().any(names), "{right}: {findings:#?}");
    }
    assert_eq!(server.command(&["DBSIZE"]).integer(), 0);
}

#[test]
fn without_any_one_right_something_fails() {
    let server = Server::start();
    for right in rights() {
        let of_waiters = right.starts_with(['&']) || right.starts_with("+z") || right.ends_with("subscribe");
        if of_waiters || ["+publish", "+pubsub|numsub", "+multi", "+incr", "+exec"].contains(&right) {
            // Waiters poll without, or have no order, and locks go by scripts; that the doctor tells so is tested above.
            continue;
        }
        server.command(&["SCRIPT", "FLUSH"]);
        server.command(&["FLUSHDB"]);
        server.command(&["HSET", "jobs/foreign", "uuid:1", "1"]);
        set_sample(&server, Some(right), &[]);
        let client = Client::connect(sample_url(&server)).unwrap();
        let works = || -> Result<(), leasehold::Error> {
            let request = client.lock("jobs/a").wait(Duration::ZERO).ttl(Duration::from_secs(30));
            let lease = request.renew_every(Duration::from_millis(50)).acquire()?;
            client.inspect("jobs/a")?;
            client.inspect("jobs/foreign")?;
            // Renewed: more is left than just before; or else the reason stands in what a check says.
            let mut before = lease.remaining();
            let mut trouble = None;
            wait_until("renewed, or not", || {
                let left = lease.remaining();
                let long = lease.check(Duration::from_secs(60)).unwrap_err();
                if left.is_zero() || long.to_string().contains("(store failure") {
                    trouble = Some(long);
                }
                std::mem::replace(&mut before, left) < left || trouble.is_some()
            });
            trouble.map_or_else(|| lease.release().map(drop), Err)
        };
        let error = works().expect_err(right).to_string();
        let name = right.trim_start_matches('+').to_ascii_uppercase();
        // A release that is refused goes on in the background, and tells its caller only that it is not confirmed.
        let is_named = right.starts_with('~') || error.contains(&name) || error.contains("not confirmed");
        assert!(is_named, "{right}: {error}");
    }
}
