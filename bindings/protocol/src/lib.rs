//! `wit/leasehold.wit` over `leasehold_core`: conversions, and no decision.
//!
//! Callers are not trusted. A value that the core's types cannot hold is refused here as an error value, or counts as the
//! unknown outcome that it may be; nothing that a host can pass panics, as long as it fits into the memory that the host
//! gives.
//!
//! The types of the WIT come from one of two generators, with the same names and shapes. For WebAssembly they are
//! wit-bindgen's, with their binary interface: this crate is the whole component then. Elsewhere they are those of [`wit`],
//! beside code that reads them from values of a language ([`Source`]) and writes them as such ([`Sink`]): Python and
//! JavaScript, which look at values only when they get them.

#![cfg_attr(target_family = "wasm", no_std)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

extern crate alloc;

#[cfg(not(target_family = "wasm"))]
mod face;
#[cfg(not(target_family = "wasm"))]
mod problem;
#[cfg(not(target_family = "wasm"))]
#[rustfmt::skip]
#[expect(clippy::large_enum_variant, reason = "values of the WIT are made, read once and dropped")]
pub mod wit;

#[cfg(target_family = "wasm")]
#[allow(missing_docs, unreachable_pub)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/leasehold.wit",
        // Only C's libraries have constructors.
        disable_run_ctors_once_workaround: true,
    });
}

mod answers;
mod client;
mod commands;
mod fence;
#[cfg(target_family = "wasm")]
mod memory;
mod ops;
mod outcomes;
mod outputs;
mod redis;
mod replacement;
mod runs;
mod settings;
mod stores;

#[cfg(target_family = "wasm")]
use bindings::exports::leasehold::protocol as wit;
#[cfg(not(target_family = "wasm"))]
pub use face::{Sink, Source, Unfit, UnfitKind};
#[cfg(not(target_family = "wasm"))]
pub use problem::{Problem, contained};

/// Has the functions of the interfaces that belong to no resource.
struct Component;

#[cfg(target_family = "wasm")]
bindings::export!(Component with_types_in bindings);
