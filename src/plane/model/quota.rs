//! Quotas: how many requests an identity may make in an endpoint group within a window (wire contract, section 21.2).
//!
//! A sliding estimate from two buckets: the running one counts whole, the one before it by the part the window still covers.
//! Never decides what a unit is: an acquire is one, so is every report of a lease after its first.

use super::Ms;

/// At most `limit` units within `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaRule {
    pub(crate) limit: u32,
    /// At least one second by the policy's rules; 0 counts as 1 ms.
    pub(crate) window: Ms,
}

/// A smaller limit for the time after an identity became active.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Warmup {
    pub(crate) duration: Ms,
    /// In (0, 1].
    pub(crate) quota_factor: f64,
}

/// What one identity has used in one group, per window.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuotaUse {
    windows: Vec<Window>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    length: Ms,
    /// Number of the running bucket since the epoch.
    bucket: u64,
    previous: u32,
    current: u32,
}

impl Default for Warmup {
    fn default() -> Self {
        Self { duration: 0, quota_factor: 1.0 }
    }
}

impl Warmup {
    /// What a limit is multiplied by at `now`; 1 when the moment of activation is not known.
    pub(crate) fn factor(&self, activated: Option<Ms>, now: Ms) -> f64 {
        match activated {
            Some(at) if now.saturating_sub(at) < self.duration => self.quota_factor,
            _ => 1.0,
        }
    }
}

impl QuotaUse {
    /// Whether one more unit fits into every window at `now`.
    ///
    /// # Errors
    /// The moment it may fit, always after `now`: of several full windows, the latest.
    pub(crate) fn admits(&self, rules: &[QuotaRule], factor: f64, now: Ms) -> Result<(), Ms> {
        let mut retry = None;
        for rule in rules {
            let window = self.window(rule.window).unwrap_or_else(|| Window::new(rule.window, now));
            if let Err(at) = window.rolled(now).admits(effective(rule.limit, factor), now) {
                retry = retry.max(Some(at));
            }
        }
        retry.map_or(Ok(()), Err)
    }

    /// Counts one unit at `now`. Windows that `rules` no longer name are forgotten.
    pub(crate) fn count(&mut self, rules: &[QuotaRule], now: Ms) {
        if self.windows.len() > rules.len() {
            self.windows.retain(|window| rules.iter().any(|rule| rule.window.max(1) == window.length));
        }
        for rule in rules {
            let length = rule.window.max(1);
            let mut window = self.window(length).unwrap_or_else(|| Window::new(length, now)).rolled(now);
            window.current = window.current.saturating_add(1);
            match self.windows.iter_mut().find(|old| old.length == length) {
                Some(old) => *old = window,
                None => self.windows.push(window),
            }
        }
    }

    /// Takes back the unit counted at `counted`, where a window still knows it.
    pub(crate) fn give_back(&mut self, counted: Ms) {
        for window in &mut self.windows {
            let bucket = counted / window.length;
            if bucket == window.bucket {
                window.current = window.current.saturating_sub(1);
            } else if bucket.checked_add(1) == Some(window.bucket) {
                window.previous = window.previous.saturating_sub(1);
            }
        }
    }

    fn window(&self, length: Ms) -> Option<Window> {
        self.windows.iter().copied().find(|window| window.length == length.max(1))
    }
}

impl Window {
    fn new(length: Ms, now: Ms) -> Self {
        let length = length.max(1);
        Self { length, bucket: now / length, previous: 0, current: 0 }
    }

    /// The same at `now`. A clock that went back stays in the running bucket.
    fn rolled(self, now: Ms) -> Self {
        match (now / self.length).checked_sub(self.bucket) {
            None | Some(0) => self,
            Some(1) => Self { bucket: self.bucket + 1, previous: self.current, current: 0, ..self },
            Some(_) => Self::new(self.length, now),
        }
    }

    fn estimate(&self, now: Ms) -> f64 {
        let elapsed = now.saturating_sub(self.start()).min(self.length);
        f64::from(self.previous) * (1.0 - elapsed as f64 / self.length as f64) + f64::from(self.current)
    }

    fn admits(&self, limit: f64, now: Ms) -> Result<(), Ms> {
        if self.estimate(now) + 1.0 <= limit {
            return Ok(());
        }
        let room = limit - f64::from(self.current) - 1.0;
        let mut at = self.start().saturating_add(self.length);
        if room >= 0.0 && self.previous > 0 {
            // The part of the bucket that must pass until enough of the one before it has slid out.
            let part = (1.0 - room / f64::from(self.previous)).max(0.0);
            let fits = self.start().saturating_add((self.length as f64 * part).ceil() as Ms).saturating_add(1);
            at = at.min(fits);
        }
        Err(at.max(now.saturating_add(1)))
    }

    const fn start(&self) -> Ms {
        self.bucket.saturating_mul(self.length)
    }
}

fn effective(limit: u32, factor: f64) -> f64 {
    (f64::from(limit) * factor).max(1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    const MINUTE: Ms = 60_000;

    fn used(previous: u32, current: u32) -> QuotaUse {
        QuotaUse { windows: vec![Window { length: MINUTE, bucket: 100, previous, current }] }
    }

    fn rules(limits: &[(u32, Ms)]) -> Vec<QuotaRule> {
        limits.iter().map(|(limit, window)| QuotaRule { limit: *limit, window: *window }).collect()
    }

    #[test]
    fn b192_the_quota_vectors_hold() {
        let (rules, start) = (rules(&[(10, MINUTE)]), 100 * MINUTE);
        let now = start + 15_000;
        assert_eq!(used(8, 3).windows[0].estimate(now), 9.0);
        assert_eq!(used(8, 3).admits(&rules, 1.0, now), Ok(()));
        assert_eq!(used(8, 4).windows[0].estimate(now), 10.0);
        assert_eq!(used(8, 4).admits(&rules, 1.0, now), Err(start + 22_501));
        assert_eq!(used(8, 4).admits(&rules, 1.0, now), Err(now + 7_501));
        assert_eq!(used(8, 10).admits(&rules, 1.0, now), Err(start + MINUTE));
    }

    #[test]
    fn b142_two_per_minute_refuse_the_third_until_the_window_has_slid() {
        let rules = rules(&[(2, MINUTE)]);
        let mut quota = QuotaUse::default();
        let now = 10 * MINUTE + 1_000;
        for _ in 0..2 {
            assert_eq!(quota.admits(&rules, 1.0, now), Ok(()));
            quota.count(&rules, now);
        }
        assert_eq!(quota.admits(&rules, 1.0, now), Err(11 * MINUTE));
        assert_eq!(quota.admits(&rules, 1.0, 11 * MINUTE), Err(11 * MINUTE + 30_001));
        assert_eq!(quota.admits(&rules, 1.0, 11 * MINUTE + 30_000), Ok(()));
        quota.count(&rules, 11 * MINUTE + 30_000);
        assert_eq!(quota.admits(&rules, 1.0, 11 * MINUTE + 30_000), Err(12 * MINUTE));
    }

    #[test]
    fn b142_warm_up_halves_the_limit_but_never_below_one() {
        let warmup = Warmup { duration: MINUTE, quota_factor: 0.5 };
        let activated = 5 * MINUTE;
        assert_eq!(warmup.factor(Some(activated), activated + MINUTE - 1), 0.5);
        assert_eq!(warmup.factor(Some(activated), activated + MINUTE), 1.0);
        assert_eq!(warmup.factor(None, activated), 1.0);
        assert_eq!(Warmup::default().factor(Some(activated), activated), 1.0);
        let admitted = |limit: u32, factor: f64| {
            let (rules, mut quota, now) = (rules(&[(limit, MINUTE)]), QuotaUse::default(), 7 * MINUTE);
            (0..100).take_while(|_| quota.admits(&rules, factor, now).map(|()| quota.count(&rules, now)).is_ok()).count()
        };
        assert_eq!((admitted(10, 1.0), admitted(10, 0.5), admitted(5, 0.5), admitted(1, 0.5)), (10, 5, 2, 1));
    }

    #[test]
    fn of_several_full_windows_the_latest_decides() {
        let rules = rules(&[(1, 1_000), (2, MINUTE), (50, 3_600_000)]);
        let mut quota = QuotaUse::default();
        let now = 120 * MINUTE + 100;
        quota.count(&rules, now);
        assert_eq!(quota.admits(&rules, 1.0, now), Err(120 * MINUTE + 1_000));
        quota.count(&rules, now);
        assert_eq!(quota.admits(&rules, 1.0, now), Err(121 * MINUTE));
    }

    #[test]
    fn b200_a_unit_given_back_is_free_in_both_buckets() {
        let rules = rules(&[(1, MINUTE)]);
        let now = 9 * MINUTE + 59_000;
        let mut quota = QuotaUse::default();
        quota.count(&rules, now);
        quota.give_back(now);
        assert_eq!(quota.admits(&rules, 1.0, now), Ok(()));
        quota.count(&rules, now);
        // The clock has gone on to the next bucket when the rendering fails.
        quota.windows[0] = quota.windows[0].rolled(now + 2_000);
        quota.give_back(now);
        assert_eq!(quota.admits(&rules, 1.0, now + 2_000), Ok(()));
        quota.give_back(now - 5 * MINUTE);
        assert_eq!(quota.windows[0].current, 0);
    }

    #[test]
    fn windows_the_policy_dropped_are_forgotten() {
        let mut quota = QuotaUse::default();
        quota.count(&rules(&[(1, MINUTE), (5, 1_000)]), 0);
        quota.count(&rules(&[(1, MINUTE)]), 0);
        assert_eq!(quota.windows.len(), 1);
        assert_eq!(quota.windows[0].current, 2);
    }

    proptest! {
        #[test]
        fn it_counts_like_a_list_of_all_moments(
            limit in 1_u32..12, length in 1_000_u64..5_000, gaps in proptest::collection::vec(0_u64..1_500, 1..150)
        ) {
            let rules = rules(&[(limit, length)]);
            let (mut quota, mut moments, mut now) = (QuotaUse::default(), Vec::<Ms>::new(), 1_700_000_000_000);
            for gap in gaps {
                now += gap;
                let bucket = now / length;
                let of = |bucket: u64| moments.iter().filter(|at| **at / length == bucket).count() as f64;
                let part = (now % length) as f64 / length as f64;
                let estimate = of(bucket - 1) * (1.0 - part) + of(bucket);
                match quota.admits(&rules, 1.0, now) {
                    Ok(()) => {
                        prop_assert!(estimate + 1.0 <= f64::from(limit) + 1e-9, "{estimate} of {limit}");
                        quota.count(&rules, now);
                        moments.push(now);
                    }
                    Err(at) => {
                        prop_assert!(estimate + 1.0 >= f64::from(limit) - 1e-9, "{estimate} of {limit}");
                        prop_assert!(at > now && at <= (bucket + 1) * length);
                        // Within the bucket the moment is exact: it fits then, and not two milliseconds earlier.
                        if at < (bucket + 1) * length {
                            prop_assert_eq!(quota.admits(&rules, 1.0, at), Ok(()));
                            prop_assert!(at < now + 3 || quota.admits(&rules, 1.0, at - 3).is_err());
                        }
                    }
                }
            }
        }
    }
}
