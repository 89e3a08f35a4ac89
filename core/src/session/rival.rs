//! The sessions of others: where their records are, and whether they live.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use crate::ids::{Nonce, Resource, Seq, SessionLabel, Version};
use crate::op::{Denial, DenialKind, Holder, Holding, Op, Outcome, Refusal, Seen, Session, Tell};

/// The resource of a session's record begins with it.
const PREFIX: &str = "session:";

/// The resource whose record a session is.
pub fn resource_of(label: &SessionLabel) -> Option<Resource> {
    Resource::new(&format!("{PREFIX}{}", label.as_str())).ok()
}

/// The label of the session whose record this is, on a node that expires nothing: `NAME`, or `NAME/2` of another session of the
/// same name. The owner of such a record is that name, which tells it from a lock that a user has called so.
pub fn label_of_record<'a>(resource: &'a str, owner: &str) -> Option<&'a str> {
    let label = resource.strip_prefix(PREFIX).filter(|label| !label.is_empty())?;
    let is_cut = label.len() == SessionLabel::MAX_BYTES;
    let is_another = |(name, _): (&str, &str)| name == owner || is_cut && owner.starts_with(name);
    (label == owner || label.rsplit_once('/').is_some_and(is_another)).then_some(label)
}

/// The operation for a session's record that tells its holder of a change to a row which names it. If it is refused, the
/// session is over, and there is nobody to tell.
///
/// Send it after the row was changed. Twice is the same as once: it moves no version, so a rival that observes the session for its
/// time goes on observing.
pub fn tell(session: &Session) -> Op {
    Op::Tell(Tell { nonce: session.nonce })
}

/// The refusal of a tell by a store that expires records itself, where a session is only a name.
pub fn none_is_told() -> Denial {
    Denial::new(
        DenialKind::Other,
        "this store expires records itself, so it keeps no records of sessions, and there is no session to notify",
    )
}

/// Returns true if the record of this resource may be a session's, whose renewals have to show how often it was told.
pub fn may_be_record(resource: &Resource) -> bool {
    resource.as_str().starts_with(PREFIX)
}

/// The session's record that a row stands and falls with, if it was read just now and is held.
pub fn stands_by(row: &Seen) -> Option<Resource> {
    let holding = row.held().filter(|holding| holding.holder != Holder::Foreign)?;
    resource_of(&holding.session.as_ref().filter(|session| session.is_record())?.label)
}

/// The row as it is worth: it lasts as long as its session, and is free once that is over.
///
/// # Errors
/// Nobody can tell whether the session lives.
pub fn shown(mut row: Seen, session: &Seen) -> Result<Seen, Denial> {
    let Some(holding) = row.holding.as_mut() else { return Ok(row) };
    match standing(holding, session) {
        Standing::Alive(shown) => *holding = shown,
        Standing::Over => holding.released = true,
        Standing::Unreadable(denial) => return Err(denial),
    }
    Ok(row)
}

/// The two versions that a rival observes as one, and where the second belongs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) resource: Resource,
    pub(super) row: Version,
    pub(super) session: Version,
}

/// No version of a record begins with it: ours are 20 bytes long, and those of others are text.
const PAIR: [u8; 4] = [0xFF, 0xFE, b'2', 0xFF];

impl Pair {
    fn version(label: &SessionLabel, row: &Version, session: &Version) -> Version {
        let mut bytes = Vec::from(PAIR);
        for part in [label.as_str().as_bytes(), row.as_bytes()] {
            // Both are shorter than 2^16.
            bytes.extend(u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(session.as_bytes());
        Version::of_several(&bytes)
    }

    /// `None` for the version of one record.
    pub(super) fn read(version: &Version) -> Option<Self> {
        let rest = version.as_bytes().strip_prefix(&PAIR)?;
        let (label, rest) = part(rest)?;
        let (row, session) = part(rest)?;
        Some(Self {
            resource: resource_of(&SessionLabel::new(core::str::from_utf8(label).ok()?).ok()?)?,
            row: Version::new(row)?,
            session: Version::new(session)?,
        })
    }
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// The state of a session that a row names.
pub(super) enum Standing {
    /// It lives, as far as is known: this is what the machine is shown of the row.
    Alive(Box<Holding>),
    Over,
    Unreadable(Denial),
}

pub(super) fn standing(row: &Holding, session: &Seen) -> Standing {
    let Some(named) = &row.session else { return Standing::Over };
    let Some(holding) = session.held() else { return Standing::Over };
    // Another library has written in its place: it is waited out, as its records are.
    let is_foreign = holding.holder == Holder::Foreign;
    if !is_foreign && !holding.is_of(&named.nonce) {
        return Standing::Over;
    }
    if holding.record_ttl.is_none() {
        let detail =
            format!("the record of the session {} has no ttl; remove it by hand if nobody holds it", named.label);
        return Standing::Unreadable(Denial::new(DenialKind::CorruptRecord, &detail));
    }
    Standing::Alive(Box::new(Holding {
        holder: if is_foreign { Holder::Foreign } else { row.holder },
        version: Pair::version(&named.label, &row.version, &holding.version),
        record_ttl: holding.record_ttl,
        left: holding.left,
        ..row.clone()
    }))
}

/// A refusal of the session's record in the place of its lock's: the rights of a user may be limited to the names of locks.
pub(super) fn about(label: &SessionLabel, refusal: Refusal) -> Refusal {
    let Refusal::Denied(Denial { kind: kind @ DenialKind::Permission, detail }) = &refusal else { return refusal };
    let detail = format!("the record {PREFIX}{label} of this lock's session cannot be used: {detail}");
    Refusal::Denied(Denial::new(*kind, &detail))
}

/// The answer to a renewal of a lock whose session was revoked.
pub(super) fn revoked(nonce: &Nonce) -> Outcome {
    let holder = Holder::Lease { nonce: *nonce, seq: Some(Seq::LAST) };
    let holding = Holding::of(holder, Version::of(nonce, Seq::LAST));
    Outcome::NotApplied(Refusal::Conflict(Seen { holding: Some(holding.into()), done: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_session_is_told_from_a_lock_that_is_called_so() {
        for (resource, owner, label) in [
            ("session:w", "w", Some("w")),
            ("session:w/2", "w", Some("w/2")),
            ("session:ci/42", "ci/42", Some("ci/42")),
            ("session:ci/42/2", "ci/42", Some("ci/42/2")),
            ("session:w", "host:1:main", None),
            ("session:w", "", None),
            ("session:w/2", "v", None),
            ("session:", "", None),
            ("session", "session", None),
            ("w", "w", None),
        ] {
            assert_eq!(label_of_record(resource, owner), label, "{resource} of {owner}");
        }
        let (name, cut) = ("x".repeat(64), format!("session:{}/2", "x".repeat(62)));
        assert_eq!(label_of_record(&cut, &name), cut.strip_prefix(PREFIX));
        assert_eq!(label_of_record(&cut, &"y".repeat(64)), None);
    }
}
