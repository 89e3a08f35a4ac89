//! Names in SQL, as the guards for SQLite and PostgreSQL write them.

use crate::error::Error;

pub(super) fn quoted(what: &str, name: &str) -> Result<String, Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::config(format!("{what} {name:?}: a name must not be empty or contain NUL")));
    }
    Ok(quoted_name(name))
}

pub(super) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
