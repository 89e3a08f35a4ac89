//! Watching a lock: one change for each holder.

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::{Change, ErrorKind, LockInfo};

use crate::common::{eventually, ms};

#[track_caller]
fn held(change: Option<Result<Change, leasehold::Error>>) -> LockInfo {
    match change.unwrap().unwrap() {
        Change::Held(holder) => holder,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_holder_is_told_once_and_renewals_are_not() {
    let client = Client::connect("memory:").unwrap();
    let mut changes = client.watch("job").every(ms(100));
    assert!(matches!(changes.next(), Some(Ok(Change::Free))));
    let first = client.lock("job").owner("one").ttl(Duration::from_secs(60)).renew_every(ms(50)).acquire().unwrap();
    let shown = held(changes.next());
    assert_eq!((shown.owner.as_deref(), shown.token), (Some("one"), Some(first.token())));
    // Any number of renewals come before the next change.
    let left = || client.inspect("job").unwrap().unwrap().left;
    for _ in 0..3 {
        let mut before = left();
        eventually("it is renewed", || {
            let now = left();
            std::mem::replace(&mut before, now) < now
        });
    }
    first.check(ms(1)).unwrap();
    first.release().unwrap();
    let second = client.lock("job").owner("one").ttl(Duration::from_secs(60)).acquire().unwrap();
    let shown = held(changes.next());
    assert_eq!(shown.token, Some(second.token()), "the same label, another lease");
    second.release().unwrap();
    assert!(matches!(changes.next(), Some(Ok(Change::Free))));
}

#[test]
fn what_cannot_be_watched_is_an_error() {
    let client = Client::connect("memory:").unwrap();
    for mut changes in [client.watch(""), client.watch("a\n"), client.watch("job").every(ms(99))] {
        assert_eq!(changes.next().unwrap().unwrap_err().kind(), ErrorKind::Config);
    }
}
