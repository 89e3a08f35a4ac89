//! The simulator itself: its worlds, traces and golden vectors.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod number_of_permits;
mod playground;
mod queues;
mod released_vectors;
mod seeds;
mod traces;
mod vectors;
mod wire_servers;
mod wire_vectors;
