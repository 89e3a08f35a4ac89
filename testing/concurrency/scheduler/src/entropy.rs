//! Random values that come with the schedule, so that a run can be repeated.

use std::convert::Infallible;

use shuttle::rand::{Rng, RngCore, thread_rng};

/// Fills all of it.
///
/// # Errors
/// Never.
pub fn fill(bytes: &mut [u8]) -> Result<(), Infallible> {
    thread_rng().fill_bytes(bytes);
    Ok(())
}

/// Answers `true` once in so many times.
pub fn one_in(times: u32) -> bool {
    thread_rng().gen_ratio(1, times)
}
