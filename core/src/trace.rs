//! Counters of the rows of the lease machine's table, for tests that check what they reach.
//!
//! Only with the feature `trace`. The counts belong to the process and are no part of any client, so that a client
//! behaves, compares and hashes as it does without the feature. For the rows of one call, take the counts before and
//! after it, and make sure that no other client of the process runs in between.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::lease::Row;

static TAKEN: [AtomicU64; Row::NAMES.len()] = [const { AtomicU64::new(0) }; Row::NAMES.len()];

/// The name of every row, in the order of the table, and the number of times that clients of this process took it.
pub fn rows() -> Vec<(&'static str, u64)> {
    let counts = TAKEN.iter().map(|taken| taken.load(Ordering::Relaxed));
    Row::NAMES.iter().copied().zip(counts).collect()
}

pub(crate) fn note(row: Row) {
    if let Some(taken) = TAKEN.get(row as usize) {
        taken.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_counted_under_its_name() {
        let count = |name| rows().into_iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| count);
        let before = count("ReleasingRanOut");
        note(Row::ReleasingRanOut);
        assert!(count("ReleasingRanOut") > before, "other tests may have taken it as well");
        assert_eq!(rows().first().map(|(name, _)| *name), Some("IdleStarted"));
        assert_eq!(rows().last().map(|(name, _)| *name), Some("ReleasingRanOut"));
    }
}
