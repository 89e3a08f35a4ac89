//! Random bytes, from the operating system.

use crate::error::{Error, ErrorKind};

/// Fills all of it.
///
/// # Errors
/// [`ErrorKind::StoreUnavailable`]: the system gives none.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|error| {
        Error::new(ErrorKind::StoreUnavailable, format!("the operating system gives no random bytes: {error}"))
    })
}
