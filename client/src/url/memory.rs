//! `memory:` and `memory:NAME`: a store in this process.

use std::fmt;

use super::Said;

/// A store in this process: of its own, or shared by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryUrl {
    pub(crate) name: Option<String>,
}

pub(super) fn parse(text: &str) -> Result<Said, String> {
    let name = text.strip_prefix("memory:").unwrap_or_default();
    if name.starts_with('/') {
        return Err("a memory store has a name, not a path; write memory: or memory:NAME".to_owned());
    }
    Ok(Said::whole(MemoryUrl { name: (!name.is_empty()).then(|| name.to_owned()) }))
}

impl fmt::Display for MemoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.name.as_deref().unwrap_or_default())
    }
}
