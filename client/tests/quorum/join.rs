//! Staying until all nodes vote, for those who have no client that stays.

use std::time::Duration;

use crate::common::quorum::{Nodes, TTL, settings};
use leasehold::ErrorKind;
use leasehold::quorum::{Join, JoinProgress, NodeStatus, Quorum, Standing};
use leasehold_servers::redis::Data;

fn join(nodes: &Nodes, tell: impl FnMut(&JoinProgress)) -> Vec<Standing> {
    match nodes.look().unwrap().join(Some(Duration::from_secs(120)), tell).unwrap() {
        Join::Complete { nodes } => standings(&nodes),
        other => panic!("{other:?}"),
    }
}

fn standings(nodes: &[NodeStatus]) -> Vec<Standing> {
    nodes.iter().map(|node| node.standing).collect()
}

#[test]
fn nodes_that_forgot_are_brought_back() {
    let nodes = Nodes::start(3);
    drop(nodes.create());
    assert_eq!(join(&nodes, |_| panic!("nothing is waited for")), [Standing::Member; 3]);
    assert_eq!(nodes.servers[0].command(&["EXISTS", "{leasehold:join}\u{1f}fence of name"]).integer(), 0, "nor locked");
    for server in &nodes.servers[..2] {
        server.command(&["FLUSHALL"]);
    }
    let port = nodes.servers[0].port().to_string();
    let mut heard = Vec::new();
    let voting = join(&nodes, |progress| heard.push(progress.clone()));
    assert_eq!(voting, [Standing::Rejoined, Standing::Rejoined, Standing::Member]);
    assert_eq!(nodes.taken("leasehold:join"), [false; 3], "given back");
    let first = &heard[0];
    assert!(first.reasons.len() == 2 && first.reasons[0].contains(&port), "{first:#?}");
    assert!(heard.last().unwrap().left < first.left);
    // A client that connects from now on knows, so that already its first try can count them.
    assert!(nodes.connect_directly().lock("job").ttl(TTL).try_acquire().unwrap().is_some());
}

#[test]
fn a_node_that_restarts_with_its_data_and_the_lock_is_asked_too() {
    let nodes = Nodes::start(3);
    drop(nodes.create());
    nodes.servers[1].command(&["FLUSHALL"]);
    let mut restarted = false;
    let voting = join(&nodes, |_| {
        // The last of the joiner's attempts is perhaps just under way.
        if !restarted && nodes.taken("leasehold:join")[2] {
            assert!(!nodes.servers[2].command(&["SAVE"]).is_error());
            nodes.servers[2].restart(Data::Kept);
            restarted = true;
        }
    });
    assert!(restarted);
    assert_eq!(voting, [Standing::Member, Standing::Rejoined, Standing::Rejoined]);
}

#[test]
fn a_new_quorum_begins_once_all_of_its_nodes_answer() {
    let nodes = Nodes::start(3);
    nodes.servers[1].kill();
    let port = nodes.servers[1].port().to_string();
    let quorum = nodes.look().unwrap();
    let done = quorum.join(Some(Duration::from_secs(5)), |_| {}).unwrap();
    let Join::TimedOut { nodes: seen, reasons } = done else { panic!("{done:?}") };
    assert_eq!(standings(&seen), [Standing::Joining, Standing::Unreachable, Standing::Joining]);
    let of_birth = |reason: &&String| reason.contains(&port) && reason.contains("only when all of its nodes answer");
    assert_eq!(reasons.iter().filter(of_birth).count(), 1, "{reasons:#?}");
    let mut away = true;
    let voting = join(&nodes, |progress| {
        // Not before the others could have been asked to vote.
        if away && progress.left < Duration::from_secs(120 - 5) {
            nodes.servers[1].restart(Data::Lost);
            away = false;
        }
    });
    assert_eq!(voting, [Standing::Member; 3]);
}

#[test]
fn several_join_at_once() {
    let nodes = Nodes::start(3);
    drop(nodes.create());
    nodes.servers[0].restart(Data::Lost);
    std::thread::scope(|scope| {
        let joined: Vec<_> = (0..3).map(|_| scope.spawn(|| join(&nodes, |_| {}))).collect();
        for joined in joined {
            assert_eq!(joined.join().unwrap()[0], Standing::Rejoined);
        }
    });
}

#[test]
fn a_node_that_does_not_answer_is_not_waited_for_while_others_decide() {
    let nodes = Nodes::start(3);
    drop(nodes.create());
    nodes.servers[2].kill();
    let voting = join(&nodes, |_| panic!("nothing is waited for"));
    assert_eq!(voting, [Standing::Member, Standing::Member, Standing::Unreachable]);
    nodes.servers[1].kill();
    let done = nodes.look().unwrap().join(Some(Duration::ZERO), |_| {}).unwrap();
    let Join::TimedOut { reasons, .. } = done else { panic!("{done:?}") };
    assert!(
        reasons.len() == 2 && reasons.iter().all(|why| why.contains("1 nodes vote, and 2 are needed")),
        "{reasons:?}"
    );
}

#[test]
fn a_node_of_another_quorum_is_not_waited_for() {
    let nodes = Nodes::start(3);
    drop(nodes.create());
    let other = Quorum::connect(&settings().quorum_id("another"), nodes.direct()).unwrap();
    let error = other.join(None, |_| {}).unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("belongs to the quorum"), "{error}");
}
