//! The leasehold protocol as a WebAssembly component, run by [wasmtime].
//!
//! The component decides everything and can reach nothing: it imports no clock, no socket and no randomness. This crate
//! loads it, bounds what it may use, and passes calls and values. It knows `wit/leasehold.wit` and nothing else of
//! leasehold, so it is also the pattern for a host in another language. A Rust program that only wants locks is better
//! served by the crate `leasehold`.
//!
//! [`Client`] has the methods of the WIT's `client`. The modules [`types`], [`ops`], [`stores`], [`client`] and [`fence`]
//! hold its records and variants, with their documentation. Their `Debug` shows everything, nonces, credentials and signed
//! headers too: keep it out of logs.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod bindings;
mod component;
mod error;
mod guard;
mod instance;
mod machine;
mod redis;
mod runs;
mod size;

pub use bindings::exports::leasehold::protocol::redis::Malformed;
pub use bindings::exports::leasehold::protocol::runs::{Occurrence, RunPlan, ZoneOffset};
pub use bindings::exports::leasehold::protocol::{client, fence, ops, stores, types};
pub use component::Component;
pub use error::{CallError, HostError, LoadError};
pub use guard::Guard;
pub use instance::Limits;
pub use machine::Client;
pub use redis::{Reader, Redis};
pub use runs::Runs;
