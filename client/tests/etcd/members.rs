//! Members that crash, hang, are cut off, or are too few.

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::etcd::Server;

use crate::common::{PATIENCE, eventually, ms};
use crate::{client, expect_renewal, lease, url_of, within};

/// Tells if the lock is known to be held; it is certainly not granted.
fn is_held(client: &Client) -> bool {
    match client.lock("a").try_acquire() {
        Ok(granted) => {
            assert!(granted.is_none(), "somebody else has it");
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            false
        }
    }
}

#[test]
fn a_lock_outlives_any_member() {
    let servers: [Server; 3] = Server::cluster(&[]);
    let (holder, other) = (client(&url_of(&servers)), client(&url_of(&servers)));
    let lease = holder.lock("a").ttl(2 * PATIENCE).acquire().unwrap();
    for server in &servers {
        server.kill();
        // Perhaps it led: then the others elect a new leader first.
        eventually("the others answer", || is_held(&other));
        let next = other.lock("b").wait(PATIENCE).acquire().unwrap();
        next.release().unwrap();
        server.restart();
    }
    let token = lease.token();
    lease.release().unwrap();
    assert!(other.lock("a").wait(PATIENCE).acquire().unwrap().token() > token);
}

#[test]
fn nothing_is_granted_without_a_majority_and_nothing_is_forgotten() {
    let servers: [Server; 3] = Server::cluster(&[]);
    let client = within(&url_of(&servers), ms(2_000));
    let lease = client.lock("a").ttl(3 * PATIENCE).acquire().unwrap();
    servers[..2].iter().for_each(Server::kill);
    let refused = |what: &str| {
        let error = client.lock("b").try_acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{what}: {error}");
    };
    refused("one of three has no leader");
    servers[2].kill();
    refused("none of three runs");
    servers.iter().for_each(Server::begin_restart);
    eventually("the cluster has a leader again", || is_held(&client));
    // The leader may change once more meanwhile: then the release is confirmed later than it is waited for.
    if let Err(error) = lease.release() {
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    }
    assert!(client.lock("a").wait(PATIENCE).acquire().unwrap().token() > lease.token());
}

#[test]
fn a_lease_outlives_a_crash_of_the_only_member() {
    let server = Server::start();
    let (one, two) = (within(&server.url(), ms(1_000)), client(&server.url()));
    let held = lease(&one, "a");
    server.kill();
    assert_eq!(two.lock("b").wait(ms(100)).acquire().unwrap_err().kind(), ErrorKind::StoreUnavailable);
    server.restart();
    expect_renewal(&server, "a");
    assert!(is_held(&two));
    let token = held.token();
    held.release().unwrap();
    assert!(lease(&two, "a").token() > token);
}

#[test]
fn a_leader_that_is_cut_off_grants_nothing_and_the_others_go_on() {
    let servers: [Server; 3] = Server::cluster_to_cut();
    let leader = servers.iter().position(Server::leads).unwrap();
    let others: Vec<&Server> = servers.iter().enumerate().filter(|(at, _)| *at != leader).map(|(_, it)| it).collect();
    // They ask the leader first, and the last one asks nobody else.
    let hosts = [&servers[leader], others[0], others[1]].map(|server| server.address().to_string());
    let all = format!("etcd://{}", hosts.join(","));
    let (holder, waiter) = (within(&all, ms(2_000)), within(&all, ms(2_000)));
    let cut_off = within(&servers[leader].url(), ms(2_000));
    let held = lease(&holder, "a");
    servers[leader].isolate(&others);
    eventually("another leads", || others.iter().any(|other| other.leads()));
    expect_renewal(others[0], "a");
    assert!(!is_held(&cut_off), "without a majority nothing is known");
    assert_eq!(cut_off.lock("b").try_acquire().unwrap_err().kind(), ErrorKind::StoreUnavailable);
    let token = held.token();
    held.release().unwrap();
    let next = lease(&waiter, "a");
    assert!(next.token() > token);
    servers[leader].rejoin(&others);
    eventually("the former leader knows of the grant", || is_held(&cut_off));
    next.release().unwrap();
}

#[test]
fn a_member_that_hangs_is_left_for_another() {
    let servers: [Server; 3] = Server::cluster(&[]);
    let follower = servers.iter().position(|server| !server.leads()).unwrap();
    let mut hosts: Vec<String> = servers.iter().map(|server| server.address().to_string()).collect();
    hosts.swap(0, follower);
    let client = within(&format!("etcd://{}", hosts.join(",")), ms(1_000));
    let held = lease(&client, "a");
    servers[follower].stop_process();
    let answers = &servers[(follower + 1) % 3];
    expect_renewal(answers, "a");
    expect_renewal(answers, "a");
    lease(&client, "b").release().unwrap();
    servers[follower].continue_process();
    held.release().unwrap();
}
