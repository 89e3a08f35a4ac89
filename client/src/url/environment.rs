//! The surroundings of a url: environment variables, and the home folder.

use std::fmt;
#[cfg(feature = "dynamodb")]
use std::path::PathBuf;
use std::sync::Arc;

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
}

#[cfg(any(feature = "dynamodb", feature = "http"))]
impl EnvVars {
    /// A variable of the environment. A blank one counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
}

#[cfg(feature = "dynamodb")]
impl EnvVars {
    /// Tells if a variable is `true`.
    pub(crate) fn says(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        let named = self.variable("HOME").or_else(|| self.variable("USERPROFILE"));
        named.map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Expands the `~` of a path.
    pub(crate) fn expanded(&self, path: &str) -> Option<PathBuf> {
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
