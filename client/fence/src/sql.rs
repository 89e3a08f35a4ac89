//! Quoted names and errors that the guards for SQLite and PostgreSQL share.

use crate::{Error, ErrorKind};

pub(crate) fn quoted(what: &str, name: &str) -> Result<String, Error> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::config(format!("{what} {name:?}: a name must not be empty or contain NUL")));
    }
    Ok(quoted_name(name))
}

pub(crate) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The error of a claim for a row that does not exist.
pub(crate) fn no_row() -> Error {
    Error::config("there is no such row to claim: insert it first, without a fence")
}

/// The error of a check for a row that does not exist.
pub(crate) fn row_is_gone() -> Error {
    Error::new(ErrorKind::StaleToken, "the row is gone; a later holder may have deleted it")
}

pub(crate) fn several_rows(count: usize) -> Error {
    Error::config(format!("the key names {count} rows: guard a column that is unique"))
}

/// Tells if docs/fencing.md has a statement, with any line breaks and quoting.
#[cfg(test)]
pub(crate) fn in_the_guide(statement: &str) -> bool {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fencing.md");
    let bare = |text: &str| text.replace(|c: char| c.is_whitespace() || c == '"', "");
    bare(&std::fs::read_to_string(guide).expect("the guide is there")).contains(&(bare(statement) + ";"))
}
