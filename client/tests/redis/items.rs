//! Items of compare-and-set on real Redis servers, when things go wrong.

use leasehold::ErrorKind;
use leasehold::cas::{Fate, Items};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::{Cluster, Server};

use crate::common::items::{count, one_more, writes_whose_answer_is_lost_count_once};

const KEY: &str = "{counter}\u{1f}item of name";

#[test]
fn a_write_whose_answer_is_lost_counts_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let writes = || Request::containing("'raced'");
    writes_whose_answer_is_lost_count_once(&proxy, &server.url_at(proxy.port()), &server.url(), writes);
}

#[test]
fn values_of_others_are_left_alone_and_a_deleted_item_begins_anew() {
    let server = Server::start();
    let items = Items::connect(server.url()).unwrap();
    for foreign in [["SET", KEY, "mine", ""], ["HSET", KEY, "mine", "x"], ["HSET", KEY, "version", "x"]] {
        let words: Vec<&str> = foreign.into_iter().filter(|word| !word.is_empty()).collect();
        server.command(&words);
        let before = server.command(&["DUMP", KEY]);
        let error = items.update("counter", one_more).unwrap_err();
        assert_eq!((error.trouble().kind(), error.fate()), (ErrorKind::StoreRefused, Fate::NotWritten), "{error}");
        assert_eq!(items.read("counter").unwrap_err().kind(), ErrorKind::StoreRefused);
        assert_eq!(server.command(&["DUMP", KEY]), before, "{foreign:?}");
        server.command(&["DEL", KEY]);
    }
    // One that another program keeps needs no ids, and one that disappears between is made again.
    server.command(&["HSET", KEY, "version", "7", "value", "Y291bnQ9Nw=="]);
    assert_eq!(items.update("counter", one_more).unwrap().unwrap().version, 8);
    let mut asked = 0;
    let meddle = |old: Option<&[u8]>| {
        asked += 1;
        if asked == 1 {
            server.command(&["DEL", KEY]);
        }
        one_more(old)
    };
    let item = items.update("counter", meddle).unwrap().unwrap();
    assert_eq!((item.version, count(&items, "counter"), asked), (1, 1, 2));
}

#[test]
fn items_of_all_slots_are_kept_by_a_cluster() {
    let cluster = Cluster::start(3, 0);
    let items = Items::connect(cluster.url()).unwrap();
    for name in 0..20 {
        let name = format!("item {name}");
        items.update(&name, one_more).unwrap();
        assert_eq!(items.update(&name, one_more).unwrap().unwrap().version, 2);
        assert_eq!(count(&items, &name), 2);
    }
    assert_eq!(items.update("a}", one_more).unwrap_err().trouble().kind(), ErrorKind::StoreRefused);
}

#[test]
fn a_write_that_replicas_do_not_confirm_may_have_been_made() {
    let server = Server::start();
    let url = format!("{}?wait_replicas=1", server.url());
    let items = Items::connect(&url).unwrap().tries(1);
    assert_eq!(items.read("counter").unwrap(), None, "reads wait for nobody");
    let error = items.update("counter", one_more).unwrap_err();
    assert_eq!(error.fate(), Fate::Unknown, "{error}");
    assert!(error.to_string().contains("replicas"), "{error}");
}
