//! A proxy that has each write done twice, and hands on the second answer.

use leasehold::blocking::{Client, Once};
use leasehold::cas::Items;
use leasehold_servers::proxy::{Proxy, Request};

use super::items::{count, one_more};
use super::{PATIENCE, eventually, ms};

/// Does everything that writes through the proxy, behind which is the store of the url. `writes` knows a write.
pub(crate) fn whatever_is_sent_twice_counts_once(proxy: &Proxy, url: &str, writes: Request) {
    let client = Client::connect_with(leasehold::Client::builder().request_timeout(ms(10_000)), url).unwrap();
    let lease = || client.lock("a").ttl(ms(30_000)).renew_every(ms(100)).wait(PATIENCE).acquire().unwrap();
    let twice = proxy.repeat(writes.always());

    let first = lease();
    let hits = twice.hits();
    assert!(hits > 0, "{url}");
    eventually("it is renewed", || twice.hits() > hits + 2);
    first.check(ms(1)).unwrap();
    first.release().unwrap_or_else(|error| panic!("{url}: it is no loss: {error}"));

    let second = lease();
    assert!(second.token() > first.token(), "{url}");
    assert!(client.break_lock("a").unwrap().is_some(), "{url}");
    assert_eq!(second.release().unwrap_err().kind(), leasehold::ErrorKind::Lost, "{url}: it was broken");
    let third = lease();
    client.revoke("a", third.token()).unwrap();
    eventually("it is revoked", || third.is_lost());

    let Once::Run(run) = client.once("report").key("monday").wait(PATIENCE).begin().unwrap() else {
        panic!("it is new")
    };
    run.finish().unwrap_or_else(|error| panic!("{url}: it is done: {error}"));
    assert!(matches!(client.once("report").key("monday").wait(PATIENCE).begin().unwrap(), Once::Done(_)), "{url}");

    let items = Items::connect(url).unwrap();
    for written in 1..=3 {
        items.update("counter", one_more).unwrap();
        assert_eq!(count(&items, "counter"), written, "{url}");
    }
}
