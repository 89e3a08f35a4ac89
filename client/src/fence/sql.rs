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

/// Tells if docs/fencing.md has a statement, with any line breaks and quoting.
#[cfg(test)]
pub(super) fn in_the_guide(statement: &str) -> bool {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fencing.md");
    let bare = |text: &str| text.replace(|c: char| c.is_whitespace() || c == '"', "");
    bare(&std::fs::read_to_string(guide).expect("the guide is there")).contains(&(bare(statement) + ";"))
}
