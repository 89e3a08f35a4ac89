//! Items of compare-and-set in a store: they are read, and written under a condition.

use std::collections::BTreeMap;
use std::pin::Pin;

use leasehold_core::Resource;
use leasehold_core::op::{Fault, FaultKind, Outcome, Refusal};
use leasehold_wire::cas::{Answer, Ask, Item};

use crate::host::fork::{self, PerProcess};
use crate::host::sync::{Arc, Mutex, Weak};

/// An [`Answer`] under way, which any executor can await.
pub(crate) type Asking<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// The items of one store.
pub(crate) trait ItemStore: Send + Sync {
    /// Asks once. A caller that drops the future knows nothing of a write.
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a>;
}

type Named = Mutex<BTreeMap<String, Weak<Memory>>>;
static NAMED: PerProcess<Named> = PerProcess::new(|| Mutex::new(BTreeMap::new()));

/// Items in this process's memory.
struct Memory {
    items: Mutex<BTreeMap<Resource, Item>>,
    generation: u64,
}

/// New items, or those of this name that are in use in this process.
pub(super) fn in_memory(name: Option<&str>) -> Arc<dyn ItemStore> {
    let new = || Arc::new(Memory { items: Mutex::default(), generation: fork::generation() });
    let Some(name) = name else { return new() };
    let mut named = NAMED.get().lock();
    if let Some(memory) = named.get(name).and_then(Weak::upgrade) {
        return memory;
    }
    named.retain(|_, memory| memory.strong_count() > 0);
    let memory = new();
    named.insert(name.to_owned(), Arc::downgrade(&memory));
    memory
}

impl Memory {
    fn answer(&self, name: &Resource, ask: Ask<'_>) -> Answer {
        if self.generation != fork::generation() {
            let detail = "these items belong to the parent process; connect again after the fork";
            let fault = Fault::new(FaultKind::Unreachable, detail);
            return Answer::Failed(Outcome::NotApplied(Refusal::Unavailable(fault)));
        }
        let mut items = self.items.lock();
        match ask {
            Ask::Write { seen, new } if items.get(name) == seen => {
                items.insert(name.clone(), new.clone());
                Answer::Written
            }
            Ask::Read | Ask::Write { .. } => Answer::Found(items.get(name).cloned()),
        }
    }
}

impl ItemStore for Memory {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        Box::pin(std::future::ready(self.answer(name, ask)))
    }
}
