//! Waiters on Redis: their wake-ups are cut, their server goes away, and what they wait for is somebody else's.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::on_redis::{HIGH, channel, count_grants, counter, expect_wake_ups, is_taken};
use crate::common::{PATIENCE, Role, connect_patiently, eventually, ms, role_args, say};
use leasehold::blocking::Client;
use leasehold::{ErrorKind, HolderMatch, ReleaseIfOutcome};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::{Data, Server};
use leasehold_servers::resp::Reply;

fn connect(server: &Server) -> Client {
    Client::connect(server.url()).unwrap()
}

fn listeners(server: &Server, resource: &str) -> i64 {
    server.command(&["PUBSUB", "NUMSUB", &channel(resource)]).array()[1].integer()
}

fn attempts(server: &Server) -> u64 {
    server.commands_processed("evalsha") + server.commands_processed("eval")
}

#[test]
fn a_waiter_whose_wake_ups_are_cut_gets_the_lock() {
    let server = Server::start();
    let (holder, other) = (connect(&server), connect(&server));
    let lease = holder.lock("job").acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(PATIENCE).acquire().unwrap());
        eventually("the waiter listens", || listeners(&server, "job") == 1);
        // In one breath, so that nobody has listened again when the release is announced.
        let mut connection = server.connect();
        connection.send(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
        connection.send(&["DEL", "job"]).unwrap();
        assert_eq!(connection.receive().unwrap(), Reply::Integer(1), "the listener");
        assert_eq!(connection.receive().unwrap(), Reply::Integer(1), "the lock");
        let next = waiter.join().unwrap();
        assert!(next.token() > lease.token());
    });
}

#[test]
fn a_waiter_that_may_never_listen_gets_the_lock() {
    let server = Server::builder().acl_file("user worker on >hunter2 ~* resetchannels +@all -subscribe").start();
    let url = format!("redis://worker:hunter2@127.0.0.1:{}/", server.port());
    let (holder, other) = (connect_patiently(&url), connect_patiently(&url));
    let lease = holder.lock("job").acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(PATIENCE).acquire().unwrap());
        let before = attempts(&server);
        eventually("the waiter asks again and again", || attempts(&server) > before + 1);
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > lease.token());
    });
}

#[test]
fn wake_ups_come_back_after_the_connection_was_cut() {
    let server = Server::start();
    let (holder, other) = (connect(&server), connect(&server));
    let lease = holder.lock("job").ttl(ms(600_000)).acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(3 * PATIENCE).acquire().unwrap());
        for _ in 0..2 {
            eventually("the waiter listens", || listeners(&server, "job") == 1);
            assert_eq!(server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]), Reply::Integer(1));
        }
        eventually("the waiter listens again", || listeners(&server, "job") == 1);
        expect_wake_ups(&server, &server, "job");
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > lease.token());
    });
}

#[test]
fn foreign_messages_do_no_harm() {
    let server = Server::start();
    let (holder, other) = (connect(&server), connect(&server));
    let lease = holder.lock("job").acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").wait(PATIENCE).acquire().unwrap());
        eventually("the waiter listens", || listeners(&server, "job") == 1);
        let large = "x".repeat(1 << 20);
        for message in ["", "another", "job\0", "\u{1f}", &large] {
            assert_eq!(server.command(&["PUBLISH", &channel("job"), message]), Reply::Integer(1));
        }
        assert!(is_taken(&server, "job"));
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > lease.token());
    });
}

#[test]
fn a_name_and_the_same_in_braces_share_neither_counter_nor_line() {
    let server = Server::start();
    let (holder, other) = (connect(&server), connect(&server));
    let plain = holder.lock("x").acquire().unwrap();
    count_grants(&server, "x");
    let braced = holder.lock("{x}").acquire().unwrap();
    assert!(braced.token() < HIGH, "the counter of x is not that of {{x}}");
    assert_eq!(holder.inspect("{x}").unwrap().unwrap().token, Some(braced.token()));
    assert_eq!(counter(&server, "x"), HIGH);
    thread::scope(|scope| {
        let waits = |name| {
            let other = &other;
            scope.spawn(move || other.lock(name).wait(PATIENCE).acquire().unwrap())
        };
        let (one, two) = (waits("x"), waits("{x}"));
        let waiting = |queue| server.command(&["ZCARD", queue]).integer();
        eventually("both stand in the queue", || ["{x}\x1fline of name", "{x}\x1fline"].map(waiting) == [1, 1]);
        braced.release().unwrap();
        assert!(two.join().unwrap().token() < HIGH);
        assert_eq!(waiting("{x}\x1fline of name"), 1, "the other waits still");
        plain.release().unwrap();
        assert_eq!(one.join().unwrap().token(), HIGH + 1);
    });
}

#[test]
fn any_value_under_the_key_is_a_foreign_holder_until_it_is_gone() {
    let server = Server::start();
    let client = connect(&server);
    let large = "y".repeat(1 << 20);
    let values: [(&str, &[&[u8]]); 10] = [
        ("hash", &[b"HSET", b"hash", b"uuid:1", b"1"]),
        ("list", &[b"RPUSH", b"list", b"one"]),
        ("set", &[b"SADD", b"set", b"one"]),
        ("zset", &[b"ZADD", b"zset", b"1", b"one"]),
        ("stream", &[b"XADD", b"stream", b"*", b"field", b"value"]),
        ("raw", &[b"SET", b"raw", b"\xff\x00\r\n\xfe"]),
        ("empty", &[b"SET", b"empty", b""]),
        ("ten years", &[b"SET", b"ten years", b"a patient client's", b"PX", b"315360000000"]),
        ("large", &[b"SET", b"large", large.as_bytes()]),
        ("almost ours", &[b"SET", b"almost ours", b"0123456789abcdef0123456789abcdef@host;"]),
    ];
    thread::scope(|scope| {
        let mut waiters = Vec::new();
        for (key, command) in values {
            assert!(!server.connect().command(command).unwrap().is_error(), "{key}");
            let before = server.command(&["DUMP", key]);
            assert!(client.lock(key).try_acquire().unwrap().is_none(), "{key} is busy");
            let error = client.lock(key).wait(Duration::ZERO).acquire().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy, "{key}");
            assert!(error.holder().unwrap().foreign, "{key}: {error}");
            let seen = client.inspect(key).unwrap().unwrap();
            assert!(seen.foreign && seen.owner.is_none() && seen.token.is_none(), "{key}: {seen:?}");
            assert_eq!(client.break_lock(key).unwrap_err().kind(), ErrorKind::StoreRefused, "{key}");
            let this = HolderMatch::default().lease(&seen);
            assert_eq!(client.release_if(key, this).unwrap_err().kind(), ErrorKind::StoreRefused, "{key}");
            for other in [HolderMatch::default().token(1), HolderMatch::default().owner("*")] {
                let outcome = client.release_if(key, other).unwrap();
                assert!(matches!(outcome, ReleaseIfOutcome::NotMatched(holder) if holder.foreign), "{key}");
            }
            assert_eq!(server.command(&["DUMP", key]), before, "{key} is as it was");
            let client = &client;
            waiters.push((key, scope.spawn(move || client.lock(key).wait(PATIENCE).acquire().unwrap())));
        }
        for (key, waiter) in waiters {
            assert_eq!(server.command(&["DEL", key]), Reply::Integer(1), "{key} was never overwritten");
            waiter.join().unwrap().release().unwrap();
        }
    });
}

#[test]
fn a_holder_that_comes_between_compare_and_release_keeps_the_lock() {
    let server = Server::start();
    let (dead, alive) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = dead.lock("job").owner("dead:1").acquire().unwrap();
    let proxy = Proxy::to(server.address());
    let supervisor = connect_patiently(server.url_at(proxy.port()));
    // The server knows the script from now on, so that the next look is one request.
    supervisor.inspect("job").unwrap();
    let next = Arc::new(Mutex::new(None));
    let (taken, mut lease) = (Arc::clone(&next), Some(lease));
    let requests = Mutex::new(0);
    let hand_over = Mutex::new(move || {
        lease.take().unwrap().release().unwrap();
        *taken.lock().unwrap() = Some(alive.lock("job").owner("alive:1").acquire().unwrap());
    });
    // Before the second request reaches the server, whatever it is. No request is hit.
    proxy.reset_before_forwarding(Request::matching(move |request| {
        if request.windows(3).any(|window| window == b"job") {
            let mut requests = requests.lock().unwrap();
            *requests += 1;
            if *requests == 2 {
                hand_over.lock().unwrap()();
            }
        }
        false
    }));
    match supervisor.release_if("job", HolderMatch::default().owner("dead:*")).unwrap() {
        ReleaseIfOutcome::NotMatched(holder) => assert_eq!(holder.owner.as_deref(), Some("alive:1")),
        outcome => panic!("{outcome:?}"),
    }
    let next = next.lock().unwrap().take().expect("the lock was handed over");
    assert_eq!(dead.inspect("job").unwrap().and_then(|holder| holder.token), Some(next.token()));
}

#[test]
fn a_foreign_lock_that_expires_is_succeeded() {
    let server = Server::start();
    let client = connect(&server);
    server.command(&["SET", "job", "a token of another library", "PX", "700"]);
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    lease.release().unwrap();
}

#[test]
fn the_holder_of_an_overwritten_lock_is_told() {
    let server = Server::start();
    let client = connect(&server);
    for words in [&["SET", "job", "mine now"][..], &["HSET", "job", "uuid:1", "1"]] {
        let lease = client.lock("job").ttl(ms(120_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap();
        server.command(&["DEL", "job"]);
        let reply = server.command(words);
        assert!(!reply.is_error(), "{reply:?}");
        let error = lease.lost();
        assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(server.command(&["DEL", "job"]), Reply::Integer(1), "it is not ours to free");
    }
}

#[test]
fn a_server_that_is_down_is_named_when_connecting() {
    let server = Server::start();
    let url = server.url();
    server.kill();
    let error = Client::connect(url).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{}", server.port())), "{error}");
}

#[test]
fn a_waiter_outlasts_its_server() {
    let server = Server::start();
    let client = connect(&server);
    server.command(&["SET", "job", "somebody"]);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock("job").wait(PATIENCE).acquire().unwrap());
        eventually("it waits", || listeners(&server, "job") == 1);
        server.kill();
        server.restart(Data::Lost);
        waiter.join().unwrap().release().unwrap();
    });
}

#[test]
fn a_wait_that_failed_says_why() {
    let server = Server::start();
    let client = connect(&server);
    server.kill();
    let error = client.lock("job").wait(ms(500)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{}", server.port())), "{error}");
}

#[cfg(target_os = "linux")]
fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Loses and makes connections 200 times; alone in its process, where descriptors and threads can be counted.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a role of other tests"]
fn role_reconnects() {
    let Some(_) = role_args() else { return };
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let client = Client::connect(server.url_at(proxy.port())).unwrap();
    let lease = client.lock("held").ttl(ms(120_000)).renew_every(ms(50)).acquire().unwrap();
    let cycle = || {
        proxy.refuse();
        proxy.cut_all();
        assert_eq!(client.lock("job").try_acquire().unwrap_err().kind(), ErrorKind::StoreUnavailable);
        proxy.pass();
        client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
    };
    for _ in 0..20 {
        cycle();
    }
    // The proxy lives in this process as well, with a thread and three descriptors for each connection.
    let count = || {
        let open = proxy.open_connections();
        (entries("/proc/self/fd") - 3 * open, entries("/proc/self/task") - open)
    };
    let (files, threads) = (entries("/proc/self/fd"), entries("/proc/self/task"));
    for _ in 0..200 {
        cycle();
    }
    eventually("nothing is left of 200 connections", || {
        let now = count();
        now.0 <= files + 4 && now.1 <= threads + 2
    });
    lease.check(ms(1)).unwrap();
    say("none leaked");
}

#[cfg(target_os = "linux")]
#[test]
fn reconnecting_leaks_neither_descriptors_nor_threads() {
    let role = Role::start("waiters::role_reconnects", "");
    let start = Instant::now();
    let said = role.says_within(Duration::from_secs(150));
    assert_eq!(said, "none leaked", "after {:?}", start.elapsed());
}
