//! One process, one client: what a holder and those who want the lock are told.

use crate::common;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::{PATIENCE, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;

fn client() -> Client {
    Client::connect("memory:").unwrap()
}

fn stores(test: impl Fn(&str)) {
    let folder = tempfile::tempdir().unwrap();
    test("memory:");
    test(&common::url(&folder.path().join("locks.db")));
}

#[test]
fn a_lock_is_held_once_and_its_tokens_grow() {
    stores(|store| {
        let client = Client::connect(store).unwrap();
        let first = client.lock("invoice/42").ttl(ms(2_000)).owner("first").acquire().unwrap();
        assert!(first.remaining() > ms(1_500) && first.remaining() < ms(2_000));
        assert_eq!((first.resource(), first.owner()), ("invoice/42", "first"));
        assert!(client.lock("invoice/42").try_acquire().unwrap().is_none());
        let error = client.lock("invoice/42").wait(Duration::ZERO).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.holder().unwrap().owner.as_deref(), Some("first"));
        assert_eq!(error.holder().unwrap().token, Some(first.token()));
        let other = client.lock("invoice/43").acquire().unwrap();
        first.release().unwrap();
        let second = client.lock("invoice/42").acquire().unwrap();
        assert!(second.token() > first.token());
        assert!(other.check(ms(1)).is_ok());
    });
}

#[test]
fn another_client_of_the_store_sees_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    for store in ["memory:shared-by-name", store.as_str()] {
        let (one, two) = (Client::connect(store).unwrap(), Client::connect(store).unwrap());
        let lease = one.lock("job").owner("one").data(b"step 3").acquire().unwrap();
        let info = two.inspect("job").unwrap().unwrap();
        assert_eq!((info.owner.as_deref(), info.token), (Some("one"), Some(lease.token())));
        assert_eq!(info.data.as_deref(), Some(b"step 3".as_slice()));
        assert!(info.left.unwrap() <= Duration::from_secs(30) && !info.foreign);

        let error = two.lock("job").wait(ms(60)).acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(error.to_string().contains("held by one"), "{error}");
        assert_eq!(format!("{error:?}"), format!("{error} (kind: TimedOut)"));

        let waiter = std::thread::spawn(move || two.lock("job").wait(PATIENCE).acquire().map(|lease| lease.token()));
        let token = lease.token();
        drop(lease);
        assert!(waiter.join().unwrap().unwrap() > token);
        eventually("the lock is free", || one.inspect("job").unwrap().is_none());
    }
}

#[test]
fn a_lease_outlives_its_ttl_by_renewal() {
    stores(|store| {
        let client = Client::connect(store).unwrap();
        let lease = client.lock("job").ttl(ms(2_000)).acquire().unwrap();
        let start = std::time::Instant::now();
        while start.elapsed() < ms(3_000) {
            lease.check(ms(1)).unwrap();
            std::thread::sleep(ms(10));
        }
        assert!(client.lock("job").try_acquire().unwrap().is_none());
        lease.release().unwrap();
    });
}

#[test]
fn a_second_release_is_an_error_and_harmless() {
    let client = client();
    let lease = client.lock("job").acquire().unwrap();
    lease.release().unwrap();
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::NotOwned);
    assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::NotOwned);
    assert_eq!(lease.remaining(), Duration::ZERO);
    assert!(!lease.is_lost());
    let next = client.lock("job").try_acquire().unwrap().unwrap();
    drop(lease);
    assert!(next.check(ms(1)).is_ok(), "dropping a released lease must not touch its successor");
}

#[test]
fn without_renewal_the_lease_is_lost_by_the_clock_alone() {
    stores(|store| {
        let client = Client::connect(store).unwrap();
        let lease = client.lock("job").ttl(ms(300)).no_renewal().acquire().unwrap();
        let (sender, told) = channel();
        let expiring = sender.clone();
        lease.on_expiring(move || expiring.send("expiring".to_owned()).unwrap());
        lease.on_lost(move |error| sender.send(error.to_string()).unwrap());
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "expiring");
        assert!(told.recv_timeout(PATIENCE).unwrap().contains("no renewal was confirmed in time"));
        assert!(lease.is_lost());
        assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(lease.lost().kind(), ErrorKind::Lost);
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::Lost);
        let late = channel();
        lease.on_lost(move |_| late.0.send(()).unwrap());
        late.1.recv_timeout(PATIENCE).unwrap();
    });
}

#[test]
fn max_hold_ends_a_wedged_worker() {
    let client = client();
    let lease = client.lock("job").ttl(ms(200)).max_hold(ms(400)).acquire().unwrap();
    assert!(lease.lost().to_string().contains("max_hold"));
}

#[test]
fn a_check_for_more_than_is_left_fails_and_the_lease_goes_on() {
    let client = client();
    let lease = client.lock("job").ttl(ms(5_000)).acquire().unwrap();
    let error = lease.check(Duration::from_secs(10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("10.000 s were asked for"), "{error}");
    assert!(!lease.is_lost());
    lease.check(ms(100)).unwrap();
}

#[test]
fn waiting_for_ones_own_lock_is_an_error() {
    let client = client();
    let lease = client.lock("job").acquire().unwrap();
    let error = client.lock("job").acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("not reentrant"), "{error}");
    let other = client.clone();
    let waiter = std::thread::spawn(move || other.lock("job").acquire().map(drop));
    lease.release().unwrap();
    waiter.join().unwrap().unwrap();
}

#[test]
fn several_locks_are_all_or_nothing() {
    stores(|store| {
        let client = Client::connect(store).unwrap();
        let taken = client.lock("b").acquire().unwrap();
        let error = client.lock_all(["c", "b", "a"]).wait(Duration::ZERO).acquire().unwrap_err();
        assert_eq!((error.kind(), error.resource()), (ErrorKind::Busy, Some("b")));
        assert!(client.inspect("a").unwrap().is_none() && client.inspect("c").unwrap().is_none());
        taken.release().unwrap();
        let all = client.lock_all(["c", "b", "a", "b"]).ttl(ms(5_000)).wait(PATIENCE).acquire().unwrap();
        assert_eq!(all.iter().map(|lease| lease.resource()).collect::<Vec<_>>(), ["a", "b", "c"]);
        all.check(ms(1)).unwrap();
        all.release().unwrap();
        assert!(client.lock("a").try_acquire().unwrap().is_some());
    });
}

#[test]
fn an_administrator_can_break_a_lock_and_the_token_survives() {
    stores(|store| {
        let client = Client::connect(store).unwrap();
        assert!(client.break_lock("job").unwrap().is_none());
        let lease = client.lock("job").ttl(ms(600)).owner("stuck").acquire().unwrap();
        assert_eq!(client.break_lock("job").unwrap().unwrap().owner.as_deref(), Some("stuck"));
        assert!(lease.lost().to_string().contains("somebody broke the lock"));
        assert!(client.lock("job").acquire().unwrap().token() > lease.token());
    });
}

#[test]
fn closing_releases_everything_and_ends_the_client() {
    let folder = tempfile::tempdir().unwrap();
    for store in ["memory:closing", common::url(&folder.path().join("locks.db")).as_str()] {
        let (client, other) = (Client::connect(store).unwrap(), Client::connect(store).unwrap());
        let lease = client.lock("job").acquire().unwrap();
        let held = other.lock("other").acquire().unwrap();
        let (kept, waiting) = (client.clone(), client.clone());
        // Whether it waits already when the client is closed or comes too late: it must not get the lock, nor hang.
        let waiter = std::thread::spawn(move || waiting.lock("other").acquire().map(drop));
        client.close().unwrap();
        assert_eq!(lease.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::NotOwned);
        assert!(other.inspect("job").unwrap().is_none());
        assert!(waiter.join().unwrap().is_err());
        let error = kept.lock("third").acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        held.release().unwrap();
    }
}

#[test]
fn dropping_the_last_handle_waits_for_its_releases() {
    let folder = tempfile::tempdir().unwrap();
    let store = common::url(&folder.path().join("locks.db"));
    let other = Client::connect(&store).unwrap();
    for _ in 0..20 {
        let client = Client::connect(&store).unwrap();
        let lease = client.lock("job").acquire().unwrap();
        drop(client);
        lease.check(ms(1)).unwrap();
        drop(lease);
        assert!(other.inspect("job").unwrap().is_none(), "what is dropped last has been released");
    }
}

#[test]
fn bad_settings_say_what_is_wrong_and_what_would_be_right() {
    let client = client();
    let long = "x".repeat(1_025);
    let refused = |request: leasehold::blocking::LockRequest| {
        let error = request.acquire().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    };
    assert!(refused(client.lock("")).contains("no name"));
    assert!(refused(client.lock(long)).contains("1025 bytes; at most 1024 are allowed"));
    assert!(refused(client.lock("a\0b")).contains("U+0000 at byte 1"));
    assert!(refused(client.lock("a\nb")).contains("U+000A"));
    assert!(refused(client.lock("a").ttl(Duration::ZERO)).contains("100 ms"));
    assert!(refused(client.lock("a").ttl(ms(50))).contains("ttl is 50 ms, but must be at least 100 ms"));
    assert!(refused(client.lock("a").ttl(Duration::from_secs(10 * 365 * 86_400))).contains("86400 s"));
    assert!(refused(client.lock("a").ttl(ms(1_000)).renew_every(ms(1_000))).contains("renewal interval"));
    assert!(refused(client.lock("a").max_hold(ms(10))).contains("max_hold"));
    assert!(refused(client.lock("a").owner("x".repeat(257))).contains("257"));
    assert!(refused(client.lock("a").data([0; 4_097])).contains("4097"));
    assert!(client.lock("a").wait(Duration::MAX).acquire().is_ok(), "a wait beyond all clocks is forever");
    for (url, part) in [("consul://host", "unknown scheme"), ("sqlite:", "no path"), ("locks.db", "no scheme")] {
        let error = Client::connect(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(Client::connect("memory:a memory:a").unwrap_err().to_string().contains("named twice"));
}
