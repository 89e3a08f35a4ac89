//! The holder of a lock.

use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

use crate::options::milliseconds;

/// The holder of a lock, as far as the store shows it. Lengths of time are milliseconds.
#[napi(object, object_from_js = false)]
pub struct LockInfo {
    /// The locked resource.
    pub resource: String,
    /// The holder's label.
    pub owner: Option<String>,
    /// The holder's fencing token.
    pub token: Option<i64>,
    /// When the lease was granted, since 1970 by the store's wall clock.
    pub since: Option<f64>,
    /// The lifetime of the lease without renewal.
    pub ttl: Option<f64>,
    /// Time until the store frees the lock unless it is renewed.
    pub left: Option<f64>,
    /// How long this client has seen the record unchanged, where only observation can tell if its holder lives.
    pub unchanged: Option<f64>,
    /// The holder's payload.
    pub data: Option<Buffer>,
    /// The name of the session that the lease belongs to.
    pub session: Option<String>,
    /// True if another lock library wrote the record.
    pub foreign: bool,
    /// True if the lease is revoked.
    pub revoked: bool,
    /// The number of nodes that showed this record.
    pub votes: u32,
    /// The number of nodes that were asked.
    pub nodes: u32,
}

impl From<leasehold::LockInfo> for LockInfo {
    fn from(info: leasehold::LockInfo) -> Self {
        Self {
            resource: info.resource,
            owner: info.owner,
            token: info.token.map(whole),
            since: info.since_unix_ms.map(|ms| milliseconds(std::time::Duration::from_millis(ms))),
            ttl: info.ttl.map(milliseconds),
            left: info.left.map(milliseconds),
            unchanged: info.unchanged.map(milliseconds),
            data: info.data.map(Buffer::from),
            session: info.session,
            foreign: info.foreign,
            revoked: info.revoked,
            votes: info.votes.into(),
            nodes: info.nodes.into(),
        }
    }
}

/// The outcome of a conditional release.
#[napi(object, object_from_js = false)]
pub struct ReleaseIfOutcome {
    /// True if the lock was released for the holder that was named.
    pub released: bool,
    /// The holder whose lock was released, or the present one.
    pub holder: Option<LockInfo>,
}

impl From<leasehold::ReleaseIfOutcome> for ReleaseIfOutcome {
    fn from(outcome: leasehold::ReleaseIfOutcome) -> Self {
        match outcome {
            leasehold::ReleaseIfOutcome::Released(holder) => Self { released: true, holder: Some(holder.into()) },
            leasehold::ReleaseIfOutcome::NotMatched(holder) => Self { released: false, holder: Some(holder.into()) },
            leasehold::ReleaseIfOutcome::Free | _ => Self { released: false, holder: None },
        }
    }
}

/// The outcome of a revoke.
#[napi(object, object_from_js = false)]
pub struct RevokeOutcome {
    /// True if the lease of the holder that was named is revoked.
    pub revoked: bool,
    /// The holder whose lease is revoked, or the present one.
    pub holder: Option<LockInfo>,
}

impl From<leasehold::RevokeOutcome> for RevokeOutcome {
    fn from(outcome: leasehold::RevokeOutcome) -> Self {
        match outcome {
            leasehold::RevokeOutcome::Revoked(holder) => Self { revoked: true, holder: Some(holder.into()) },
            leasehold::RevokeOutcome::NotMatched(holder) => Self { revoked: false, holder: Some(holder.into()) },
            leasehold::RevokeOutcome::Free | _ => Self { revoked: false, holder: None },
        }
    }
}

/// A session and its locks.
#[napi(object, object_from_js = false)]
pub struct SessionInfo {
    /// Its name.
    pub label: String,
    /// When it began, since 1970 by the store's wall clock.
    pub since: Option<f64>,
    /// True if it is revoked as a whole.
    pub revoked: bool,
    /// Its locks, by their names.
    pub locks: Vec<LockInfo>,
}

impl From<leasehold::SessionInfo> for SessionInfo {
    fn from(session: leasehold::SessionInfo) -> Self {
        Self {
            label: session.label,
            since: session.since_unix_ms.map(|ms| milliseconds(std::time::Duration::from_millis(ms))),
            revoked: session.revoked,
            locks: session.locks.into_iter().map(LockInfo::from).collect(),
        }
    }
}

/// A token as a JavaScript number, which can hold every token.
pub(crate) fn whole(token: u64) -> i64 {
    i64::try_from(token).expect("invariant: tokens are below 2^53")
}
