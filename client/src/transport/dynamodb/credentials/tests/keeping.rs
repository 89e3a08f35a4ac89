//! Keys are kept until shortly before they expire, and looked for by one search at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use leasehold_servers::wait_until;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// A container whose server gives keys of the next number each time, for so many seconds.
fn numbered(seconds: i64) -> World {
    let number = AtomicUsize::new(0);
    let world = World::new(move |_| {
        let number = number.fetch_add(1, Ordering::SeqCst) + 1;
        metadata(&format!("KEY{number}"), &time(seconds))
    });
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
    world
}

fn later(seconds: u64) -> Monotonic {
    clock::monotonic().plus(Duration::from_secs(seconds))
}

#[test]
fn keys_are_used_until_shortly_before_they_expire() {
    let world = numbered(3600);
    let credentials = world.credentials();
    let id = |now| block_on(credentials.keys_at(now)).unwrap().access_key_id.clone();
    assert_eq!((id(later(0)).as_str(), id(later(3600 - 310)).as_str()), ("KEY1", "KEY1"));
    assert_eq!(world.asked().len(), 1);
    // They still serve, so that nobody waits for the new ones.
    assert_eq!(id(later(3600 - 290)), "KEY1");
    wait_until("new keys are there", || id(later(3600 - 290)) == "KEY2");
    assert_eq!(world.asked().len(), 2);
}

#[test]
fn keys_about_to_expire_are_waited_for() {
    let world = numbered(3600);
    let credentials = world.credentials();
    let id = |now| block_on(credentials.keys_at(now)).unwrap().access_key_id.clone();
    assert_eq!((id(later(0)).as_str(), id(later(3600 - 5)).as_str()), ("KEY1", "KEY2"));
}

#[test]
fn keys_that_seem_to_have_expired_are_used_for_a_moment() {
    // More likely the clock of this machine is wrong.
    let world = numbered(-HOUR.as_secs().cast_signed());
    let credentials = world.credentials();
    let id = |now| block_on(credentials.keys_at(now)).unwrap().access_key_id.clone();
    assert_eq!((id(later(0)).as_str(), id(later(3)).as_str()), ("KEY1", "KEY1"));
    assert_eq!(id(later(60)), "KEY2");
}

#[test]
fn refused_keys_are_replaced_once() {
    let world = numbered(3600);
    let credentials = world.credentials();
    let now = later(0);
    let first = block_on(credentials.keys_at(now)).unwrap();
    let second = block_on(credentials.other_than_at(&first, now)).unwrap();
    assert_eq!((second.access_key_id.as_str(), world.asked().len()), ("KEY2", 2));
    // A caller that was refused with the first keys as well gets the new ones.
    let also = block_on(credentials.other_than_at(&first, now)).unwrap();
    assert_eq!((also.access_key_id.as_str(), world.asked().len()), ("KEY2", 2));
    assert_eq!(block_on(credentials.keys_at(now)).unwrap().access_key_id, "KEY2");
}

#[test]
fn keys_without_others_are_not_asked_for_again_and_again() {
    let world = World::new(|_| metadata("SAME", "2100-01-01T00:00:00Z"));
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
    let credentials = world.credentials();
    let now = later(0);
    let keys = block_on(credentials.keys_at(now)).unwrap();
    for _ in 0..3 {
        let said = block_on(credentials.other_than_at(&keys, now)).unwrap_err().to_string();
        assert!(said.contains("the container, which has no others"), "{said}");
    }
    assert_eq!(world.asked().len(), 2);
    // After a while it is worth another try.
    block_on(credentials.other_than_at(&keys, later(60))).unwrap_err();
    assert_eq!(world.asked().len(), 3);
}

#[test]
fn a_crowd_makes_one_search() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let world = World::new(move |_| {
        gate.lock().unwrap().recv().unwrap();
        metadata("ONE", &time(3600))
    });
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
    let credentials = world.credentials();
    let crowd: Vec<_> = (0..8)
        .map(|_| {
            let credentials = credentials.clone();
            thread::spawn(move || block_on(credentials.keys()).unwrap().access_key_id.clone())
        })
        .collect();
    wait_until("the search is under way", || world.asked().len() == 1);
    // One that is given up ends no search.
    block_on(async {
        let waiting = credentials.keys();
        assert!(tokio::time::timeout(Duration::from_millis(20), waiting).await.is_err());
    });
    open.send(()).unwrap();
    for one in crowd {
        assert_eq!(one.join().unwrap(), "ONE");
    }
    assert_eq!(world.asked().len(), 1);
}

#[test]
fn a_failed_search_is_not_repeated_at_once_and_keeps_the_keys() {
    let broken = Arc::new(Mutex::new(true));
    let is_broken = Arc::clone(&broken);
    let world = World::new(move |_| match *is_broken.lock().unwrap() {
        true => Reply::new(500, "oops"),
        false => metadata("GOOD", &time(3600)),
    });
    world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2");
    let credentials = world.credentials();
    let now = later(0);
    for _ in 0..3 {
        assert!(block_on(credentials.keys_at(now)).unwrap_err().to_string().contains("oops"));
    }
    assert_eq!(world.asked().len(), 1);
    *broken.lock().unwrap() = false;
    assert_eq!(block_on(credentials.keys_at(later(60))).unwrap().access_key_id, "GOOD");
    // A search before its time that fails leaves what there is.
    *broken.lock().unwrap() = true;
    let early = later(3600 - 200);
    assert_eq!(block_on(credentials.keys_at(early)).unwrap().access_key_id, "GOOD");
    wait_until("the search has failed", || !credentials.is_searching());
    assert_eq!(world.asked().len(), 3);
    assert_eq!(block_on(credentials.keys_at(early)).unwrap().access_key_id, "GOOD");
    assert_eq!(world.asked().len(), 3);
    assert!(block_on(credentials.keys_at(later(60 + 3600))).is_err());
}
