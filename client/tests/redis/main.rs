//! Real Redis servers, over TCP and over HTTP.

#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod cluster;
mod doctor;
mod election;
mod failover;
mod fence;
mod handovers;
mod hostile_resp;
#[cfg(target_os = "linux")]
mod hostile_wake_ups;
#[cfg(feature = "http")]
mod http;
mod items;
mod late_numbers;
mod listing;
mod losses;
mod passing;
mod processes;
mod queue;
mod queue_faults;
mod queue_openings;
mod refusals;
mod replies_lost;
mod rig;
mod runs;
#[cfg(feature = "http")]
mod secrets;
mod servers;
mod shards;
mod slow_ways;
mod transactions;
mod waiters;
