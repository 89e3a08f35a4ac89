//! A store that hangs: another process has the file to itself, and lets nobody write for as long as it likes.

use std::future::{Future, IntoFuture as _};
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use leasehold::{Client, ErrorKind};
use rusqlite::Connection;

use crate::common::{PATIENCE, connect_patiently, eventually, ms, url};

/// From now on, until it is dropped, nobody else writes.
struct Hung(Connection);

impl Hung {
    fn new(store: &str) -> Self {
        let connection = Connection::open(store.trim_start_matches("sqlite:")).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }

    fn is_at_work(&self) -> bool {
        !self.0.is_autocommit()
    }
}

fn store() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    (folder, store)
}

#[test]
fn dropping_a_lease_does_not_wait_for_the_store() {
    let (_folder, store) = store();
    let client = connect_patiently(&store);
    let lease = client.lock("job").acquire().unwrap();
    let hung = Hung::new(&store);
    let (sender, dropped) = channel();
    std::thread::spawn(move || {
        drop(lease);
        sender.send(()).unwrap();
    });
    dropped.recv_timeout(PATIENCE / 4).expect("a request may take twice as long");
    assert!(hung.is_at_work() && client.inspect("job").unwrap().is_some());
    drop(hung);
    eventually("the release is performed", || client.inspect("job").unwrap().is_none());
}

#[test]
fn closing_waits_for_a_store_that_hangs_but_not_for_long() {
    let (_folder, store) = store();
    let client = connect_patiently(&store);
    let lease = client.lock("job").acquire().unwrap();
    let hung = Hung::new(&store);
    let began = Instant::now();
    let error = client.close().unwrap_err();
    let took = began.elapsed();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(took >= ms(1_900) && took < PATIENCE / 4, "{took:?}: a request may take twice as long");
    assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::NotOwned);
    drop(hung);
    let next = connect_patiently(&store).lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(next.token() > lease.token(), "the release goes on");
}

fn is_ready(future: impl Future<Output = ()>) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

#[test]
fn a_lease_is_expiring_until_it_is_renewed_and_again_when_it_is_lost() {
    const TTL: Duration = ms(9_000);
    let (_folder, store) = store();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let within = |future| runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await.unwrap() });
    let builder = Client::builder().request_timeout(PATIENCE / 2);
    let client = runtime.block_on(builder.connect(store.as_str())).unwrap();
    // A machine that is busy for a sixth of the ttl loses the lease instead.
    let renewed = (0..5).any(|_| {
        let lease = runtime.block_on(client.lock("job").ttl(TTL).into_future()).unwrap();
        assert!(!is_ready(lease.expiring()));
        let hung = Hung::new(&store);
        within(Box::pin(lease.expiring()) as std::pin::Pin<Box<dyn Future<Output = ()>>>);
        assert!(lease.remaining() <= TTL / 6);
        drop(hung);
        eventually("it is renewed or lost", || lease.is_lost() || lease.remaining() > TTL / 2);
        !lease.is_lost() && {
            assert!(!is_ready(lease.expiring()), "the danger is over");
            let late = lease.expiring();
            runtime.block_on(client.break_lock("job")).unwrap().unwrap();
            within(Box::pin(late));
            assert!(lease.is_lost(), "long before its time");
            true
        }
    });
    assert!(renewed);
}
