//! Checks of a client that connects: a quorum that cannot work is an error, and one that is weak gets a warning.

use super::answers::{Quorum, unavailable};
use super::identity::{KnownServers, register};
use super::status::Standing;
use crate::error::{Error, ErrorKind};
use crate::transport::{self, Transport};
use crate::url::place::Place;

/// # Errors
/// As [`check_answers`]; or too many do not answer.
pub(crate) fn check(quorum: &Quorum) -> Result<(), Error> {
    check_answers(quorum)?;
    let failed = quorum.answers().filter_map(|(node, answered)| Some((node.name, answered.found.as_ref().err()?)));
    let unreachable: Vec<String> = failed.map(|(name, error)| transport::of(&name, error)).collect();
    let (all, majority) = (quorum.answers.len(), quorum.majority());
    if all - unreachable.len() < majority {
        return Err(unavailable(format!(
            "{} of {all} nodes cannot be reached, and a majority of {majority} is needed: {}",
            unreachable.len(),
            unreachable.join("; ")
        )));
    }
    Ok(())
}

/// # Errors
/// A node is another one's, refuses, or is the same as another.
pub(super) fn check_answers(quorum: &Quorum) -> Result<(), Error> {
    let mut errors = quorum.answers.iter().filter_map(|answered| answered.found.as_ref().err());
    if let Some(error) = errors.find(|error| error.kind() != ErrorKind::StoreUnavailable) {
        return Err(error.clone());
    }
    check_identities(quorum)?;
    for status in quorum.status() {
        if matches!(status.standing, Standing::Stranger | Standing::Unreadable) {
            return Err(Error::config(format!("{}: {}", status.name, status.meaning)));
        }
    }
    Ok(())
}

/// # Errors
/// Two nodes are one.
pub(super) fn check_identities(quorum: &Quorum) -> Result<(), Error> {
    let known = KnownServers::default();
    for (node, answered) in quorum.answers() {
        let Ok(found) = &answered.found else { continue };
        if let Err(other) = register(&known, node.name, found) {
            let same = match (db_of(quorum, &other), node.place.database()) {
                (Some(one), Some(two)) if one != two => "databases of the same server",
                (_, _) if found.table.is_some() => "the same table under two names",
                (_, _) => "the same server under two names",
            };
            return Err(Error::config(format!(
                "{other} and {} are {same}: its failure would take two votes at once, although independent nodes would \
                 still have a majority; name each server once",
                node.name
            )));
        }
    }
    Ok(())
}

fn db_of(quorum: &Quorum, name: &str) -> Option<u32> {
    quorum.nodes.iter().find(|node| node.name == name).and_then(|node| node.place.database())
}

/// Tells operators what weakens the quorum, though it works.
pub(crate) fn announce(quorum: &Quorum) {
    let nodes = quorum.answers.len();
    if let Some(what) = even(nodes) {
        tracing::warn!(name: "quorum.even", target: "leasehold", nodes, "{what}");
    }
    for status in quorum.status() {
        let (node, standing, meaning) = (&status.name, status.standing.name(), &status.meaning);
        match status.standing {
            Standing::Member | Standing::Rejoined => {}
            Standing::Unreachable | Standing::Refused | Standing::Stranger | Standing::Unreadable => {
                tracing::warn!(name: "quorum.node_unreachable", target: "leasehold", node, standing, "{node} {meaning}; it is connected to later");
            }
            Standing::Joining | Standing::Restarted | Standing::Unmarked => {
                tracing::info!(name: "lock.node_abstains", target: "leasehold", node, standing, "{node} {meaning}");
            }
        }
    }
}

/// Why an even number of nodes is a bad choice.
pub(super) fn even(nodes: usize) -> Option<String> {
    let stands = |nodes: usize| match nodes.saturating_sub(1) / 2 {
        0 => "no failure".to_owned(),
        1 => "1 failure".to_owned(),
        more => format!("{more} failures"),
    };
    nodes.is_multiple_of(2).then(|| match nodes {
        2 => "a quorum of 2 nodes survives no failure: both are needed for every lock; use one store alone, or 3 nodes"
            .to_owned(),
        _ => format!(
            "a quorum of {nodes} nodes survives {}, as one of {} does, but has more nodes that can fail; use {} or {} \
             nodes",
            stands(nodes),
            nodes - 1,
            nodes - 1,
            nodes + 1
        ),
    })
}

/// Refuses a store that decides together with others. One that is too busy to say goes on being asked for locks.
///
/// # Errors
/// [`ErrorKind::Config`] where it has the marker of a quorum.
pub(crate) fn refuse_node(url: &dyn Place, store: &dyn Transport) -> Result<(), Error> {
    let found = match store.look() {
        Ok(found) => found,
        Err(why) => {
            // A client that may not read the marker could not use a node of a quorum either.
            if why.kind() == ErrorKind::StoreUnavailable {
                let store = url.to_string();
                tracing::warn!(name: "quorum.marker_unread", target: "leasehold", store, "could not check whether {store} is a node of a quorum, which must not be used alone: {why}");
            }
            return Ok(());
        }
    };
    if found.text.is_empty() {
        return Ok(());
    }
    let of = found.marker.map(|marker| format!(" of the quorum {}", marker.quorum)).unwrap_or_default();
    Err(Error::config(format!(
        "{url} is a node{of}, and named alone here: its lock would not exclude those of the quorum. Name all nodes of \
         the quorum, as its other clients do; if the quorum is no more, remove the node's membership record, as \
         docs/quorum.md describes"
    )))
}
