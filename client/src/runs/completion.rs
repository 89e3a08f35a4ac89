//! The completion of finished work.

use std::fmt;
use std::time::Duration;

use leasehold_core::{About, op};

use super::result::RunResult;
use crate::host::time::Time;

/// The completion of finished work: by whom it was done, and for how long nobody does it again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The fencing token of the run that did the work.
    pub token: u64,
    /// Its label; `None` where it had none.
    pub owner: Option<String>,
    /// When the work was finished, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How long the completion still stands.
    pub left: Duration,
    /// The result that the run has left; `None` where it left none, the store had no room for it, or it is not settled.
    pub result: Option<RunResult>,
    /// There may be a result, which is not told yet: no majority of the quorum's nodes has shown the same completion.
    pub result_unsettled: bool,
    /// When the run began, in milliseconds since 1970, by the clock of the one that did it; known of runs that left a result.
    pub began_unix_ms: Option<u64>,
}

impl Completion {
    pub(crate) fn shown(completion: &op::Completion) -> Self {
        Self {
            token: completion.token.get(),
            owner: Some(completion.owner.as_str().to_owned()).filter(|owner| !owner.is_empty()),
            at_unix_ms: completion.at_unix_ms,
            left: completion.left,
            result: completion.about.as_ref().and_then(About::result).map(|result| RunResult::shown(&result)),
            result_unsettled: completion.unsettled,
            began_unix_ms: completion.about.as_ref().map(About::began_unix_ms),
        }
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ago = Time::System.unix_ms().saturating_sub(self.at_unix_ms) / 1000;
        let owner = self.owner.as_deref().unwrap_or("a client without a label");
        write!(f, "by {owner}, token {}, {ago} s ago", self.token)
    }
}
