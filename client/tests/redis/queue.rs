//! Waiters that stand in the queue on a real server, and all that can happen to them there.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::on_redis::is_taken;
use crate::common::{PATIENCE, Role, connect_patiently, eventually, ms, role_args, say};
use leasehold::blocking::{Client, Lease};
use leasehold_servers::redis::{Data, Server};
use leasehold_servers::resp::Reply;

const LINE: &str = "{job}\x1fline of name";
/// Longer than any wait here: nothing is granted because a lease ran out.
const LONG: Duration = Duration::from_secs(600);

fn waiting(server: &Server) -> i64 {
    server.command(&["ZCARD", LINE]).integer()
}

fn tickets(server: &Server) -> Vec<String> {
    server.command(&["ZRANGE", LINE, "0", "-1"]).array().iter().map(Reply::text).collect()
}

fn hold(client: &Client) -> Lease {
    client.lock("job").ttl(LONG).acquire().unwrap()
}

fn wait(client: &Client) -> Lease {
    client.lock("job").ttl(LONG).wait(PATIENCE).acquire().unwrap()
}

/// Stands in the queue until the lock is its own, and keeps that until the input ends.
#[test]
#[ignore = "a role of other tests"]
fn role_waits_in_queue() {
    let Some(store) = role_args() else { return };
    let client = connect_patiently(store);
    say("ready");
    let lease = wait(&client);
    say(lease.token());
    crate::common::stay();
}

/// A waiter in another process, which stands in the queue.
fn waiter_in_queue(server: &Server) -> Role {
    let before = waiting(server);
    let role = Role::start("queue::role_waits_in_queue", &server.url());
    assert_eq!(role.says(), "ready");
    eventually("it stands in the queue", || waiting(server) == before + 1);
    role
}

#[test]
fn waiters_are_granted_in_the_order_in_which_they_joined() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let lease = hold(&holder);
    let clients: Vec<Client> = (0..8).map(|_| connect_patiently(server.url())).collect();
    let (order, granted) = mpsc::channel();
    thread::scope(|scope| {
        for (n, client) in clients.iter().enumerate() {
            let order = order.clone();
            scope.spawn(move || {
                let lease = wait(client);
                order.send(n).unwrap();
                lease.release().unwrap();
            });
            eventually("it stands in the queue", || waiting(&server) == i64::try_from(n).unwrap() + 1);
        }
        lease.release().unwrap();
        let order: Vec<usize> = (0..8).map(|_| granted.recv_timeout(PATIENCE).unwrap()).collect();
        assert_eq!(order, (0..8).collect::<Vec<_>>());
    });
    assert_eq!(waiting(&server), 0);
    assert!(!is_taken(&server, "job"));
}

#[test]
fn a_holder_that_comes_back_stands_behind_those_who_wait() {
    let server = Server::start();
    let (one, two) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&one);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&two));
        eventually("it stands in the queue", || waiting(&server) == 1);
        lease.release().unwrap();
        // At once, while the other is on its way.
        let (barges, again) = (one.lock("job").try_acquire().unwrap(), scope.spawn(|| wait(&one)));
        assert!(barges.is_none(), "the lock is reserved");
        let next = waiter.join().unwrap();
        eventually("the former holder stands in the queue", || waiting(&server) == 1);
        let token = next.token();
        next.release().unwrap();
        assert!(again.join().unwrap().token() > token);
    });
}

#[test]
fn the_line_can_be_looked_at() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let (one, two) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    assert_eq!(holder.waiters("job").unwrap(), None);
    thread::scope(|scope| {
        let first = scope.spawn(|| wait(&one));
        eventually("the first stands in the queue", || waiting(&server) == 1);
        let second = scope.spawn(|| wait(&two));
        eventually("the second stands in the queue", || waiting(&server) == 2);
        eventually("it knows its place", || two.waiters("job").unwrap().unwrap().own_place == Some(2));
        let queue = holder.waiters("job").unwrap().unwrap();
        assert_eq!((queue.count, queue.own_place), (2, None));
        assert!(queue.since_unix_ms > 1_600_000_000_000, "{queue:?}");
        lease.release().unwrap();
        first.join().unwrap().release().unwrap();
        second.join().unwrap().release().unwrap();
    });
    assert_eq!(holder.waiters("job").unwrap(), None);
}

#[cfg(unix)]
#[test]
fn who_does_not_queue_tries_before_it_joins() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    // A client listens from its first wait on, and could join with its first attempt from then on.
    let warm = holder.lock("warm").acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("warm").wait(PATIENCE).acquire().unwrap());
        eventually("it stands in the queue", || server.command(&["ZCARD", "{warm}\x1fline of name"]).integer() == 1);
        warm.release().unwrap();
        waiter.join().unwrap().release().unwrap();
    });
    let lease = hold(&holder);
    let stopped = waiter_in_queue(&server);
    stopped.stop();
    assert_eq!(server.command(&["DEL", "job"]), Reply::Integer(1));
    let taken = other.lock("job").ttl(LONG).fair(false).wait(PATIENCE).acquire().unwrap();
    assert!(taken.token() > lease.token());
    assert_eq!(waiting(&server), 1, "who stands in the queue was not asked");
}

#[test]
fn a_killed_waiter_is_passed_over_at_once() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let lease = hold(&holder);
    let (mut dead, alive) = (waiter_in_queue(&server), waiter_in_queue(&server));
    dead.kill();
    dead.wait();
    let channels = || server.command(&["PUBSUB", "CHANNELS", "leasehold\x1fclient\x1f*"]).array().len();
    eventually("the server knows", || channels() == 1);
    lease.release().unwrap();
    alive.says().parse::<u64>().unwrap();
    assert_eq!(waiting(&server), 0);
}

#[test]
fn killed_waiters_do_not_seem_alive_where_somebody_listens_to_all_channels() {
    let server = Server::start();
    let mut tool = server.connect();
    assert!(!tool.command(&[&b"PSUBSCRIBE"[..], b"*"]).unwrap().is_error());
    let holder = connect_patiently(server.url());
    let lease = hold(&holder);
    let mut dead: Vec<Role> = (0..3).map(|_| waiter_in_queue(&server)).collect();
    let alive = waiter_in_queue(&server);
    for role in &mut dead {
        role.kill();
        role.wait();
    }
    let channels = || server.command(&["PUBSUB", "CHANNELS", "leasehold\x1fclient\x1f*"]).array().len();
    eventually("the server knows", || channels() == 1);
    let last = tickets(&server).pop().unwrap();
    lease.release().unwrap();
    alive.says().parse::<u64>().unwrap();
    // The listener to all messages has seen to whom the lock was handed.
    let told: Vec<String> = std::iter::from_fn(|| {
        let message = tool.receive().unwrap();
        let [_, _, channel, payload] = message.array() else { return Some(String::new()) };
        let client = channel.text().strip_prefix("leasehold\x1fclient\x1f").map(str::to_owned);
        Some(client.filter(|_| !payload.text().is_empty()).unwrap_or_default())
    })
    .filter(|client| !client.is_empty())
    .take(1)
    .collect();
    assert_eq!(told, [last.split(':').next().unwrap()], "nobody else was asked");
}

#[cfg(unix)]
#[test]
fn a_stopped_waiter_costs_the_next_one_its_grace() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let lease = hold(&holder);
    let (stopped, alive) = (waiter_in_queue(&server), waiter_in_queue(&server));
    stopped.stop();
    lease.release().unwrap();
    let token: u64 = alive.says().parse().unwrap();
    stopped.signal(libc::SIGCONT);
    eventually("it stands in the queue again", || waiting(&server) == 1);
    drop(alive);
    assert_eq!(server.command(&["DEL", "job"]), Reply::Integer(1));
    assert!(stopped.says().parse::<u64>().unwrap() > token);
}

#[test]
fn a_waiter_that_leaves_passes_its_turn_on() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let lease = hold(&holder);
    let (leaves, stays) = (connect_patiently(server.url()), connect_patiently(server.url()));
    thread::scope(|scope| {
        let gives_up = scope.spawn(|| leaves.lock("job").wait(ms(1_500)).acquire().unwrap_err());
        eventually("the first stands in the queue", || waiting(&server) == 1);
        let first = tickets(&server);
        let waiter = scope.spawn(|| wait(&stays));
        eventually("the second stands in the queue", || waiting(&server) == 2);
        gives_up.join().unwrap();
        eventually("the first has left", || waiting(&server) == 1 && tickets(&server) != first);
        let token = lease.token();
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > token);
    });
}

#[test]
fn a_reservation_for_nobody_is_passed_on() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        eventually("it stands in the queue", || waiting(&server) == 1);
        // A ticket of the same client that has ended, in front of all.
        let ticket = tickets(&server).remove(0);
        let ended = format!("{}:{}", &ticket[..32], 987_654);
        assert_eq!(server.command(&["ZADD", LINE, "1", &ended]), Reply::Integer(1));
        let token = lease.token();
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > token);
    });
    assert_eq!(waiting(&server), 0);
}

#[test]
fn a_thousand_dead_waiters_do_not_stop_the_one_alive() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        eventually("it stands in the queue", || waiting(&server) == 1);
        for n in 0..1_000 {
            server.command(&["ZADD", LINE, &n.to_string(), &format!("{n:032x}:1")]);
        }
        let token = lease.token();
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > token);
    });
}

#[test]
fn a_line_that_is_lost_is_joined_again() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    for words in [&["DEL", LINE][..], &["SCRIPT", "FLUSH"], &["FLUSHALL"]] {
        let lease = hold(&holder);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(&other));
            eventually("it stands in the queue", || waiting(&server) == 1);
            assert!(!server.command(words).is_error(), "{words:?}");
            if words[0] != "FLUSHALL" {
                eventually("it stands in the queue again", || waiting(&server) == 1);
                lease.release().unwrap();
            }
            waiter.join().unwrap().release().unwrap();
        });
    }
}

#[test]
fn a_waiter_whose_channel_is_cut_joins_again() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        for _ in 0..3 {
            eventually("it stands in the queue", || waiting(&server) == 1);
            assert_eq!(server.command(&["DEL", LINE]), Reply::Integer(1));
            // A poll may have joined before the client noticed that its channel was cut the last time.
            eventually("it listens", || server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]) == Reply::Integer(1));
        }
        eventually("it stands in the queue again", || waiting(&server) == 1);
        let token = lease.token();
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > token);
    });
}

#[test]
fn a_waiter_over_its_output_buffer_limit_gets_the_lock() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        eventually("it stands in the queue", || waiting(&server) == 1);
        let channel = format!("leasehold\x1fclient\x1f{}", &tickets(&server)[0][..32]);
        let limit = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 65536 0 0"];
        assert!(!server.command(&limit).is_error());
        assert_eq!(server.command(&["PUBLISH", &channel, &"x".repeat(1 << 20)]), Reply::Integer(1));
        assert_eq!(server.command(&["DEL", LINE]), Reply::Integer(1));
        eventually("it stands in the queue again", || waiting(&server) == 1);
        let token = lease.token();
        lease.release().unwrap();
        assert!(waiter.join().unwrap().token() > token);
    });
}

#[test]
fn a_turn_that_is_told_twice_frees_nothing() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        eventually("it stands in the queue", || waiting(&server) == 1);
        let ticket = tickets(&server).remove(0);
        let (client, number) = ticket.split_once(':').unwrap();
        let (channel, message) = (format!("leasehold\x1fclient\x1f{client}"), format!("{number} job"));
        lease.release().unwrap();
        let held = waiter.join().unwrap();
        let again = || assert_eq!(server.command(&["PUBLISH", &channel, &message]), Reply::Integer(1));
        again();
        assert!(holder.lock("job").try_acquire().unwrap().is_none());
        held.release().unwrap();
        // The ticket has ended. What it declines is reserved for nobody, or for it.
        let next = hold(&holder);
        let declined = server.commands_processed("zrem");
        again();
        eventually("it declines", || server.commands_processed("zrem") > declined);
        assert!(is_taken(&server, "job"));
        next.release().unwrap();
    });
}

#[test]
fn a_restart_forgets_the_line_or_keeps_it_and_the_lock_is_granted() {
    for data in [Data::Lost, Data::Kept] {
        let server = Server::builder().appendonly().start();
        let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
        let lease = holder.lock("job").ttl(ms(1_000)).no_renewal().acquire().unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(&other));
            eventually("it stands in the queue", || waiting(&server) == 1);
            server.kill();
            server.restart(data);
            assert!(waiter.join().unwrap().token() > lease.token());
        });
    }
}

#[test]
fn a_user_without_the_right_to_a_line_is_told_with_all_others() {
    for rules in [
        "~* resetchannels &{job}* +@all",
        "~* &* +@all -zadd",
        "~* &* +@all -zpopmin -zadd -zrank -zrem",
        "~* &* +@all -subscribe",
        "~* &* +@all -publish",
        "~* &* +@all -publish -pubsub",
        "resetkeys ~job ~{job}\x1ffence* &* +@all",
    ] {
        let server = Server::builder().acl_file(&format!("user worker on >hunter2 {rules}")).start();
        let url = format!("redis://worker:hunter2@127.0.0.1:{}/", server.port());
        let (holder, other) = (connect_patiently(&url), connect_patiently(&url));
        let lease = hold(&holder);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(&other));
            let before = server.commands_processed("evalsha") + server.commands_processed("eval");
            eventually("it asks", || server.commands_processed("evalsha") + server.commands_processed("eval") > before);
            let token = lease.token();
            lease.release().unwrap_or_else(|error| panic!("{rules}: {error}"));
            assert!(waiter.join().unwrap().token() > token, "{rules}");
        });
        assert_eq!(waiting(&server), 0, "{rules}");
    }
}

#[cfg(unix)]
#[test]
fn a_foreign_library_that_polls_meets_a_reservation_as_a_held_lock() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let lease = hold(&holder);
    let stopped = waiter_in_queue(&server);
    stopped.stop();
    lease.release().unwrap();
    let mut connection = server.connect();
    let words = ["SET", "job", "a token of another library", "NX", "PX", "700"];
    assert!(!matches!(connection.command(&words).unwrap(), Reply::Status(_)), "the lock is reserved");
    assert!(holder.inspect("job").unwrap().is_none(), "nobody holds it");
    eventually("the reservation ends", || matches!(connection.command(&words).unwrap(), Reply::Status(_)));
    stopped.signal(libc::SIGCONT);
    stopped.says().parse::<u64>().unwrap();
}

#[test]
fn breaking_a_lock_serves_the_line() {
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = hold(&holder);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&other));
        eventually("it stands in the queue", || waiting(&server) == 1);
        assert!(holder.break_lock("job").unwrap().is_some());
        assert!(waiter.join().unwrap().token() > lease.token());
    });
    drop(lease);
}
