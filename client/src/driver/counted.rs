//! Hash maps of what this client has numbered itself.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are numbers that were counted up. Nobody else chooses them, so they need no hash that withstands collisions.
pub(crate) type CountedMap<K, V> = HashMap<K, V, BuildHasherDefault<CountedHasher>>;

/// Spreads numbers over all bits, by an odd multiplier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountedHasher(u64);

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for CountedHasher {
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(MULTIPLIER);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::CountedHasher;

    #[test]
    fn numbers_in_a_row_share_neither_low_nor_high_bits() {
        let hashes = (0..128_u64).map(|number| BuildHasherDefault::<CountedHasher>::default().hash_one(number));
        let hashes: Vec<u64> = hashes.collect();
        let low: BTreeSet<u64> = hashes.iter().map(|hash| hash & 127).collect();
        let high: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert_eq!(low.len(), 128);
        assert!(high.len() > 64, "{}", high.len());
    }
}
