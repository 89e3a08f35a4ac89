//! Conditional releases: of a holder that is known to be gone, and of no other.

use leasehold_core::op::{Op, Outcome, Refusal, Release};
use leasehold_core::quorum::majority;
use leasehold_core::{Nonce, Resource};

use crate::admin::inspect::{error_of, listed, of_another_library, unavailable};
use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};

/// The holder whose lock [`Client::release_if`] may release, or [`Client::revoke`] may revoke. Everything that is set must be
/// true of it. A number stands for a fencing token.
///
/// ```
/// # async fn example(client: leasehold::Client) -> Result<(), leasehold::Error> {
/// use leasehold::{HolderMatch, ReleaseIfOutcome};
///
/// // A supervisor knows that process 1234 of the machine `worker-7` has died.
/// let holder = HolderMatch::default().owner("worker-7:1234:*");
/// match client.release_if("invoice/42", holder).await? {
///     ReleaseIfOutcome::Released(holder) => println!("{holder}; it is free now"),
///     ReleaseIfOutcome::NotMatched(holder) => println!("{holder}, which is somebody else"),
///     ReleaseIfOutcome::Free => println!("nobody holds it"),
///     _ => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderMatch {
    token: Option<u64>,
    owner: Option<String>,
    /// Of a holder that an earlier answer showed; one of another library has no nonce.
    lease: Option<Option<Nonce>>,
}

/// The result of [`Client::release_if`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReleaseIfOutcome {
    /// This holder matched, and its lock is released.
    Released(LockInfo),
    /// This holder has the lock and is another one than was asked for, or took it in between. Nothing was changed.
    NotMatched(LockInfo),
    /// The lock is free.
    Free,
}

impl HolderMatch {
    /// The holder's fencing token. Each grant has its own, so this names one lease and no later one.
    #[must_use]
    pub fn token(mut self, token: u64) -> Self {
        self.token = Some(token);
        self
    }

    /// The holder's label. `*` stands for any characters, none included: `worker-7:1234:*` is every thread of one process,
    /// with the default labels. A holder without a label never matches.
    #[must_use]
    pub fn owner(mut self, pattern: impl Into<String>) -> Self {
        self.owner = Some(pattern.into());
        self
    }

    /// The very lease that an earlier answer of a client has shown.
    #[must_use]
    pub fn lease(mut self, shown: &LockInfo) -> Self {
        self.lease = Some(shown.nonce);
        self
    }

    /// Tells if this holder is the one that is meant. A token or label that is not shown does not match, and neither does the
    /// token beside a lock of another library, which is that of an earlier holder.
    pub fn matches(&self, holder: &LockInfo) -> bool {
        self.fits(holder.token.filter(|_| !holder.foreign), holder.owner.as_deref())
            && self.lease.is_none_or(|nonce| nonce == holder.nonce)
    }

    /// Tells if a token and a label are those that are meant.
    pub(crate) fn fits(&self, token: Option<u64>, owner: Option<&str>) -> bool {
        self.token.is_none_or(|expected| token == Some(expected))
            && self.owner.as_ref().is_none_or(|pattern| owner.is_some_and(|owner| fits(pattern, owner)))
    }

    /// # Errors
    /// Nothing is set, or a label that no holder can have.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.owner.as_deref() == Some("") {
            return Err(Error::config(
                "the holder's label is empty; write the label, or a pattern such as host:1234:*",
            ));
        }
        if *self == Self::default() {
            return Err(Error::config("say which holder is meant: by its token, its label, or both"));
        }
        Ok(())
    }

    /// # Errors
    /// The nodes that have answered leave it open.
    pub(crate) fn judge(&self, holder: &LockInfo, silent: usize) -> Result<bool, Error> {
        let without_token = Self { token: None, ..self.clone() };
        if !without_token.matches(holder) {
            return Ok(false);
        }
        let open = |what: &str| Err(Error::new(ErrorKind::StoreUnavailable, what).on(&holder.resource));
        if self.token.is_some() && holder.token.is_none() && !holder.foreign {
            return open(
                "the nodes that answered do not agree on the holder's token, so nothing was changed; try again",
            );
        }
        let is_by_name = self.token.is_some() || self.owner.is_some();
        if is_by_name && !holder.is_shown_by_a_majority() {
            if usize::from(holder.votes) + silent >= majority(holder.nodes.into()) {
                return open("the nodes that answered do not agree on the holder, so nothing was changed; try again");
            }
            return Ok(false);
        }
        Ok(self.matches(holder))
    }
}

impl From<u64> for HolderMatch {
    fn from(token: u64) -> Self {
        Self::default().token(token)
    }
}

impl Client {
    /// Releases a lock if its holder is the one that is meant, for a supervisor that knows that this holder is dead. The
    /// record that was compared is released in one conditional write, so a holder that came in between is left alone.
    ///
    /// The token counter survives, as with [`Client::break_lock`]. Of a quorum, the holder is who a majority shows.
    ///
    /// # Errors
    /// As [`Client::inspect`]; [`ErrorKind::Config`] if `holder` says nothing; [`ErrorKind::StoreRefused`] if a client of
    /// another library is meant: its own tools release it. [`ErrorKind::StoreUnavailable`] also when too few nodes of a
    /// quorum answer to tell who holds the lock, or to release it; ask again then.
    pub async fn release_if(&self, resource: impl AsRef<str>, holder: HolderMatch) -> Result<ReleaseIfOutcome, Error> {
        let resource = resource.as_ref();
        holder.check().map_err(|error| error.on(resource))?;
        let (shown, silent) = self.inspect_closely(resource).await?;
        let Some(shown) = shown else { return Ok(ReleaseIfOutcome::Free) };
        if !holder.judge(&shown, silent)? {
            return Ok(ReleaseIfOutcome::NotMatched(shown));
        }
        let Some(nonce) = shown.nonce else { return Err(of_another_library(resource)) };
        // The record that was compared, and no other: should the lock have changed hands since, no store finds it.
        let sessions = self.named_sessions(resource).await?;
        let released = self.release_nonce(resource, nonce).await;
        self.tell_sessions(resource, sessions).await?;
        if released? {
            return Ok(ReleaseIfOutcome::Released(shown));
        }
        let now = self.inspect(resource).await?;
        Ok(now.map_or(ReleaseIfOutcome::Free, ReleaseIfOutcome::NotMatched))
    }

    /// Releases the record of this attempt; answers if there was one. Afterwards no majority has one.
    async fn release_nonce(&self, resource: &str, nonce: Nonce) -> Result<bool, Error> {
        let release = Op::Release(Release { nonce, quorum: None });
        let Some(quorum) = self.shared.quorum() else {
            let outcome = self.request(resource, release).await?;
            return released(outcome).map_err(|error| error.on(resource));
        };
        // Nodes that did not show it, or did not answer, may have it by now.
        let nodes = quorum.urls().len();
        let releases = (0..nodes).map(|node| (node, release.clone())).collect();
        let outcomes = self.driver().request_all(&Resource::new(resource)?, releases).await?;
        let (mut any, mut errors) = (false, Vec::new());
        for (node, outcome) in outcomes.into_iter().enumerate() {
            match released(outcome) {
                Ok(released) => any |= released,
                Err(error) => errors.push((quorum.name(node), error)),
            }
        }
        if nodes - errors.len() >= majority(nodes) {
            return Ok(any);
        }
        let message = format!(
            "the lock is released on fewer nodes than a majority, so it may still be held: {}; try again",
            listed(&errors)
        );
        Err(Error::new(ErrorKind::StoreUnavailable, message).on(resource))
    }
}

/// Tells if there was something to release.
fn released(outcome: Outcome) -> Result<bool, Error> {
    match outcome {
        Outcome::Applied(_) => Ok(true),
        Outcome::NotApplied(Refusal::Conflict(_)) => Ok(false),
        Outcome::NotApplied(refusal) => Err(error_of(&refusal)),
        Outcome::Unknown(fault) => Err(unavailable(&fault)),
    }
}

/// Matches a label with a pattern, where `*` stands for any characters.
pub(crate) fn fits(pattern: &str, label: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == label };
    let Some(mut label) = label.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        // The first place leaves the most for those that follow.
        match label.find(part) {
            Some(at) => label = &label[at + part.len()..],
            None => return false,
        }
    }
    label.ends_with(end)
}

#[cfg(test)]
mod tests {
    use leasehold_core::Version;

    use super::*;

    fn info(nonce: u8, token: Option<u64>, votes: u16, nodes: u16) -> LockInfo {
        LockInfo {
            resource: "job".to_owned(),
            owner: Some("host:12:main".to_owned()),
            token,
            since_unix_ms: None,
            ttl: None,
            left: None,
            unchanged: None,
            data: None,
            session: None,
            session_nonce: None,
            foreign: false,
            revoked: false,
            votes,
            nodes,
            nonce: Some(Nonce::from_bytes([nonce; 16])),
            version: Version::new(&[]).unwrap(),
            is_changed: false,
        }
    }

    fn foreign() -> LockInfo {
        LockInfo { foreign: true, nonce: None, ..info(1, Some(7), 1, 1) }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, label, expected) in [
            ("host:12:main", "host:12:main", true),
            ("host:12:main", "host:12:main2", false),
            ("host:12:*", "host:12:main", true),
            ("host:12:*", "host:12:", true),
            ("host:12:*", "host:123:main", false),
            ("*:main", "host:12:main", true),
            ("*:main", "host:12:main2", false),
            ("host:*:main", "host:12:main", true),
            ("host:*:main", "host:main", false),
            ("*12*main*", "host:12:main", true),
            ("*main*12*", "host:12:main", false),
            ("a*a", "a", false),
            ("a*b*ab", "abab", true),
            ("a*ab*b", "ab", false),
            ("*", "", true),
            ("**", "host", true),
        ] {
            assert_eq!(fits(pattern, label), expected, "{pattern} {label}");
        }
    }

    #[test]
    fn everything_that_is_set_must_match() {
        let any = HolderMatch::default();
        let shown = info(1, Some(7), 1, 1);
        assert!(any.clone().token(7).owner("host:*").matches(&shown));
        assert!(!any.clone().token(8).owner("host:*").matches(&shown));
        assert!(!any.clone().token(7).owner("other:*").matches(&shown));
        assert!(any.clone().lease(&shown).matches(&shown));
        assert!(!any.clone().lease(&info(2, Some(7), 1, 1)).matches(&shown));
        assert!(!any.owner("*").matches(&LockInfo { owner: None, ..shown }));
    }

    #[test]
    fn the_counter_beside_a_foreign_lock_is_not_its_token() {
        assert!(!HolderMatch::default().token(7).judge(&foreign(), 0).unwrap());
        assert!(HolderMatch::default().owner("host:*").judge(&foreign(), 0).unwrap());
        assert!(HolderMatch::default().lease(&foreign()).judge(&foreign(), 0).unwrap());
    }

    #[test]
    fn a_holder_that_nodes_leave_open_is_an_error() {
        let by_token = HolderMatch::default().token(7);
        let kind = |judged: Result<bool, Error>| judged.unwrap_err().kind();
        assert_eq!(kind(by_token.judge(&info(1, None, 2, 3), 1)), ErrorKind::StoreUnavailable);
        let by_owner = HolderMatch::default().owner("host:*");
        assert!(by_owner.judge(&info(1, None, 2, 3), 1).unwrap());
        assert_eq!(kind(by_owner.judge(&info(1, None, 1, 3), 1)), ErrorKind::StoreUnavailable);
        assert!(!by_owner.judge(&info(1, None, 1, 3), 0).unwrap(), "an attempt that no majority shows holds nothing");
        let shown = info(1, None, 1, 3);
        assert!(HolderMatch::default().lease(&shown).judge(&shown, 0).unwrap());
    }

    #[test]
    fn an_empty_description_of_a_holder_is_refused() {
        for nothing in [HolderMatch::default(), HolderMatch::default().owner("")] {
            assert_eq!(nothing.check().unwrap_err().kind(), ErrorKind::Config);
        }
    }
}
