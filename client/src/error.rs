//! One error type, told apart by what the caller can do about it.

use std::fmt;
use std::time::Duration;

use leasehold_core::op::{Fault, Holder, Holding};
use leasehold_core::{Attempts, ConfigError, Failure, LostReason, Nonce, Sighting, Version};

use crate::fence;
use crate::runs::completion::Completion;

pub use leasehold_core::ErrorKind;

/// An error of the client: its kind, the resource, and a message with advice.
///
/// Match on [`Error::kind`]; the message is for people and may change. `Debug` shows the message and the kind, so that it reads
/// well where `main` returns the error, or where it is unwrapped.
#[derive(Clone)]
pub struct Error {
    /// Kind, resource and message, and how they are shown.
    inner: fence::Error,
    holder: Option<Box<LockInfo>>,
    completion: Option<Box<Completion>>,
    attempts: Option<Box<Attempts>>,
    lost_reason: Option<&'static str>,
}

/// The holder of a lock, as far as the store shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// The locked resource.
    pub resource: String,
    /// The holder's label; `None` for holders that leave none.
    pub owner: Option<String>,
    /// The holder's fencing token; `None` where the nodes of a quorum that were heard leave open which it is.
    pub token: Option<u64>,
    /// When the lease was granted, in milliseconds since 1970 by the store's wall clock.
    pub since_unix_ms: Option<u64>,
    /// The lifetime of the lease without renewal.
    pub ttl: Option<Duration>,
    /// Time until the store frees the lock unless it is renewed; `None` where only observation can tell.
    pub left: Option<Duration>,
    /// How long this client has seen the record unchanged, from its first look to the last one, where only observation can tell
    /// if the holder lives: it is taken over once this is a little more than the ttl. `None` elsewhere, and for all but
    /// [`Error::holder`] and [`Once::Running`](crate::Once::Running).
    pub unchanged: Option<Duration>,
    /// The holder's payload.
    pub data: Option<Vec<u8>>,
    /// The name of the [session](crate::ClientBuilder::session) that the lease belongs to.
    pub session: Option<String>,
    /// Written by another lock library.
    pub foreign: bool,
    /// [Revoked](crate::Client::revoke): held until its holder lets go, or until it runs out. Of a quorum, on so many nodes
    /// that its holder cannot keep it.
    pub revoked: bool,
    /// The number of nodes that showed this record, of [`LockInfo::nodes`] that answered: fewer than a majority while an
    /// attempt is under way, or is being cleaned up.
    pub votes: u16,
    /// The number of nodes that were asked: all of a quorum in answer to [`Client::inspect`](crate::Client::inspect)
    /// and [`Client::break_lock`](crate::Client::break_lock); 1 for a single store, and for [`Error::holder`], which is
    /// the record that most of the nodes had shown by then, and counts no votes.
    pub nodes: u16,
    /// The attempt, which tells one lease from all others; foreign holders have none. Knowing it is enough to release the lock.
    pub(crate) nonce: Option<Nonce>,
    /// Tells two sessions of one name apart, where a session is only a name beside each lock.
    pub(crate) session_nonce: Option<Nonce>,
    /// Another one after each renewal, where only observation tells whether a holder lives.
    pub(crate) version: Version,
    /// Another version was seen before.
    pub(crate) is_changed: bool,
}

impl LockInfo {
    pub(crate) fn shown(resource: &str, holding: &Holding) -> Self {
        Self {
            resource: resource.to_owned(),
            owner: holding.owner.as_ref().map(|owner| owner.as_str().to_owned()).filter(|owner| !owner.is_empty()),
            token: holding.counter.map(leasehold_core::Token::get),
            since_unix_ms: holding.since_unix_ms,
            ttl: holding.record_ttl,
            left: holding.left,
            unchanged: None,
            data: holding.data.as_ref().map(|data| data.as_bytes().to_vec()),
            session: holding.session.as_ref().map(|session| session.label.as_str().to_owned()),
            foreign: matches!(holding.holder, Holder::Foreign),
            revoked: holding.is_revoked(),
            votes: 1,
            nodes: 1,
            nonce: match holding.holder {
                Holder::Lease { nonce, .. } => Some(nonce),
                Holder::Foreign => None,
            },
            session_nonce: holding.session.as_ref().filter(|session| !session.is_record()).map(|session| session.nonce),
            version: holding.version.clone(),
            is_changed: false,
        }
    }

    /// Adds what the client has seen of the records in the way: of a quorum, the node that showed this one for the longest time.
    fn with_sightings(self, sightings: &[Sighting]) -> Self {
        let shown = sightings.iter().filter(|sighting| sighting.version == self.version);
        let Some(longest) = shown.max_by_key(|sighting| sighting.seen.since(sighting.since)) else { return self };
        Self { unchanged: Some(longest.seen.since(longest.since)), is_changed: longest.is_changed, ..self }
    }

    /// Tells if a majority of the nodes showed the record, so that the lock is held. Always true for a single store,
    /// and for [`Error::holder`], which counts no votes.
    pub const fn is_shown_by_a_majority(&self) -> bool {
        self.votes > self.nodes / 2
    }
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "held by {owner}")?,
            None if self.foreign => f.write_str("held by a client of another library")?,
            None => f.write_str("held by a client without a label")?,
        }
        if let Some(token) = self.token {
            write!(f, ", token {token}")?;
        }
        if let Some(session) = &self.session {
            write!(f, ", session {session}")?;
        }
        if self.revoked {
            f.write_str(", revoked")?;
        }
        if let Some(left) = self.left {
            let unless = if self.revoked { "at most" } else { "left unless renewed" };
            write!(f, ", {:.1} s {unless}", left.as_secs_f64())?;
        }
        if let Some(unchanged) = self.unchanged {
            f.write_str(if self.is_changed {
                ", seen to change, and since then unchanged"
            } else {
                ", seen unchanged"
            })?;
            write!(f, " for {:.1} s", unchanged.as_secs_f64())?;
            if let Some(ttl) = self.ttl {
                write!(f, " of its ttl of {:.1} s", ttl.as_secs_f64())?;
            }
        }
        if self.is_shown_by_a_majority() {
            return Ok(());
        }
        write!(f, ", shown by only {} of {} nodes, which is not a majority", self.votes, self.nodes)
    }
}

impl Error {
    /// The kind, by how a caller can react.
    pub const fn kind(&self) -> ErrorKind {
        self.inner.kind()
    }

    /// The resource that it is about.
    pub fn resource(&self) -> Option<&str> {
        self.inner.resource()
    }

    /// The holder of the lock, where that is the reason.
    pub fn holder(&self) -> Option<&LockInfo> {
        self.holder.as_deref()
    }

    /// The completion of finished work, where that is the reason.
    pub fn completion(&self) -> Option<&Completion> {
        self.completion.as_deref()
    }

    /// The attempts at the work of a run that was given up.
    pub fn attempts(&self) -> Option<&Attempts> {
        self.attempts.as_deref()
    }

    /// Why the lease is over, where that is known: the stable name that metrics use, such as `expired`, `taken_over` or
    /// `revoked`.
    pub const fn lost_reason(&self) -> Option<&'static str> {
        self.lost_reason
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        fence::Error::new(kind, message).into()
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    pub(crate) fn on(self, resource: &str) -> Self {
        Self { inner: self.inner.on(resource), ..self }
    }

    pub(crate) fn with_attempts(self, attempts: Attempts) -> Self {
        Self { attempts: Some(Box::new(attempts)), ..self }
    }

    pub(crate) fn already_released(resource: &str) -> Self {
        Self::new(ErrorKind::NotOwned, "this lease was already released").on(resource)
    }

    pub(crate) fn lost(resource: &str, reason: &LostReason, trouble: Option<&Fault>) -> Self {
        let trouble = trouble.map(|fault| format!(" ({fault})")).unwrap_or_default();
        let advice = match reason {
            LostReason::Revoked => "the work it protected must stop; the lock is released once it has ended",
            LostReason::Expired
            | LostReason::MaxHold
            | LostReason::TakenOver { .. }
            | LostReason::Released
            | LostReason::RecordGone => "the work it protected must stop, since another worker may have the lock",
        };
        let error = Self::new(ErrorKind::Lost, format!("the lease is lost: {reason}{trouble}; {advice}")).on(resource);
        Self { lost_reason: Some(reason.name()), ..error }
    }

    /// The work was done.
    pub(crate) fn done(resource: &str, completion: Completion) -> Self {
        let message = format!("done already: {completion}");
        Self { completion: Some(Box::new(completion)), ..Self::new(ErrorKind::Done, message).on(resource) }
    }

    /// Adds which nodes of a quorum are to blame.
    pub(crate) fn with_nodes(mut self, nodes: &[(String, Fault)]) -> Self {
        for (n, (name, fault)) in nodes.iter().enumerate() {
            self.inner.add(&format!("{}{name}: {fault}", if n == 0 { "; " } else { ", " }));
        }
        self
    }

    /// `sightings` are those of the resource.
    pub(crate) fn failed(resource: &str, failure: Failure, sightings: &[Sighting]) -> Self {
        let held = |kind, what: &str, holding: Option<Box<Holding>>| {
            let shown = |holding: &Holding| LockInfo::shown(resource, holding).with_sightings(sightings);
            let holder = holding.map(|holding| Box::new(shown(&holding)));
            let who = holder.as_ref().map_or_else(|| "held by another client".to_owned(), |holder| holder.to_string());
            Self { holder, ..Self::new(kind, format!("{what}: {who}")) }
        };
        match failure {
            Failure::Busy { holding } => held(ErrorKind::Busy, "busy", holding),
            Failure::TimedOut { holding } => held(ErrorKind::TimedOut, "not free within the wait", holding),
            Failure::Throttled(fault) => {
                Self::new(ErrorKind::StoreUnavailable, format!("the store is throttling requests ({fault})"))
            }
            Failure::Unavailable(fault) => {
                Self::new(ErrorKind::StoreUnavailable, format!("the store cannot be used now ({fault})"))
            }
            Failure::Abstains { left } => Self::new(
                ErrorKind::StoreUnavailable,
                format!(
                    "the quorum cannot grant locks for another {:.1} s, because too many of its nodes are new or have \
                     lost their data; if the quorum is new, run `leasehold quorum init`, or connect with create_quorum \
                     (Node: createQuorum)",
                    left.as_secs_f64()
                ),
            ),
            Failure::Done(completion) => Self::done(resource, Completion::shown(&completion)),
            Failure::CompletionsInDoubt => Self::new(
                ErrorKind::StoreUnavailable,
                "nodes of the quorum have lost their data within 7 days, perhaps with the completion of this work, and \
                 the others are too few to say that it was not done; bring back nodes that are away, or, if you know \
                 that no completion was lost, run `leasehold once --trust-quorum`",
            ),
            Failure::Refused(denial) => Self::new(ErrorKind::StoreRefused, format!("the store refuses: {denial}")),
            // One that its caller gave up is told to nobody.
            Failure::Cancelled => Self::new(
                ErrorKind::Closed,
                "the client was closed during the call, which has acquired nothing: close a client after its last \
                 call, or connect again",
            ),
        }
        .on(resource)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

impl std::error::Error for Error {}

impl From<leasehold_core::Error> for Error {
    fn from(error: leasehold_core::Error) -> Self {
        let is_closed = matches!(error, leasehold_core::Error::Closed);
        let kind = if is_closed { ErrorKind::Closed } else { ErrorKind::Config };
        Self::new(kind, error.to_string())
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::config(error.to_string())
    }
}

impl From<fence::Error> for Error {
    fn from(inner: fence::Error) -> Self {
        Self { inner, holder: None, completion: None, attempts: None, lost_reason: None }
    }
}

impl From<fence::Rejected> for Error {
    fn from(rejected: fence::Rejected) -> Self {
        fence::Error::from(rejected).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guard_reports_reads_the_same_in_the_client() {
        for kind in [ErrorKind::StaleToken, ErrorKind::Config, ErrorKind::StoreRefused, ErrorKind::StoreUnavailable] {
            let of_a_guard = fence::Error::new(kind, "the mark is 7");
            for error in [of_a_guard.clone(), of_a_guard.on("jobs/a")] {
                let ours = Error::from(error.clone());
                assert_eq!((ours.kind(), ours.resource()), (error.kind(), error.resource()));
                assert_eq!(ours.to_string(), error.to_string());
                assert_eq!(format!("{ours:?}"), format!("{error:?}"));
            }
        }
    }
}
