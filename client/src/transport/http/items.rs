//! Items of compare-and-set behind HTTP.

use leasehold_core::Resource;
use leasehold_wire::cas::{Answer, Ask};
use leasehold_wire::redis::{Topology, cas};

use super::Http;
use crate::host::clock;
use crate::transport::items::{Asking, ItemStore};
use crate::transport::readiness::CONNECT_PATIENCE;

impl ItemStore for Http {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        Box::pin(async move {
            let command = match cas::command(Topology::Single, name, ask) {
                Ok(command) => command,
                Err(denial) => return Answer::denied(denial),
            };
            let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
            let sent =
                self.connections.in_background(move |link| async move { link.greeted(&command, deadline).await });
            match sent.await.flatten() {
                Ok(reply) => cas::answer(name, ask, &reply),
                Err(outcome) => Answer::Failed(outcome),
            }
        })
    }
}
