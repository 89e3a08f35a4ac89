//! Waiters, with and without the streams that wake them.

use std::thread;

use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::{Proxy, Request};

use crate::common::{PATIENCE, eventually};
use crate::{client, lease};

#[test]
fn a_waiter_watches_its_lock_until_it_has_given_it_back() {
    let server = Server::start();
    let (holder, other) = (client(&server.url()), client(&server.url()));
    let held = lease(&holder, "a");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lease(&other, "a"));
        eventually("it is watched", || server.watchers() == 1);
        held.release().unwrap();
        let next = waiter.join().unwrap();
        assert!(next.token() > held.token());
        next.release().unwrap();
        eventually("it is not watched any more", || server.watchers() == 0);
    });
}

#[test]
fn many_waiters_share_a_few_streams() {
    let server = Server::start();
    let (holder, other) = (client(&server.url()), client(&server.url()));
    let names: Vec<String> = (0..30).map(|at| format!("job {at}")).collect();
    let held: Vec<_> = names.iter().map(|name| lease(&holder, name)).collect();
    thread::scope(|scope| {
        let waiters: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| {
                let waiter = scope.spawn(|| lease(&other, name).release());
                eventually("each is watched", || server.watchers() > at as u64);
                waiter
            })
            .collect();
        assert_eq!(server.watchers(), 30);
        held.iter().for_each(|held| held.release().unwrap());
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap().unwrap());
    });
}

#[test]
fn a_waiter_whose_stream_is_cut_polls_and_watches_again() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let (holder, other) = (client(&server.url()), client(&format!("etcd://{}", proxy.address())));
    for _ in 0..2 {
        let held = lease(&holder, "a");
        thread::scope(|scope| {
            let waiter = scope.spawn(|| lease(&other, "a").release());
            eventually("it is watched", || server.watchers() == 1);
            proxy.cut_all();
            eventually("it is watched again", || server.watchers() == 1);
            // No stream from now on.
            let refused = proxy.reset_before_forwarding(Request::containing("/v3/watch").always());
            proxy.cut_all();
            refused.wait_for_hits(2);
            held.release().unwrap();
            waiter.join().unwrap().unwrap();
            proxy.pass();
        });
    }
}

#[test]
fn a_restarted_server_is_watched_again() {
    let server = Server::start();
    let (holder, other) = (client(&server.url()), client(&server.url()));
    let held = holder.lock("a").ttl(3 * PATIENCE).acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lease(&other, "a").release());
        eventually("it is watched", || server.watchers() == 1);
        server.restart();
        eventually("it is watched again", || server.watchers() == 1);
        held.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn closing_ends_connections_and_threads() {
    let server = Server::start();
    crate::common::closing::closing_ends_connections_and_threads(|| client(&server.url()));
}
