//! Processes and runtimes that share a Redis: killed, stopped, forked, shut down, abandoned.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::common::on_redis::{is_taken, load_scripts, request, wait_for_renewals};
use crate::common::{PATIENCE, Role, eventually, ms, role_args, say, stay};
use leasehold::blocking::Client as BlockingClient;
use leasehold::{Client, ErrorKind};
use leasehold_servers::proxy::Proxy;
use leasehold_servers::redis::Server;

/// Holds `job` with a ttl of 1 s and tells what happens to it.
#[test]
#[ignore = "a role of other tests"]
fn role_holder() {
    let Some(store) = role_args() else { return };
    let client = BlockingClient::connect(store).unwrap();
    let lease = client.lock("job").ttl(ms(1_000)).owner("holder").acquire().unwrap();
    lease.on_lost(|error| say(format!("lost: {error}")));
    say(lease.token());
    stay();
}

#[test]
fn a_killed_holder_is_succeeded_after_its_ttl() {
    let server = Server::start();
    let mut holder = Role::start("processes::role_holder", &server.url());
    let token: u64 = holder.says().parse().unwrap();
    let client = BlockingClient::connect(server.url()).unwrap();
    assert!(client.lock("job").try_acquire().unwrap().is_none());
    wait_for_renewals(&server, 2);
    holder.kill();
    holder.wait();
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.token() > token);
}

#[cfg(unix)]
#[test]
fn a_stopped_holder_is_succeeded_and_told_when_it_wakes() {
    let server = Server::start();
    let holder = Role::start("processes::role_holder", &server.url());
    let token: u64 = holder.says().parse().unwrap();
    holder.signal(libc::SIGSTOP);
    let client = BlockingClient::connect(server.url()).unwrap();
    let lease = client.lock("job").ttl(ms(60_000)).wait(PATIENCE).acquire().unwrap();
    assert!(lease.token() > token);
    holder.signal(libc::SIGCONT);
    assert!(holder.says().starts_with("lost: "));
    lease.check(ms(1)).unwrap();
    assert_eq!(client.inspect("job").unwrap().unwrap().token, Some(lease.token()), "the loser released nothing");
}

/// Forks, with everything that a fork can hurt in the air; single-threaded test processes only.
#[cfg(unix)]
#[test]
#[ignore = "a role of other tests"]
fn role_forker() {
    let Some(store) = role_args() else { return };
    let client = BlockingClient::connect(&store).unwrap();
    let lease = client.lock("job").ttl(ms(120_000)).renew_every(ms(100)).acquire().unwrap();
    let waiting = client.clone();
    let waiter = std::thread::spawn(move || waiting.lock("job").wait(PATIENCE).acquire().unwrap().token());
    // SAFETY: the child only uses what is meant to survive a fork, and leaves through `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let works = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_eq!(lease.remaining(), Duration::ZERO);
            assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::Lost);
            assert!(lease.release().is_err());
            assert!(client.lock("other").acquire().unwrap_err().to_string().contains("fork"));
            assert!(client.inspect("job").is_err());
            let own = BlockingClient::connect(&store).unwrap();
            assert!(own.lock("job").try_acquire().unwrap().is_none(), "the parent holds it");
            let childs = own.lock("childs").ttl(ms(600)).renew_every(ms(100)).acquire().unwrap();
            let (mut left, mut renewals) = (childs.remaining(), 0);
            eventually("renewed for longer than it would last without", || {
                let before = std::mem::replace(&mut left, childs.remaining());
                renewals += u32::from(left > before);
                renewals > 12
            });
            childs.check(ms(1)).unwrap();
            childs.release().unwrap();
            own.close().unwrap();
            drop(lease);
            drop(client);
        }));
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(i32::from(works.is_err())) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    say(format!("child {status}"));
    stay();
    lease.check(ms(1)).unwrap();
    client.lock("more").acquire().unwrap().release().unwrap();
    lease.release().unwrap();
    assert!(waiter.join().unwrap() > lease.token());
    say("parent unharmed");
}

#[cfg(unix)]
#[test]
fn a_forked_child_inherits_no_lease_and_harms_no_parent() {
    let server = Server::start();
    let mut forker = Role::start("processes::role_forker", &server.url());
    assert_eq!(forker.says(), "child 0");
    assert!(is_taken(&server, "job"), "the child released nothing");
    wait_for_renewals(&server, 3);
    forker.close_input();
    assert_eq!(forker.says(), "parent unharmed");
    assert!(forker.wait().success());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Polls a future at most `times` times, then drops it where it stands.
async fn abandon_after<F: Future>(future: F, times: usize) {
    let mut future = pin!(future);
    for _ in 0..times {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        // Time for an answer, or half of one.
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_micros(30));
    }
}

#[test]
fn a_dropped_acquisition_leaves_no_orphan() {
    let server = Server::start();
    runtime().block_on(async {
        for times in 0..40 {
            // Anew each time, so that connecting is abandoned as well.
            let client = Client::connect(server.url()).await.unwrap();
            abandon_after(client.lock("job").ttl(ms(600_000)).into_future(), times).await;
            eventually("nothing is left behind", || !is_taken(&server, "job"));
            abandon_after(client.lock("job").ttl(ms(600_000)).into_future(), times).await;
            eventually("nothing is left behind by who was connected", || !is_taken(&server, "job"));
        }
    });
}

#[test]
fn an_acquisition_dropped_before_its_answer_leaves_no_orphan() {
    let server = Server::start();
    load_scripts(&server);
    let proxy = Proxy::to(server.address());
    runtime().block_on(async {
        let client = Client::connect(server.url_at(proxy.port())).await.unwrap();
        client.lock("job").await.unwrap().release().await.unwrap();
        for _ in 0..5 {
            proxy.delay(ms(100));
            let asked = proxy.requests();
            tokio::select! {
                lease = client.lock("job").ttl(ms(600_000)).into_future() => panic!("the answer is held back: {lease:?}"),
                () = async {
                    while !(proxy.requests() > asked && is_taken(&server, "job")) {
                        tokio::task::yield_now().await;
                    }
                } => {}
            }
            proxy.pass();
            eventually("what was granted unseen is released", || !is_taken(&server, "job"));
        }
    });
}

#[test]
fn a_dropped_release_is_still_sent() {
    let server = Server::start();
    load_scripts(&server);
    let proxy = Proxy::to(server.address());
    runtime().block_on(async {
        let client = Client::connect(server.url_at(proxy.port())).await.unwrap();
        for times in 1..20 {
            let lease = client.lock("job").ttl(ms(600_000)).wait(PATIENCE).await.unwrap();
            abandon_after(lease.release(), times).await;
            assert_eq!(lease.remaining(), Duration::ZERO);
            eventually("it is released", || !is_taken(&server, "job"));
        }
        // Also when the first try is lost and nobody is there any more to repeat it.
        let lease = client.lock("job").ttl(ms(600_000)).await.unwrap();
        let lost = proxy.reset_before_forwarding(request("release"));
        abandon_after(lease.release(), 1).await;
        eventually("it is released at the second try", || !is_taken(&server, "job"));
        assert_eq!(lost.hits(), 1);
    });
}

#[test]
fn a_runtime_that_is_shut_down_takes_no_lease_with_it_and_leaves_no_orphan() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let first = runtime();
    let (client, lease) = first.block_on(async {
        let client = Client::connect(server.url_at(proxy.port())).await.unwrap();
        let lease = client.lock("held").ttl(ms(120_000)).renew_every(ms(200)).await.unwrap();
        (client, lease)
    });
    proxy.delay(ms(200));
    let asked = proxy.requests();
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let client = client.clone();
            first.spawn(async move { client.lock(format!("job {n}")).ttl(ms(600_000)).await })
        })
        .collect();
    first.block_on(async {
        while proxy.requests() == asked {
            tokio::time::sleep(ms(1)).await;
        }
    });
    first.shutdown_background();
    proxy.pass();
    drop(tasks);
    eventually("what the tasks had asked for is free", || (0..20).all(|n| !is_taken(&server, &format!("job {n}"))));
    wait_for_renewals(&server, 2);
    lease.check(ms(1)).unwrap();
    runtime().block_on(async {
        let asked = tokio::time::timeout(PATIENCE, client.lock("job").wait(PATIENCE).into_future());
        asked.await.unwrap().unwrap().release().await.unwrap();
        tokio::time::timeout(PATIENCE, lease.release()).await.unwrap().unwrap();
    });
}

#[test]
fn a_blocking_client_inside_of_a_task_neither_panics_nor_hangs() {
    let server = Server::start();
    runtime().block_on(async {
        let (client, other) = (server.url(), server.url());
        let (client, other) = (BlockingClient::connect(client).unwrap(), BlockingClient::connect(other).unwrap());
        let lease = client.lock("job").ttl(ms(120_000)).renew_every(ms(200)).acquire().unwrap();
        assert_eq!(other.lock("job").wait(ms(300)).acquire().unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(other.inspect("job").unwrap().unwrap().token, Some(lease.token()));
        wait_for_renewals(&server, 2);
        lease.release().unwrap();
        drop(other.lock("job").acquire().unwrap());
        client.close().unwrap();
        drop(other);
    });
    assert!(!is_taken(&server, "job"));
}

#[test]
fn a_blocked_runtime_loses_no_lease() {
    let server = Server::start();
    runtime().block_on(async {
        let client = Client::connect(server.url()).await.unwrap();
        let lease = client.lock("job").ttl(ms(1_200)).await.unwrap();
        // Blocks this runtime's only thread for more than a ttl.
        wait_for_renewals(&server, 4);
        lease.check(ms(1)).unwrap();
        lease.release().await.unwrap();
    });
}

#[test]
fn a_client_dropped_in_a_task_releases_what_it_holds() {
    let server = Server::start();
    runtime().block_on(async {
        let client = Client::connect(server.url()).await.unwrap();
        let lease = client.lock("job").ttl(ms(600_000)).await.unwrap();
        drop(client);
        assert!(is_taken(&server, "job"), "the lease keeps what it needs");
        drop(lease);
        eventually("it is released", || !is_taken(&server, "job"));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn closing_ends_connections_and_threads() {
    let server = Server::start();
    crate::common::closing::closing_ends_connections_and_threads(|| BlockingClient::connect(server.url()).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn closing_ends_the_connections_of_tasks() {
    use crate::common::closing::{is_as_before, open};
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let used = async || {
        let client = Client::connect(server.url()).await.unwrap();
        let held = client.lock("used").await.unwrap();
        let (waited, released) = tokio::join!(client.lock("used").wait(PATIENCE).into_future(), held.release());
        released.unwrap();
        waited.unwrap().release().await.unwrap();
        client
    };
    runtime.block_on(async {
        used().await.close().await.unwrap();
        let before = open();
        let clients = [used().await, used().await, used().await];
        for client in &clients {
            client.clone().close().await.unwrap();
        }
        let ends = async {
            while !is_as_before(before) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, ends).await.unwrap();
    });
}
