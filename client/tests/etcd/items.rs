//! Items of compare-and-set in etcd, when things go wrong.

use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::{Proxy, Request};

use crate::common::items::writes_whose_answer_is_lost_count_once;

#[test]
fn a_write_whose_answer_is_lost_counts_once() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let behind = format!("etcd://{}", proxy.address());
    writes_whose_answer_is_lost_count_once(&proxy, &behind, &server.url(), || Request::containing("requestPut"));
}
