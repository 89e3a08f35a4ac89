//! Redis at the far end of a slow way, and replicas that take their time.

use std::sync::Arc;

use crate::common::on_redis::{is_taken, load_scripts};
use crate::common::{PATIENCE, eventually, ms};
use leasehold::{Client, blocking};
use leasehold_core::Config;
use leasehold_servers::proxy::Proxy;
use leasehold_servers::redis::Server;

fn on_a_runtime<R>(work: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// One round trip fits into a request, and what connecting takes does not.
#[test]
fn the_first_request_of_a_lane_needs_no_time_for_connecting() {
    let server = Server::start();
    load_scripts(&server);
    let proxy = Proxy::to(server.address());
    proxy.delay(ms(300));
    let url = server.url_at(proxy.port());
    let builder = || Client::builder().request_timeout(ms(550));

    let client = blocking::Client::connect_with(builder(), &url).unwrap();
    // Held, for a release would take its turn before the next request.
    let held = ["a", "b"].map(|name| client.lock(name).try_acquire().unwrap().unwrap());
    drop(held);

    on_a_runtime(async {
        let client = builder().connect(&url).await.unwrap();
        let first = client.lock("c").try_acquire().await.unwrap().unwrap();
        let second = client.lock("d").try_acquire().await.unwrap().unwrap();
        drop((first, second));
    });
}

#[test]
fn an_inspection_has_the_request_timeout() {
    let server = Server::start();
    load_scripts(&server);
    let proxy = Proxy::to(server.address());
    let url = server.url_at(proxy.port());
    let builder = || Client::builder().request_timeout(PATIENCE);
    let (client, other) = (blocking::Client::connect_with(builder(), &url).unwrap(), server.url());
    let lease = blocking::Client::connect(other).unwrap().lock("a").ttl(ms(120_000)).acquire().unwrap();
    assert!(client.inspect("a").unwrap().is_some());
    // Longer than by default.
    proxy.delay(2 * Config::REQUEST_TIMEOUT);
    assert!(client.inspect("a").unwrap().is_some());
    assert_eq!(client.break_lock("a").unwrap().unwrap().token, Some(lease.token()));
    on_a_runtime(async {
        let client = builder().connect(&url).await.unwrap();
        assert!(client.inspect("a").await.unwrap().is_none());
    });
}

#[test]
fn a_runtime_without_sockets_can_lock() {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(server.url()).await.unwrap();
        let lease = client.lock("a").await.unwrap();
        assert!(client.inspect("a").await.unwrap().is_some());
        lease.release().await.unwrap();
    });
}

#[test]
fn threads_are_not_held_up_by_one_that_waits_for_replicas() {
    let server = Server::start();
    let replica = Server::builder().replica_of(&server).start();
    server.wait_replicas_in_sync(1);
    let settings = Client::builder().request_timeout(PATIENCE / 2);
    let url = format!("{}?wait_replicas=1", server.url());
    let client = blocking::Client::connect_with(settings, url).unwrap();
    client.lock("first").acquire().unwrap().release().unwrap();
    replica.stop_process();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| client.lock("slow").wait(PATIENCE).acquire());
        eventually("it is taken", || is_taken(&server, "slow"));
        for _ in 0..3 {
            let asked = std::time::Instant::now();
            assert!(client.inspect("other").unwrap().is_none());
            assert!(asked.elapsed() < PATIENCE / 4, "{:?}", asked.elapsed());
        }
        assert!(!slow.is_finished());
        replica.continue_process();
        slow.join().unwrap().unwrap().release().unwrap();
    });
}

#[test]
fn a_lock_that_waits_for_replicas_delays_no_other() {
    let server = Arc::new(Server::start());
    let replica = Server::builder().replica_of(&server).start();
    server.wait_replicas_in_sync(1);
    on_a_runtime(async {
        let builder = Client::builder().request_timeout(PATIENCE / 2);
        let client = builder.connect(format!("{}?wait_replicas=1", server.url())).await.unwrap();
        // From here on the lane has its connections.
        client.lock("first").await.unwrap().release().await.unwrap();
        replica.stop_process();
        let slow = tokio::spawn(client.lock("slow").wait(PATIENCE).into_future());
        // The server has it, and waits for the replica.
        let asked = Arc::clone(&server);
        let taken = move || eventually("it is taken", || is_taken(&asked, "slow"));
        tokio::task::spawn_blocking(taken).await.unwrap();
        // Who only looks needs no replica, and here has less time than the replica is given.
        for _ in 0..3 {
            let look = tokio::time::timeout(PATIENCE / 4, client.inspect("other"));
            assert!(look.await.unwrap().unwrap().is_none());
        }
        assert!(!slow.is_finished());
        replica.continue_process();
        slow.await.unwrap().unwrap().release().await.unwrap();
    });
}
