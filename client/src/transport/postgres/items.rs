//! Items of compare-and-set as rows.

use leasehold_core::Resource;
use leasehold_wire::cas::Ask;
use leasehold_wire::postgres::cas;

use super::Postgres;
use crate::host::clock;
use crate::transport::items::{Asking, ItemStore};
use crate::transport::readiness::{CONNECT_PATIENCE, NoServer};

impl ItemStore for Postgres {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        Box::pin(async move {
            let statement = cas::statement(&self.url.schema, name, ask);
            let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
            let sent =
                self.connections.in_background(move |link| async move { link.command(&statement, deadline).await });
            // A fault may have come after the statement had left.
            cas::answer(ask, sent.await.and_then(|rows| rows.map_err(NoServer::outcome)).flatten())
        })
    }
}
