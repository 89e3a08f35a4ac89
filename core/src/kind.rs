//! The kinds of errors that clients report, the same in all languages.

/// The kind of an error of a client or a guard, by how a caller can react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Somebody else holds the lock, and the caller did not want to wait. The error's `holder` says who.
    Busy,
    /// Somebody else held the lock for as long as the caller would wait. The error's `holder` says who.
    TimedOut,
    /// The lease is over, so the work it protected must stop.
    Lost,
    /// Nothing is held that could be released.
    NotOwned,
    /// The call was interrupted by its caller.
    Cancelled,
    /// The store cannot be reached, does not answer, or asks for patience. It may pass.
    StoreUnavailable,
    /// The store refuses, and trying again will not help: permissions, schema, a corrupt record.
    StoreRefused,
    /// A setting, url or use of the client that cannot work.
    Config,
    /// The client was closed, before the call or during it.
    Closed,
    /// The protected resource has seen a later holder.
    StaleToken,
    /// The work of the run is done. The error's `completion` says by whom.
    Done,
    /// The work of the run was done, and no answer says that its completion stands: it may be done again.
    FinishUnconfirmed,
    /// The work of the run is done and its completion stands, without the result that was given: those who come later may find none.
    ResultNotKept,
    /// The work of the run was begun as often as allowed, and never finished. The error's `attempts` say how often, and why the last one failed.
    GivenUp,
    /// A callback of an election or of shards has panicked, or raised or thrown something.
    Callback,
    /// The process cannot go on as it should: no thread could be started, or there is a bug in leasehold.
    Internal,
}

impl ErrorKind {
    /// A stable name for logs, metrics and other languages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
            Self::NotOwned => "not_owned",
            Self::Cancelled => "cancelled",
            Self::StoreUnavailable => "store_unavailable",
            Self::StoreRefused => "store_refused",
            Self::Config => "config",
            Self::Closed => "closed",
            Self::StaleToken => "stale_token",
            Self::Done => "done",
            Self::FinishUnconfirmed => "finish_unconfirmed",
            Self::ResultNotKept => "result_not_kept",
            Self::GivenUp => "given_up",
            Self::Callback => "callback_failed",
            Self::Internal => "internal",
        }
    }

    /// Tells if the same call may succeed later without any change.
    pub const fn is_temporary(self) -> bool {
        matches!(self, Self::Busy | Self::TimedOut | Self::StoreUnavailable)
    }
}
