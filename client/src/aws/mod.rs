//! The configuration that AWS's tools share: the environment, and two files in the home folder.

pub(crate) mod endpoint;
pub(crate) mod profiles;
pub(crate) mod region;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a file that are read.
const MOST_BYTES: u64 = 1 << 20;

type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Environment variables and the home folder; tests have their own.
#[derive(Clone)]
pub(crate) struct EnvVars {
    variable: Arc<Variables>,
}

impl EnvVars {
    /// The environment of this process.
    pub(crate) fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// An environment with these variables.
    pub(crate) fn new(variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { variable: Arc::new(variable) }
    }

    /// A variable of the environment. A blank one counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Tells if a variable is `true`.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        let named = self.variable("HOME").or_else(|| self.variable("USERPROFILE"));
        named.map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Expands the `~` of a path.
    fn expanded(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(below) => Some(self.home()?.join(below)),
            None => Some(PathBuf::from(path)),
        }
    }
}

impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment has secrets.
        f.write_str("EnvVars")
    }
}

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
