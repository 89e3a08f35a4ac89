//! Golden vectors as files. `core/vectors/README.md` describes the format for people.
//!
//! Inputs, outputs and settings are the core's own types, which write and read themselves: its feature `serde`.

mod print;
mod sql;
mod vector;
mod wire;

pub use print::pretty;
pub use sql::{Notify, RefusalTime, Row, SqlValue};
pub use vector::{Call, Fresh, Start, Step, TakesEntropy, Vector, difference};
pub use wire::{
    Access, Credentials, Dialect, ObjectsService, Store, WireInput, WireOutput, WireRequest, WireVector, Wired,
};

/// The version of the format; stands as `format` in the head of every file.
pub const FORMAT: u32 = 1;

/// The largest integer in a file: every language holds it exactly.
pub const LARGEST: u64 = (1 << 53) - 1;
