//! `leasehold_wire::client`: whole requests out, whole responses in. One file for each behaviour; the host has a clock that is a
//! number, and the servers are maps.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod clouds;
mod common;
mod credentials;
mod dynamodb;
mod hostile;
mod objects;
mod redis;
mod redis_server;
mod refusals;
mod rounds;
mod setup;
