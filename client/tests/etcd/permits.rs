//! The number of permits, whose record is observed.

use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::{Proxy, Request};

use crate::client;
use crate::common::PATIENCE;

/// `leasehold/lock/license#permits@`, as requests have it.
const RECORD: &str = "bGVhc2Vob2xkL2xvY2svbGljZW5zZSNwZXJtaXRzQA==";

#[test]
fn permits_are_granted_after_a_client_died_while_it_wrote_their_number() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let writer = client(&format!("etcd://{}", proxy.address()));
    let is_write = |request: &[u8]| {
        let request = String::from_utf8_lossy(request);
        request.contains(RECORD) && request.contains("requestPut")
    };
    // It takes the record, and no other write of it arrives: neither the number nor a renewal or release.
    let dies = proxy.reset_before_forwarding(Request::matching(is_write).nth(2).always());
    std::thread::scope(|scope| {
        let dead = scope.spawn(|| writer.semaphore("license", 3).wait(PATIENCE).acquire());
        dies.wait_for_hits(1);
        proxy.black_hole();
        let permit = client(&server.url()).semaphore("license", 3).wait(PATIENCE).acquire().unwrap();
        permit.release().unwrap();
        dead.join().unwrap().unwrap_err();
    });
}
