//! The mark of finished work.

use std::fmt;
use std::time::Duration;

use leasehold_core::op;

use crate::host::clock;

/// The mark of finished work: by whom it was done, and for how long nobody does it again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// The fencing token of the run that did the work.
    pub token: u64,
    /// Its label; `None` where it had none.
    pub owner: Option<String>,
    /// When the work was finished, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How long the mark stands still.
    pub left: Duration,
}

impl Mark {
    pub(crate) fn shown(mark: &op::Mark) -> Self {
        Self {
            token: mark.token.get(),
            owner: Some(mark.owner.as_str().to_owned()).filter(|owner| !owner.is_empty()),
            at_unix_ms: mark.at_unix_ms,
            left: mark.left,
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ago = clock::unix_ms().saturating_sub(self.at_unix_ms) / 1000;
        let owner = self.owner.as_deref().unwrap_or("a client without a label");
        write!(f, "by {owner}, token {}, {ago} s ago", self.token)
    }
}
