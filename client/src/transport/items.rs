//! Items of compare-and-set in a store: they are read, and written under a condition.

use std::pin::Pin;

use leasehold_core::Resource;
use leasehold_wire::cas::{Answer, Ask};

use super::Transport;

/// An [`Answer`] under way, which any executor can await.
pub(crate) type Asking<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// The items of one store.
pub(crate) trait ItemStore: Send + Sync {
    /// Asks once. A caller that drops the future knows nothing of a write.
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a>;
}

/// A store, with its locks and its items.
pub(crate) trait Store: Transport + ItemStore {}

impl<T: Transport + ItemStore> Store for T {}
