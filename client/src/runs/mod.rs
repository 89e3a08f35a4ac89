//! Work that is done once, and the marks of work that is done.

pub(crate) mod mark;
#[cfg(feature = "postgres")]
pub(crate) mod mark_in;
pub(crate) mod once;
