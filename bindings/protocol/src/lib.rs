//! The protocol without I/O for languages that look at values only when they get them: Python and JavaScript.
//!
//! `wit/leasehold.wit` says what the calls and values are. Here they are Rust types ([`wit`], generated), beside what
//! reads them from values of a language ([`Source`]) and writes them as such ([`Sink`]). What they mean to the core is said
//! by the very source of the component, which is compiled here once more, against these types instead of those of its
//! binary interface.

extern crate alloc;

mod face;
mod problem;
pub mod testing;
#[rustfmt::skip]
pub mod wit;

// Those of the component, by links: an archive of this crate then has them as well.
mod client;
mod commands;
mod fence;
mod ops;
mod outcomes;
mod outputs;
mod redis;
mod settings;
mod stores;

pub use face::{Sink, Source, Unfit, UnfitKind};
pub use problem::{Problem, contained};

/// Whatever the interfaces have beside resources.
struct Component;
