//! How often an outcome met an identity, an account or a proxy lately: the counts behind `count` conditions of action rules
//! (wire contract, sections 26 and 27).
//!
//! Bounded, and lazy: what is over is forgotten while new subjects come.

mod counter;
mod shelf;

use super::{Ms, Outcome};
use counter::Counter;
pub(crate) use shelf::Shelf;

/// How many counters one site keeps; at most 60 buckets of 16 bytes each.
const MOST: usize = 1 << 18;

/// Whom a count is about, by the keys of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Counted {
    Identity(u32),
    Account(u32),
    Proxy(u32),
}

type Key = (Counted, Outcome, Ms);

/// The counts of one site, per subject, outcome and window.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    counters: Shelf<Key, Windowed>,
}

/// A counter that knows its window, which the sweep needs.
#[derive(Debug, Clone, Default)]
struct Windowed {
    counter: Counter,
    window: Ms,
}

impl Counts {
    pub(crate) const fn new() -> Self {
        Self::holding(MOST)
    }

    /// With room for so many counters; when full, one is forgotten for each new one.
    pub(crate) const fn holding(most: usize) -> Self {
        Self { counters: Shelf::new(most) }
    }

    /// Counts one more, and says how many there are within the window, in milliseconds, this one included.
    pub(crate) fn add(&mut self, who: Counted, outcome: Outcome, window: Ms, now: Ms) -> u32 {
        let entry = self.counters.entry((who, outcome, window), |entry| entry.counter.is_over(now, entry.window));
        entry.window = window;
        entry.counter.add(now, window)
    }

    /// How many there were within the window that ends now.
    pub(crate) fn total(&self, who: Counted, outcome: Outcome, window: Ms, now: Ms) -> u32 {
        self.counters.get(&(who, outcome, window)).map_or(0, |entry| entry.counter.total(now, window))
    }

    /// How many counters there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.counters.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Ms = 60_000;

    #[test]
    fn subjects_outcomes_and_windows_are_counted_apart() {
        let mut counts = Counts::new();
        let one = Counted::Identity(1);
        counts.add(one, Outcome::Captcha, 10 * MINUTE, MINUTE);
        assert_eq!(counts.add(one, Outcome::Captcha, 10 * MINUTE, 2 * MINUTE), 2);
        for (who, outcome, window) in [
            (Counted::Account(1), Outcome::Captcha, 10 * MINUTE),
            (Counted::Proxy(1), Outcome::Captcha, 10 * MINUTE),
            (Counted::Identity(2), Outcome::Captcha, 10 * MINUTE),
            (one, Outcome::Empty, 10 * MINUTE),
            (one, Outcome::Captcha, 20 * MINUTE),
        ] {
            assert_eq!(counts.total(who, outcome, window, 2 * MINUTE), 0);
        }
        assert_eq!(counts.total(one, Outcome::Captcha, 10 * MINUTE, 20 * MINUTE), 0);
    }

    #[test]
    fn memory_follows_the_subjects_alive_and_never_passes_the_bound() {
        let (mut counts, mut small) = (Counts::new(), Counts::holding(50));
        for id in 0..50_000 {
            let now = u64::from(id) * 1_000;
            counts.add(Counted::Identity(id), Outcome::Captcha, MINUTE, now);
            small.add(Counted::Identity(id), Outcome::Captcha, 24 * 60 * MINUTE, now);
            assert!(small.len() <= 50);
        }
        assert!(counts.len() < 300, "{}", counts.len());
    }

    proptest! {
        #[test]
        fn counts_agree_with_a_list_of_all_reports(
            reports in prop::collection::vec((0_u32..5, 0_usize..3, 0_u64..90_000), 1..200),
        ) {
            let outcomes = [Outcome::Empty, Outcome::Captcha, Outcome::Banned];
            let windows = [30_000, 10 * MINUTE, 24 * 60 * MINUTE];
            let (mut counts, mut seen, mut now) = (Counts::new(), Vec::new(), 1_000_000_000);
            for (id, outcome, pause) in reports {
                now += pause;
                let outcome = outcomes[outcome];
                seen.push((id, outcome, now));
                for window in windows {
                    let length = (window / 60).max(1_000);
                    let slow = seen.iter().filter(|(other, what, at)| {
                        (*other, *what) == (id, outcome) && at / length + window / length > now / length
                    });
                    let expected = slow.count();
                    prop_assert_eq!(counts.add(Counted::Proxy(id), outcome, window, now) as usize, expected);
                    prop_assert_eq!(counts.total(Counted::Proxy(id), outcome, window, now) as usize, expected);
                }
            }
        }
    }
}
