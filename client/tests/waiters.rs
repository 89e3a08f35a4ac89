//! A crowd in one client. Alone in its file, since it counts the threads of its process.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

use std::future::{Future, IntoFuture as _};
use std::task::{Context, Poll, Waker};

use common::PATIENCE;
use leasehold::Client;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

#[test]
fn ten_thousand_waiters_share_one_contender_and_no_threads() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect("memory:").await.unwrap();
        let lease = client.lock("job").await.unwrap();
        let before = threads();
        let mut waiters: Vec<_> = (0..10_000).map(|_| Box::pin(client.lock("job").into_future())).collect();
        for waiter in &mut waiters {
            assert!(matches!(waiter.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        }
        assert!(threads() <= before + 1, "{} threads before, {} now", before, threads());
        lease.release().await.unwrap();
        // Those who wait are served in order; the first holds until it is dropped.
        let mut last = 0;
        for waiter in waiters.drain(..100) {
            let lease = tokio::time::timeout(PATIENCE, waiter).await.unwrap().unwrap();
            assert!(lease.token() > last);
            last = lease.token();
            lease.release().await.unwrap();
        }
        drop(waiters);
        drop(tokio::time::timeout(PATIENCE, client.lock("job").into_future()).await.unwrap().unwrap());
    });
}
