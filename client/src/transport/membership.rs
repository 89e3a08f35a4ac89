//! The quorum membership that a Redis remembers, and pages of its locks, over a socket or HTTP.

use std::fmt::Display;

use leasehold_core::member::Marker;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_wire::listing::Page;
use leasehold_wire::redis::{self, Command};
use leasehold_wire::resp::Value;

use super::NodeRecord;
use crate::error::{Error, ErrorKind};
use crate::host::clock;
use crate::host::entropy::request_id;

/// Reads the replies to the commands of a look.
pub(super) fn found(url: &dyn Display, replies: &[Value]) -> Result<NodeRecord, Error> {
    let redis::FoundMarker { marker, text, run, run_refused } =
        redis::found(replies).map_err(|outcome| judged(url, outcome))?;
    Ok(NodeRecord { marker, text, run, run_refused, file: None, table: None })
}

/// Replaces the marker; `ask` sends each command.
pub(super) fn mark(
    url: &dyn Display,
    found: &[u8],
    marker: Option<&Marker>,
    ask: impl Fn(Vec<Command>) -> Result<Vec<Value>, Error>,
) -> Result<bool, Error> {
    let id = request_id()?;
    let reply = ask(vec![redis::mark(id, found, marker)])?.into_iter().next().unwrap_or(Value::Nil);
    redis::marked(id, &reply).map_err(|outcome| judged(url, outcome))
}

/// Reads the reply to the command of a page.
pub(super) fn page(url: &dyn Display, prefix: &str, replies: &[Value]) -> Result<Page, Error> {
    redis::listed(prefix, replies.first().unwrap_or(&Value::Nil)).map_err(|outcome| judged(url, outcome))
}

/// The offset of the server's clock from ours, and its error, in milliseconds.
pub(super) fn clock_offset(ask: impl Fn(Vec<Command>) -> Result<Vec<Value>, Error>) -> Option<(i64, u64)> {
    let time = || ask(vec![Command::new(["TIME"])]);
    // The first answer may have waited for a connection.
    time().ok()?;
    let sent = clock::unix_ms();
    let replies = time().ok()?;
    let got = clock::unix_ms();
    let theirs = i64::try_from(redis::time_ms(replies.first()?)?).ok()?;
    let ours = i64::try_from(sent / 2 + got / 2).ok()?;
    Some((theirs - ours, got.saturating_sub(sent) / 2 + 1))
}

/// Converts a refusal to an error of connecting.
pub(super) fn refused(url: &dyn Display, refusal: &Refusal) -> Error {
    match refusal {
        Refusal::Denied(denial) => Error::new(ErrorKind::StoreRefused, format!("{url}: {denial}")),
        Refusal::Unavailable(fault) | Refusal::Throttled(fault) | Refusal::NeedsCredentials(fault) => {
            Error::new(ErrorKind::StoreUnavailable, format!("{url}: {fault}"))
        }
        Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Abstains { .. } => {
            Error::new(ErrorKind::StoreUnavailable, format!("{url}: the server is not ready"))
        }
    }
}

fn judged(url: &dyn Display, outcome: Outcome) -> Error {
    match outcome {
        Outcome::NotApplied(refusal) => refused(url, &refusal),
        Outcome::Unknown(fault) => Error::new(ErrorKind::StoreUnavailable, format!("{url}: {fault}")),
        Outcome::Applied(_) => {
            let fault = Fault::of(FaultKind::Protocol);
            Error::new(ErrorKind::StoreUnavailable, format!("{url}: {fault}"))
        }
    }
}
