//! Waiters for the results of tasks, and what follows from their waits for the process and for test clocks.

/// The recipient of the result of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiter {
    /// A call. JavaScript uses slots again; the generation tells the calls of one slot apart.
    Call { slot: u32, generation: u32, wait: Wait },
    /// The lease of this number, for its loss.
    Lease(u32),
}

/// The subject of a call's wait, which says if the process stays alive for it, and if a test clock moves for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Something that the client does by itself.
    Client,
    /// The end of callbacks of the program as well, which may wait for anything.
    CallbacksEnd,
    /// The next callback, for which a test clock does not move.
    NextCallback,
    /// The same of a client of a test, whose process ends with the test.
    NextCallbackOfTest,
}

impl Waiter {
    /// Tells if the process stays alive for it.
    pub(crate) const fn keeps_alive(self) -> bool {
        matches!(self, Self::Call { wait: Wait::Client | Wait::CallbacksEnd | Wait::NextCallback, .. })
    }

    /// Tells if a test clock moves for it. The loss of a lease would have it move forever.
    pub(crate) const fn moves_clock(self, is_called_back: bool) -> bool {
        match self {
            Self::Call { wait: Wait::Client, .. } => true,
            Self::Call { wait: Wait::CallbacksEnd, .. } => !is_called_back,
            Self::Call { wait: Wait::NextCallback | Wait::NextCallbackOfTest, .. } | Self::Lease(_) => false,
        }
    }
}
