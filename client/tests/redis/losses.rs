//! A key that is gone: the counter beside it tells whether the lock was freed or the server has lost data.

use crate::common::ms;
use crate::common::on_redis::fence_key;
use leasehold::blocking::Client;
use leasehold_servers::redis::Server;

#[test]
fn data_that_is_lost_and_locks_that_are_freed_are_told_apart() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let fence = fence_key("job");
    let freed: &[&[&str]] = &[&["DEL", "job"]];
    let forgotten: &[&[&str]] = &[&["FLUSHALL"]];
    // As after a failover to a replica that has not got the last grant.
    let older: &[&[&str]] = &[&["DEL", "job"], &["SET", &fence, "1700000000000000"]];
    for (commands, reason) in [(freed, "released"), (forgotten, "record_gone"), (older, "record_gone")] {
        for renews in [true, false] {
            let lock = client.lock("job").ttl(ms(600_000));
            let lease = if renews { lock.renew_every(ms(100)) } else { lock.no_renewal() }.acquire().unwrap();
            commands.iter().for_each(|command| drop(server.must(command)));
            let told = if renews { lease.lost() } else { lease.release().unwrap_err() };
            assert_eq!(told.lost_reason(), Some(reason), "{commands:?} {renews}: {told}");
        }
    }
}
