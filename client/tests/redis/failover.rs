//! Masters that die and replicas that take over, in a cluster and under Sentinels: holders go on, or are told.

use std::net::Ipv4Addr;
use std::thread;

use crate::common::on_redis::{self, channel, expect_wake_ups, is_taken};
use crate::common::{PATIENCE, eventually, ms};
use leasehold::blocking::{Client, Lease};
use leasehold::{ErrorKind, Severity};
use leasehold_servers::redis::{Cluster, Server, Watched};
use leasehold_servers::resp::Connection;

fn long_lease(client: &Client, name: &str) -> Lease {
    client.lock(name).ttl(ms(120_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
}

fn wait_for_renewals(server: &Server) {
    // What comes from its own master counts there as well.
    eventually("it is a master", || server.info("role").as_deref() == Some("master"));
    on_redis::wait_for_renewals(server, 2);
}

#[track_caller]
fn expect_lost(lease: &Lease) {
    let error = lease.lost();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("has lost the record"), "{error}");
}

/// Doctor says that `to` took over from `from`.
#[track_caller]
fn expect_told(client: &Client, from: &Server, to: &Server) {
    let findings = client.doctor().unwrap();
    let told = findings.iter().find(|finding| finding.check == "redis.failover").unwrap();
    assert_eq!(told.severity, Severity::Warning, "{told:?}");
    let words = format!("{} took over from {}", to.address(), from.address());
    assert!(told.what.contains(&words) && told.what.contains("asynchronous"), "{told:?}");
    for advice in ["wait_replicas", "quorum", "fencing"] {
        assert!(told.advice.contains(advice), "{told:?}");
    }
}

/// From now on the replica hears nothing more from its master.
fn cut_off(master: &Server, replica: &Server) {
    replica.stop_process();
    master.must(&["CLIENT", "KILL", "TYPE", "replica"]);
}

#[test]
fn a_promoted_replica_of_a_cluster_goes_on_renewing() {
    let cluster = Cluster::start(3, 3);
    let (master, replica) = (&cluster.nodes()[0], &cluster.nodes()[3]);
    let client = Client::connect(cluster.url()).unwrap();
    let names: Vec<String> = (0..30).map(|number| format!("name {number}")).collect();
    let leases: Vec<Lease> = names.iter().map(|name| long_lease(&client, name)).collect();
    master.wait_replicas_in_sync(1);
    master.kill();
    replica.must(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    wait_for_renewals(replica);
    for lease in &leases {
        lease.check(ms(1)).unwrap();
        lease.release().unwrap();
    }
    expect_told(&client, master, replica);
}

#[test]
fn a_lock_that_the_new_master_of_a_cluster_lacks_is_told_as_lost() {
    let cluster = Cluster::start(3, 3);
    let (master, replica) = (&cluster.nodes()[0], &cluster.nodes()[3]);
    let (client, other) = (Client::connect(cluster.url()).unwrap(), Client::connect(cluster.url()).unwrap());
    let mut names = (0..).map(|number| format!("name {number}"));
    let name = names.find(|name| cluster.master_of(name).port() == master.port()).unwrap();
    cut_off(master, replica);
    let lease = long_lease(&client, &name);
    master.kill();
    replica.continue_process();
    replica.must(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    expect_lost(&lease);
    let rival = other.lock(&*name).ttl(ms(120_000)).wait(PATIENCE).acquire().unwrap();
    assert!(rival.token() > lease.token(), "a guard tells them apart");
    expect_told(&client, master, replica);
}

#[test]
fn a_grant_of_a_cluster_can_wait_for_replicas() {
    let cluster = Cluster::start(3, 3);
    let client = Client::connect(format!("{}?wait_replicas=1", cluster.url())).unwrap();
    let (master, replica) = (&cluster.nodes()[0], &cluster.nodes()[3]);
    let mut names = (0..).map(|number| format!("name {number}"));
    let name = names.find(|name| cluster.master_of(name).port() == master.port()).unwrap();
    let lease = long_lease(&client, &name);
    let mut connection = replica.connect();
    assert!(!connection.command(&["READONLY"]).unwrap().is_error());
    assert_eq!(connection.command(&["EXISTS", &name]).unwrap().integer(), 1, "the replica had it first");
    lease.release().unwrap();
    cut_off(master, replica);
    let error = client.lock(&*name).try_acquire().unwrap_err();
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
}

#[test]
fn under_sentinels_locks_are_taken_renewed_and_released() {
    let watched = Watched::start();
    let (client, other) = (Client::connect(watched.url()).unwrap(), Client::connect(watched.url()).unwrap());
    let [master, _] = watched.servers();
    let lease = long_lease(&client, "job");
    assert!(is_taken(master, "job") && other.lock("job").try_acquire().unwrap().is_none());
    wait_for_renewals(master);
    // The first Sentinel in the url need not be there.
    watched.kill_sentinel(0);
    Client::connect(watched.url()).unwrap().lock("another").try_acquire().unwrap().unwrap().release().unwrap();
    lease.release().unwrap();
    let findings = client.doctor().unwrap();
    let is = |check: &str, severity, words: &str| {
        let found = findings.iter().find(|f| f.check == check).unwrap_or_else(|| panic!("no {check}: {findings:#?}"));
        assert!(found.severity == severity && found.what.contains(words), "{found:?}");
    };
    is("redis.topology", Severity::Good, "1 replicas and 3 Sentinels");
    is("redis.sentinels", Severity::Warning, "2 of 3");
    is("redis.failover", Severity::Good, "none");
    is("redis.trial", Severity::Good, "taken");
    is("redis.wakeups", Severity::Good, "are notified");
    is("redis.min_replicas", Severity::Warning, "min-replicas-to-write is 0");
}

#[test]
fn each_connection_is_asked_once_where_it_leads() {
    let watched = Watched::start();
    let [master, _] = watched.servers();
    let asked = || master.commands_processed("role");
    let before = asked();
    let client = Client::connect(watched.url()).unwrap();
    // One connection serves all lanes until they have their own.
    assert_eq!(asked(), before + 1);
    drop(client);
}

#[test]
fn a_failover_that_sentinels_were_asked_for_is_followed() {
    let watched = Watched::start();
    let client = Client::connect(watched.url()).unwrap();
    let [master, replica] = watched.servers();
    let lease = long_lease(&client, "job");
    master.wait_replicas_in_sync(1);
    watched.fail_over();
    wait_for_renewals(replica);
    lease.check(ms(1)).unwrap();
    expect_told(&client, master, replica);
    lease.release().unwrap();
    assert!(!is_taken(replica, "job"));
}

#[test]
fn a_master_that_dies_under_sentinels_is_replaced_and_waiters_are_woken_by_the_new_one() {
    let watched = Watched::start();
    let (client, other) = (Client::connect(watched.url()).unwrap(), Client::connect(watched.url()).unwrap());
    let [master, replica] = watched.servers();
    let listeners = |server: &Server| server.command(&["PUBSUB", "NUMSUB", &channel("job")]).array()[1].integer();
    let lease = long_lease(&client, "job");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(3 * PATIENCE).acquire().unwrap());
        eventually("the waiter listens", || listeners(master) == 1);
        master.wait_replicas_in_sync(1);
        master.kill();
        watched.wait_until_master(replica);
        wait_for_renewals(replica);
        lease.check(ms(1)).unwrap();
        eventually("the waiter listens to the new master", || listeners(replica) == 1);
        expect_wake_ups(replica, replica, "job");
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > lease.token());
    });
    expect_told(&client, master, replica);
}

#[test]
fn a_lock_that_the_new_master_under_sentinels_lacks_is_told_as_lost() {
    let watched = Watched::start();
    let client = Client::connect(watched.url()).unwrap();
    let [master, replica] = watched.servers();
    cut_off(master, replica);
    let lease = long_lease(&client, "job");
    master.kill();
    replica.continue_process();
    expect_lost(&lease);
    expect_told(&client, master, replica);
    assert!(long_lease(&client, "job").token() > lease.token());
}

#[test]
fn sentinels_have_passwords_of_their_own() {
    let watched = Watched::start_with(Some("hunter2-of-sentinels"), |builder| builder.password("hunter2"));
    let error = Client::connect(watched.url()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    let client = Client::connect(format!("{}?sentinel_password=hunter2-of-sentinels", watched.url())).unwrap();
    client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
    let wrong = watched.url().replace("hunter2", "hunter2-guess") + "?sentinel_password=hunter2-of-sentinels";
    let error = Client::connect(wrong).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(
        !error.to_string().contains("hunter2-guess") && !error.to_string().contains("hunter2-of-sentinels"),
        "{error}"
    );
}

#[test]
fn a_user_of_the_sentinels_needs_what_the_sample_allows() {
    let sample = include_str!("../../../docs/infra/sentinel.acl");
    let watched = Watched::start();
    for port in watched.ports() {
        let mut sentinel = Connection::open((Ipv4Addr::LOCALHOST, port).into()).unwrap();
        let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(sample.split_whitespace().skip(1)).collect();
        let reply = sentinel.command(&words).unwrap();
        assert!(!reply.is_error(), "{reply:?}");
    }
    let url = format!("{}?sentinel_username=leasehold&sentinel_password=change-me", watched.url());
    let client = Client::connect(url).unwrap();
    client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
    let findings = client.doctor().unwrap();
    for check in ["redis.topology", "redis.sentinels"] {
        let found = findings.iter().find(|finding| finding.check == check).unwrap();
        assert_eq!(found.severity, Severity::Good, "{found:?}");
    }
}

#[test]
fn errors_in_a_url_of_sentinels_are_named() {
    let watched = Watched::start();
    let said = |url: String| Client::connect(url).map(drop).unwrap_err().to_string();
    let error = said(watched.url().replace("/main", "/nobody"));
    assert!(error.contains("knows no master named \"nobody\""), "{error}");

    let [master, _] = watched.servers();
    let error = said(format!("redis+sentinel://{}/main", master.address()));
    assert!(error.contains(&format!("write redis://{}", master.address())), "{error}");

    let plain = format!("redis://127.0.0.1:{}", watched.ports()[0]);
    let error = Client::connect(plain).unwrap().lock("job").try_acquire().unwrap_err().to_string();
    assert!(error.contains("write redis+sentinel://"), "{error}");

    let url = watched.url();
    let ports = watched.ports();
    drop(watched);
    let error = said(url);
    for port in ports {
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{port} is not named: {error}");
    }
}
