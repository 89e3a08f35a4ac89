//! Errors of the component and of its host, beside the refusals of the protocol itself.

use std::fmt;

/// A component that cannot be loaded.
#[derive(Debug)]
pub struct LoadError(String);

impl LoadError {
    pub(crate) fn new(error: &wasmtime::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is no leasehold component that can run here: {}", self.0)
    }
}

impl std::error::Error for LoadError {}

/// A call that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostError {
    /// The arguments are larger than [`Limits::argument_bytes`](crate::Limits::argument_bytes). Nothing has happened.
    TooLarge {
        /// About how many bytes they take.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// The call has used up [`Limits::fuel`](crate::Limits::fuel). The instance is of no more use.
    OutOfFuel,
    /// The component broke off, or ran out of [`Limits::memory_bytes`](crate::Limits::memory_bytes). The instance is of
    /// no more use.
    Trap(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, max } => {
                write!(f, "the arguments take {bytes} bytes; at most {max} are allowed (`argument_bytes`)")
            }
            Self::OutOfFuel => f.write_str("the call took longer than its `fuel` allows; this instance is lost"),
            Self::Trap(why) => write!(f, "the component broke off, and this instance is lost: {why}"),
        }
    }
}

impl std::error::Error for HostError {}

/// A call that was refused, or did not end.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError<E> {
    /// By the protocol; everything is as before.
    Refused(E),
    /// By the host, or in the middle.
    Host(HostError),
}

impl<E> From<HostError> for CallError<E> {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl<E: fmt::Debug> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "refused: {error:?}"),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug> std::error::Error for CallError<E> {}
