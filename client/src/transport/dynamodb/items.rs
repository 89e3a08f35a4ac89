//! Items of compare-and-set in a table.

use leasehold_core::Resource;
use leasehold_core::op::Outcome;
use leasehold_wire::cas::{Answer, Ask};
use leasehold_wire::dynamodb::cas;

use super::{Dynamodb, credentials};
use crate::host::clock;
use crate::transport::items::{Asking, ItemStore};
use crate::transport::readiness::CONNECT_PATIENCE;

impl ItemStore for Dynamodb {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        let settings = self.codec.settings();
        Box::pin(async move {
            let request = match cas::request(settings, name, ask) {
                Ok(request) => request,
                Err(denial) => return Answer::denied(denial),
            };
            let deadline = clock::monotonic().plus(CONNECT_PATIENCE + credentials::PATIENCE);
            let sent =
                self.connections.in_background(move |link| async move { link.greeted(&request, deadline).await });
            let response = sent.await.flatten();
            cas::answer(settings, name, ask, response.as_ref().map_err(Outcome::clone))
        })
    }
}
