//! Failure streaks: how often in a row something failed, which sets the rung of the cooldown ladder (wire contract,
//! section 26).
//!
//! A success halves a streak and does not end it, so an identity that fails every second time still climbs.

use super::{Blame, Ms, Outcome};

/// Failures in a row, kept per identity and group, per identity, and per proxy and site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Streak {
    failures: u32,
    last: Ms,
}

/// What one report does to a streak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Raise,
    Halve,
    Keep,
}

impl Step {
    /// For the identity's streaks. The failures of an identity raise them whoever is to blame; a network error only if the
    /// identity is.
    pub(crate) const fn of_identity(outcome: Outcome, blame: Blame) -> Self {
        match outcome {
            Outcome::Success => Self::Halve,
            Outcome::NetworkError if blame.has_identity() => Self::Raise,
            _ if is_failure(outcome) => Self::Raise,
            _ => Self::Keep,
        }
    }

    /// For the proxy's streak: failures raise it only if the proxy is to blame.
    pub(crate) const fn of_proxy(outcome: Outcome, blame: Blame) -> Self {
        match outcome {
            Outcome::Success => Self::Halve,
            Outcome::ProxyError | Outcome::NetworkError if blame.has_proxy() => Self::Raise,
            _ if is_failure(outcome) && blame.has_proxy() => Self::Raise,
            _ => Self::Keep,
        }
    }
}

impl Streak {
    /// Takes a step, and says how long the streak is after it. A failure more than `reset` milliseconds after the last one
    /// begins a new streak.
    pub(crate) fn take(&mut self, step: Step, now: Ms, reset: Ms) -> u32 {
        match step {
            Step::Raise => {
                let kept = if now.saturating_sub(self.last) > reset { 0 } else { self.failures };
                *self = Self { failures: kept.saturating_add(1), last: self.last.max(now) };
            }
            Step::Halve => self.failures /= 2,
            Step::Keep => {}
        }
        self.failures
    }

    /// How many failures it counts.
    #[cfg(test)]
    pub(crate) const fn failures(self) -> u32 {
        self.failures
    }
}

/// Whether an outcome is a failure of the identity that met it.
pub(crate) const fn is_failure(outcome: Outcome) -> bool {
    use Outcome::{AuthInvalid, Banned, Captcha, Empty, Forbidden, RateLimited};
    matches!(outcome, Empty | RateLimited | Captcha | AuthInvalid | Forbidden | Banned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const HOUR: Ms = 3_600_000;

    #[test]
    fn b192_a_streak_follows_the_vector() {
        use Step::{Halve, Raise};
        let mut streak = Streak::default();
        let seen = [Raise, Raise, Raise, Halve, Raise, Halve, Halve].map(|step| streak.take(step, 10 * HOUR, HOUR));
        assert_eq!(seen, [1, 2, 3, 1, 2, 1, 0]);
    }

    #[test]
    fn a_failure_after_a_long_rest_begins_a_new_streak() {
        let mut streak = Streak::default();
        streak.take(Step::Raise, 5 * HOUR, HOUR);
        assert_eq!(streak.take(Step::Raise, 6 * HOUR, HOUR), 2);
        assert_eq!(streak.take(Step::Keep, 9 * HOUR, HOUR), 2);
        assert_eq!(streak.take(Step::Raise, 7 * HOUR + 1, HOUR), 1);
    }

    #[test]
    fn b195_a_failure_blamed_on_the_proxy_still_raises_the_identitys_streak() {
        assert_eq!(Step::of_identity(Outcome::RateLimited, Blame::Proxy), Step::Raise);
        assert_eq!(Step::of_proxy(Outcome::RateLimited, Blame::Proxy), Step::Raise);
        assert_eq!(Step::of_proxy(Outcome::RateLimited, Blame::Identity), Step::Keep);
    }

    #[test]
    fn b157_a_proxys_error_leaves_the_identitys_streak_alone() {
        for outcome in [Outcome::ProxyError, Outcome::NetworkError] {
            assert_eq!(Step::of_identity(outcome, outcome.blame()), Step::Keep);
            assert_eq!(Step::of_proxy(outcome, outcome.blame()), Step::Raise);
        }
        assert_eq!(Step::of_identity(Outcome::NetworkError, Blame::Both), Step::Raise);
        assert_eq!(Step::of_identity(Outcome::ProxyError, Blame::Both), Step::Keep);
    }

    #[test]
    fn b158_outcomes_that_blame_nobody_keep_every_streak() {
        for outcome in [Outcome::Unknown, Outcome::TargetError, Outcome::ClientError] {
            assert_eq!(Step::of_identity(outcome, Blame::Both), Step::Keep);
            assert_eq!(Step::of_proxy(outcome, Blame::Both), Step::Keep);
        }
    }

    proptest! {
        #[test]
        fn a_streak_never_exceeds_the_failures_seen(steps in prop::collection::vec((any::<bool>(), 0_u64..2 * HOUR), 0..100)) {
            let (mut streak, mut now, mut slow, mut last) = (Streak::default(), HOUR, 0_u32, 0);
            for (fails, pause) in steps {
                now += pause;
                if fails {
                    slow = if now - last > HOUR { 1 } else { slow + 1 };
                    last = now;
                } else {
                    slow /= 2;
                }
                let step = if fails { Step::Raise } else { Step::Halve };
                prop_assert_eq!(streak.take(step, now, HOUR), slow);
            }
        }
    }
}
