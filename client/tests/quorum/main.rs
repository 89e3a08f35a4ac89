//! Quorums of real servers and of embedded stores.

#![cfg(all(feature = "redis", feature = "sqlite", feature = "http"))]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod connect;
mod doctor;
mod faults;
mod hidden_restarts;
mod join;
mod listing;
mod marks;
mod memory;
mod permits;
mod runs;
