//! Work that is done once, and the completions of work that is done.

pub(crate) mod attempts;
pub(crate) mod completion;
#[cfg(feature = "postgres")]
pub(crate) mod completion_in;
mod occurrence;
pub(crate) mod once;
mod replace;
pub(crate) mod result;
