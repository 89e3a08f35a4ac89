//! Failures that may pass by themselves.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// A failure that may pass by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fault {
    /// The kind of failure.
    pub kind: FaultKind,
    /// The message of the store or the operating system, without secrets.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none", with = "crate::json::detail::option")
    )]
    pub detail: Option<Arc<str>>,
}

/// Kinds of passing failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum FaultKind {
    /// No reply in time.
    Timeout,
    /// The connection broke after something was sent.
    Reset,
    /// No connection could be made.
    Unreachable,
    /// The caller went away while the request was in flight.
    Cancelled,
    /// The store said that it failed.
    Server,
    /// The store is busy or throttles.
    Busy,
    /// The store's answer makes no sense.
    Protocol,
}

impl Fault {
    /// A fault without further words.
    pub const fn of(kind: FaultKind) -> Self {
        Self { kind, detail: None }
    }

    /// A fault with the message of its reporter, on one line; more than 512 bytes are cut.
    pub fn new(kind: FaultKind, detail: &str) -> Self {
        Self { kind, detail: Some(bounded(detail)) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            FaultKind::Timeout => "no reply in time",
            FaultKind::Reset => "connection broken",
            FaultKind::Unreachable => "not reachable",
            FaultKind::Cancelled => "request abandoned",
            FaultKind::Server => "store failure",
            FaultKind::Busy => "store busy",
            FaultKind::Protocol => "unintelligible answer",
        })?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}

/// Bounds a message and makes it one line: any writer of a store can cause it, and it ends up in terminals and logs.
pub(super) fn bounded(detail: &str) -> Arc<str> {
    let detail = &detail[..detail.floor_char_boundary(512)];
    if detail.chars().any(char::is_control) {
        detail.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().into()
    } else {
        detail.into()
    }
}
