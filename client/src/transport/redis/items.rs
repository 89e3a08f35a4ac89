//! Items of compare-and-set in Redis.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_core::{Monotonic, Resource};
use leasehold_wire::cas::{Answer, Ask};
use leasehold_wire::redis::{Command, Topology, cas};
use leasehold_wire::resp::Value;

use super::Redis;
use super::access::CONNECT_PATIENCE;
use super::link::{NoConnection, NoReply, RedisLink, leads_elsewhere};
use super::store_link::StoreLink;
use crate::host::clock;
use crate::transport::items::{Asking, ItemStore};

/// The part of a request's time that replicas have to confirm.
const REPLICAS_PATIENCE: Duration = CONNECT_PATIENCE.checked_div(2).expect("2 is not 0");

impl ItemStore for Redis {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        let topology = if self.access.cluster().is_some() { Topology::Cluster } else { Topology::Single };
        Box::pin(async move {
            let mut commands = match cas::command(topology, name, ask) {
                Ok(command) => vec![command],
                Err(denial) => return Answer::denied(denial),
            };
            let replicas = self.url.replicas.filter(|_| matches!(ask, Ask::Write { .. }));
            if let Some(count) = replicas {
                let words = ["WAIT", &count.to_string(), &REPLICAS_PATIENCE.as_millis().to_string()];
                commands.push(Command::new(words));
            }
            let deadline = clock::monotonic().plus(CONNECT_PATIENCE);
            let sent = self.connections.in_background(move |link| async move {
                match &*link {
                    StoreLink::Single(link) => send(link, &commands, deadline).await,
                    StoreLink::Cluster(link) => link.replies(&commands, deadline).await,
                }
            });
            let replies = match sent.await.flatten() {
                Ok(replies) => replies,
                Err(outcome) => return Answer::Failed(outcome),
            };
            let answer = match replies.first() {
                Some(reply) => cas::answer(name, ask, reply),
                None => Answer::Failed(Outcome::Unknown(Fault::of(FaultKind::Protocol))),
            };
            match replicas {
                Some(count) if answer == Answer::Written && !have_confirmed(replies.get(1), count) => {
                    Answer::Failed(Outcome::Unknown(too_few()))
                }
                Some(_) | None => answer,
            }
        })
    }
}

async fn send(link: &Arc<RedisLink>, commands: &[Command], deadline: Monotonic) -> Result<Vec<Value>, Outcome> {
    let (replies, connection) = link.call(commands, deadline).await.map_err(|why| match why {
        NoReply::NotSent(NoConnection::Fault(fault)) => Outcome::NotApplied(Refusal::Unavailable(fault)),
        NoReply::NotSent(NoConnection::Refused(refusal)) => Outcome::NotApplied(refusal),
        NoReply::Unknown(fault) => Outcome::Unknown(fault),
    })?;
    // The next try finds the primary.
    if replies.iter().any(leads_elsewhere) {
        connection.leave();
    }
    Ok(replies)
}

fn have_confirmed(reply: Option<&Value>, count: u32) -> bool {
    matches!(reply, Some(Value::Integer(confirmed)) if *confirmed >= i64::from(count.max(1)))
}

fn too_few() -> Fault {
    Fault::new(FaultKind::Server, "the write was made, but too few replicas have confirmed it")
}
