//! Locks in a real table.

use std::time::Duration;

use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use crate::{new_table, new_url, server};
use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold::table::{self, Made, NewTable};

#[test]
fn a_lock_is_exclusive_shown_and_released() {
    let server = server();
    let url = new_table(&server);
    let (one, two) = (connect_patiently(&url), connect_patiently(&url));
    let first = one.lock("invoice/42").owner("one & only %/é").data(b"\0\xff step 3").acquire().unwrap();
    assert!(two.lock("invoice/42").try_acquire().unwrap().is_none());
    let error = two.lock("invoice/42").wait(Duration::ZERO).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let info = two.inspect("invoice/42").unwrap().unwrap();
    assert_eq!((info.owner.as_deref(), info.token), (Some("one & only %/é"), Some(first.token())));
    assert_eq!(info.data.as_deref(), Some(b"\0\xff step 3".as_slice()));
    first.release().unwrap();
    assert!(two.inspect("invoice/42").unwrap().is_none());
    assert!(two.lock("invoice/42").acquire().unwrap().token() > first.token());
}

#[test]
fn a_holder_that_goes_silent_is_succeeded_after_its_ttl() {
    let server = server();
    let url = new_table(&server);
    let (one, two) = (Client::connect(&url).unwrap(), Client::connect(&url).unwrap());
    let lost = one.lock("job").ttl(ms(1_000)).no_renewal().acquire().unwrap();
    let next = two.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(next.token() > lost.token() && lost.is_lost());
    let kept = one.lock("other").ttl(ms(8_000)).acquire().unwrap();
    let token = kept.token();
    assert!(two.lock("other").wait(ms(12_000)).acquire().is_err_and(|error| error.kind() == ErrorKind::TimedOut));
    kept.check(ms(1)).unwrap();
    drop(kept);
    eventually("it is free", || two.inspect("other").unwrap().is_none());
    assert!(two.lock("other").acquire().unwrap().token() > token);
}

#[test]
fn a_table_is_made_once() {
    let server = server();
    let url = new_url(&server);
    let error = Client::connect(&url).unwrap_err();
    assert!(error.kind() == ErrorKind::StoreRefused && error.to_string().contains("table create"), "{error}");
    assert_eq!(table::create(&url, &NewTable::default()).unwrap().made, Made::New);
    assert_eq!(table::create(&url, &NewTable::default()).unwrap().made, Made::Before);
    let error = table::create(&format!("{url}&key=LockID"), &NewTable::default()).unwrap_err();
    assert!(error.to_string().contains("primary key"), "{error}");
    assert!(table::describe(&url).unwrap().expires.is_none());
    table::create(&format!("{url}&expires=forgotten"), &NewTable::default()).unwrap();
    assert_eq!(table::describe(&url).unwrap().expires.as_deref(), Some("forgotten"));
}

#[cfg(target_os = "linux")]
#[test]
fn closing_ends_connections_and_threads() {
    let server = server();
    let url = new_table(&server);
    crate::common::closing::closing_ends_connections_and_threads(|| connect_patiently(&url));
}
