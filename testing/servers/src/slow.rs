//! What a test says that has failed for want of time.

/// A part of the message each, also read by `cargo xtask test`.
const SIGNS: &str = include_str!("slow.txt");

/// Whether a panic says that something took too long, and not that something wrong was seen. A machine that stands still at
/// the wrong moment does that by itself, so such a test may be run again.
pub fn is_for_want_of_time(panic: &str) -> bool {
    SIGNS.lines().any(|sign| panic.contains(sign))
}
