//! Messages of tests that failed because the machine was slow.

/// A part of the message each, also read by `cargo xtask test`.
const SIGNS: &str = include_str!("slow.txt");
/// The same of panics that tell of others.
const ECHOES: &str = include_str!("echoes.txt");

/// True if a panic says that something took too long, and not that a result was wrong. That may be the machine's fault,
/// so such a test may be run again.
pub fn is_for_want_of_time(panic: &str) -> bool {
    SIGNS.lines().any(|sign| panic.contains(sign))
}

/// True if a panic only passes on that of another thread, which has said why.
pub fn is_an_echo(panic: &str) -> bool {
    ECHOES.lines().any(|echo| panic.contains(echo))
}
