//! What a breaker looks at: the reports of the last minute or so, in buckets.
//!
//! The current bucket and those before it make the window, so it covers a little less than its length. Bounded: at most 60
//! buckets, and [`MOST_IDENTITIES`] identities that met a captcha.

use super::numbers::BreakerNumbers;
use crate::plane::model::{Ms, Outcome};
use std::collections::{BTreeMap, VecDeque};

/// So many identities with a captcha are told apart within one window; more are not counted.
pub(super) const MOST_IDENTITIES: usize = 10_000;

/// The reports within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sums {
    pub(crate) total: u64,
    pub(crate) success: u64,
    pub(crate) risk: u64,
    /// Identities that met a captcha, each once.
    pub(crate) captcha_identities: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    length: Ms,
    /// By bucket number, ascending.
    buckets: VecDeque<Bucket>,
    /// The newest bucket in which each identity met a captcha.
    captchas: BTreeMap<u32, u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    number: u64,
    total: u64,
    success: u64,
    risk: u64,
}

impl Sums {
    /// The share of risk outcomes, 0 without reports.
    pub(crate) fn risk_ratio(&self) -> f64 {
        share(self.risk, self.total)
    }

    /// The share of successes, 0 without reports.
    pub(crate) fn success_ratio(&self) -> f64 {
        share(self.success, self.total)
    }
}

impl Window {
    /// Counts a report. A policy with buckets of another length begins a new window.
    pub(super) fn record(&mut self, outcome: Outcome, identity: u32, now: Ms, numbers: &BreakerNumbers) {
        let (length, count) = numbers.frame();
        if self.length != length {
            *self = Self { length, ..Self::default() };
        }
        let number = now / length;
        if self.buckets.back().is_none_or(|newest| newest.number < number) {
            self.turn(number, (number + 1).saturating_sub(count));
        }
        let Some(bucket) = self.buckets.back_mut() else { return };
        bucket.total += 1;
        bucket.success += u64::from(outcome == Outcome::Success);
        bucket.risk += u64::from(outcome.is_risk());
        if outcome == Outcome::Captcha {
            let number = bucket.number;
            if self.captchas.len() < MOST_IDENTITIES || self.captchas.contains_key(&identity) {
                self.captchas.insert(identity, number);
            }
        }
    }

    /// What is in the window that ends now, without buckets that began before `since`.
    pub(super) fn sums(&self, now: Ms, since: Ms, numbers: &BreakerNumbers) -> Sums {
        let (length, count) = numbers.frame();
        if self.length != length {
            return Sums::default();
        }
        let oldest = (now / length + 1).saturating_sub(count).max(since.div_ceil(length));
        let mut sums = Sums::default();
        for bucket in self.buckets.iter().rev().take_while(|bucket| bucket.number >= oldest) {
            sums.total += bucket.total;
            sums.success += bucket.success;
            sums.risk += bucket.risk;
        }
        sums.captcha_identities = self.captchas.values().filter(|number| **number >= oldest).count() as u32;
        sums
    }

    /// Begins a bucket and forgets what is older than the window.
    fn turn(&mut self, number: u64, oldest: u64) {
        while self.buckets.front().is_some_and(|bucket| bucket.number < oldest) {
            self.buckets.pop_front();
        }
        self.captchas.retain(|_, newest| *newest >= oldest);
        self.buckets.push_back(Bucket { number, ..Bucket::default() });
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_window_forgets_with_its_buckets_and_with_another_policy() {
        let (mut window, numbers) = (Window::default(), BreakerNumbers::default());
        window.record(Outcome::Captcha, 1, 100_000, &numbers);
        assert_eq!(window.sums(159_999, 0, &numbers), Sums { total: 1, success: 0, risk: 1, captcha_identities: 1 });
        assert_eq!(window.sums(160_000, 0, &numbers), Sums::default());
        assert_eq!(window.sums(100_000, 100_000, &numbers).total, 1);
        assert_eq!(window.sums(100_000, 100_001, &numbers).total, 0);
        let other = BreakerNumbers { buckets: 6, ..numbers };
        assert_eq!(window.sums(100_000, 0, &other), Sums::default());
        window.record(Outcome::Success, 1, 100_000, &other);
        assert_eq!(window.sums(100_000, 0, &other).total, 1);
    }

    #[test]
    fn identities_are_told_apart_up_to_the_bound() {
        let (mut window, numbers) = (Window::default(), BreakerNumbers::default());
        for identity in 0..12_000 {
            window.record(Outcome::Captcha, identity, 100_000, &numbers);
            window.record(Outcome::Captcha, 3, 100_000, &numbers);
        }
        assert_eq!(window.sums(100_000, 0, &numbers).captcha_identities, 10_000);
        window.record(Outcome::Success, 1, 900_000, &numbers);
        assert_eq!((window.captchas.len(), window.buckets.len()), (0, 1));
    }

    proptest! {
        #[test]
        fn the_sums_agree_with_a_list_of_all_reports(
            reports in prop::collection::vec((0_usize..12, 0_u32..8, 0_u64..20_000), 1..200),
            buckets in 1_u32..=60, window in 60_000_u64..300_000, since in 0_u64..2_000_000,
        ) {
            let numbers = BreakerNumbers { buckets, window, ..BreakerNumbers::default() };
            let length = window / u64::from(buckets);
            let (mut kept, mut seen, mut now) = (Window::default(), Vec::new(), 500_000);
            for (outcome, identity, pause) in reports {
                now += pause;
                let outcome = Outcome::ALL[outcome];
                seen.push((outcome, identity, now));
                kept.record(outcome, identity, now, &numbers);
                let within = |at: Ms| at / length + u64::from(buckets) > now / length && at / length * length >= since;
                let fresh: Vec<_> = seen.iter().filter(|(.., at)| within(*at)).collect();
                let captchas = fresh.iter().filter(|(outcome, ..)| *outcome == Outcome::Captcha);
                let slow = Sums {
                    total: fresh.len() as u64,
                    success: fresh.iter().filter(|(outcome, ..)| *outcome == Outcome::Success).count() as u64,
                    risk: fresh.iter().filter(|(outcome, ..)| outcome.is_risk()).count() as u64,
                    captcha_identities: captchas.map(|(_, identity, _)| identity).collect::<BTreeSet<_>>().len() as u32,
                };
                prop_assert_eq!(kept.sums(now, since, &numbers), slow);
                prop_assert!(kept.buckets.len() <= 60);
            }
        }
    }
}
