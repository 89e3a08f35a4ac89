//! Ties of elections and shards to the event loop on which their callbacks run.

use std::sync::Weak;

use pyo3::prelude::*;

use crate::election::Election;
use crate::shards::Shards;

pub(crate) trait EndsWithLoop: Send + Sync {
    /// Begins to end it, and waits for nothing.
    fn end(&self);
}

/// Ends something when it is dropped, unless it has ended.
pub(crate) struct Tie(Weak<dyn EndsWithLoop>);

impl Tie {
    pub(crate) fn new(tied: Weak<impl EndsWithLoop + 'static>) -> Self {
        Self(tied)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        if let Some(tied) = self.0.upgrade() {
            tied.end();
        }
    }
}

/// An object that can be tied to a loop.
#[derive(FromPyObject)]
pub(crate) enum Tied<'py> {
    Election(PyRef<'py, Election>),
    Shards(PyRef<'py, Shards>),
}

impl Tied<'_> {
    pub(crate) fn tie(&self) -> Tie {
        match self {
            Self::Election(election) => election.tie(),
            Self::Shards(shards) => shards.tie(),
        }
    }
}
