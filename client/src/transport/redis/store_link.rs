//! The link to a store: one server, or the nodes of a cluster.

use std::sync::Arc;

use leasehold_core::Transmit;

use super::cluster::link::ClusterLink;
use super::connection::block_on;
use super::link::RedisLink;
use crate::transport::Answering;
use crate::transport::connections::Link;
use crate::url::redis::Address;

/// A link of one kind of caller.
pub(super) enum StoreLink {
    Single(Arc<RedisLink>),
    Cluster(Arc<ClusterLink>),
}

impl StoreLink {
    /// The link to one node of a cluster; where there is only one server, to that.
    pub(super) fn to(&self, node: &Address) -> Arc<RedisLink> {
        match self {
            Self::Single(link) => Arc::clone(link),
            Self::Cluster(link) => link.to(node),
        }
    }
}

impl Link for StoreLink {
    fn ask(self: Arc<Self>, request: Transmit) -> Answering {
        match &*self {
            Self::Single(link) => Arc::clone(link).ask(request),
            Self::Cluster(link) => Arc::clone(link).ask(request),
        }
    }

    fn is_ready(&self) -> bool {
        match self {
            Self::Single(link) => link.is_ready(),
            Self::Cluster(link) => link.is_ready(),
        }
    }

    fn prepare(self: Arc<Self>) {
        match &*self {
            Self::Single(link) => Arc::clone(link).prepare(),
            Self::Cluster(link) => Arc::clone(link).prepare(),
        }
    }

    fn drive<R>(work: impl Future<Output = R>) -> R {
        block_on(work)
    }
}
