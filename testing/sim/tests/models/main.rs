//! The models of stores, beside the stores.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod dynamodb_model;
mod queues_on_redis;
mod redis_membership;
mod redis_model;
mod transactions;
