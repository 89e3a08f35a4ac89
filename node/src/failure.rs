//! Errors on their way to JavaScript, where their classes are defined.

use leasehold::cas::{self, Fate};
use leasehold::{Error, ErrorKind};
use napi::Either;
use napi_derive::napi;

use crate::info::LockInfo;
use crate::run::Attempts;
use crate::value::Value;

/// The two results of a function, as JavaScript takes them.
pub(crate) fn either<T>(result: Result<T, Failure>) -> Either<T, Failure> {
    match result {
        Ok(value) => Either::A(value),
        Err(failure) => Either::B(failure),
    }
}

/// The parts of an error of the client.
#[napi]
pub struct Failure {
    kind: &'static str,
    message: Box<str>,
    resource: Option<String>,
    holder: Option<Box<leasehold::LockInfo>>,
    is_temporary: bool,
    reason: Option<Value>,
    details: Option<Box<Details>>,
}

/// Details that only errors of some kinds have.
enum Details {
    Loss { reason: &'static str },
    Update { tries: u32, fate: &'static str },
    GivenUp { attempts: leasehold::Attempts },
}

impl Failure {
    /// A refusal of the protocol without I/O, with its reason if that is a value.
    pub(crate) fn new(kind: &'static str, message: String, reason: Option<Value>) -> Self {
        Self { kind, message: message.into(), resource: None, holder: None, is_temporary: false, reason, details: None }
    }

    /// A setting or use that cannot work.
    pub(crate) fn config(message: String) -> Self {
        Self::new(ErrorKind::Config.name(), message, None)
    }

    /// See [`ErrorKind::Internal`].
    pub(crate) fn internal(message: String) -> Self {
        Self::new(ErrorKind::Internal.name(), message, None)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let loss = error.lost_reason().map(|reason| Details::Loss { reason });
        let details = loss.or_else(|| Some(Details::GivenUp { attempts: error.attempts()?.clone() }));
        Self {
            kind: error.kind().name(),
            message: error.to_string().into(),
            resource: error.resource().map(str::to_owned),
            holder: error.holder().cloned().map(Box::new),
            is_temporary: error.kind().is_temporary(),
            reason: None,
            details: details.map(Box::new),
        }
    }
}

impl From<leasehold::fence::Error> for Failure {
    fn from(error: leasehold::fence::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<cas::Error> for Failure {
    fn from(error: cas::Error) -> Self {
        let fate = match error.fate() {
            Fate::NotWritten => "not_written",
            Fate::Unknown => "unknown",
        };
        Self {
            kind: error.name(),
            message: error.to_string().into(),
            details: Some(Box::new(Details::Update { tries: error.tries(), fate })),
            ..Self::from(error.trouble().clone())
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

    /// The message for people.
    #[napi(getter, catch_unwind)]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The resource that it is about.
    #[napi(getter, catch_unwind)]
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// The holder of the lock, where that is the reason.
    #[napi(getter, catch_unwind)]
    pub fn holder(&self) -> Option<LockInfo> {
        self.holder.clone().map(|holder| LockInfo::from(*holder))
    }

    /// The reason as a value, for refusals of the protocol without I/O.
    #[napi(getter, catch_unwind)]
    pub fn reason(&self) -> Option<Value> {
        self.reason.clone()
    }

    /// Why a lease was lost, where that is known.
    #[napi(getter, catch_unwind)]
    pub fn lost_reason(&self) -> Option<&str> {
        match self.details.as_deref()? {
            Details::Loss { reason } => Some(reason),
            Details::Update { .. } | Details::GivenUp { .. } => None,
        }
    }

    /// How often an update of an item was tried.
    #[napi(getter, catch_unwind)]
    pub fn tries(&self) -> Option<u32> {
        match self.details.as_deref()? {
            Details::Update { tries, .. } => Some(*tries),
            Details::Loss { .. } | Details::GivenUp { .. } => None,
        }
    }

    /// The fate of its value: written or not, or unknown.
    #[napi(getter, catch_unwind)]
    pub fn fate(&self) -> Option<&str> {
        match self.details.as_deref()? {
            Details::Update { fate, .. } => Some(fate),
            Details::Loss { .. } | Details::GivenUp { .. } => None,
        }
    }

    /// The attempts at the work of a run that was given up.
    #[napi(getter, catch_unwind)]
    pub fn attempts(&self) -> Option<Attempts> {
        match self.details.as_deref()? {
            Details::GivenUp { attempts } => Some(attempts.clone().into()),
            Details::Loss { .. } | Details::Update { .. } => None,
        }
    }

    /// True if the same call may succeed later without any change.
    #[napi(getter, catch_unwind)]
    pub fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}
