//! The cooldown ladder: each failure in a row rests an identity or a proxy longer, up to a limit, spread by chance (wire
//! contract, section 27).

use crate::dice::Dice;
use crate::plane::model::Ms;

/// How far a length is spread to either side.
const SPREAD: f64 = 0.2;

/// The rungs of a cooldown rule; the defaults are the contract's, with a base of one minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ladder {
    /// The first rung, in milliseconds.
    pub(crate) base: Ms,
    /// Each rung is so many times the one before.
    pub(crate) multiplier: f64,
    /// No rung is longer, in milliseconds; the spread may still add a fifth.
    pub(crate) max: Ms,
    /// No more than so many multiplications, 0 to 64.
    pub(crate) max_exponent: u32,
    /// A failure so many milliseconds after the last one begins at the first rung again.
    pub(crate) reset_after: Ms,
}

impl Default for Ladder {
    fn default() -> Self {
        Self { base: 60_000, multiplier: 1.0, max: 24 * 3_600_000, max_exponent: 10, reset_after: 3_600_000 }
    }
}

impl Ladder {
    /// The rung for a streak of so many failures before it is spread, in milliseconds.
    pub(crate) fn rung(&self, streak: u32) -> f64 {
        let exponent = streak.saturating_sub(1).min(self.max_exponent).min(64) as i32;
        (self.base as f64 * self.multiplier.powi(exponent)).min(self.max as f64)
    }

    /// How long to rest after a streak of so many failures, at least a millisecond.
    pub(crate) fn length(&self, streak: u32, dice: &mut Dice) -> Ms {
        let spread = dice.throw().mul_add(SPREAD, 1.0);
        // A float too large for the target ends at its maximum, and not-a-number at nought.
        ((self.rung(streak) * spread).round() as Ms).max(1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Ms = 60_000;

    fn doubling(base: Ms, max: Ms) -> Ladder {
        Ladder { base, multiplier: 2.0, max, ..Ladder::default() }
    }

    #[test]
    fn b192_the_ladder_follows_the_vectors() {
        let rate_limited = doubling(MINUTE, 30 * MINUTE);
        let rungs: Vec<f64> = (1..=7).map(|streak| rate_limited.rung(streak) / 1_000.0).collect();
        assert_eq!(rungs, [60.0, 120.0, 240.0, 480.0, 960.0, 1800.0, 1800.0]);
        let captcha = doubling(30 * MINUTE, 360 * MINUTE);
        let rungs: Vec<f64> = (1..=6).map(|streak| captcha.rung(streak) / 60_000.0).collect();
        assert_eq!(rungs, [30.0, 60.0, 120.0, 240.0, 360.0, 360.0]);
    }

    #[test]
    fn b154_a_cooldown_is_spread_over_the_whole_of_its_range() {
        let (ladder, mut dice) = (doubling(MINUTE, 30 * MINUTE), Dice::new(3));
        for (streak, low, high) in [(1, 48_000, 72_000), (2, 96_000, 144_000)] {
            let lengths: Vec<Ms> = (0..2_000).map(|_| ladder.length(streak, &mut dice)).collect();
            assert!(lengths.iter().all(|length| (low..=high).contains(length)));
            let tenth = (high - low) / 10;
            assert!(lengths.iter().any(|length| *length < low + tenth) && lengths.iter().any(|length| *length > high - tenth));
        }
    }

    #[test]
    fn a_constant_ladder_stays_and_an_exponent_stops() {
        let constant = Ladder { base: 2 * MINUTE, max: 30 * MINUTE, ..Ladder::default() };
        assert_eq!((constant.rung(1), constant.rung(50)), (120_000.0, 120_000.0));
        let stopped = Ladder { max_exponent: 2, ..doubling(MINUTE, 1_000 * MINUTE) };
        assert_eq!((stopped.rung(3), stopped.rung(9)), (240_000.0, 240_000.0));
    }

    proptest! {
        #[test]
        fn a_cooldown_keeps_its_bounds(
            base in any::<u64>(), multiplier in 0.0..1e6_f64, max in any::<u64>(), max_exponent in any::<u32>(),
            streak in any::<u32>(), seed in any::<u64>(),
        ) {
            let ladder = Ladder { base, multiplier, max, max_exponent, ..Ladder::default() };
            let length = ladder.length(streak, &mut Dice::new(seed));
            prop_assert!(length >= 1);
            prop_assert!(length as f64 <= max as f64 * 1.2 + 1.0);
            let next = if multiplier >= 1.0 { ladder.rung(streak.saturating_add(1)) } else { ladder.rung(streak) };
            prop_assert!(ladder.rung(streak) <= next);
        }
    }
}
