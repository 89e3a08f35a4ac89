//! A search of the quorum that knows no time: messages in any order, records that run out at any instant, nodes that
//! lose their data, and a handful of clients.
//!
//! The tally and the node are the real ones. The client around them is written here, as small as it can be; what it
//! has to keep to is said in the rules that `mistakes.rs` breaks one by one. "All" in the output means that the bounds
//! were exhausted, "bounded" that the search stopped at a number of steps, breadth first.
//!
//! Larger searches take minutes:
//! `cargo test --profile ci -p leasehold-sim --test quorum_model -- --ignored --nocapture --test-threads 1`

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod bounds;
mod client;
#[path = "../model/frozen.rs"]
mod frozen;
mod mistakes;
mod node;
mod runs;
mod search;
mod state;
mod stories;
mod world;
