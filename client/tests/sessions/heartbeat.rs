//! The writes of many locks under one session.

use leasehold_servers::etcd;
use leasehold_servers::proxy::Proxy;

use crate::common::{eventually, ms, on_dynamodb};
use crate::{client, lease};

/// Locks under one session.
const LOCKS: usize = 1_000;
/// At a time, while they are acquired.
const CALLERS: usize = 16;

#[test]
fn a_thousand_locks_are_renewed_by_the_writes_of_one() {
    let server = etcd::Server::start();
    let proxy = Proxy::to(server.address());
    let client = client(&format!("etcd://{}", proxy.address()), Some("worker-7"));
    let acquire = |caller: usize| {
        let some = (caller..LOCKS).step_by(CALLERS);
        some.map(|n| lease(&client, &format!("r{n}"), ms(30_000))).collect::<Vec<_>>()
    };
    let leases: Vec<_> = std::thread::scope(|scope| {
        let acquire = &acquire;
        let started: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || acquire(caller))).collect();
        started.into_iter().flat_map(|started| started.join().unwrap()).collect()
    });
    assert_eq!(leases.len(), LOCKS);
    let ends: Vec<_> = leases.iter().map(|lease| std::time::Instant::now() + lease.remaining()).collect();
    let before = proxy.requests();
    eventually("each lock is renewed", || {
        leases.iter().zip(&ends).all(|(lease, end)| std::time::Instant::now() + lease.remaining() > *end + ms(1_000))
    });
    let requests = proxy.requests() - before;
    assert!((1..50).contains(&requests), "{requests} requests have renewed {LOCKS} locks");
}

#[test]
fn a_row_of_dynamodb_names_its_session_and_tells_java_to_wait() {
    let server = on_dynamodb::server();
    let (dynamodb, url) = (&server, &on_dynamodb::new_table(&server));
    let client = client(url, Some("worker-7"));
    let held = lease(&client, "a", ms(12_000));
    let row = on_dynamodb::row(dynamodb, url, "a");
    let attempt = on_dynamodb::attribute(&row, "recordVersionNumber").split(':').next().unwrap();
    let named = on_dynamodb::attribute(&row, "leaseSession");
    assert!(named.starts_with(attempt) && named.ends_with(":worker-7"), "{row}");
    assert_eq!(
        on_dynamodb::attribute(&row, "leaseDuration"),
        "1440000",
        "they wait so long for a row that stands still"
    );
    let session = on_dynamodb::row(dynamodb, url, "session:worker-7");
    assert_eq!(on_dynamodb::attribute(&session, "leaseDuration"), "12000");
    // Java's clients heartbeat every row of theirs; ours stands as it is while the session moves.
    let version =
        |name: &str| on_dynamodb::attribute(&on_dynamodb::row(dynamodb, url, name), "recordVersionNumber").to_owned();
    let (row, session) = (version("a"), version("session:worker-7"));
    eventually("the session is renewed", || version("session:worker-7") != session);
    assert_eq!(version("a"), row);
    drop(held);
    // A slow server may leave it unconfirmed.
    let _ = client.close();
    for name in ["a", "session:worker-7"] {
        eventually("it is free", || !on_dynamodb::is_held(&on_dynamodb::row(dynamodb, url, name)));
    }
}
