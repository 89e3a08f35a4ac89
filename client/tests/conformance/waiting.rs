//! Waiting for a lock: how it ends, and in which order.

use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::ErrorKind;

use crate::common::{PATIENCE, eventually, ms, paced};
use crate::{Can, Store};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn a_wait_ends_and_names_the_holder(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").owner("one").acquire().unwrap();
    for client in [&one, &two] {
        let error = client.lock("job").wait(paced(80)).acquire().unwrap_err();
        assert_eq!((error.kind(), error.resource()), (ErrorKind::TimedOut, Some("job")));
        store.expect_named(&error, "one", lease.token());
        assert!(error.to_string().contains("held by one"), "{error}");
    }
    lease.check(ms(1)).unwrap();
}

pub(crate) fn a_release_ends_the_wait_of_another_client(store: &Store) {
    let (one, two) = store.two_clients();
    let rounds = if store.can(Can::WakeOtherClients) { 10 } else { 3 };
    for _ in 0..rounds {
        let lease = one.lock("job").wait(PATIENCE).acquire().unwrap();
        let token = lease.token();
        let waiting = two.clone();
        let waiter = std::thread::spawn(move || {
            let lease = waiting.lock("job").wait(PATIENCE).acquire().unwrap();
            let token = lease.token();
            lease.release().unwrap();
            token
        });
        // Whether it waits already or comes later: it gets the lock.
        assert!(two.lock("job").try_acquire().unwrap().is_none());
        lease.release().unwrap();
        assert!(waiter.join().unwrap() > token);
    }
}

pub(crate) fn an_expiry_ends_the_wait_of_another_client(store: &Store) {
    let (one, two) = store.two_clients();
    let lease = one.lock("job").ttl(paced(400)).no_renewal().acquire().unwrap();
    let next = two.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.is_lost(), "nobody else had it before that");
    assert!(next.token() > lease.token());
}

type Asked = Pin<Box<dyn Future<Output = Result<leasehold::Lease, leasehold::Error>> + Send>>;

/// Has a request take its place in the queue.
fn line_up(request: leasehold::LockRequest) -> Asked {
    let mut asked = request.into_future();
    let polled = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "somebody holds it");
    asked
}

async fn in_time<T>(waited: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, waited).await.expect("it comes in time")
}

pub(crate) fn waiters_of_a_client_are_served_in_order(store: &Store) {
    runtime().block_on(async {
        let client = crate::patient(store.url()).connect(store.url()).await.unwrap();
        let lease = client.lock("job").await.unwrap();
        let waiters: Vec<_> = (0..20).map(|_| line_up(client.lock("job"))).collect();
        let mut last = lease.token();
        lease.release().await.unwrap();
        for waiter in waiters {
            let lease = in_time(waiter).await.unwrap();
            assert!(lease.token() > last, "{} after {last}", lease.token());
            last = lease.token();
            lease.release().await.unwrap();
        }
    });
}

pub(crate) fn a_waiter_that_gives_up_leaves_the_queue(store: &Store) {
    runtime().block_on(async {
        let client = crate::patient(store.url()).connect(store.url()).await.unwrap();
        let lease = client.lock("job").await.unwrap();
        let mut waiters: Vec<_> = (0..6).map(|_| Some(line_up(client.lock("job")))).collect();
        // The first, who stands for all of them, one in the middle, and the last.
        for at in [0, 3, 5] {
            waiters[at] = None;
        }
        lease.release().await.unwrap();
        for waiter in waiters.into_iter().flatten() {
            in_time(waiter).await.unwrap().release().await.unwrap();
        }
        let lease = in_time(client.lock("job").into_future()).await.unwrap();
        lease.release().await.unwrap();
        let reader = store.client();
        eventually("nobody is left who takes it", || reader.inspect("job").unwrap().is_none());
    });
}

pub(crate) fn many_clients_wait_for_one_lock(store: &Store) {
    let holder = store.client();
    let lease = holder.lock("job").acquire().unwrap();
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let client = store.client();
            std::thread::spawn(move || {
                let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
                let token = lease.token();
                lease.release().unwrap();
                token
            })
        })
        .collect();
    lease.release().unwrap();
    let mut tokens: Vec<_> = waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect();
    tokens.push(lease.token());
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 5, "no token twice: {tokens:?}");
    eventually("the lock is free", || holder.inspect("job").unwrap().is_none());
    assert_eq!(
        holder.lock("job").wait(Duration::ZERO).acquire().map(|lease| lease.token() > tokens[4]).ok(),
        Some(true)
    );
}
