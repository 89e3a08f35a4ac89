//! A deterministic simulator around the real core: hosts, networks and stores that fail in every way the protocol
//! claims to stand, and checkers outside the core that know the true time.

pub mod clock;
pub mod store;
pub mod story;
