//! Items of compare-and-set: no update is lost, and none is made by halves.

use std::thread;

use leasehold::ErrorKind;
use leasehold::cas::{Error, Fate, Item, Items, Step};

use crate::common::items::{count, number, one_more};
use crate::common::{Role, role_args, say};
use crate::{Can, Store};

/// More tries than any other writer can foil.
const TRIES: u32 = 1_000;

fn items(store: &Store) -> Items {
    Items::connect(store.url()).unwrap_or_else(|error| panic!("{}: {error}", store.url())).tries(TRIES)
}

/// Items belong to a single store.
fn expect_refusal(store: &Store) {
    assert_eq!(Items::connect(store.url()).unwrap_err().kind(), ErrorKind::Config);
}

fn state(item: &Item) -> (u64, &[u8]) {
    (item.version, &item.value)
}

pub(crate) fn an_item_is_made_changed_left_and_read(store: &Store) {
    if !store.can(Can::KeepItems) {
        return expect_refusal(store);
    }
    let (items, others) = (items(store), items(store));
    assert_eq!(items.read("a/b c").unwrap(), None);
    assert_eq!(items.update("a/b c", |_| None).unwrap(), None);
    assert_eq!(items.read("a/b c").unwrap(), None, "left alone");
    let first = items.update("a/b c", |old| old.is_none().then(|| b"\0\xff".to_vec())).unwrap().unwrap();
    assert_eq!(state(&first), (1, b"\0\xff".as_slice()));
    let second = others.update("a/b c", |old| old.map(|old| [old, b"!"].concat())).unwrap().unwrap();
    assert_eq!(state(&second), (2, b"\0\xff!".as_slice()));
    assert_eq!(items.read("a/b c").unwrap(), Some(second));
    let third = items.update("a/b c", |_| Some(Vec::new())).unwrap().unwrap();
    assert_eq!(state(&third), (3, b"".as_slice()));
    assert_eq!((others.read("a/b c").unwrap(), items.read("a").unwrap()), (Some(third), None));

    // Step by step, with an error in between that writes nothing.
    let mut update = items.begin("step").unwrap();
    assert_eq!(update.step().unwrap(), Step::Decide(None));
    drop(update);
    assert_eq!(items.read("step").unwrap(), None);
    let mut update = items.begin("step").unwrap();
    assert_eq!(update.write("too early").unwrap_err().trouble().kind(), ErrorKind::Config);
    update.step().unwrap();
    update.write("x").unwrap();
    assert!(matches!(update.step().unwrap(), Step::Written(item) if state(&item) == (1, b"x")));
}

pub(crate) fn values_and_names_have_the_same_bounds_everywhere(store: &Store) {
    if !store.can(Can::KeepItems) {
        return expect_refusal(store);
    }
    let items = items(store);
    for bad in ["", "a\nb", &"x".repeat(1_025)] {
        let error = items.update(bad, one_more).unwrap_err();
        assert_eq!((error.trouble().kind(), error.tries()), (ErrorKind::Config, 0), "{error}");
        assert_eq!(items.read(bad).unwrap_err().kind(), ErrorKind::Config);
    }
    let error = items.update("large", |_| Some(vec![0; (380 << 10) + 1])).unwrap_err();
    assert_eq!((error.trouble().kind(), error.fate()), (ErrorKind::Config, Fate::NotWritten), "{error}");
    let large: Vec<u8> = (0..380_u32 << 10).map(|at| (at % 251) as u8).collect();
    items.update("large", |_| Some(large.clone())).unwrap();
    assert!(items.read("large").unwrap().unwrap().value == large);
    // The longest name of a lock, of characters that no key can have.
    let long = "é%".repeat(341);
    items.update(&long, one_more).unwrap();
    assert_eq!(count(&items, &long), 1);
    // A lock of the same name is another thing.
    let client = store.client();
    let lease = client.lock("large").try_acquire().unwrap().expect("it is free");
    items.update("large", one_more_of_any).unwrap();
    lease.release().unwrap();
    assert_eq!(items.read("large").unwrap().unwrap().version, 2);
}

#[allow(clippy::unnecessary_wraps, reason = "as updates want it")]
fn one_more_of_any(_: Option<&[u8]>) -> Option<Vec<u8>> {
    Some(b"count=1".to_vec())
}

pub(crate) fn too_many_conflicts_end_an_update_that_wrote_nothing(store: &Store) {
    if !store.can(Can::KeepItems) {
        return expect_refusal(store);
    }
    let (items, others) = (items(store).tries(2), items(store));
    let interfere = |old: Option<&[u8]>| {
        others.update("busy", one_more).unwrap();
        one_more(old)
    };
    let error: Error = items.update("busy", interfere).unwrap_err();
    assert!(error.is_contended() && error.to_string().contains("tried 2 times"), "{error}");
    assert_eq!((error.tries(), error.fate(), error.name()), (2, Fate::NotWritten, "too_many_conflicts"));
    assert_eq!(count(&others, "busy"), 2);
}

pub(crate) fn no_update_of_several_writers_is_lost(store: &Store) {
    const WRITERS: u64 = 3;
    const EACH: u64 = 4;
    if !store.can(Can::KeepItems) {
        return expect_refusal(store);
    }
    let shared = items(store);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            let own = items(store);
            scope.spawn(move || {
                (0..EACH).for_each(|_| drop(own.update("counter", one_more).unwrap().unwrap()));
            });
        }
    });
    let item = shared.read("counter").unwrap().unwrap();
    assert_eq!((number(Some(&item.value)), item.version), (WRITERS * EACH, WRITERS * EACH));
}

/// Counts forever, and says how far it is.
#[test]
#[ignore = "the part of another process"]
fn role_counter() {
    let Some(url) = role_args() else { return };
    let items = Items::connect(&url).unwrap().tries(TRIES);
    loop {
        items.update("counter", one_more).unwrap().unwrap();
        say("counted");
    }
}

pub(crate) fn a_writer_that_is_killed_stops_nobody_and_loses_nothing(store: &Store) {
    if !store.can(Can::KeepItems) {
        return expect_refusal(store);
    }
    if !store.can(Can::ServeSeveralProcesses) {
        return;
    }
    let items = items(store);
    let mut role = Role::start("items::role_counter", store.url());
    let mut said = 0;
    for _ in 0..4 {
        role.says();
        said += 1;
        items.update("counter", one_more).unwrap().unwrap();
    }
    role.kill();
    role.wait();
    let item = items.update("counter", one_more).unwrap().unwrap();
    let counted = number(Some(&item.value));
    assert!(counted >= said + 5, "{counted}: the other process has counted {said} times, this one 5 times");
    assert_eq!(item.version, counted, "each write has added one");
}
