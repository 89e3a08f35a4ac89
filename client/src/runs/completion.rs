//! The completion of finished work.

use std::fmt;
use std::time::Duration;

use leasehold_core::op;

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
}

impl Completion {
    pub(crate) fn shown(completion: &op::Completion) -> Self {
        Self {
            token: completion.token.get(),
            owner: Some(completion.owner.as_str().to_owned()).filter(|owner| !owner.is_empty()),
            at_unix_ms: completion.at_unix_ms,
            left: completion.left,
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
