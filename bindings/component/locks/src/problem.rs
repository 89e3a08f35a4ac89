//! Errors of the component, in the words of the packages for other languages.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

use leasehold_core::op::{Fault, Holder, Holding};
use leasehold_core::{Error, Failure, LostReason, Token};

use crate::clock::SUSPENDED;
use crate::wit::{self, ErrorKind};

/// A setting or an argument that cannot work.
pub(crate) fn config(message: impl ToString) -> wit::Error {
    wit::Error { kind: ErrorKind::Config, message: message.to_string(), holder: None }
}

fn on(name: &str, kind: ErrorKind, message: impl fmt::Display) -> wit::Error {
    wit::Error { kind, message: format!("{name:?}: {message}"), holder: None }
}

/// Why an acquisition did not even begin.
pub(crate) fn rejected(name: &str, error: Error) -> wit::Error {
    let most = format!("{error}; {} ms of it are what clocks may miss of a suspension", SUSPENDED.as_millis());
    let message = if matches!(error, Error::AboveMaxTtl { .. }) { most } else { error.to_string() };
    on(name, ErrorKind::Config, message)
}

/// Why an acquisition ended without the lock.
pub(crate) fn failed(name: &str, failure: Failure) -> wit::Error {
    let unavailable = |message: String| on(name, ErrorKind::StoreUnavailable, message);
    match failure {
        Failure::Busy { holding } => held(name, ErrorKind::Busy, "busy", holding.as_deref()),
        Failure::TimedOut { holding } => {
            held(name, ErrorKind::TimedOut, "not free within the wait", holding.as_deref())
        }
        Failure::Throttled(fault) => unavailable(format!("the store is throttling requests ({fault})")),
        Failure::Unavailable(fault) => unavailable(format!("the store cannot be used now ({fault})")),
        Failure::Abstains { left } => {
            let left = Seconds(left, 1);
            unavailable(format!(
                "the quorum cannot grant locks for another {left} s, because too many of its nodes are new or have \
                 lost their data"
            ))
        }
        Failure::Refused(denial) => on(name, ErrorKind::StoreRefused, format!("the store refuses: {denial}")),
        Failure::Done(_) | Failure::CompletionsInDoubt => {
            on(name, ErrorKind::Other, "the store answered with a completion, but a plain lock does not ask for one")
        }
        Failure::Cancelled => on(name, ErrorKind::Other, "the acquisition was cancelled"),
    }
}

fn held(name: &str, kind: ErrorKind, what: &str, holding: Option<&Holding>) -> wit::Error {
    let holder = holding.map(holder);
    let who = holder.as_ref().map_or_else(|| "held by somebody else".to_owned(), who);
    wit::Error { holder, ..on(name, kind, format!("{what}: {who}")) }
}

/// Locks are not reentrant.
pub(crate) fn held_here(name: &str, token: Token) -> wit::Error {
    let token = token.get();
    let message =
        format!("busy: this client already holds the lock, with token {token}; release that lease, or use it");
    on(name, ErrorKind::Busy, message)
}

fn holder(holding: &Holding) -> wit::Holder {
    wit::Holder {
        owner: holding.owner.as_ref().map(|owner| owner.as_str().to_owned()).filter(|owner| !owner.is_empty()),
        token: holding.counter.map(Token::get),
        since_unix_ms: holding.since_unix_ms,
        ttl: holding.record_ttl.map(ms_up),
        left: holding.left.map(ms_up),
        data: holding.data.as_ref().map(|data| data.as_bytes().to_vec()),
        foreign: matches!(holding.holder, Holder::Foreign),
    }
}

fn who(holder: &wit::Holder) -> String {
    let mut said = match &holder.owner {
        Some(owner) => format!("held by {owner}"),
        None if holder.foreign => "held by a client of another library".to_owned(),
        None => "held by a client without a label".to_owned(),
    };
    if let Some(token) = holder.token {
        said.push_str(&format!(", token {token}"));
    }
    if let Some(left) = holder.left {
        said.push_str(&format!(", {} s left unless renewed", Seconds(Duration::from_millis(left), 1)));
    }
    said
}

/// Why a lease is over; `trouble` is why its last renewal failed, if it did.
pub(crate) fn lost(name: &str, reason: &LostReason, trouble: Option<&Fault>) -> wit::Error {
    let advice = "the work it protected must stop, since another worker may have the lock";
    on(name, ErrorKind::Lost, format!("the lease is lost: {reason}{}; {advice}", because(trouble)))
}

/// A lease that goes on, but not for long enough.
pub(crate) fn too_short(name: &str, left: Duration, min: Duration, trouble: Option<&Fault>) -> wit::Error {
    let (left, min, why) = (Seconds(left, 3), Seconds(min, 3), because(trouble));
    let message = format!("only {left} s of validity are left, and {min} s were asked for: renewals are late{why}");
    on(name, ErrorKind::Lost, message)
}

fn because(trouble: Option<&Fault>) -> String {
    trouble.map(|fault| format!(" ({fault})")).unwrap_or_default()
}

pub(crate) fn not_owned(name: &str) -> wit::Error {
    on(name, ErrorKind::NotOwned, "the lease was released before, so there is nothing to hold or give back")
}

pub(crate) fn closed(name: &str) -> wit::Error {
    let message = "the client was closed, and the lease released with it; the work it protected must stop";
    on(name, ErrorKind::NotOwned, message)
}

pub(crate) fn unconfirmed(name: &str) -> wit::Error {
    let message = "the release is not confirmed: later calls of the client try it again, and otherwise the lock \
                   expires after its ttl";
    on(name, ErrorKind::StoreUnavailable, message)
}

pub(crate) fn unconfirmed_close() -> wit::Error {
    let message = "some releases are not confirmed: `tend` tries them again, and locks that it does not reach expire \
                   after their ttl";
    wit::Error { kind: ErrorKind::StoreUnavailable, message: message.to_owned(), holder: None }
}

/// A length whose receiver must not take it for shorter.
fn ms_up(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// With so many digits behind the point, the rest cut off.
struct Seconds(Duration, usize);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = format!("{:03}", self.0.subsec_millis());
        write!(f, "{}.{}", self.0.as_secs(), &thousandths[..self.1])
    }
}
