//! The configuration that AWS's tools share: the environment, and two files in the home folder.

pub(crate) mod endpoint;
pub(crate) mod profiles;
pub(crate) mod region;

use std::io::Read;
use std::path::Path;

pub(crate) use crate::url::environment::EnvVars;

/// The most bytes of a file that are read.
const MOST_BYTES: u64 = 1 << 20;

/// Reads a file of at most 1 MiB.
///
/// # Errors
/// The system's error; or the file is longer.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(std::io::Error::other("it is longer than 1 MiB"));
    }
    Ok(bytes)
}
