//! How often something happened within a sliding window, in buckets (wire contract, section 26).

use crate::plane::model::Ms;
use std::collections::VecDeque;

/// A bucket is at least this long, and at least a sixtieth of the window.
const SHORTEST_BUCKET: Ms = 1_000;

/// The counts of one window. The window's length comes in with each call and has to stay the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter {
    /// Bucket numbers ascending, each with its count; at most 60.
    buckets: VecDeque<(u64, u32)>,
}

impl Counter {
    /// Counts one more, and says how many there are now. A clock that went back counts into the newest bucket.
    pub(crate) fn add(&mut self, now: Ms, window: Ms) -> u32 {
        let (length, oldest) = frame(now, window);
        while self.buckets.front().is_some_and(|(bucket, _)| *bucket < oldest) {
            self.buckets.pop_front();
        }
        match self.buckets.back_mut() {
            Some((bucket, count)) if *bucket >= now / length => *count = count.saturating_add(1),
            _ => self.buckets.push_back((now / length, 1)),
        }
        self.total(now, window)
    }

    /// How many there were within the window that ends now.
    pub(crate) fn total(&self, now: Ms, window: Ms) -> u32 {
        let (_, oldest) = frame(now, window);
        let within = self.buckets.iter().rev().take_while(|(bucket, _)| *bucket >= oldest);
        within.fold(0, |sum: u32, (_, count)| sum.saturating_add(*count))
    }

    /// Whether nothing of it is within the window any more.
    pub(crate) fn is_over(&self, now: Ms, window: Ms) -> bool {
        let (_, oldest) = frame(now, window);
        self.buckets.back().is_none_or(|(bucket, _)| *bucket < oldest)
    }
}

/// The length of a bucket, and the number of the oldest bucket within the window.
fn frame(now: Ms, window: Ms) -> (Ms, u64) {
    let length = (window / 60).max(SHORTEST_BUCKET);
    let buckets = window.div_ceil(length).max(1);
    (length, (now / length).saturating_sub(buckets - 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_count_leaves_the_window_with_its_bucket() {
        let (mut counter, window) = (Counter::default(), 600_000);
        assert_eq!(counter.add(1_000_000, window), 1);
        assert_eq!(counter.add(1_009_999, window), 2);
        assert_eq!(counter.total(1_599_999, window), 2);
        assert_eq!(counter.total(1_600_000, window), 0);
        assert!(counter.is_over(1_600_000, window) && !counter.is_over(1_599_999, window));
    }

    #[test]
    fn a_short_window_has_buckets_of_a_second() {
        let mut counter = Counter::default();
        counter.add(500, 2_000);
        assert_eq!((counter.total(1_999, 2_000), counter.total(2_000, 2_000)), (1, 0));
        assert_eq!(Counter::default().add(0, 0), 1);
    }

    #[test]
    fn a_clock_that_goes_back_loses_nothing() {
        let mut counter = Counter::default();
        counter.add(900_000, 600_000);
        assert_eq!(counter.add(100, 600_000), 2);
    }

    proptest! {
        #[test]
        fn a_counter_agrees_with_a_list_of_all_moments(
            pauses in prop::collection::vec(0_u64..200_000, 1..200), window in 500_u64..4_000_000,
        ) {
            let (mut counter, mut moments, mut now) = (Counter::default(), Vec::new(), 1_700_000_000_000);
            let length = (window / 60).max(1_000);
            for pause in pauses {
                now += pause;
                moments.push(now);
                let seen = counter.add(now, window);
                let buckets = window.div_ceil(length);
                let slow = moments.iter().filter(|at| **at / length + buckets > now / length).count();
                prop_assert_eq!(seen as usize, slow);
                // Never more than the window holds, never less than it holds short of one bucket.
                prop_assert!(slow <= moments.iter().filter(|at| now - **at < buckets * length).count());
                prop_assert!(slow >= moments.iter().filter(|at| now - **at <= window.saturating_sub(length)).count());
                prop_assert!(counter.buckets.len() <= 62);
            }
        }
    }
}
