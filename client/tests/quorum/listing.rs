//! Listing and watching the locks of a quorum while nodes are away.

use std::collections::BTreeSet;

use leasehold::blocking::Client;
use leasehold::{Change, ErrorKind};

use crate::common::quorum::{LONG_TTL, Nodes, TTL, patient};
use crate::common::{PATIENCE, eventually, ms};

fn names(client: &Client) -> Result<BTreeSet<String>, leasehold::Error> {
    client.list("job/").map(|lock| lock.map(|lock| lock.resource)).collect()
}

#[test]
fn a_minority_may_be_away_and_a_majority_may_not() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let held: BTreeSet<String> = (0..5).map(|number| format!("job/{number}")).collect();
    let _leases = client.lock_all(&held).ttl(TTL).wait(PATIENCE).acquire().unwrap();
    assert_eq!(names(&client).unwrap(), held);
    let cut = |node: usize| {
        nodes.proxies[node].refuse();
        nodes.proxies[node].cut_all();
    };
    for away in 0..3 {
        cut(away);
        eventually("the others list all", || names(&client).is_ok_and(|names| names == held));
        nodes.proxies[away].pass();
    }
    cut(0);
    cut(1);
    let error = names(&client).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains("locks may be missing"), "{error}");
}

#[test]
fn a_remainder_on_a_minority_says_how_few_show_it() {
    let nodes = Nodes::start(3);
    let client = Client::connect_with(patient().create_quorum(), nodes.direct()).unwrap();
    let lease = client.lock("job/1").ttl(LONG_TTL).wait(PATIENCE).acquire().unwrap();
    let shown: Vec<_> = client.list("").map(Result::unwrap).collect();
    assert!(shown.len() == 1 && shown[0].is_shown_by_a_majority() && shown[0].nodes == 3, "{shown:?}");
    assert_eq!(shown[0].token, Some(lease.token()));
    for node in &nodes.servers[1..] {
        node.command(&["DEL", "job/1"]);
    }
    assert!(client.list("").next().is_none(), "a majority shows it free");
}

#[test]
fn a_watch_tells_that_no_majority_answers_and_that_one_does_again() {
    let nodes = Nodes::start(3);
    let client = Client::connect_with(patient().create_quorum(), nodes.direct()).unwrap();
    let mut changes = client.watch("job/1").every(ms(100));
    let mut next = || changes.next().unwrap().unwrap();
    assert!(matches!(next(), Change::Free));
    nodes.servers[0].stop_process();
    nodes.servers[1].stop_process();
    assert!(matches!(next(), Change::Unreadable(error) if error.kind() == ErrorKind::StoreUnavailable));
    nodes.servers[0].continue_process();
    nodes.servers[1].continue_process();
    assert!(matches!(next(), Change::Free));
}
