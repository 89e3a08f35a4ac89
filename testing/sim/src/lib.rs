//! A deterministic simulator around the real core: hosts, networks and stores that fail in every way the protocol
//! claims to stand, and checkers outside the core that know the true time.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test is about one of them"))]

pub mod campaign;
pub mod cli;
pub mod clock;
pub mod counts;
pub mod fault_schedule;
pub mod format;
pub mod ledger;
pub mod page;
pub mod promise;
pub mod queue;
mod recorder;
pub mod register;
pub mod rng;
pub mod script;
pub mod shrink;
pub mod store;
pub mod swarm;
pub mod text;
pub mod timeline;
pub mod trial;
pub mod vectors;
pub mod world;
