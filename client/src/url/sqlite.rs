//! `sqlite:PATH`: a file of this machine.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::Said;
use crate::error::Error;

/// A file, by the path that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SqliteUrl {
    pub(crate) path: PathBuf,
}

pub(super) fn parse(text: &str) -> Result<Said, String> {
    let rest = text.strip_prefix("sqlite:").unwrap_or_default();
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err(
            "there is no path; write sqlite:PATH, such as sqlite:locks.db or sqlite:/var/lib/app/locks.db".to_owned()
        );
    }
    if path == ":memory:" {
        return Err("a SQLite database in memory is not shared; write memory: instead".to_owned());
    }
    if path.contains(['?', '\0']) {
        return Err("sqlite takes a plain path without parameters or NUL".to_owned());
    }
    Ok(Said::whole(SqliteUrl { path: PathBuf::from(path) }))
}

impl SqliteUrl {
    /// The file of the default store, in the user's state folder.
    pub(crate) fn of_user() -> Result<Self, Error> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        let state = state.ok_or_else(|| {
            Error::config(
                "no store is named, and there is no home folder to keep one in: name a store, such as sqlite:locks.db",
            )
        })?;
        Ok(Self { path: state.join("leasehold/locks.db") })
    }

    /// The url of the file by its full path.
    pub(crate) fn whole(&self) -> OsString {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        // Two slashes after the colon belong to the url, not to the path.
        let is_long = path.as_os_str().as_encoded_bytes().starts_with(b"//");
        let mut url = OsString::from(if is_long { "sqlite://" } else { "sqlite:" });
        url.push(path);
        url
    }

    /// The url of the file by its real path, if it is there.
    pub(crate) fn real(&self) -> String {
        let real = std::fs::canonicalize(&self.path).or_else(|_| std::path::absolute(&self.path));
        let real = real.as_ref().unwrap_or(&self.path).display().to_string();
        // By this Windows marks the paths of files that are there, and no others.
        format!("sqlite:{}", real.strip_prefix(r"\\?\").unwrap_or(&real))
    }
}

impl fmt::Display for SqliteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sqlite:{}", self.path.display())
    }
}
