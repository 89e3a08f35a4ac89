//! DynamoDB Local, and servers that answer as DynamoDB would on a bad day.

#![cfg(feature = "dynamodb")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod cas;
mod crowd;
mod doctor;
mod errors;
mod fence;
mod foreign;
mod gateway;
mod locks;
mod policies;
mod processes;
#[cfg(feature = "redis")]
mod quorum;
mod replies_lost;
mod runs;
mod tables;
mod troubles;

pub(crate) use common::on_dynamodb::{new_table, new_url, server, set_keys};

use leasehold_servers::dynamodb::Server;

/// Something that holds on a server which others use at the same time.
pub(crate) type Behaviour = (&'static str, fn(&Server));

/// Holds all of them against one server, a few at a time, since a server takes a second and much memory.
#[track_caller]
pub(crate) fn on_one_server(behaviours: &[Behaviour]) {
    let server = server();
    let failed: Vec<&str> = behaviours
        .chunks(4)
        .flat_map(|some| {
            std::thread::scope(|scope| {
                let start = |(name, hold): &Behaviour| {
                    let (hold, server) = (*hold, &server);
                    let builder = std::thread::Builder::new().name((*name).to_owned());
                    (*name, builder.spawn_scoped(scope, move || hold(server)).unwrap())
                };
                let started: Vec<_> = some.iter().map(start).collect();
                let ended = started.into_iter().filter_map(|(name, thread)| thread.join().is_err().then_some(name));
                ended.collect::<Vec<_>>()
            })
        })
        .collect();
    assert!(failed.is_empty(), "not so: {}", failed.join(", "));
}
