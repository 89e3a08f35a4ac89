//! Items of compare-and-set as objects.

use leasehold_core::Resource;
use leasehold_core::op::Outcome;
use leasehold_wire::cas::Ask;
use leasehold_wire::objects::cas;

use super::Objects;
use crate::host::clock;
use crate::transport::items::{Asking, ItemStore};
use crate::transport::readiness::CONNECT_PATIENCE;

impl ItemStore for Objects {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        Box::pin(async move {
            let request = cas::request(&self.codec, name, ask);
            let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
            let sent =
                self.connections.in_background(move |link| async move { link.command(&request, deadline).await });
            let response = sent.await.flatten();
            cas::answer(&self.codec, ask, response.as_ref().map_err(Outcome::clone))
        })
    }
}
