//! Quorums of real servers and of embedded stores.

#![cfg(all(feature = "redis", feature = "sqlite", feature = "http"))]
#![allow(clippy::unwrap_used, reason = "these are tests, which clippy sees only in functions that are marked so")]

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod connect;
mod doctor;
mod faults;
mod join;
mod memory;
