//! The membership of a node, and its meaning in words.

use std::time::Duration;

use leasehold_core::config::Span;
use leasehold_core::member::{Durability, Marker, Phase, RunId};

use super::nodes::Nodes;
use crate::error::{Error, ErrorKind};
use crate::host::time::Time;
use crate::transport::NodeRecord;
use crate::url::place::Place;

/// The status of one node of a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Its name: the url without user, password and parameters.
    pub name: String,
    /// Its standing in the quorum.
    pub standing: Standing,
    /// The id of the quorum that it is marked with.
    pub quorum: Option<String>,
    /// The `max_ttl` that it is marked with.
    pub max_ttl: Option<Duration>,
    /// The run of its server, which changes with every restart; `None` where it has none or does not tell.
    pub run: Option<String>,
    /// Its url says `durable=yes`. Files are always durable, and so is memory, which nothing restarts.
    pub durable: bool,
    /// The meaning of all this, and advice.
    pub meaning: String,
}

/// The standing of a node in its quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// It votes, and has forgotten nothing since the quorum was made.
    Member,
    /// It votes; since it lost its memory, its counters are believed resource by resource only.
    Rejoined,
    /// It does not vote until a client has waited its abstention out.
    Joining,
    /// Its server was restarted, and may have lost data: it will not vote until then either.
    Restarted,
    /// It has no marker: it is new, or has lost its data. It will not vote until then either.
    Unmarked,
    /// It belongs to another quorum, or its quorum has another `max_ttl`.
    Stranger,
    /// Its marker is written in a form that this version does not know.
    Unreadable,
    /// It does not answer.
    Unreachable,
    /// It answers, and refuses.
    Refused,
}

impl Standing {
    /// A stable name for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Rejoined => "rejoined",
            Self::Joining => "joining",
            Self::Restarted => "restarted",
            Self::Unmarked => "unmarked",
            Self::Stranger => "stranger",
            Self::Unreadable => "unreadable",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
        }
    }

    /// Tells if it votes now.
    pub const fn votes(self) -> bool {
        matches!(self, Self::Member | Self::Rejoined)
    }

    /// Tells if it answers at all.
    pub const fn answers(self) -> bool {
        !matches!(self, Self::Unreachable)
    }
}

impl Nodes {
    pub(super) fn status(&self, name: &str, place: &dyn Place, found: &Result<NodeRecord, Error>) -> NodeStatus {
        let durability = place.config().durability;
        let standing = self.standing(durability, found);
        let marker = found.as_ref().ok().and_then(|found| found.marker.as_ref());
        NodeStatus {
            name: name.to_owned(),
            standing,
            quorum: marker.map(|marker| marker.quorum.to_string()),
            max_ttl: marker.map(|marker| Duration::from_millis(marker.max_ttl_ms)),
            run: found.as_ref().ok().and_then(|found| found.run.as_ref()).map(|run| run.as_str().to_owned()),
            durable: durability == Durability::Declared,
            meaning: self.meaning(standing, found, marker),
        }
    }

    fn standing(&self, durability: Durability, found: &Result<NodeRecord, Error>) -> Standing {
        let found = match found {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => return Standing::Unreachable,
            Err(_) => return Standing::Refused,
        };
        let Some(marker) = &found.marker else {
            return if found.text.is_empty() { Standing::Unmarked } else { Standing::Unreadable };
        };
        if marker.quorum != self.agreed.id() || u128::from(marker.max_ttl_ms) != self.agreed.max_ttl().as_millis() {
            return Standing::Stranger;
        }
        by_marker(marker, found.run.as_ref(), durability)
    }

    fn meaning(&self, standing: Standing, found: &Result<NodeRecord, Error>, marker: Option<&Marker>) -> String {
        let wait = format!("{:.1} s", self.abstention().as_secs_f64());
        match standing {
            Standing::Member => "votes".to_owned(),
            Standing::Rejoined => match marker.map(|marker| marker.phase) {
                Some(Phase::Rejoined { trusted_from_unix_ms }) => {
                    let left = Duration::from_millis(trusted_from_unix_ms.saturating_sub(Time::System.unix_ms()));
                    if left.is_zero() {
                        "votes; it lost its data, but more than 7 days ago".to_owned()
                    } else {
                        format!(
                            "votes; it lost its data, so for another {:.1} days it does not count for runs, and its \
                             counter for a lock counts only after that lock was granted again",
                            left.as_secs_f64() / 86_400.0
                        )
                    }
                }
                Some(Phase::Member | Phase::Joining) | None => "votes".to_owned(),
            },
            Standing::Joining => format!(
                "does not vote: it is new, or has lost its data; it votes once a client that wants a lock has waited \
                 {wait} for it"
            ),
            Standing::Restarted => format!(
                "does not vote: its server was restarted, and may have lost data; it votes again once a client that \
                 wants a lock has waited {wait} for it. If the server has appendfsync always and evicts nothing, write \
                 durable=yes into its url"
            ),
            Standing::Unmarked => format!(
                "does not vote: it has no membership record, so it is new, or has lost its data (by a restart without \
                 persistence, FLUSHALL, eviction, or the promotion of a replica); it votes once a client that wants a \
                 lock has waited {wait} for it. New nodes are marked with `leasehold quorum init`"
            ),
            Standing::Stranger => self.stranger(marker),
            Standing::Unreadable => "refuses: its membership record has a format that this version does not know; \
                                     update leasehold, or mark the nodes again with `leasehold quorum init --force` \
                                     while nobody holds a lock"
                .to_owned(),
            Standing::Unreachable | Standing::Refused => {
                let why = found.as_ref().err().map(Error::to_string).unwrap_or_default();
                let verb = if standing == Standing::Refused { "refuses" } else { "does not answer" };
                format!("{verb}: {why}")
            }
        }
    }

    /// The problem with a marker, and advice.
    pub(super) fn stranger(&self, marker: Option<&Marker>) -> String {
        let Some(marker) = marker else { return "its membership record cannot be read".to_owned() };
        let ours = self.agreed.id();
        if marker.quorum != ours {
            return format!(
                "belongs to the quorum {}, but these nodes are the quorum {ours}, and the two could grant the same \
                 lock. Name the same nodes everywhere, by the same names (`localhost` and `127.0.0.1` are two), or \
                 give the old id as quorum_id if only names have changed; after a change of nodes, mark them again \
                 with `leasehold quorum init --force` while nobody holds a lock",
                marker.quorum
            );
        }
        format!(
            "has a max_ttl of {}, but this client has one of {}: all clients need the same, because a node that has \
             lost its data does not vote for that long. Leave max_ttl out, or set it to what the nodes have; to change \
             it, mark all nodes again with `leasehold quorum init --force --max-ttl` while nobody holds a lock",
            Span(Duration::from_millis(marker.max_ttl_ms)),
            Span(self.agreed.max_ttl())
        )
    }
}

/// The standing of a node of this quorum, if its server's run is `run` now.
fn by_marker(marker: &Marker, run: Option<&RunId>, durability: Durability) -> Standing {
    if durability == Durability::NotDeclared && marker.is_of_another_run(run) {
        return Standing::Restarted;
    }
    match marker.phase {
        Phase::Member => Standing::Member,
        Phase::Joining => Standing::Joining,
        Phase::Rejoined { .. } => Standing::Rejoined,
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::member::{LossId, QuorumId};

    use super::*;

    #[test]
    fn the_standing_of_a_restarted_node_follows_its_durability() {
        let run = |text: &str| Some(RunId::new(text).unwrap());
        let marked = |run| Marker {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            stamp: LossId([2; 16]),
            phase: Phase::Member,
            run,
        };
        for (under, now, standing) in [
            (run("one"), run("one"), Standing::Member),
            (run("one"), run("two"), Standing::Restarted),
            (None, run("one"), Standing::Restarted),
            (run("one"), None, Standing::Member),
            (None, None, Standing::Member),
        ] {
            let marker = marked(under);
            assert_eq!(by_marker(&marker, now.as_ref(), Durability::NotDeclared), standing, "{marker} under {now:?}");
            assert_eq!(by_marker(&marker, now.as_ref(), Durability::Declared), Standing::Member);
        }
    }
}
