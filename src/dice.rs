//! Dice: the seeded randomness behind everything that is spread in time.
//!
//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Good enough to
//! spread requests in time, and of no use for anything secret.

/// What one step adds to the state.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seeded generator; the same seed gives the same throws.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) const fn roll(&mut self) -> u64 {
        let bits = scramble(self.0);
        self.0 = self.0.wrapping_add(STEP);
        bits
    }

    /// A number from -1 to just below 1, evenly spread.
    pub(crate) fn throw(&mut self) -> f64 {
        // 53 bits fill a double's mantissa exactly.
        #[allow(clippy::cast_precision_loss, reason = "at most 53 bits are left")]
        let unit = (self.roll() >> 11) as f64 / (1_u64 << 53) as f64;
        unit.mul_add(2.0, -1.0)
    }
}

/// The output of a generator in this state: 64 well mixed bits.
pub(crate) const fn scramble(state: u64) -> u64 {
    let mut z = state.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut dice = Dice::new(0);
        assert_eq!(dice.roll(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(dice.roll(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn throws_fill_the_range_evenly_and_never_leave_it() {
        let mut dice = Dice::new(7);
        let throws: Vec<f64> = (0..10_000).map(|_| dice.throw()).collect();
        assert!(throws.iter().all(|t| (-1.0..1.0).contains(t)));
        let mean = throws.iter().sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!(throws.iter().any(|t| *t < -0.99) && throws.iter().any(|t| *t > 0.99));
    }
}
