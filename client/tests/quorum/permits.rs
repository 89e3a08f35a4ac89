//! The number of permits on a quorum whose nodes are emptied.

use crate::common::quorum::{MAX_TTL, Nodes};
use crate::common::{PATIENCE, eventually};
use leasehold::ErrorKind;
use leasehold::quorum::Standing;
use leasehold_servers::redis::Data;

#[test]
fn a_number_that_all_nodes_lost_one_after_the_other_is_not_made_up() {
    let nodes = Nodes::start(3);
    let (client, other) = (nodes.create(), nodes.connect_directly());
    let permit = |permits| other.semaphore("license", permits).ttl(MAX_TTL).wait(PATIENCE).acquire();
    let is_back = |standing: &Standing| matches!(standing, Standing::Member | Standing::Rejoined);
    let empty = |node: usize| {
        nodes.servers[node].restart(Data::Lost);
        eventually("it votes again", || {
            let lease = client.lock("other").ttl(MAX_TTL).wait(PATIENCE).acquire().unwrap();
            lease.release().unwrap();
            nodes.standings().iter().all(is_back)
        });
    };
    permit(2).unwrap().release().unwrap();
    // A node that has the number still vouches for it, and writes it again.
    empty(0);
    empty(1);
    assert_eq!(permit(3).unwrap_err().kind(), ErrorKind::Config);
    permit(2).unwrap().release().unwrap();
    empty(2);
    assert_eq!(permit(3).unwrap_err().kind(), ErrorKind::Config);
    empty(0);
    empty(1);
    empty(2);
    let error = permit(3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains("leasehold permits set"), "{error}");
    eventually("an operator vouches for another", || other.set_permits("license", 3).is_ok());
    permit(3).unwrap().release().unwrap();
    assert_eq!(permit(2).unwrap_err().kind(), ErrorKind::Config);
}
