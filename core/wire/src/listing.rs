//! Pages of the locks that a store has, for people who look.
//!
//! A page costs the store a bounded amount of work, whatever else it keeps, so it may be empty long before the end.

use alloc::vec::Vec;

use leasehold_core::Resource;
use leasehold_core::op::Seen;

/// The most records that one page of a store looks at.
pub const PAGE: u32 = 250;

/// The names that a list is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Those of locks that are held.
    #[default]
    Held,
    /// Those of runs that are done or under way.
    Runs,
}

impl Which {
    /// Tells if a name is among them, as far as the name and its record show it.
    pub fn has(self, name: &Resource, seen: &Seen) -> bool {
        match self {
            Self::Held => seen.held().is_some(),
            Self::Runs => name.may_be_of_run() && (seen.held().is_some() || seen.done.is_some()),
        }
    }
}

/// One page: the names of some records, and their contents where they came along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The names. Without contents, a read of the name tells if it is a lock that is held.
    pub records: Vec<(Resource, Option<Seen>)>,
    /// The place where the next page begins, as the store wants it back; `None` after the last one.
    pub next: Option<Vec<u8>>,
}

impl Page {
    /// A page of names without contents.
    pub fn of_names(names: impl IntoIterator<Item = Resource>, next: Option<Vec<u8>>) -> Self {
        Self { records: names.into_iter().map(|name| (name, None)).collect(), next }
    }
}
