//! Async callers: cancel at every await, many at once, none of them blocks the runtime.

use crate::common;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, eventually, ms};
use leasehold::{Client, Error, ErrorKind, HolderMatch, Lease, ReleaseIfOutcome, Severity};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Polls a future at most `times` times, then drops it where it stands.
async fn abandon_after<F: Future>(future: F, times: usize) -> bool {
    let mut future = pin!(future);
    for _ in 0..times {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[test]
fn a_dropped_acquisition_leaves_no_record() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:", common::url(&folder.path().join("locks.db")).as_str()] {
        runtime().block_on(async {
            let client = Client::connect(store).await.unwrap();
            for times in 0..6 {
                abandon_after(client.lock("job").into_future(), times).await;
                let lease = tokio::time::timeout(PATIENCE, client.lock("job").into_future()).await.unwrap().unwrap();
                // The same again behind a lease: the waiter leaves the line.
                abandon_after(client.lock("job").into_future(), times).await;
                lease.release().await.unwrap();
            }
        });
    }
}

/// Waits behind another lease, is granted the lock, and is polled again once the grant is over.
async fn granted_unseen(client: &Client, wait: Duration) -> (u64, Result<Lease, Error>) {
    let shown = async |by: Option<&str>| {
        let start = Instant::now();
        while client.inspect("job").await.unwrap().and_then(|info| info.owner).as_deref() != by {
            assert!(start.elapsed() < PATIENCE, "still not held by {by:?}");
            tokio::time::sleep(ms(5)).await;
        }
    };
    let first = client.lock("job").owner("first").await.unwrap();
    let request = client.lock("job").owner("late").ttl(ms(2_000)).no_renewal().wait(wait);
    let mut late = pin!(request.into_future());
    assert!(late.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    first.release().await.unwrap();
    shown(Some("late")).await;
    shown(None).await;
    (first.token(), tokio::time::timeout(PATIENCE, late).await.unwrap())
}

#[test]
fn a_lease_that_ended_before_its_caller_had_it_is_acquired_again() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:", common::url(&folder.path().join("locks.db")).as_str()] {
        runtime().block_on(async {
            let client = Client::connect(store).await.unwrap();
            let (token, late) = granted_unseen(&client, PATIENCE).await;
            let lease = late.unwrap();
            lease.check(Duration::ZERO).unwrap();
            assert!(lease.token() > token);
        });
    }
}

#[test]
fn a_lease_that_ended_early_is_acquired_again_only_within_the_wait() {
    runtime().block_on(async {
        let client = Client::connect("memory:").await.unwrap();
        let (_, late) = granted_unseen(&client, ms(1_900)).await;
        let error = late.unwrap_err();
        assert!(error.kind() == ErrorKind::TimedOut && error.holder().is_none(), "{error:?}");
        assert!(error.to_string().contains("ended before"), "{error}");
        drop(client.lock("job").try_acquire().await.unwrap().expect("nothing is left behind"));
    });
}

#[test]
fn a_dropped_release_is_still_sent() {
    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    runtime().block_on(async {
        let (client, other) = (Client::connect(&store).await.unwrap(), Client::connect(&store).await.unwrap());
        let lease = client.lock("job").await.unwrap();
        abandon_after(lease.release(), 1).await;
        assert_eq!(lease.remaining(), Duration::ZERO);
        drop(tokio::time::timeout(PATIENCE, other.lock("job").into_future()).await.unwrap().unwrap());
    });
}

#[test]
fn a_lease_dropped_while_a_renewal_is_due_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    runtime().block_on(async {
        let client = Client::connect(&store).await.unwrap();
        for round in 0..30 {
            let lease = client.lock("job").ttl(ms(120)).renew_every(ms(10)).await.unwrap();
            tokio::time::sleep(ms(round % 13)).await;
            drop(lease);
            let next = client.lock("job").ttl(ms(5_000)).wait(PATIENCE).await.unwrap();
            tokio::time::sleep(ms(5)).await;
            assert!(next.remaining() > ms(4_000), "a renewal of the dropped lease must not touch its successor");
            next.release().await.unwrap();
        }
    });
}

#[test]
fn awaiting_a_loss_returns_its_reason() {
    runtime().block_on(async {
        let client = Client::connect("memory:").await.unwrap();
        let lease = client.lock("job").ttl(ms(300)).await.unwrap();
        let lost = lease.lost();
        client.break_lock("job").await.unwrap();
        let error = tokio::time::timeout(PATIENCE, lost).await.unwrap();
        assert_eq!(error.kind(), ErrorKind::Lost);
        let expiring = client.lock("other").ttl(ms(200)).no_renewal().await.unwrap();
        tokio::time::timeout(PATIENCE, expiring.expiring()).await.unwrap();
    });
}

#[test]
fn a_blocked_runtime_loses_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    runtime().block_on(async {
        let client = Client::connect(&store).await.unwrap();
        let lease = client.lock("job").ttl(ms(3_000)).await.unwrap();
        std::thread::sleep(ms(4_000));
        lease.check(ms(1)).unwrap();
        lease.release().await.unwrap();
    });
}

#[test]
fn all_calls_can_be_awaited() {
    runtime().block_on(async {
        let client = Client::connect("memory:").await.unwrap();
        let first = client.lock("a").try_acquire().await.unwrap().expect("it is free");
        assert!(client.lock("a").try_acquire().await.unwrap().is_none());
        assert_eq!(client.inspect("a").await.unwrap().and_then(|info| info.token), Some(first.token()));
        let error = client.lock_all(["b", "a"]).wait(Duration::ZERO).await.unwrap_err();
        assert_eq!((error.kind(), error.resource()), (ErrorKind::Busy, Some("a")));
        assert_eq!(client.inspect("b").await.unwrap(), None);

        let other = client.release_if("a", HolderMatch::default().token(first.token() + 1)).await.unwrap();
        assert!(matches!(other, ReleaseIfOutcome::NotMatched(holder) if holder.token == Some(first.token())));
        assert_eq!(client.break_lock("a").await.unwrap().and_then(|info| info.token), Some(first.token()));
        let both = client.lock_all(["b", "a"]).wait(PATIENCE).await.unwrap();
        assert!(both.iter().find(|lease| lease.resource() == "a").unwrap().token() > first.token());
        both.release().await.unwrap();
        assert!(client.doctor().await.unwrap().iter().all(|finding| finding.severity < Severity::Problem));
        client.close().await.unwrap();
    });
}

#[test]
fn many_tasks_never_hold_one_lock_together() {
    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    runtime().block_on(async {
        let client = Client::connect(&store).await.unwrap();
        let inside = std::cell::Cell::new(0);
        let work = |n: usize| {
            let (client, inside) = (client.clone(), &inside);
            async move {
                let lease = client.lock("job").wait(PATIENCE).await.unwrap();
                assert_eq!(inside.replace(1), 0, "task {n} is not alone");
                tokio::task::yield_now().await;
                inside.set(0);
                let token = lease.token();
                lease.release().await.unwrap();
                token
            }
        };
        let mut tasks: Vec<_> = (0..50).map(|n| Box::pin(work(n))).collect();
        let mut tokens = Vec::new();
        std::future::poll_fn(|context| {
            tasks.retain_mut(|task| match task.as_mut().poll(context) {
                Poll::Ready(token) => {
                    tokens.push(token);
                    false
                }
                Poll::Pending => true,
            });
            if tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert!(tokens.is_sorted(), "waiters of one client are served in order: {tokens:?}");
    });
}

#[test]
fn a_call_that_waits_while_the_client_is_closed_says_so() {
    runtime().block_on(async {
        let other = Client::connect("memory:closed-meanwhile").await.unwrap();
        let client = Client::connect("memory:closed-meanwhile").await.unwrap();
        let held = other.lock("job").await.unwrap();
        let mut waiting = std::pin::pin!(client.lock("job").wait(PATIENCE).into_future());
        std::future::poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        client.clone().close().await.unwrap();
        let error = waiting.await.unwrap_err();
        assert_eq!((error.kind(), error.resource()), (ErrorKind::Closed, Some("job")));
        assert!(error.to_string().contains("closed during the call"), "{error}");
        held.release().await.unwrap();
    });
}

#[test]
fn a_closed_client_says_so() {
    runtime().block_on(async {
        let client = Client::connect("memory:").await.unwrap();
        let kept = client.clone();
        let lease = kept.lock("job").await.unwrap();
        client.close().await.unwrap();
        assert_eq!(kept.lock("job").await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(kept.elect("leader").start().err().unwrap().kind(), ErrorKind::Closed);
        assert_eq!(kept.shards("parts").count(2).start().err().unwrap().kind(), ErrorKind::Closed);
        eventually("the lease is over", || lease.remaining().is_zero());
    });
}
