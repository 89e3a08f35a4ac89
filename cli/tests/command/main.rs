//! The command, as its own process.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

mod answers;
mod arguments;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod elect;
mod examples;
#[cfg(all(feature = "dynamodb", feature = "etcd", feature = "objects"))]
mod fresh;
mod guides;
mod listing;
mod lock;
mod loss;
mod once;
mod once_attempts;
mod once_output;
mod once_replace;
mod permits;
#[cfg(feature = "postgres")]
mod postgres;
mod quorum;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "serve")]
mod serve;
#[cfg(all(feature = "serve", feature = "redis"))]
mod serve_document;
#[cfg(feature = "serve")]
mod serve_reach;
#[cfg(feature = "serve")]
mod serve_requests;
mod settings;
mod signals;
mod terminal;
#[cfg(feature = "top")]
mod top;
