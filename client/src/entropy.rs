//! Random bytes, from the operating system.

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
