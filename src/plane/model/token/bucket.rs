//! How often a token may call: a bucket of calls that fills at a steady rate (wire contract, section 17).

use std::num::NonZeroU32;

use super::super::Ms;

/// Most calls per second a limit can allow.
const MOST: u32 = 1_000_000;
/// What one call weighs: a rate of calls per second is the same number of these per millisecond, so nothing is ever rounded.
const CALL: u64 = 1_000;

/// Calls per second, and the most at once: 1 to 1,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimit(NonZeroU32);

/// A rate above what the contract allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token's rate_limit_rps is 0 (no limit) to {MOST}, found {given}")]
pub(crate) struct RateLimitError {
    given: u32,
}

impl RateLimit {
    /// The limit of so many calls per second; 0 is none.
    ///
    /// # Errors
    /// Above 1,000,000.
    pub(crate) fn new(calls_per_second: u32) -> Result<Option<Self>, RateLimitError> {
        if calls_per_second > MOST {
            return Err(RateLimitError { given: calls_per_second });
        }
        Ok(NonZeroU32::new(calls_per_second).map(Self))
    }
}

/// What is left of a limit.
#[derive(Debug)]
pub(super) struct Bucket {
    limit: RateLimit,
    level: u64,
    at: Ms,
}

impl Bucket {
    /// A bucket nothing was taken from.
    pub(super) fn full(limit: RateLimit) -> Self {
        Self { limit, level: CALL * u64::from(limit.0.get()), at: 0 }
    }

    pub(super) fn is_of(&self, limit: RateLimit) -> bool {
        self.limit == limit
    }

    /// Takes one call out, or tells in how many ms there will be one, at least 1. A clock that goes back fills nothing.
    pub(super) fn take(&mut self, now: Ms) -> Result<(), Ms> {
        let rate = u64::from(self.limit.0.get());
        let filled = now.saturating_sub(self.at).saturating_mul(rate);
        self.level = self.level.saturating_add(filled).min(CALL * rate);
        self.at = self.at.max(now);
        match self.level.checked_sub(CALL) {
            Some(rest) => {
                self.level = rest;
                Ok(())
            }
            None => Err((CALL - self.level).div_ceil(rate)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn bucket(rate: u32) -> Bucket {
        Bucket::full(RateLimit::new(rate).unwrap().unwrap())
    }

    #[test]
    fn the_bounds_of_a_rate_are_the_contracts() {
        assert_eq!(RateLimit::new(0), Ok(None));
        assert!(RateLimit::new(1_000_000).unwrap().is_some());
        assert!(RateLimit::new(1_000_001).unwrap_err().to_string().contains("found 1000001"));
    }

    #[test]
    fn a_full_bucket_gives_a_seconds_worth_at_once_and_then_one_at_a_time() {
        let mut three = bucket(3);
        assert_eq!((0..4).map(|_| three.take(1_000)).collect::<Vec<_>>(), [Ok(()), Ok(()), Ok(()), Err(334)]);
        assert_eq!(three.take(1_333), Err(1));
        assert_eq!(three.take(1_334), Ok(()));
        assert_eq!(three.take(1_667), Ok(()), "nothing is lost to rounding: a third of a second each, to the millisecond");
    }

    #[test]
    fn a_clock_that_goes_back_fills_nothing() {
        let mut one = bucket(1);
        assert_eq!(one.take(10_000), Ok(()));
        assert_eq!(one.take(5_000), Err(1_000));
        assert_eq!(one.take(10_500), Err(500));
        assert_eq!(one.take(11_000), Ok(()));
    }

    proptest! {
        #[test]
        fn no_stretch_of_time_lets_through_more_than_the_burst_and_its_rate(
            rate in 1_u32..2_000,
            steps in prop::collection::vec(0_u64..40, 1..400),
        ) {
            let mut bucket = bucket(rate);
            let mut now = 0;
            let mut passed = Vec::new();
            for step in steps {
                now += step;
                match bucket.take(now) {
                    Ok(()) => passed.push(now),
                    Err(wait) => {
                        prop_assert!((1..=1_000).contains(&wait));
                        // The hint is the truth: not sooner, and then surely.
                        let copy = |at| Bucket { limit: bucket.limit, level: bucket.level, at: bucket.at }.take(at);
                        prop_assert_eq!(copy(now + wait), Ok(()));
                        prop_assert!(copy(now + wait - 1).is_err());
                    }
                }
            }
            for (first, from) in passed.iter().enumerate() {
                for (last, to) in passed.iter().enumerate().skip(first) {
                    let most = u64::from(rate) * 1_000 + (to - from) * u64::from(rate);
                    let calls = u64::try_from(last - first + 1).unwrap();
                    prop_assert!(calls * 1_000 <= most, "{calls} calls from {from} to {to}");
                }
            }
        }
    }
}
