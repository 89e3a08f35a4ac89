//! The identity of a server: two names for one server are one node.

use std::collections::HashMap;

use leasehold_core::member::RunId;

use crate::host::sync::{Arc, Mutex};
use crate::transport::{FileId, NodeRecord};

/// The identity of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    Run(RunId),
    File(FileId),
    Table(String),
}

/// The servers that are nodes already, with their names.
pub(crate) type KnownServers = Arc<Mutex<HashMap<Identity, String>>>;

/// Registers a server.
///
/// # Errors
/// It is a node already: the name of that.
pub(crate) fn register(known: &KnownServers, name: &str, found: &NodeRecord) -> Result<(), String> {
    let Some(identity) = identity(found) else { return Ok(()) };
    let mut known = known.lock();
    let other = known.entry(identity).or_insert_with(|| name.to_owned());
    if other == name { Ok(()) } else { Err(other.clone()) }
}

fn identity(found: &NodeRecord) -> Option<Identity> {
    if let Some(file) = found.file {
        return Some(Identity::File(file));
    }
    if let Some(table) = &found.table {
        return Some(Identity::Table(table.clone()));
    }
    // Some servers that speak the protocol of Redis have an id of zeros.
    let run = found.run.as_ref().filter(|run| run.as_str().bytes().any(|byte| byte != b'0'))?;
    Some(Identity::Run(run.clone()))
}
