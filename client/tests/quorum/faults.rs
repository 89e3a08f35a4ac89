//! Nodes of a quorum that are away, stand still, are slow or cut off; answers that never came.

use crate::common;
use crate::common::on_redis::{HIGH, count_grants, request, wait_for_renewals};
use crate::common::quorum::{LONG_TTL, Nodes, TTL, patient, settings};
use crate::common::{PATIENCE, eventually, ms};
use leasehold::blocking::{Client, Lease};
use leasehold::{ErrorKind, HolderMatch, ReleaseIfOutcome};
use leasehold_core::Config;
use leasehold_servers::proxy::{Fault, Proxy, Request};
use leasehold_servers::redis::Data;

/// The reason why a node does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Down,
    Stopped,
    /// Answers come later than anybody waits for.
    Slow,
    Cut,
    Silent,
}

const TROUBLES: [Trouble; 5] = [Trouble::Down, Trouble::Stopped, Trouble::Slow, Trouble::Cut, Trouble::Silent];

fn begin(trouble: Trouble, nodes: &Nodes, node: usize) {
    let (server, proxy) = (&nodes.servers[node], &nodes.proxies[node]);
    match trouble {
        Trouble::Down => server.kill(),
        Trouble::Stopped => server.stop_process(),
        Trouble::Slow => proxy.delay(ms(5_000)),
        Trouble::Cut => {
            proxy.refuse();
            proxy.cut_all();
        }
        Trouble::Silent => proxy.black_hole(),
    }
}

fn end(trouble: Trouble, nodes: &Nodes, node: usize) {
    let (server, proxy) = (&nodes.servers[node], &nodes.proxies[node]);
    match trouble {
        Trouble::Down => server.restart(Data::Kept),
        Trouble::Stopped => server.continue_process(),
        Trouble::Slow => proxy.delay(ms(0)),
        Trouble::Cut | Trouble::Silent => proxy.pass(),
    }
}

fn acquire(client: &Client) -> Lease {
    client.lock("job").ttl(TTL).wait(PATIENCE).acquire().unwrap()
}

/// A node that may have the record keeps the release from being confirmed in time; the others are free.
fn release(lease: &Lease) {
    if let Err(error) = lease.release() {
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    }
}

fn one_round(nodes: &Nodes, client: &Client, live: usize) -> u64 {
    let lease = acquire(client);
    wait_for_renewals(&nodes.servers[live], 3);
    lease.check(ms(1)).unwrap();
    assert!(client.inspect("job").unwrap().unwrap().is_shown_by_a_majority());
    release(&lease);
    lease.token()
}

#[test]
fn a_lost_minority_of_three_is_harmless() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let mut token = 0;
    for trouble in TROUBLES {
        begin(trouble, &nodes, 1);
        let next = one_round(&nodes, &client, 0);
        assert!(next > token, "{trouble:?}");
        token = next;
        end(trouble, &nodes, 1);
        nodes.wait_for_nothing_left("job");
    }
}

#[test]
fn a_lost_minority_of_five_is_harmless() {
    let nodes = Nodes::start(5);
    let client = nodes.create();
    let mut token = 0;
    for (one, two) in [(Trouble::Down, Trouble::Stopped), (Trouble::Slow, Trouble::Cut)] {
        begin(one, &nodes, 1);
        begin(two, &nodes, 3);
        let next = one_round(&nodes, &client, 0);
        assert!(next > token, "{one:?} {two:?}");
        token = next;
        end(one, &nodes, 1);
        end(two, &nodes, 3);
        nodes.wait_for_nothing_left("job");
    }
}

#[test]
fn faults_during_a_lease_lose_nothing() {
    for trouble in [Trouble::Stopped, Trouble::Cut, Trouble::Silent] {
        let nodes = Nodes::start(3);
        let client = nodes.create();
        let lease = acquire(&client);
        wait_for_renewals(&nodes.servers[2], 1);
        begin(trouble, &nodes, 2);
        wait_for_renewals(&nodes.servers[0], 4);
        lease.check(ms(1)).unwrap();
        end(trouble, &nodes, 2);
        wait_for_renewals(&nodes.servers[2], 1);
        lease.release().unwrap();
        nodes.wait_for_nothing_left("job");
    }
}

#[test]
fn without_a_majority_the_error_names_the_nodes() {
    for trouble in [Trouble::Down, Trouble::Stopped, Trouble::Cut] {
        let nodes = Nodes::start(3);
        let settings = settings().max_ttl(LONG_TTL).request_timeout(ms(300));
        let client = Client::connect_with(settings.create_quorum(), nodes.urls()).unwrap();
        // So that all three have been talked to.
        acquire(&client).release().unwrap();
        begin(trouble, &nodes, 0);
        begin(trouble, &nodes, 2);
        // What is left on the live node does not run out while the test looks.
        let error = client.lock("job").ttl(LONG_TTL).wait(ms(500)).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{trouble:?}: {error}");
        for node in [0, 2] {
            let port = nodes.proxies[node].port().to_string();
            assert!(error.to_string().contains(&port), "{trouble:?}: no {port} in {error}");
        }
        let error = client.inspect("job").unwrap_err();
        assert!(error.kind() == ErrorKind::StoreUnavailable && error.to_string().contains("no majority"), "{error}");
        eventually("the live node is free", || !common::on_redis::is_taken(&nodes.servers[1], "job"));
        end(trouble, &nodes, 0);
        end(trouble, &nodes, 2);
    }
}

type Lose = fn(&Proxy, Request) -> Fault;

/// An answer is lost after the node has done what was asked, by a reset or by silence.
const LOSSES: [Lose; 2] = [Proxy::reset_after_forwarding, Proxy::lose_replies];

#[test]
fn a_lost_answer_of_one_node_changes_nothing() {
    for lose in LOSSES {
        let nodes = Nodes::start(3);
        let client = nodes.create();
        let mut token = 0;
        for script in ["vote", "keep", "free"] {
            let lost = lose(&nodes.proxies[1], request(script));
            let lease = acquire(&client);
            assert!(lease.token() > token);
            token = lease.token();
            wait_for_renewals(&nodes.servers[0], 2);
            lease.check(ms(1)).unwrap();
            release(&lease);
            lost.wait_for_hits(1);
            nodes.wait_for_nothing_left("job");
        }
    }
}

#[test]
fn a_lost_raise_is_asked_for_again() {
    for lose in LOSSES {
        let nodes = Nodes::start(3);
        let client = nodes.create();
        // Its counter is ahead, so that the others have to be raised to it.
        count_grants(&nodes.servers[0], "job");
        nodes.servers[1].stop_process();
        let lost = lose(&nodes.proxies[2], request("raise"));
        let lease = acquire(&client);
        assert_eq!((lease.token(), lost.hits()), (HIGH + 1, 1));
        assert_eq!(common::on_redis::counter(&nodes.servers[2], "job"), HIGH + 1);
        nodes.servers[1].continue_process();
        release(&lease);
        nodes.wait_for_nothing_left("job");
    }
}

#[test]
fn a_node_that_comes_late_is_taken_in() {
    let nodes = Nodes::start(3);
    nodes.create();
    nodes.proxies[2].refuse();
    let client = nodes.connect();
    let lease = acquire(&client);
    assert_eq!(nodes.taken("job"), [true, true, false]);
    nodes.proxies[2].pass();
    eventually("the node is asked along", || nodes.taken("job")[2]);
    let info = || client.inspect("job").unwrap().unwrap();
    eventually("it shows the record", || (info().votes, info().nodes) == (3, 3));
    lease.release().unwrap();
    nodes.wait_for_nothing_left("job");
}

#[test]
fn an_inspection_waits_for_nodes_up_to_the_request_timeout() {
    let nodes = Nodes::start(3);
    let client = Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    let lease = client.lock("job").ttl(LONG_TTL).acquire().unwrap();
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    // Longer than by default.
    nodes.proxies.iter().for_each(|proxy| proxy.delay(2 * Config::REQUEST_TIMEOUT));
    let info = client.inspect("job").unwrap().unwrap();
    assert_eq!((info.token, info.votes, info.nodes), (Some(lease.token()), 3, 3));
    assert!(client.break_lock("job").unwrap().is_some());
    nodes.wait_for_nothing_left("job");
}

#[test]
fn a_lock_is_broken_although_a_node_is_away() {
    let nodes = Nodes::start(3);
    // By their clocks the counters of two nodes may differ: then a look that lacks the third could not tell the token.
    nodes.servers.iter().for_each(|server| count_grants(server, "job"));
    let client = Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    let lease = client.lock("job").ttl(LONG_TTL).renew_every(ms(500)).acquire().unwrap();
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    nodes.servers[2].stop_process();
    let other = Client::connect_with(settings().max_ttl(LONG_TTL), nodes.direct()).unwrap();
    let broken = other.break_lock("job").unwrap().unwrap();
    assert_eq!((broken.token, broken.votes, broken.nodes), (Some(lease.token()), 2, 3));
    assert_eq!(lease.lost().kind(), ErrorKind::Lost);
    assert!(other.break_lock("job").unwrap().is_none());
    nodes.servers[2].continue_process();
}

#[test]
fn a_holder_is_released_by_name_only_where_a_majority_shows_it() {
    let nodes = Nodes::start(3);
    let client = Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    let lease = client.lock("job").owner("dead:1").ttl(LONG_TTL).no_renewal().acquire().unwrap();
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    let supervisor = Client::connect_with(patient(), nodes.direct()).unwrap();
    let dead = || HolderMatch::default().owner("dead:*");
    // What is left on one node may be the rest of an attempt, or a lock that the silent node shows as well.
    nodes.servers[0].command(&["DEL", "job"]);
    nodes.servers[2].stop_process();
    assert_eq!(supervisor.release_if("job", dead()).unwrap_err().kind(), ErrorKind::StoreUnavailable);
    nodes.servers[2].continue_process();
    assert_eq!(nodes.taken("job")[1..], [true; 2], "nothing was changed");
    match supervisor.release_if("job", dead()).unwrap() {
        ReleaseIfOutcome::Released(holder) => assert_eq!((holder.votes, holder.nodes), (2, 3)),
        outcome => panic!("{outcome:?}"),
    }
    nodes.wait_for_nothing_left("job");
    assert_eq!(supervisor.release_if("job", dead()).unwrap(), ReleaseIfOutcome::Free);
    drop(lease);
}
