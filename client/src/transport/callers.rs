//! The runtimes and event loops of those who call a store.

use std::panic;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tracing::Level;

use super::connections::Homes;
use crate::event_loop::{self, EventLoop};
use crate::reports;

/// The runtime or event loop of an async caller.
pub(super) enum AsyncCaller {
    Runtime(runtime::Id),
    Loop(Weak<EventLoop>),
}

impl AsyncCaller {
    /// The place that polls the future that runs now.
    pub(super) fn current(homes: Homes) -> Option<Self> {
        if homes == Homes::Any
            && let Some(event_loop) = event_loop::current()
        {
            return Some(Self::Loop(Arc::downgrade(&event_loop)));
        }
        Handle::try_current().ok().map(|runtime| Self::Runtime(runtime.id()))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Loop(event_loop) if event_loop.strong_count() == 0)
    }
}

impl PartialEq for AsyncCaller {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Runtime(one), Self::Runtime(other)) => one == other,
            (Self::Loop(one), Self::Loop(other)) => one.ptr_eq(other),
            (Self::Runtime(_), Self::Loop(_)) | (Self::Loop(_), Self::Runtime(_)) => false,
        }
    }
}

/// Those who have asked for something so far.
#[derive(Default)]
pub(super) enum Callers {
    #[default]
    Nobody,
    /// Tasks of this runtime alone.
    Of(Handle),
    Several,
}

impl Callers {
    /// The runtime of all of them, if they have one in common.
    pub(super) fn only_runtime(&self) -> Option<Handle> {
        match self {
            Self::Of(runtime) => Some(runtime.clone()),
            Self::Nobody | Self::Several => None,
        }
    }

    /// A task of the runtime that runs now calls.
    pub(super) fn note_task(&mut self) {
        let here = Handle::try_current().ok();
        *self = match (std::mem::take(self), here) {
            (Self::Nobody, Some(here)) => Self::Of(here),
            (Self::Of(runtime), Some(here)) if runtime.id() == here.id() => Self::Of(runtime),
            _ => Self::Several,
        };
    }

    /// A thread calls, or another event loop.
    pub(super) fn note_others(&mut self) {
        *self = Self::Several;
    }
}

/// Tells if the current runtime was built with sockets and timers. The only way to find out is to use them and catch
/// the panic; the message that the panic hook prints is at least true.
pub(super) fn has_sockets() -> bool {
    let tried = panic::catch_unwind(|| {
        drop(tokio::time::sleep(Duration::ZERO));
        #[cfg(unix)]
        let tried = tokio::net::UnixDatagram::unbound();
        #[cfg(windows)]
        let tried = std::net::UdpSocket::bind(("127.0.0.1", 0)).and_then(|socket| {
            socket.set_nonblocking(true)?;
            tokio::net::UdpSocket::from_std(socket)
        });
        tried
    });
    if tried.is_err() {
        let why = "this tokio runtime was built without enable_all, so it has no sockets or no timers: its requests \
                   run in the background";
        reports::queue(Level::WARN, move || tracing::warn!(target: "leasehold", "{why}"));
    }
    tried.is_ok()
}
