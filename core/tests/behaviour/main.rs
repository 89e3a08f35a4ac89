//! The behaviour of the core, a file for each topic, stepped by hand with time as a number.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

mod acquire_and_release;
mod bad_responses;
mod clocks;
mod close;
mod config;
mod fence;
mod fork;
mod hostile_records;
mod limits;
mod local_queue;
mod loss_by_the_clock;
mod lost_reply_of_renewal;
mod properties;
mod queues;
mod quorum;
mod quorum_acks;
mod quorum_holder;
mod quorum_memory;
mod quorum_repair;
mod quorum_strays;
mod quorum_waiting;
mod reads;
mod recovered_reply;
mod release_and_cancel;
mod renewal;
mod results;
mod revoke;
mod revoking;
mod runs;
mod sessions;
mod step;
mod storm;
mod takeover;
mod tokens;
mod unknown_acquire_given_up;
mod waiting;
mod waiting_in_queue;
mod watching;
