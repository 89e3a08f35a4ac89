//! The native half of the Node package `leasehold`.
//!
//! It converts and decides nothing: calls and values go to the crate `leasehold` and come back as JavaScript's. A call
//! that takes time is a [`reactor::Operation`], which Node's own thread polls. The modules beside `index.cjs` export
//! all of this under better names; nothing here is for users.
//!
//! No function throws for an error of the client: it returns a [`failure::Failure`], which JavaScript turns into an
//! error.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod calls;
pub mod client;
pub mod command;
pub mod election;
pub mod failure;
pub mod fence;
pub mod info;
pub mod items;
pub mod lease;
#[cfg_attr(windows, path = "libuv/without.rs")]
mod libuv;
pub mod observe;
pub mod options;
pub mod protocol;
pub mod reactor;
pub mod run;
mod series;
pub mod shards;
mod terms;
pub mod test_clock;
pub mod value;
mod waiter;

#[global_allocator]
static MEMORY: leasehold::ffi::KeptMemory = leasehold::ffi::KeptMemory;
