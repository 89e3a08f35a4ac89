//! Several processes and one SQLite file: killed, stopped, forked, and the file pulled from under them.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Role, eventually, ms, role_args, say, stay, url};
use leasehold::ErrorKind;
use leasehold::blocking::Client;

/// Holds `job` with a ttl of 600 ms and tells what happens to it.
#[test]
#[ignore = "a role of other tests"]
fn role_holder() {
    let Some(store) = role_args() else { return };
    let client = Client::connect(store).unwrap();
    let lease = client.lock("job").ttl(ms(600)).owner("holder").acquire().unwrap();
    lease.on_lost(|error| say(format!("lost: {error}")));
    say(lease.token());
    stay();
}

#[test]
fn a_killed_holder_is_succeeded_within_its_ttl() {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    let mut holder = Role::start("processes::role_holder", &store);
    let token: u64 = holder.says().parse().unwrap();
    let client = Client::connect(&store).unwrap();
    assert!(client.lock("job").try_acquire().unwrap().is_none());
    holder.kill();
    let killed = Instant::now();
    holder.wait();
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    // The ttl, and time for a poll; a bound on behaviour, not on speed.
    assert!(killed.elapsed() < ms(600) + Duration::from_secs(2), "{:?}", killed.elapsed());
    assert!(lease.token() > token);
}

#[cfg(unix)]
#[test]
fn a_stopped_holder_is_succeeded_and_told_when_it_wakes() {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    let holder = Role::start("processes::role_holder", &store);
    let token: u64 = holder.says().parse().unwrap();
    holder.signal(libc::SIGSTOP);
    let client = Client::connect(&store).unwrap();
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.token() > token);
    holder.signal(libc::SIGCONT);
    assert!(holder.says().starts_with("lost: "));
    lease.check(ms(1)).unwrap();
    assert_eq!(client.inspect("job").unwrap().unwrap().token, Some(lease.token()), "the loser released nothing");
}

#[cfg(unix)]
#[test]
fn a_deleted_file_is_noticed_by_its_holder_and_tokens_still_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks.db");
    let client = Client::connect(url(&path)).unwrap();
    let lease = client.lock("job").ttl(ms(900)).acquire().unwrap();
    for name in ["locks.db", "locks.db-wal", "locks.db-shm"] {
        let _ = std::fs::remove_file(folder.path().join(name));
    }
    let error = lease.lost();
    assert_eq!(error.kind(), ErrorKind::Lost);
    let next = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(next.token() > lease.token(), "{} after {}", next.token(), lease.token());
    assert!(path.exists());
}

/// Eight of these take turns; each says when it was inside.
#[test]
#[ignore = "a role of other tests"]
fn role_worker() {
    let Some(args) = role_args() else { return };
    let (store, marker) = args.split_once('|').unwrap();
    let client = Client::connect(store).unwrap();
    for _ in 0..25 {
        let lease = client.lock("job").ttl(ms(5_000)).wait(PATIENCE).acquire().unwrap();
        // Fails if the marker exists, so two inside at once cannot go unnoticed.
        std::fs::OpenOptions::new().write(true).create_new(true).open(marker).expect("nobody else is inside");
        std::fs::remove_file(marker).unwrap();
        say(lease.token());
        lease.release().unwrap();
    }
    say("done");
}

#[test]
fn eight_processes_are_never_inside_together() {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    let args = format!("{store}|{}", folder.path().join("inside").display());
    let workers: Vec<Role> = (0..8).map(|_| Role::start("processes::role_worker", &args)).collect();
    let mut tokens = Vec::new();
    for worker in &workers {
        let mut last = 0;
        loop {
            let said = worker.says();
            if said == "done" {
                break;
            }
            let token: u64 = said.parse().unwrap();
            assert!(token > last, "tokens grow for each worker");
            last = token;
            tokens.push(token);
        }
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 8 * 25, "no token was given twice");
}

/// Forks, with everything that a fork can hurt in the air; single-threaded test processes only.
#[cfg(unix)]
#[test]
#[ignore = "a role of other tests"]
fn role_forker() {
    let Some(store) = role_args() else { return };
    let client = Client::connect(&store).unwrap();
    let lease = client.lock("job").ttl(ms(900)).acquire().unwrap();
    // SAFETY: the child only uses what is meant to survive a fork, and leaves through `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let works = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert_eq!(lease.remaining(), Duration::ZERO);
            assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::Lost);
            assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
            assert!(client.lock("other").acquire().unwrap_err().to_string().contains("fork"));
            assert!(client.inspect("job").is_err());
            let own = Client::connect(&store).unwrap();
            assert!(own.lock("job").try_acquire().unwrap().is_none(), "the parent holds it");
            own.lock("childs").acquire().unwrap().release().unwrap();
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
    let until = Instant::now() + ms(1_500);
    while Instant::now() < until {
        lease.check(ms(1)).unwrap();
        std::thread::sleep(ms(20));
    }
    assert!(client.lock("job").try_acquire().unwrap().is_none());
    client.lock("more").acquire().unwrap().release().unwrap();
    lease.release().unwrap();
    say("parent unharmed");
}

#[cfg(unix)]
#[test]
fn a_forked_child_inherits_no_lease_and_harms_no_parent() {
    let folder = tempfile::tempdir().unwrap();
    let mut forker = Role::start("processes::role_forker", &url(&folder.path().join("locks.db")));
    assert_eq!(forker.says(), "child 0");
    assert_eq!(forker.says(), "parent unharmed");
    assert!(forker.wait().success());
}

#[test]
fn a_leader_that_dies_is_followed_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let store = url(&folder.path().join("locks.db"));
    let holder = Role::start("processes::role_holder", &store);
    holder.says();
    let client = Client::connect(&store).unwrap();
    let (sender, terms) = std::sync::mpsc::channel();
    let ends = sender.clone();
    let election = client
        .elect("job")
        .ttl(ms(600))
        .on_start(move |lease| sender.send(format!("leads with {}", lease.token())).unwrap())
        .on_stop(move |loss| ends.send(format!("stops, lost: {}", loss.is_some())).unwrap())
        .start()
        .unwrap();
    assert_eq!(election.token(), None);
    holder.kill();
    assert!(terms.recv_timeout(PATIENCE).unwrap().starts_with("leads with "));
    eventually("the term is known", || election.token().is_some());
    client.break_lock("job").unwrap();
    assert_eq!(terms.recv_timeout(PATIENCE).unwrap(), "stops, lost: true");
    assert!(terms.recv_timeout(PATIENCE).unwrap().starts_with("leads with "), "it campaigns again");
    election.resign().unwrap();
    assert_eq!(terms.recv_timeout(PATIENCE).unwrap(), "stops, lost: false");
    assert!(client.inspect("job").unwrap().is_none(), "resigning releases the lock");
}

#[cfg(target_os = "linux")]
#[test]
fn closing_ends_connections_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("locks.db").display());
    crate::common::closing::closing_ends_connections_and_threads(|| Client::connect(&url).unwrap());
}
