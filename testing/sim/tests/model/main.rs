//! An exhaustive search: every order of events that two clients and one store can get into within small bounds.
//!
//! The clients are the real ones, states and all; nothing of the protocol is written a second time. Messages arrive in
//! any order, twice, late or never, processes stop and crash, hosts are cut off, and their clocks run apart as far as
//! the drift allows. After every step all promises are checked from outside, at the true time.
//!
//! Bounds keep it finite: the shortest ttl, a horizon, and a budget for everything that goes wrong. Time only stops at
//! instants at which something can happen. No symmetry between the clients is made use of: their clocks, jitter and
//! wall clocks differ.
//!
//! The searches of `cargo test` take seconds. Larger ones take minutes:
//! `cargo test --profile ci -p leasehold-sim --test model -- --ignored --nocapture --test-threads 1`

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod bounds;
mod frozen;
mod host;
mod mistakes;
mod search;
mod stores;
mod world;
