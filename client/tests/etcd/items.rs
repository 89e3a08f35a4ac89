//! Items of compare-and-set in etcd, when things go wrong.

use leasehold::cas::Items;
use leasehold_servers::etcd::{Backup, Server};
use leasehold_servers::proxy::{Proxy, Request};

use crate::common::items::{number, one_more, writes_whose_answer_is_lost_count_once};

#[test]
fn a_write_whose_answer_is_lost_counts_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let behind = format!("etcd://{}", proxy.address());
    writes_whose_answer_is_lost_count_once(&proxy, &behind, &server.url(), || Request::containing("requestPut"));
}

/// The same number of writes brings a restored store to the revision that was read, with another value.
#[test]
fn a_value_that_a_restored_backup_has_in_its_place_is_not_written_over() {
    let server = Server::start();
    let (one, two) = (Items::connect(server.url()).unwrap(), Items::connect(server.url()).unwrap());
    one.update("counter", one_more).unwrap();
    let backup = server.backup();
    one.update("counter", one_more).unwrap();
    let revision = || server.etcdctl(&["get", "leasehold/item/counter", "-w", "fields"]);
    let revision = || revision().lines().find(|line| line.starts_with("\"ModRevision\"")).unwrap().to_owned();
    let read = revision();
    let mut seen = Vec::new();
    let written = one.update("counter", |old| {
        seen.push(number(old));
        if seen.len() == 1 {
            server.restore(&backup, Backup::SAME_CLUSTER);
            two.update("counter", |old| Some(format!("count={}", number(old) + 100).into_bytes())).unwrap();
            assert_eq!(revision(), read, "another write has the same revision");
        }
        one_more(old)
    });
    assert_eq!(number(Some(&written.unwrap().unwrap().value)), 102);
    assert_eq!(seen, [2, 101]);
}
