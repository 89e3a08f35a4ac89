//! Real Redis servers, over TCP and over HTTP.

#![cfg(feature = "redis")]
#![allow(clippy::unwrap_used, reason = "these are tests, which clippy sees only in functions that are marked so")]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod cluster;
mod doctor;
mod failover;
mod fence;
mod hostile_resp;
#[cfg(target_os = "linux")]
mod hostile_wake_ups;
#[cfg(feature = "http")]
mod http;
mod processes;
mod refusals;
mod replies_lost;
#[cfg(feature = "http")]
mod secrets;
mod servers;
mod slow_ways;
mod waiters;
