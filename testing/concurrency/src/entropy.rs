//! Random bytes that come with the schedule, so that a run can be repeated.

use shuttle::rand::{RngCore, thread_rng};

use crate::error::Error;

pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    thread_rng().fill_bytes(bytes);
    Ok(())
}
