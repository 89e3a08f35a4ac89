//! Stores that need no server, and what is the same for all of them.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod asynchronous;
mod callbacks;
mod clocks;
mod cookbook;
mod election;
#[cfg(feature = "sqlite")]
mod fence;
mod fence_process;
#[cfg(feature = "metrics")]
mod ffi;
mod holding;
#[cfg(feature = "sqlite")]
mod hung;
#[cfg(feature = "sqlite")]
mod pages;
mod permits;
mod processes;
mod runs;
mod several;
mod shards;
mod testing;
mod watching;
