//! The error of a guard.

use std::fmt;

use leasehold_core::ErrorKind;
use leasehold_core::fence::Rejected;

/// An error of a guard: its kind, the item, and a message with advice. `leasehold::Error` can be made of it.
///
/// Match on [`Error::kind`]; the message is for people and may change.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    resource: Option<String>,
    message: String,
}

impl Error {
    /// The kind, by how a caller can react: [`ErrorKind::StaleToken`], [`ErrorKind::Config`], [`ErrorKind::StoreRefused`] or
    /// [`ErrorKind::StoreUnavailable`].
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The resource or item that it is about.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    // Hidden, for the error of the client: it has one of these inside, so that both say the same of the same fault.
    #[doc(hidden)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, resource: None, message: message.into() }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn on(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    #[doc(hidden)]
    pub fn add(&mut self, words: &str) {
        self.message.push_str(words);
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resource {
            Some(resource) => write!(f, "{resource:?}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} (kind: {:?})", self.kind)
    }
}

impl std::error::Error for Error {}

impl From<Rejected> for Error {
    fn from(rejected: Rejected) -> Self {
        let kind = match rejected {
            Rejected::Stale { .. } | Rejected::OutOfOrder { .. } => ErrorKind::StaleToken,
            Rejected::Unclaimed => ErrorKind::Config,
        };
        Self::new(kind, rejected.to_string())
    }
}
