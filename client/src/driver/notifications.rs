//! Wakers and callbacks that are due once no lock is held: all of them are other people's code.

use std::task::Waker;

use leasehold_core::OneOrMany;

use super::callbacks::{Callback, OnLost};

/// Collected while the driver is locked, and delivered after it.
#[derive(Default)]
pub(crate) struct Notifications {
    pub(crate) wakers: OneOrMany<Waker>,
    pub(crate) callbacks: Vec<Callback>,
    /// To be dropped, which may run code as well.
    pub(crate) unused_on_expiring: Vec<Callback>,
    pub(crate) unused_on_lost: Vec<OnLost>,
}

impl Notifications {
    /// Wakes those who wait, and hands each callback to `call`.
    pub(crate) fn deliver(&mut self, call: impl FnMut(Callback)) {
        std::mem::take(&mut self.wakers).into_iter().for_each(Waker::wake);
        std::mem::take(&mut self.callbacks).into_iter().for_each(call);
        self.unused_on_expiring.clear();
        self.unused_on_lost.clear();
    }
}
