//! Messages of tests that failed because the machine was slow.

/// A part of the message each, also read by `cargo xtask test`.
const SIGNS: &str = include_str!("slow.txt");

/// True if a panic says that something took too long, and not that a result was wrong. That may be the machine's fault,
/// so such a test may be run again.
pub fn is_for_want_of_time(panic: &str) -> bool {
    SIGNS.lines().any(|sign| panic.contains(sign))
}
