//! Servers that forget, hang, fail over, or whose clock is moved: the holder is told, and tokens never fall.

use std::thread;

use crate::common::on_redis::{Switch, is_taken, wait_for_renewals};
use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::{Client, Lease};
use leasehold::fence::Guards;
use leasehold_servers::proxy::Proxy;
use leasehold_servers::redis::{Data, Server};

const HOUR_MS: i64 = 3_600_000;

fn connect(server: &Server) -> Client {
    Client::connect(server.url()).unwrap()
}

/// A lease that outlasts the test, unless it is told otherwise at one of its many renewals.
fn long_lease(client: &Client) -> Lease {
    client.lock("job").ttl(ms(120_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
}

const GONE: &str = "has lost the record";
const TAKEN: &str = "somebody else holds the lock now";
const UNCONFIRMED: &str = "no renewal was confirmed in time";

#[track_caller]
fn expect_lost(lease: &Lease, any_of: &[&str]) {
    let error = lease.lost();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(any_of.iter().any(|why| error.to_string().contains(why)), "none of {any_of:?}: {error}");
    assert!(lease.is_lost() && lease.check(ms(0)).is_err());
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
}

#[test]
fn a_server_that_forgot_everything_is_noticed_at_the_next_renewal() {
    let server = Server::start();
    let client = connect(&server);
    let lease = long_lease(&client);
    server.restart(Data::Lost);
    expect_lost(&lease, &[GONE]);
    let next = long_lease(&client);
    assert!(next.token() > lease.token(), "{} after {}", next.token(), lease.token());
}

#[test]
fn a_server_that_writes_before_it_answers_keeps_locks_through_a_crash() {
    let server = Server::builder().appendonly().start();
    let (client, other) = (connect(&server), connect(&server));
    let lease = long_lease(&client);
    server.restart(Data::Kept);
    assert!(other.lock("job").try_acquire().unwrap().is_none());
    wait_for_renewals(&server, 2);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
    let next = long_lease(&other);
    assert!(next.token() > lease.token());
}

#[test]
fn a_server_that_writes_every_second_may_lose_a_lock_but_no_token() {
    let server = Server::builder().arg("--appendonly", "yes").arg("--appendfsync", "everysec").start();
    let (client, other) = (connect(&server), connect(&server));
    let mut highest = 0;
    for _ in 0..5 {
        let lease = long_lease(&client);
        assert!(lease.token() > highest);
        server.restart(Data::Kept);
        match other.lock("job").ttl(ms(120_000)).try_acquire().unwrap() {
            // Lost with the last second: from the next renewal on, before or after the rival came, there is one who believes.
            Some(rival) => {
                assert!(rival.token() > lease.token());
                expect_lost(&lease, &[GONE, TAKEN]);
                rival.check(ms(1)).unwrap();
                highest = rival.token();
                rival.release().unwrap();
            }
            None => {
                wait_for_renewals(&server, 2);
                lease.check(ms(1)).unwrap();
                highest = lease.token();
                lease.release().unwrap();
            }
        }
    }
}

/// A primary, a replica that was in sync, and the wire between them.
fn replicated() -> (Server, Server, Proxy) {
    let primary = Server::builder().arg("--repl-diskless-sync", "yes").start();
    let wire = Proxy::to(primary.address());
    let replica = Server::start();
    let reply = replica.command(&["REPLICAOF", "127.0.0.1", &wire.port().to_string()]);
    assert!(!reply.is_error(), "{reply:?}");
    eventually("the replica is connected", || replica.info("master_link_status").as_deref() == Some("up"));
    primary.wait_replicas_in_sync(1);
    (primary, replica, wire)
}

#[test]
fn a_lagging_replica_that_is_promoted_lacks_the_lock_and_the_old_holder_is_told() {
    let (primary, replica, wire) = replicated();
    wire.refuse();
    wire.cut_all();
    let name = Switch::to(primary.port());
    let lease = long_lease(&Client::connect(name.url()).unwrap());
    primary.kill();
    replica.promote();
    // This is the hole: the grant was acknowledged, and the server that answers now has never heard of it.
    let other = connect(&replica);
    let rival = other.lock("job").ttl(ms(120_000)).try_acquire().unwrap().expect("the replica lacks the lock");
    assert!(rival.token() > lease.token(), "the server's clock is the floor: a guard tells them apart");
    name.turn(replica.port());
    expect_lost(&lease, &[TAKEN]);
    rival.check(ms(1)).unwrap();
    assert_eq!(other.inspect("job").unwrap().unwrap().token, Some(rival.token()));
}

#[test]
fn a_replica_that_has_the_lock_keeps_it_when_it_is_promoted() {
    let (primary, replica, _wire) = replicated();
    let name = Switch::to(primary.port());
    let lease = long_lease(&Client::connect(format!("{}?wait_replicas=1", name.url())).unwrap());
    assert!(is_taken(&replica, "job"), "it was granted only once the replica had it");
    primary.kill();
    replica.promote();
    let other = connect(&replica);
    assert!(other.lock("job").try_acquire().unwrap().is_none());
    name.turn(replica.port());
    drop(lease);
    eventually("it is released there, though no replica confirms", || !is_taken(&replica, "job"));
}

#[test]
fn a_master_that_becomes_a_replica_is_left_for_the_one_that_the_url_leads_to() {
    let (primary, replica, _wire) = replicated();
    let name = Switch::to(primary.port());
    let client = Client::connect(name.url()).unwrap();
    let lease = long_lease(&client);
    primary.wait_replicas_in_sync(1);
    replica.promote();
    name.turn(replica.port());
    // It goes on answering on the connections that it has, and refuses writes there.
    let demoted = primary.command(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
    assert!(!demoted.is_error(), "{demoted:?}");
    wait_for_renewals(&replica, 2);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
    assert!(!is_taken(&replica, "job"));
    client.lock("other").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

#[test]
fn without_the_replicas_that_are_to_confirm_nothing_is_granted_and_nothing_left() {
    let primary = Server::start();
    let replica = Server::builder().replica_of(&primary).start();
    primary.wait_replicas_in_sync(1);
    let client = Client::connect(format!("{}?wait_replicas=1", primary.url())).unwrap();
    replica.stop_process();
    let error = client.lock("job").ttl(ms(600_000)).try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    let error = client.lock("job").ttl(ms(600_000)).wait(ms(1_500)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    eventually("what was written is released", || !is_taken(&primary, "job"));
    replica.continue_process();
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(is_taken(&replica, "job"), "a grant is on the replica before it is one");
    lease.release().unwrap();
}

#[test]
fn renewals_that_no_replica_confirms_end_the_lease_at_its_deadline() {
    let primary = Server::start();
    let replica = Server::builder().replica_of(&primary).start();
    primary.wait_replicas_in_sync(1);
    let client = Client::connect(format!("{}?wait_replicas=1", primary.url())).unwrap();
    let lease = client.lock("job").ttl(ms(3_000)).renew_every(ms(300)).wait(PATIENCE).acquire().unwrap();
    replica.stop_process();
    expect_lost(&lease, &[UNCONFIRMED]);
    assert!(is_taken(&primary, "job"), "the primary goes on holding it for a while: nobody else believes meanwhile");
}

#[test]
fn a_silent_server_costs_the_lease_by_the_clock_alone() {
    let server = Server::start();
    let (client, other) = (connect(&server), connect(&server));
    let lease = client.lock("job").ttl(ms(1_500)).renew_every(ms(200)).acquire().unwrap();
    let token = lease.token();
    server.stop_process();
    expect_lost(&lease, &[UNCONFIRMED]);
    let waiter = thread::spawn(move || other.lock("job").wait(PATIENCE).acquire().unwrap());
    server.continue_process();
    let next = waiter.join().unwrap();
    assert!(next.token() > token);
    assert!(lease.is_lost());
}

#[test]
fn a_server_clock_that_jumps_forward_frees_locks_early_and_tokens_still_grow() {
    let server = Server::builder().with_clock_offset().start();
    let (client, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = long_lease(&client);
    let guards = Guards::new(10);
    guards.claim("item", lease.token()).unwrap();
    server.set_clock_ms(HOUR_MS);
    let rival = long_lease(&other);
    assert!(rival.token() > lease.token());
    guards.claim("item", rival.token()).unwrap();
    assert_eq!(guards.check("item", lease.token()).unwrap_err().kind(), ErrorKind::StaleToken);
    let error = lease.lost();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    // The clock is put right, and with it whatever it said meanwhile is in the future.
    server.set_clock_ms(0);
    rival.release().unwrap();
    let third = long_lease(&client);
    assert!(third.token() > rival.token());
}

#[test]
fn a_server_clock_that_jumps_back_keeps_locks_longer_and_waiters_wait() {
    let server = Server::builder().with_clock_offset().start();
    let (client, other) = (connect(&server), connect(&server));
    let lease = client.lock("job").ttl(ms(2_000)).no_renewal().acquire().unwrap();
    server.set_clock_ms(-HOUR_MS);
    expect_lost(&lease, &[UNCONFIRMED]);
    let error = other.lock("job").wait(ms(600)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(PATIENCE).acquire().unwrap());
        server.set_clock_ms(0);
        assert!(waiter.join().unwrap().token() > lease.token());
    });
}

#[test]
fn a_server_clock_that_is_behind_every_counter_never_lets_a_token_fall() {
    let server = Server::builder().with_clock_offset().start();
    let client = connect_patiently(server.url());
    let first = long_lease(&client);
    first.release().unwrap();
    server.set_clock_ms(-HOUR_MS);
    let second = long_lease(&client);
    assert!(second.token() > first.token(), "{} after {}", second.token(), first.token());
}

#[test]
fn scripts_that_are_flushed_cost_nothing() {
    let server = Server::start();
    let client = connect(&server);
    let lease = long_lease(&client);
    for _ in 0..5 {
        assert!(!server.command(&["SCRIPT", "FLUSH"]).is_error());
        wait_for_renewals(&server, 2);
        client.lock("another").wait(PATIENCE).acquire().unwrap().release().unwrap();
    }
    lease.check(ms(1)).unwrap();
    assert!(!server.command(&["SCRIPT", "FLUSH"]).is_error());
    lease.release().unwrap();
    assert!(!is_taken(&server, "job"));
}

#[test]
fn flushing_everything_is_reported_at_the_next_renewal() {
    let server = Server::start();
    let client = connect(&server);
    let lease = long_lease(&client);
    assert!(!server.command(&["FLUSHALL"]).is_error());
    expect_lost(&lease, &[GONE]);
    let next = long_lease(&client);
    assert!(next.token() > lease.token());
}
