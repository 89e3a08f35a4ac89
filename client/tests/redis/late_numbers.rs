//! The number of permits, whose writer's requests arrive when its locks have long run out.

use std::thread;

use crate::common::on_redis::digest;
use crate::common::{PATIENCE, connect_patiently, eventually};
use leasehold::ErrorKind;
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::Server;

/// The setter took all permits, and stands still before it begins, or before it finishes.
fn changes_nothing_late(script: &'static str, key: &'static str) {
    let server = Server::start();
    let client = connect_patiently(server.url());
    client.set_permits("license", 2).unwrap();
    let proxy = Proxy::to(server.address());
    let setter = connect_patiently(server.url_at(proxy.port()));
    let has = |bytes: &[u8], part: &str| bytes.windows(part.len()).any(|window| window == part.as_bytes());
    let held_back = proxy.hold(Request::matching(move |bytes| has(bytes, digest(script)) && has(bytes, key)));
    // It would go on for as long as it waits for the record.
    thread::spawn(move || setter.set_permits("license", 5));
    held_back.wait_for_hits(1);
    // It would ask again on another connection.
    proxy.black_hole();
    let permits = [(); 2].map(|()| client.semaphore("license", 2).wait(PATIENCE).acquire().unwrap());
    held_back.deliver();
    // Whoever comes now waits for the writer that stood there last, who is gone, and finds the number as it was.
    let other = connect_patiently(server.url());
    let error = other.semaphore("license", 5).wait(PATIENCE).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{script}: {error}");
    assert!(error.to_string().contains("permits is 5 here, and 2 in the store"), "{script}: {error}");
    for permit in permits {
        permit.check(std::time::Duration::ZERO).unwrap();
        permit.release().unwrap();
    }
    eventually("both permits can be had again", || {
        let semaphore = || client.semaphore("license", 2).try_acquire().unwrap();
        let both = [semaphore(), semaphore()];
        let all = both.iter().all(Option::is_some);
        both.into_iter().flatten().for_each(|permit| permit.release().unwrap());
        all
    });
}

#[test]
fn a_number_whose_begin_arrives_late_is_not_changed() {
    changes_nothing_late("acquire", "license#permits@");
}

#[test]
fn a_number_whose_finish_arrives_late_is_not_changed() {
    changes_nothing_late("finish", "license#permits@");
}
