//! Repeatable choices: a hash, a die seeded from it, and a shuffle that can be undone.
//!
//! Nothing here reads the clock or the system's randomness: the same arguments give the same answers on every machine.

use crate::dice::scramble;

/// A well mixed 64-bit hash of three numbers (the finaliser of SplitMix64, applied three times).
pub(crate) fn mix(seed: u64, what: u64, id: u64) -> u64 {
    scramble(scramble(scramble(seed) ^ what) ^ id)
}

/// A stream of choices that follows from its start alone.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64, what: u64, id: u64) -> Self {
        Self { state: mix(seed, what, id) }
    }

    /// The next 64 bits.
    pub(crate) fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        scramble(self.state)
    }

    /// A number below `limit`; 0 when `limit` is 0.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        let roll = self.roll();
        u32::try_from(roll.checked_rem(u64::from(limit)).unwrap_or(0)).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// One of the words; an empty list gives the empty word.
    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let at = self.below(u32::try_from(words.len()).unwrap_or(u32::MAX));
        words.get(at as usize).copied().unwrap_or_default()
    }
}

/// A permutation of `0..size` that needs no table: a four-round Feistel network over the next even number of bits, walked until
/// the value falls back into the range.
#[derive(Debug, Clone)]
pub(crate) struct Shuffle {
    size: u32,
    half: u32,
    keys: [u64; 4],
}

impl Shuffle {
    pub(crate) fn new(seed: u64, what: u64, size: u32) -> Self {
        let bits = 32 - size.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2).max(1);
        let keys = [mix(seed, what, 1), mix(seed, what, 2), mix(seed, what, 3), mix(seed, what, 4)];
        Self { size, half, keys }
    }

    /// Where `value` lands. A value outside the range stays where it is.
    pub(crate) fn forward(&self, value: u32) -> u32 {
        if value >= self.size {
            return value;
        }
        let mut at = u64::from(value);
        // A permutation of a finite set that starts inside the range comes back into it.
        loop {
            let (mut left, mut right) = self.split(at);
            for key in self.keys {
                (left, right) = (right, left ^ self.round(key, right));
            }
            at = (left << self.half) | right;
            if at < u64::from(self.size) {
                return u32::try_from(at).unwrap_or(value);
            }
        }
    }

    /// What [`Shuffle::forward`] has brought to `value`.
    pub(crate) fn back(&self, value: u32) -> u32 {
        if value >= self.size {
            return value;
        }
        let mut at = u64::from(value);
        loop {
            let (mut left, mut right) = self.split(at);
            for key in self.keys.iter().rev() {
                (left, right) = (right ^ self.round(*key, left), left);
            }
            at = (left << self.half) | right;
            if at < u64::from(self.size) {
                return u32::try_from(at).unwrap_or(value);
            }
        }
    }

    fn split(&self, value: u64) -> (u64, u64) {
        (value >> self.half, value & self.mask())
    }

    fn round(&self, key: u64, half: u64) -> u64 {
        scramble(key ^ half) & self.mask()
    }

    fn mask(&self) -> u64 {
        (1 << self.half) - 1
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_shuffle_reaches_every_place_once_and_can_be_undone() {
        for size in [1, 2, 3, 7, 60, 100, 300, 1_000, 4_097] {
            let shuffle = Shuffle::new(9, 4, size);
            let mut seen = vec![false; size as usize];
            for value in 0..size {
                let there = shuffle.forward(value);
                assert!(!std::mem::replace(&mut seen[there as usize], true), "{there} twice at size {size}");
                assert_eq!(shuffle.back(there), value);
            }
        }
    }

    #[test]
    fn a_value_outside_the_range_stays() {
        let shuffle = Shuffle::new(1, 1, 10);
        assert_eq!((shuffle.forward(10), shuffle.back(u32::MAX)), (10, u32::MAX));
        assert_eq!(Shuffle::new(1, 1, 0).forward(0), 0);
    }

    #[test]
    fn another_seed_gives_another_order() {
        let order = |seed| (0..100).map(|v| Shuffle::new(seed, 1, 100).forward(v)).collect::<Vec<_>>();
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut dice = Dice::new(1, 2, 3);
        for _ in 0..1_000 {
            assert!((3..=5).contains(&dice.between(3, 5)));
            assert_eq!(dice.below(0), 0);
            assert_eq!(dice.pick(&[]), "");
        }
    }
}
