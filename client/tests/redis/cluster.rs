//! Locks on a Redis Cluster: names of all slots, slots that move, and what is said when something is wrong.

use std::collections::HashSet;
use std::thread;

use crate::common::on_redis::{channel, expect_wake_ups, is_taken, wait_for_renewals};
use crate::common::{PATIENCE, eventually, ms};
use leasehold::blocking::{Client, Lease};
use leasehold::{ErrorKind, Severity};
use leasehold_servers::redis::{Cluster, Server};
use leasehold_servers::resp::Connection;
use leasehold_wire::redis::slot;

/// The sample of a user with least rights.
const SAMPLE: &str = include_str!("../../../docs/infra/redis.acl");

/// A lease that outlasts the test, unless it is told otherwise at one of its many renewals.
fn long_lease(client: &Client, name: &str) -> Lease {
    client.lock(name).ttl(ms(120_000)).renew_every(ms(100)).wait(PATIENCE).acquire().unwrap()
}

/// A name whose slot this master serves.
fn name_on(cluster: &Cluster, master: &Server) -> String {
    let mut names = (0..).map(|number| format!("job-{number}"));
    names.find(|name| cluster.master_of(name).port() == master.port()).unwrap()
}

#[test]
fn names_of_all_slots_are_locked_renewed_and_released() {
    let cluster = Cluster::start(3, 0);
    let (client, other) = (Client::connect(cluster.url()).unwrap(), Client::connect(cluster.url()).unwrap());
    let names: Vec<String> = (0..90).map(|number| format!("name {number}")).collect();
    let leases: Vec<Lease> = names.iter().map(|name| long_lease(&client, name)).collect();
    let mut masters = HashSet::new();
    for name in &names {
        let master = cluster.master_of(name);
        assert!(is_taken(master, name), "{name}");
        assert_eq!(slot(name.as_bytes()), cluster.slot(name), "{name}");
        masters.insert(master.port());
    }
    assert_eq!(masters.len(), 3);
    assert!(other.lock(&*names[0]).try_acquire().unwrap().is_none());
    cluster.nodes().iter().for_each(|node| wait_for_renewals(node, 2));
    for (lease, name) in leases.iter().zip(&names) {
        lease.check(ms(1)).unwrap();
        lease.release().unwrap();
        assert!(!is_taken(cluster.master_of(name), name));
        assert!(other.lock(&**name).try_acquire().unwrap().unwrap().token() > lease.token());
    }
}

#[test]
fn renewals_of_one_slot_travel_together() {
    let cluster = Cluster::start(3, 0);
    let client = Client::connect(cluster.url()).unwrap();
    let names: Vec<String> = (0..60).map(|number| format!("{{team-{}}}/{number}", number % 3)).collect();
    let leases: Vec<Lease> = names
        .iter()
        .map(|name| client.lock(&**name).ttl(ms(600_000)).renew_every(ms(1_000)).acquire().unwrap())
        .collect();
    let sum = |count: &dyn Fn(&Server) -> u64| cluster.nodes().iter().map(count).sum::<u64>();
    let renewed = || sum(&|node| node.commands_processed("pexpire")) / 2;
    let calls = || sum(&|node| node.commands_processed("evalsha") + node.commands_processed("eval"));
    let (renewed_before, calls_before) = (renewed(), calls());
    eventually("every lease is renewed five times", || renewed() >= renewed_before + 5 * 60);
    let (renewals, calls) = (renewed() - renewed_before, calls() - calls_before);
    assert!(calls * 3 <= renewals, "{calls} calls for {renewals} renewals");
    leases.iter().for_each(|lease| lease.check(ms(1)).unwrap());
}

#[test]
fn a_slot_that_moves_takes_its_locks_along() {
    let cluster = Cluster::start(2, 0);
    let (client, other) = (Client::connect(cluster.url()).unwrap(), Client::connect(cluster.url()).unwrap());
    let [from, to] = cluster.nodes() else { panic!("two nodes") };
    let name = name_on(&cluster, from);
    let lease = long_lease(&client, &name);
    cluster.begin_move(&name, to);
    // The first may have been under way.
    wait_for_renewals(from, 2);
    cluster.move_keys(&name, to);
    // The old node still answers for the slot, and sends on what it has no longer: ASK.
    wait_for_renewals(to, 2);
    assert_eq!(cluster.master_of(&name).port(), from.port());
    assert_eq!(other.inspect(&*name).unwrap().unwrap().token, Some(lease.token()));
    assert!(other.lock(&*name).try_acquire().unwrap().is_none());
    cluster.end_move(&name, to);
    // From here on it is MOVED.
    wait_for_renewals(to, 2);
    lease.check(ms(1)).unwrap();
    assert!(other.lock(&*name).try_acquire().unwrap().is_none());
    lease.release().unwrap();
    assert!(!is_taken(to, &name));
    assert!(other.lock(&*name).try_acquire().unwrap().unwrap().token() > lease.token());
    let findings = client.doctor().unwrap();
    let failover = findings.iter().find(|finding| finding.check == "redis.failover").unwrap();
    assert_eq!(failover.severity, Severity::Good, "a slot that moved is no failover: {failover:?}");
}

#[test]
fn a_name_that_cannot_keep_its_keys_together_is_refused() {
    let cluster = Cluster::start(1, 0);
    let client = Client::connect(cluster.url()).unwrap();
    for key in ["", "{", "}", "{}", "{a}b", "x{a}{b}", "{}{a}", "{{a}}", "é{ü}"] {
        assert_eq!(slot(key.as_bytes()), cluster.slot(key), "{key}");
    }
    for name in ["a}b", "{}x"] {
        let error = client.lock(name).wait(PATIENCE).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
        assert!(error.to_string().contains("cannot be locked on a Redis Cluster"), "{error}");
    }
    client.lock("{a}b}").try_acquire().unwrap().unwrap().release().unwrap();
}

#[test]
fn a_node_that_hangs_costs_its_own_locks_only() {
    let cluster = Cluster::start_with(3, 0, |_, builder| builder.arg("--cluster-require-full-coverage", "no"));
    let client = Client::connect(cluster.url()).unwrap();
    let lease = |node: &Server| {
        let name = name_on(&cluster, node);
        client.lock(&*name).ttl(ms(4_000)).renew_every(ms(300)).wait(PATIENCE).acquire().unwrap()
    };
    let leases: Vec<Lease> = cluster.nodes().iter().map(lease).collect();
    cluster.nodes()[0].stop_process();
    let error = leases[0].lost();
    assert!(error.to_string().contains("no renewal was confirmed in time"), "{error}");
    cluster.nodes()[1..].iter().for_each(|node| wait_for_renewals(node, 2));
    leases[1..].iter().for_each(|lease| lease.check(ms(1)).unwrap());
}

#[test]
fn a_release_wakes_waiters_whichever_node_reports_it() {
    let cluster = Cluster::start_with(3, 3, |_, builder| builder);
    let (holder, other) = (Client::connect(cluster.url()).unwrap(), Client::connect(cluster.url()).unwrap());
    let listening = |name: &str| {
        let listens = |node: &&Server| {
            node.is_running() && node.command(&["PUBSUB", "NUMSUB", &channel(name)]).array()[1].integer() == 1
        };
        cluster.nodes().iter().find(listens)
    };
    let mut elsewhere = 0;
    for node in &cluster.nodes()[..3] {
        let name = name_on(&cluster, node);
        let lease = long_lease(&holder, &name);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| other.lock(&*name).wait(3 * PATIENCE).acquire().unwrap());
            eventually("the waiter listens", || listening(&name).is_some());
            elsewhere += usize::from(listening(&name).is_some_and(|there| there.port() != node.port()));
            expect_wake_ups(node, node, &name);
            lease.release().unwrap();
            waiter.join().unwrap().release().unwrap();
        });
    }
    assert!(elsewhere > 0, "all listen where the release is");
    // The node that tells goes away, and another one does it.
    let name = name_on(&cluster, &cluster.nodes()[0]);
    let lease = long_lease(&holder, &name);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock(&*name).wait(3 * PATIENCE).acquire().unwrap());
        eventually("the waiter listens", || listening(&name).is_some());
        let telling = listening(&name).unwrap();
        if telling.port() != cluster.master_of(&name).port() {
            telling.kill();
        } else {
            assert!(!telling.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).is_error());
        }
        eventually("it listens elsewhere", || listening(&name).is_some_and(|other| other.port() != telling.port()));
        expect_wake_ups(cluster.master_of(&name), cluster.master_of(&name), &name);
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > lease.token());
    });
}

#[test]
fn a_node_with_another_password_refuses_its_own_names_and_is_named() {
    let cluster = Cluster::start_with(2, 0, |_, builder| builder.password("hunter2"));
    let [first, second] = cluster.nodes() else { panic!("two nodes") };
    let (name, refused) = (name_on(&cluster, first), name_on(&cluster, second));
    let mut admin = Connection::open(second.address()).unwrap();
    assert!(!admin.command(&["AUTH", "hunter2"]).unwrap().is_error());
    assert!(!admin.command(&["CONFIG", "SET", "requirepass", "another"]).unwrap().is_error());
    let client = Client::connect(cluster.url()).unwrap();
    client.lock(&*name).wait(PATIENCE).acquire().unwrap().release().unwrap();
    let error = client.lock(&*refused).wait(PATIENCE).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    let said = error.to_string();
    assert!(said.contains(&second.address().to_string()) && !said.contains("hunter2"), "{said}");
}

#[test]
fn seeds_that_are_all_down_are_named() {
    let server = Server::start();
    let (port, gone) = (server.port(), format!("127.0.0.1:{}", server.port()));
    server.kill();
    let url = format!("redis+cluster://:hunter2@{gone},localhost:{port}");
    let error = Client::connect(url).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    let said = error.to_string();
    assert!(said.contains(&format!("{gone}:")) && said.contains(&format!("localhost:{port}:")), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn one_seed_that_answers_is_enough() {
    let cluster = Cluster::start(2, 0);
    let [first, second] = cluster.nodes() else { panic!("two nodes") };
    let (gone, name) = (Server::start(), name_on(&cluster, first));
    gone.kill();
    let client = Client::connect(format!("redis+cluster://{},{}", gone.address(), second.address())).unwrap();
    client.lock(&*name).wait(PATIENCE).acquire().unwrap().release().unwrap();
}

#[test]
fn a_url_of_the_wrong_kind_says_what_to_write() {
    let server = Server::start();
    let error = Client::connect(format!("redis+cluster://{}", server.address())).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains(&format!("write redis://{}", server.address())), "{error}");

    let cluster = Cluster::start(2, 0);
    let [first, second] = cluster.nodes() else { panic!("two nodes") };
    let client = Client::connect(first.url()).unwrap();
    client.lock(&*name_on(&cluster, first)).try_acquire().unwrap().unwrap().release().unwrap();
    let error = client.lock(&*name_on(&cluster, second)).wait(PATIENCE).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains("redis+cluster://"), "{error}");
}

#[test]
fn doctor_looks_at_all_masters_with_the_rights_of_the_sample() {
    let acl = SAMPLE.trim_end().to_owned()
        + " +cluster|slots +cluster|info +asking +info +config|get +acl|whoami +acl|getuser";
    let cluster = Cluster::start_with(3, 0, |place, builder| {
        let builder = builder.acl_file(&acl);
        if place == 2 { builder.arg("--maxmemory", "100mb").arg("--maxmemory-policy", "allkeys-lru") } else { builder }
    });
    let hosts = cluster.url().split_once("://").unwrap().1.to_owned();
    let client = Client::connect(format!("redis+cluster://leasehold:change-me@{hosts}")).unwrap();
    let findings = client.doctor().unwrap();
    let find =
        |check: &str| findings.iter().find(|finding| finding.check == check && finding.severity == Severity::Good);
    for check in ["redis.coverage", "redis.failover", "redis.role", "redis.rights", "redis.trial", "redis.wakeups"] {
        assert!(find(check).is_some(), "{check}: {findings:#?}");
    }
    let says = |check: &str, words: &str| findings.iter().any(|f| f.check == check && f.what.contains(words));
    assert!(says("redis.topology", "3 masters with 0 replicas"), "{findings:#?}");
    let third = cluster.nodes()[2].address().to_string();
    assert!(says("redis.eviction", &format!("{third}: past")), "{findings:#?}");
    for node in cluster.nodes() {
        assert_eq!(node.command(&["DBSIZE"]).integer(), 0, "nothing is left of it");
    }
    let lease = client.lock("jobs/1").wait(PATIENCE).acquire().unwrap();
    lease.release().unwrap();
}
