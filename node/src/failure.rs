//! Errors on their way to JavaScript, where their classes are.

use leasehold::{Error, ErrorKind};
use napi_derive::napi;

use crate::info::LockInfo;
use crate::value::Value;

/// What an error of the client says.
#[napi]
pub struct Failure {
    kind: &'static str,
    message: String,
    resource: Option<String>,
    holder: Option<Box<leasehold::LockInfo>>,
    is_temporary: bool,
    reason: Option<Value>,
}

impl Failure {
    /// What the protocol without I/O refuses, and why where that is a value.
    pub(crate) fn told(kind: &'static str, message: String, reason: Option<Value>) -> Self {
        Self { kind, message, resource: None, holder: None, is_temporary: false, reason }
    }

    /// A setting or use that cannot work.
    pub(crate) fn config(message: String) -> Self {
        Self::told(ErrorKind::Config.name(), message, None)
    }

    /// See [`ErrorKind::Internal`].
    pub(crate) fn internal(message: String) -> Self {
        Self::told(ErrorKind::Internal.name(), message, None)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            kind: error.kind().name(),
            message: error.to_string(),
            resource: error.resource().map(str::to_owned),
            holder: error.holder().cloned().map(Box::new),
            is_temporary: error.kind().is_temporary(),
            reason: None,
        }
    }
}

#[napi]
impl Failure {
    /// The stable name of the kind.
    #[napi(getter, catch_unwind)]
    pub fn kind(&self) -> &str {
        self.kind
    }

    /// For people.
    #[napi(getter, catch_unwind)]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The resource that it is about.
    #[napi(getter, catch_unwind)]
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// Who holds the lock, where that is the reason.
    #[napi(getter, catch_unwind)]
    pub fn holder(&self) -> Option<LockInfo> {
        self.holder.clone().map(|holder| LockInfo::from(*holder))
    }

    /// Why, as a value, for what the protocol without I/O refuses.
    #[napi(getter, catch_unwind)]
    pub fn reason(&self) -> Option<Value> {
        self.reason.clone()
    }

    /// Whether the same call may succeed later without anybody changing anything.
    #[napi(getter, catch_unwind)]
    pub fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}
