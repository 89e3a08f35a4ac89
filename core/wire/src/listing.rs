//! Pages of the locks that a store has, for people who look.
//!
//! A page costs the store a bounded amount of work, whatever else it keeps, so it may be empty long before the end.

use alloc::vec::Vec;

use leasehold_core::Resource;
use leasehold_core::op::Seen;

/// The most records that one page of a store looks at.
pub const PAGE: u32 = 250;

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
