//! Checks if this etcd can keep locks.

use super::Etcd;
use crate::doctor::Finding;
use crate::transport::Transport;
use crate::url::Reach;

pub(super) fn diagnose(store: &Etcd) -> Vec<Finding> {
    vec![way(store.url.reach), server(store), members(store)]
}

fn way(reach: Reach) -> Finding {
    const CHECK: &str = "etcd.way";
    match reach {
        Reach::Tls => Finding::good(CHECK, "TLS"),
        Reach::Loopback => Finding::good(CHECK, "the server is on this machine"),
        Reach::Plaintext => Finding::warning(
            CHECK,
            "nothing is encrypted: everybody on the network path can read requests, and break locks with what they see",
            "write etcds://, or keep to a network that you trust",
        ),
    }
}

fn server(store: &Etcd) -> Finding {
    const CHECK: &str = "etcd.server";
    match store.look() {
        Ok(_) => Finding::good(CHECK, format!("{} has a leader and answers", store.url)),
        Err(error) => Finding::problem(
            CHECK,
            error.to_string(),
            "check that a majority of the members runs, and what the user may do; then run this check again",
        ),
    }
}

fn members(store: &Etcd) -> Finding {
    const CHECK: &str = "etcd.members";
    match store.url.hosts.len() {
        1 => Finding::warning(
            CHECK,
            "the url names one member: when that one fails, this client finds no other",
            "name all members in the url, unless its host is a load balancer or there is only one",
        ),
        many => Finding::good(CHECK, format!("the url names {many} members")),
    }
}
