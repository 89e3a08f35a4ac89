//! Windows: the loop watches no sockets. Threads of the client send the requests, as in runtimes that have no libuv.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use leasehold::ffi::{Interest, RawFd};
use napi::Env;

/// A loop that watches sockets. There is none.
pub(crate) struct Uv(Infallible);

impl Uv {
    pub(crate) fn of(_: Env, _: impl Fn(Option<RawFd>) + Send + 'static) -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn watch(&self, _: RawFd, _: Interest) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn unwatch(&self, _: RawFd) {
        match self.0 {}
    }

    pub(crate) fn set_timer(&self, _: Duration) -> io::Result<()> {
        match self.0 {}
    }
}
