//! Random numbers from a seed, so that a run can be repeated.

use std::time::Duration;

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub struct Rng(u64);

impl Rng {
    /// A generator that depends on the seed and on `stream`, which distinguishes users of one seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed);
        let start = rng.draw() ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(start)
    }

    /// 64 even bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.draw().is_multiple_of(n)
    }

    /// A length of time, evenly from `least` up to `most`.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let share = (self.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        least + most.saturating_sub(least).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_repeat_and_streams_differ() {
        let draws = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            [rng.draw(), rng.draw(), rng.draw()]
        };
        assert_eq!(draws(1, 2), draws(1, 2));
        assert_ne!(draws(1, 2), draws(1, 3));
        assert_ne!(draws(1, 2), draws(2, 2));
    }

    #[test]
    fn lengths_stay_within_their_bounds() {
        let (least, most) = (Duration::from_millis(30), Duration::from_millis(900));
        let mut rng = Rng::new(7, 0);
        let drawn: Vec<Duration> = (0..1_000).map(|_| rng.between(least, most)).collect();
        assert!(drawn.iter().all(|length| (least..most).contains(length)));
        let mean = drawn.iter().sum::<Duration>() / 1_000;
        assert!((Duration::from_millis(430)..Duration::from_millis(500)).contains(&mean), "{mean:?}");
    }
}
