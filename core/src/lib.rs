#![no_std]
#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test is about one of them"))]

extern crate alloc;

mod about;
mod attempts;
pub mod backoff;
mod beside;
mod client;
pub mod config;
mod event;
pub mod fence;
mod ids;
#[cfg(feature = "serde")]
pub mod json;
mod kind;
mod lease;
pub mod member;
pub mod node;
mod observe;
mod one_or_many;
pub mod op;
mod prf;
pub mod queue;
pub mod quorum;
mod replacing;
mod run;
pub mod schedule;
pub mod session;
mod sip;
pub mod store;
pub mod time;
pub mod timers;
#[cfg(feature = "trace")]
pub mod trace;
pub mod view;

pub use about::{About, ResultKind, RunResult};
pub use attempts::{AttemptLimit, Attempts, NextAttempt};
pub use beside::check_replace;
pub use client::{Client, Departure, Error, Input, Output, Revocation, Stats, Transmit};
pub use config::Quorum;
pub use config::{Config, ConfigError, LockOptions, NodeConfig, Wait};
pub use event::{Event, Failure, LostReason};
pub use ids::{LockId, NodeId, Nonce, Owner, Payload, ReadId, RequestId, Resource, Seq, SessionLabel, Token, Version};
pub use kind::ErrorKind;
pub use observe::Sighting;
pub use one_or_many::OneOrMany;
pub use prf::{Entropy, Seed};
pub use replacing::{NewestBeside, RecordLock, ReplaceAnswer, ReplaceStep, Replacing, Runner, newest_beside};
pub use run::{MIN_PERIOD, period_key};
pub use time::{Monotonic, Now};
