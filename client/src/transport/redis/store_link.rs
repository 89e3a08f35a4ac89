//! The link to a store: one server, or the nodes of a cluster.

use std::sync::Arc;

use leasehold_core::Transmit;

use super::cluster::link::ClusterLink;
use super::link::RedisLink;
use crate::transport::Answer;
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
    async fn ask(self: Arc<Self>, request: Transmit) -> Answer {
        match &*self {
            Self::Single(link) => Arc::clone(link).ask(request).await,
            Self::Cluster(link) => Arc::clone(link).ask(request).await,
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
}
