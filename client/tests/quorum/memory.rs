//! Nodes that lose their memory: restarted with and without data, wiped, new.

use crate::common::on_redis::wait_for_renewals;
use crate::common::quorum::{Nodes, TTL};
use crate::common::{PATIENCE, eventually};
use leasehold::blocking::{Client, Lease};
use leasehold::quorum::Standing;
use leasehold::{ErrorKind, Severity};
use leasehold_servers::redis::Data;

fn acquire(client: &Client) -> Lease {
    client.lock("job").ttl(TTL).wait(PATIENCE).acquire().unwrap()
}

/// Something happens to one node while a lease is held: the lease stands, and the node comes back.
fn survives(what: impl Fn(&Nodes), afterwards: Standing) {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let other = nodes.connect_directly();
    let lease = acquire(&client);
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    what(&nodes);
    // The holder's next renewal marks it.
    let standings = nodes.standings();
    assert!(standings[1] == afterwards || standings[1] == Standing::Joining, "{standings:?}");
    assert_eq!((standings[0], standings[2]), (Standing::Member, Standing::Member));
    let status = &nodes.look().unwrap().status()[1];
    assert!(status.meaning.contains("does not vote") && status.meaning.contains("3.0 s"), "{}", status.meaning);
    let findings = client.doctor().unwrap();
    let port = nodes.servers[1].port().to_string();
    let tells = |check: &str, word: &str| {
        findings.iter().any(|one| {
            let is_about_it = |node: &str| node.contains(&port) || node.contains(&nodes.proxies[1].port().to_string());
            let names_it = one.node.as_deref().is_some_and(is_about_it);
            one.check == check && one.severity == Severity::Warning && names_it && one.what.contains(word)
        })
    };
    assert!(tells("quorum.node", "does not vote"), "{findings:#?}");
    assert!(other.lock("job").ttl(TTL).try_acquire().unwrap().is_none(), "it is held");
    eventually("it votes again", || {
        // Where the record is still there, the holder has no need to ask for it again; a waiter has.
        if afterwards == Standing::Restarted {
            assert!(other.lock("job").ttl(TTL).try_acquire().unwrap().is_none());
        }
        nodes.standings()[1] == Standing::Rejoined
    });
    lease.check(std::time::Duration::from_millis(1)).unwrap();
    eventually("the record is back", || nodes.taken("job") == [true; 3]);
    wait_for_renewals(&nodes.servers[0], 1);
    lease.release().unwrap();
    let mut token = lease.token();
    for client in [&other, &client, &other] {
        let lease = acquire(client);
        assert!(lease.token() > token);
        token = lease.token();
        lease.release().unwrap();
    }
    // Now without one that has forgotten nothing: nodes that remember less must not decide alone.
    nodes.servers[2].stop_process();
    if let Ok(Some(lease)) = other.lock("job").ttl(TTL).try_acquire() {
        assert!(lease.token() > token);
        token = lease.token();
    }
    nodes.servers[2].continue_process();
    assert!(acquire(&other).token() > token);
}

#[test]
fn a_wiped_node_comes_back() {
    survives(|nodes| assert!(!nodes.servers[1].command(&["FLUSHALL"]).is_error()), Standing::Unmarked);
}

#[test]
fn a_node_restarted_without_data_comes_back() {
    survives(|nodes| nodes.servers[1].restart(Data::Lost), Standing::Unmarked);
}

#[test]
fn a_node_restarted_with_its_data_comes_back() {
    survives(
        |nodes| {
            // What it has is written by and by, which is why it cannot be relied on.
            assert!(!nodes.servers[1].command(&["SAVE"]).is_error());
            nodes.servers[1].restart(Data::Kept);
        },
        Standing::Restarted,
    );
}

#[test]
fn a_new_quorum_comes_up_by_itself() {
    let nodes = Nodes::start(3);
    let client = nodes.connect();
    let error = client.lock("job").ttl(TTL).try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert!(error.to_string().contains("cannot grant locks for another 3.0 s"), "{error}");
    assert_eq!(nodes.standings(), [Standing::Joining; 3]);
    assert_eq!(nodes.look().unwrap().init(Default::default()).unwrap(), leasehold::quorum::Init::ComingUp);
    let lease = acquire(&client);
    eventually("it is born", || nodes.standings() == [Standing::Member; 3]);
    lease.release().unwrap();
    assert!(acquire(&client).token() > lease.token());
}

#[test]
fn no_lock_is_granted_early_without_the_memory_of_a_majority() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let lease = client.lock("job").ttl(TTL).no_renewal().acquire().unwrap();
    let since = std::time::Instant::now();
    for server in &nodes.servers[..2] {
        server.command(&["FLUSHALL"]);
    }
    let next = acquire(&nodes.connect_directly());
    assert!(lease.is_lost() && since.elapsed() > TTL, "while the first may still believe in its lease");
    assert!(next.token() > lease.token());
}
