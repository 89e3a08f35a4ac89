//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! For hosts with their own connection to a Redis.
//!
//! A host with a library for Redis passes it the commands unchanged, and encodes its replies in the format of the
//! connection (RESP 2): a text as `$5` CR LF `hello` CR LF, nothing as `$-1` CR LF, an integer as `:42` CR LF, a failed
//! command as `-` with the server's message in one line and CR LF, a list as `*2` CR LF and its two elements.

mod calls;
mod values;

pub use calls::{Reader, call};
pub(crate) use calls::{Guest, GuestReader};

/// The bytes of a server are not RESP, or too long.
pub struct Malformed {
    /// The problem.
    pub message: String,
}
