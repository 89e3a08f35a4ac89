//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.
//!
//! For hosts that speak to a Redis over a connection of their own.
//!
//! A host with a library for Redis passes it the commands as they are, and writes its replies down in the format of the
//! connection (RESP 2): a text as `$5` CR LF `hello` CR LF, nothing as `$-1` CR LF, an integer as `:42` CR LF, a failed
//! command as `-` with what the server said in one line and CR LF, a list as `*2` CR LF and its two elements.

mod calls;
mod values;

pub use calls::{Reader, call};
pub(crate) use calls::{Guest, GuestReader};

/// What a server says is no RESP, or too long.
pub struct Malformed {
    /// What is wrong.
    pub message: String,
}
