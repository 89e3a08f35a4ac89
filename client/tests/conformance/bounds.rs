//! Limits of requests: names, labels, data and lengths of time at their bounds, and beyond them.

use std::time::Duration;

use leasehold::blocking::{Client, LockRequest};
use leasehold::{Error, ErrorKind};

use crate::Store;
use crate::common::{eventually, ms};

const DAY: Duration = Duration::from_secs(24 * 3_600);

pub(crate) fn the_shortest_and_the_longest_lease_are_granted(store: &Store) {
    let (one, two) = store.two_clients();
    let mut granted = None;
    eventually("the answer comes before the lease ends", || {
        let asked = one.lock("short").ttl(ms(100)).no_renewal().acquire();
        assert!(asked.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::StoreUnavailable), "{asked:?}");
        granted = asked.ok();
        granted.is_some()
    });
    let shortest = granted.unwrap();
    assert!(shortest.remaining() < ms(100));
    assert_eq!(shortest.lost().kind(), ErrorKind::Lost);
    let longest = one.lock("long").ttl(DAY).lock_delay(DAY).max_hold(DAY).acquire().unwrap();
    assert!(longest.remaining() > Duration::from_secs(23 * 3_600));
    let info = two.inspect("long").unwrap().expect("it is held");
    let left = info.left.or(info.ttl).expect("one of both is shown");
    assert!(left > DAY && left <= 2 * DAY, "{left:?}");
    assert!(two.lock("long").try_acquire().unwrap().is_none());
    longest.release().unwrap();
    assert!(two.lock("long").try_acquire().unwrap().is_some());
}

/// None of them is another one's, and none is changed on its way.
pub(crate) fn any_name_is_a_lock_of_its_own(store: &Store) {
    let (one, two) = store.two_clients();
    let long = "ü".repeat(512);
    let names = [
        "job",
        "Job",
        "job ",
        " job",
        "j",
        "invoice/42",
        "invoice//42",
        "../invoice/42",
        "a b\u{a0}c",
        "été",
        "e\u{301}te\u{301}",
        "日本語 🔒",
        "{tag}",
        "{tag}/a",
        "{tag}a{b}",
        "{}",
        "a{b",
        "a}b{",
        "100%",
        "%31",
        "a+b",
        "a?b=c&d#e",
        "\"quoted\" 'twice' \\",
        "-x",
        "*",
        "$(x);--",
        "fence",
        "null",
        "0",
        &long,
        &long[..1_022],
    ];
    let leases: Vec<_> = names.iter().map(|name| one.lock(*name).owner(*name).acquire_in_bounds(name)).collect();
    for (name, lease) in names.iter().zip(&leases) {
        assert_eq!(lease.resource(), *name);
        let info = two.inspect(name).unwrap().unwrap_or_else(|| panic!("{name} is held"));
        assert_eq!((info.resource.as_str(), info.token), (*name, Some(lease.token())), "{name}");
        assert!(two.lock(*name).try_acquire().unwrap().is_none(), "{name}");
    }
    for (freed, lease) in leases.iter().enumerate() {
        lease.release().unwrap();
        for (n, name) in names.iter().enumerate().skip(freed).take(3) {
            assert_eq!(two.inspect(name).unwrap().is_none(), n == freed, "{name}, after {}", lease.resource());
        }
    }
}

trait InBounds {
    fn acquire_in_bounds(self, name: &str) -> leasehold::blocking::Lease;
}

impl InBounds for LockRequest {
    /// A name may be longer than a label.
    fn acquire_in_bounds(self, name: &str) -> leasehold::blocking::Lease {
        let request = if name.len() > 256 { self.owner("long") } else { self };
        request.acquire().unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

pub(crate) fn labels_and_data_arrive_as_they_were_given(store: &Store) {
    let (one, two) = store.two_clients();
    let owners = ["a", " ", "ö; %41@{}\"'\\,=&+?#/", "日本語 🔒", &"é".repeat(128), &";".repeat(256), &"x".repeat(256)];
    let every_byte: Vec<u8> = (0..=255).collect();
    let data = [&b""[..], b"\0", b"\r\n", b"f", b"fo", b"foo", &[0xff; 33], &every_byte, &every_byte.repeat(16)];
    for (n, data) in data.iter().enumerate() {
        let owner = owners[n % owners.len()];
        let lease = one.lock("job").owner(owner).data(data).acquire().unwrap();
        assert_eq!(lease.owner(), owner);
        let info = two.inspect("job").unwrap().expect("it is held");
        assert_eq!(info.owner.as_deref(), Some(owner));
        assert_eq!(info.data.as_deref(), Some(*data), "{} bytes", data.len());
        let error = two.lock("job").wait(Duration::ZERO).acquire().unwrap_err();
        assert_eq!(error.holder().and_then(|holder| holder.data.as_deref()), Some(*data));
        lease.release().unwrap();
    }
    let lease = one.lock("job").owner("").acquire().unwrap();
    let info = two.inspect("job").unwrap().expect("it is held");
    assert_eq!((info.owner, info.data), (None, None), "no label and no data are nothing");
    lease.release().unwrap();
}

/// Settings that no store could make work, and what is said about each.
fn refusals(client: &Client) -> Vec<Error> {
    let job = || client.lock("job");
    let long = "x".repeat(1_025);
    let requests = [
        client.lock(""),
        client.lock(&long),
        client.lock("a\0b"),
        client.lock("a\nb"),
        client.lock("a\u{1f}b"),
        client.lock("a\u{85}b"),
        job().ttl(Duration::ZERO),
        job().ttl(ms(99)),
        job().ttl(DAY + ms(1)),
        job().ttl(Duration::MAX),
        job().lock_delay(DAY + ms(1)),
        job().max_hold(ms(29_999)),
        job().renew_every(Duration::from_secs(16)),
        job().renew_every(ms(9)),
        job().owner("x".repeat(257)),
        job().owner("a\nb"),
        job().data(vec![0; 4_097]),
    ];
    let mut errors: Vec<_> = requests.into_iter().map(|request| request.wait(ms(10)).acquire().unwrap_err()).collect();
    errors.extend(["", "a\nb", &long].map(|name| client.inspect(name).unwrap_err()));
    errors.extend(["", "a\nb", &long].map(|name| client.break_lock(name).unwrap_err()));
    errors.push(client.lock_all(["a", "b\n"]).acquire().unwrap_err());
    errors.extend(client.elect("").start().err());
    errors.extend(client.elect("job").ttl(ms(1)).start().err());
    errors
}

pub(crate) fn bad_settings_are_refused_alike_everywhere(store: &Store) {
    let client = store.client();
    let here = refusals(&client);
    let elsewhere = refusals(&Client::connect("memory:").unwrap());
    assert_eq!(here.len(), 26);
    for (here, elsewhere) in here.iter().zip(&elsewhere) {
        assert_eq!(here.kind(), ErrorKind::Config, "{here}");
        assert_eq!(here.to_string(), elsewhere.to_string());
    }
    assert_eq!(client.inspect("job").unwrap(), None, "nothing of it has reached the store");
    assert_eq!(client.inspect("a").unwrap(), None);
}
