//! What concerns a quorum and its memory.

use leasehold_core::{self as core, member};
use serde::{Deserialize, Serialize};

use super::bytes::array;
use super::{Error, Within, duration, integer, names, ns};

names! {
    /// Whether a node is known to keep through a crash all that it has acknowledged.
    Durability = member::Durability {
        /// It is.
        Declared,
        /// It is not.
        NotDeclared,
    }
}

names! {
    /// Whether a client has found the quorum unborn.
    Bootstrap = member::Bootstrap {
        /// It has.
        Yes,
        /// It has not.
        No,
    }
}

/// What several nodes agree on that form a quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// Which quorum.
    pub id: String,
    /// The longest that a record may stand.
    pub max_ttl_ns: u64,
}

/// What an acquire tells a node of a quorum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membership {
    /// Which quorum.
    pub quorum: String,
    /// The longest that a record may stand.
    pub max_ttl_ms: u64,
    /// What is known of the node; absent for nothing.
    #[serde(default = "not_declared", skip_serializing_if = "is_not_declared")]
    pub durability: Durability,
    /// The name of a loss, should this send find it.
    pub fresh: String,
    /// The loss that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_out: Option<String>,
    /// Whether the quorum is to be born; absent for no.
    #[serde(default = "no_birth", skip_serializing_if = "is_no_birth")]
    pub birth: Bootstrap,
    /// For how long a node that rejoins stays in doubt; absent for 7 days.
    #[serde(default = "retention", skip_serializing_if = "is_retention")]
    pub retention_ns: u64,
}

pub(super) const fn not_declared() -> Durability {
    Durability::NotDeclared
}

pub(super) fn is_not_declared(durability: &Durability) -> bool {
    *durability == Durability::NotDeclared
}

const fn no_birth() -> Bootstrap {
    Bootstrap::No
}

fn is_no_birth(birth: &Bootstrap) -> bool {
    *birth == Bootstrap::No
}

fn retention() -> u64 {
    ns(member::RETENTION)
}

fn is_retention(retention_ns: &u64) -> bool {
    *retention_ns == retention()
}

pub(super) fn to_stamp(hex: &str) -> Result<member::LossId, Error> {
    array(hex).map(member::LossId)
}

impl From<&core::Quorum> for Quorum {
    fn from(quorum: &core::Quorum) -> Self {
        Self { id: quorum.id().to_string(), max_ttl_ns: ns(quorum.max_ttl()) }
    }
}

impl Quorum {
    /// The settings themselves.
    ///
    /// # Errors
    /// Whatever the core refuses, and what it would round.
    pub fn to_core(&self) -> Result<core::Quorum, Error> {
        let id = array(&self.id).map(member::QuorumId).within("id")?;
        let quorum = core::Quorum::new(id, duration(self.max_ttl_ns).within("max_ttl_ns")?).within("max_ttl_ns")?;
        let rounded = Error::new("the core would round this: max_ttl is in whole milliseconds");
        if Self::from(&quorum) == *self { Ok(quorum) } else { Err(rounded).within("max_ttl_ns") }
    }
}

impl From<&member::Membership> for Membership {
    fn from(member: &member::Membership) -> Self {
        Self {
            quorum: member.quorum.to_string(),
            max_ttl_ms: member.max_ttl_ms,
            durability: member.durability.into(),
            fresh: member.fresh.to_string(),
            waited_out: member.waited_out.map(|stamp| stamp.to_string()),
            birth: member.bootstrap.into(),
            retention_ns: ns(member.retention),
        }
    }
}

impl Membership {
    /// What is told itself.
    ///
    /// # Errors
    /// What no client says.
    pub fn to_core(&self) -> Result<member::Membership, Error> {
        Ok(member::Membership {
            quorum: array(&self.quorum).map(member::QuorumId).within("quorum")?,
            max_ttl_ms: integer(self.max_ttl_ms).within("max_ttl_ms")?,
            durability: self.durability.into(),
            fresh: to_stamp(&self.fresh).within("fresh")?,
            waited_out: self.waited_out.as_deref().map(to_stamp).transpose().within("waited_out")?,
            bootstrap: self.birth.into(),
            retention: duration(self.retention_ns).within("retention_ns")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn told() -> member::Membership {
        member::Membership {
            quorum: member::QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            durability: member::Durability::NotDeclared,
            fresh: member::LossId([2; 16]),
            waited_out: None,
            bootstrap: member::Bootstrap::No,
            retention: member::RETENTION,
        }
    }

    #[test]
    fn what_a_node_is_told_survives_and_leaves_out_what_is_usual() {
        let rare = member::Membership {
            durability: member::Durability::Declared,
            waited_out: Some(member::LossId([3; 16])),
            bootstrap: member::Bootstrap::Yes,
            retention: Duration::from_secs(5),
            ..told()
        };
        for (member, fields) in [(told(), 3), (rare, 7)] {
            let value = serde_json::to_value(Membership::from(&member)).unwrap();
            assert_eq!(value.as_object().map(serde_json::Map::len), Some(fields), "{value}");
            let read: Membership = serde_json::from_value(value).unwrap();
            assert_eq!(read.to_core().unwrap(), member);
        }
    }

    #[test]
    fn what_no_quorum_can_have_is_refused_by_name() {
        let refused = |quorum: Quorum| quorum.to_core().unwrap_err().to_string();
        let good = Quorum { id: "01".repeat(16), max_ttl_ns: 60_000_000_000 };
        assert_eq!(Quorum::from(&good.to_core().unwrap()), good);
        assert_eq!(refused(Quorum { id: "01".into(), ..good.clone() }), "id: 1 bytes where there must be 16");
        assert!(refused(Quorum { max_ttl_ns: 1, ..good.clone() }).starts_with("max_ttl_ns: max_ttl 1ns is below"));
        assert!(refused(Quorum { max_ttl_ns: 60_000_000_001, ..good }).contains("round"));
        let refused = |member: Membership| member.to_core().unwrap_err().to_string();
        let good = Membership::from(&told());
        assert_eq!(refused(Membership { fresh: "00".into(), ..good.clone() }), "fresh: 1 bytes where there must be 16");
        assert!(refused(Membership { waited_out: Some("x".into()), ..good }).starts_with("waited_out: "));
    }
}
