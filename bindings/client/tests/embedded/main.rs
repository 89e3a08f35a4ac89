//! Stores that need no server, and what is the same for all of them.

#![allow(clippy::unwrap_used, reason = "these are tests, which clippy sees only in functions that are marked so")]

#[path = "../common/mod.rs"]
mod common;

mod asynchronous;
mod callbacks;
#[cfg(feature = "sqlite")]
mod fence;
mod fence_process;
mod holding;
mod host;
mod processes;
