//! Random bytes, from the operating system.

#![allow(clippy::disallowed_methods, reason = "requests outside of clients are those of the machine")]

use crate::error::{Error, ErrorKind};

#[cfg(not(leasehold_concurrency))]
use getrandom::fill as system;
#[cfg(leasehold_concurrency)]
use leasehold_scheduler::fill as system;

/// Fills all of it.
///
/// # Errors
/// [`ErrorKind::StoreUnavailable`]: the system gives none.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    system(bytes).map_err(|error| {
        Error::new(ErrorKind::StoreUnavailable, format!("the operating system gives no random bytes: {error}"))
    })
}

/// The id of a request outside of any client. No two are alike, so that no answer is taken for another's.
#[cfg(any(feature = "redis", feature = "http"))]
pub(crate) fn request_id() -> Result<leasehold_core::RequestId, Error> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(leasehold_core::RequestId::new(u64::from_le_bytes(bytes)))
}
