//! Repeatable random values: every value is a function of the seed, of its purpose, and of its number.
//!
//! Nothing draws from a shared stream, so a fault that is taken away changes no other.

/// A stream of random values for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// The stream of this seed for this purpose.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let name = purpose
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(mix(mix(seed) ^ name))
    }

    /// A stream of its own for each of many alike.
    #[must_use]
    pub const fn of(self, n: u64) -> Self {
        Self(mix(self.0 ^ mix(n.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// Value number `n`.
    pub const fn at(self, n: u64) -> u64 {
        mix(self.0.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Draws in order, for a purpose that needs several.
    pub const fn draws(self) -> Draws {
        Draws { stream: self, next: 0 }
    }
}

/// Successive values of one [`Stream`].
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    stream: Stream,
    next: u64,
}

impl Draws {
    /// The next value.
    pub const fn value(&mut self) -> u64 {
        self.next += 1;
        self.stream.at(self.next)
    }

    /// Below `bound`; zero when `bound` is.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.value() as u128 * bound as u128) >> 64) as u64
    }

    /// A value from `low` to `high`, both included.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True once in `n` times.
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_depends_on_seed_purpose_and_number() {
        let stream = Stream::new(7, "loss");
        assert_eq!(stream.at(3), Stream::new(7, "loss").at(3));
        assert_ne!(stream.at(3), stream.at(4));
        assert_ne!(stream.at(3), Stream::new(8, "loss").at(3));
        assert_ne!(stream.at(3), Stream::new(7, "delay").at(3));
        assert_ne!(stream.of(1).at(3), stream.of(2).at(3));
    }

    #[test]
    fn draws_reach_their_bounds() {
        let mut draws = Stream::new(1, "test").draws();
        let drawn: Vec<u64> = (0..1_000).map(|_| draws.between(3, 6)).collect();
        assert!((3..=6).all(|n| drawn.contains(&n)) && drawn.iter().all(|n| (3..=6).contains(n)));
        let often = (0..10_000).filter(|_| draws.one_in(10)).count();
        assert!((800..1_200).contains(&often), "{often}");
    }
}
