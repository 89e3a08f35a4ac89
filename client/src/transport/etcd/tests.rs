//! Wake-ups and the number of requests, at a real etcd.

use std::time::Duration;

use leasehold_core::op::{Acquire, Applied, LockOp, Op, Release, Renew};
use leasehold_core::{LockId, NodeId, Nonce, Owner, RequestId, Seq};
use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::Proxy;
use leasehold_servers::wait_until;

use super::*;
use crate::transport::wakeups::tests::RecordingWatcher;

const TTL: Duration = Duration::from_secs(60);

fn open(url: &str) -> Etcd {
    Etcd::open(&EtcdUrl::parse(url).unwrap()).unwrap()
}

fn name(name: &str) -> Resource {
    Resource::new(name).unwrap()
}

fn ask(store: &Etcd, ops: Vec<(&str, Op)>) -> Vec<Outcome> {
    let op = |(resource, op)| LockOp { lock: LockId::new(1), resource: name(resource), op };
    let ops: Vec<LockOp> = ops.into_iter().map(op).collect();
    let deadline = clock::monotonic().plus(TTL);
    store
        .perform(&Transmit { id: RequestId::new(1), node: NodeId::new(0), deadline, ops: ops.into() }, Pool::Caller)
        .unwrap()
}

fn acquire(attempt: u8) -> Op {
    Op::Acquire(Box::new(Acquire {
        owner: Owner::new("tests").unwrap(),
        ..Acquire::new(Nonce::from_bytes([attempt; 16]), Seq::new(1), TTL)
    }))
}

fn renew(attempt: u8, seq: u32) -> Op {
    Op::Renew(Renew { nonce: Nonce::from_bytes([attempt; 16]), seq: Seq::new(seq), record_ttl: TTL, quorum: None })
}

fn release(attempt: u8) -> Op {
    Op::Release(Release { nonce: Nonce::from_bytes([attempt; 16]), quorum: None })
}

/// Takes and releases a lock.
fn hand_over(store: &Etcd, resource: &str, attempt: u8) {
    assert!(matches!(ask(store, vec![(resource, acquire(attempt))])[..], [Outcome::Applied(Applied::Acquired { .. })]));
    assert_eq!(ask(store, vec![(resource, release(attempt))]), [Outcome::Applied(Applied::Released)]);
}

#[test]
fn each_release_is_told_to_those_who_watch() {
    let server = Server::start();
    let (one, two) = (open(&server.url()), open(&server.url()));
    let (heard, watcher) = RecordingWatcher::new();
    one.watch(&name("a"), &watcher);
    one.watch(&name("b"), &watcher);
    let mut begun = Vec::new();
    wait_until("both are watched", || {
        begun.extend(heard.subscribed());
        begun.len() == 2
    });
    for attempt in 1..=20 {
        hand_over(&two, "a", attempt);
        wait_until("the release is told", || heard.take() == ["a"]);
    }
    hand_over(&two, "c", 1);
    hand_over(&two, "b", 99);
    wait_until("only what is watched is told", || heard.take() == ["b"]);
    server.etcdctl(&["del", "leasehold/lock/b"]);
    wait_until("a deleted key is told", || heard.take() == ["b"]);
    one.unwatch(&name("a"), &watcher);
    one.unwatch(&name("b"), &watcher);
    wait_until("nothing is watched", || server.watchers() == 0);
}

#[test]
fn a_stream_that_is_cut_is_opened_again_and_tells_so() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let (one, two) = (open(&format!("etcd://{}", proxy.address())), open(&server.url()));
    let (heard, watcher) = RecordingWatcher::new();
    one.watch(&name("a"), &watcher);
    for attempt in 1..=3 {
        // Those who watch look for themselves then: a release meanwhile was not told.
        wait_until("it is watched", || heard.subscribed() == ["a"]);
        hand_over(&two, "a", attempt);
        wait_until("the release is told", || heard.take() == ["a"]);
        proxy.cut_all();
    }
}

#[test]
fn a_renewal_is_one_request_and_many_are_one() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let store = open(&format!("etcd://{}", proxy.address()));
    let count = |ops: Vec<(&str, Op)>| {
        let before = proxy.requests();
        let outcomes = ask(&store, ops);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_))), "{outcomes:?}");
        proxy.requests() - before
    };
    // The first of a caller greets the server.
    count(vec![("a", acquire(1))]);
    let names: Vec<String> = (0..64).map(|at| format!("lock {at}")).collect();
    for name in &names {
        assert_eq!(count(vec![(name, acquire(2))]), 2, "a read and a write");
    }
    assert_eq!(count(vec![("a", renew(1, 2))]), 1);
    assert_eq!(count(names.iter().map(|name| (name.as_str(), renew(2, 2))).collect()), 1);
    assert_eq!(count(vec![("a", release(1))]), 1);
    assert_eq!(count(vec![("a", acquire(3))]), 1);
    // Another client's write costs one more round trip, and nothing else.
    let other = open(&server.url());
    ask(&other, vec![("a", release(3))]);
    assert_eq!(count(vec![("a", acquire(4))]), 2, "it reads");
}
