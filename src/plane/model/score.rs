//! Health scores: how an identity or a proxy has fared lately (wire contract, section 26).
//!
//! A score runs from 0 to 100, is pulled towards each observation, and drifts back to its baseline while nothing happens.
//! It is kept in hundredths, as the original keeps it. Never decides anything: the action rules do.

use super::{Blame, Ms, Outcome};

/// So short a part of tau that `exp(-x)` and `1 - x` differ by less than a millionth of a point.
const SHORT: f64 = 1e-4;

/// How scores move; the defaults are the contract's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreNumbers {
    /// How much one observation weighs, 0 to 1.
    pub(crate) alpha: f64,
    /// Where a score begins and drifts back to, 0 to 100.
    pub(crate) baseline: f64,
    /// How long a distance from the baseline takes to shrink to 1/e, in milliseconds.
    pub(crate) tau: Ms,
}

impl Default for ScoreNumbers {
    fn default() -> Self {
        Self { alpha: 0.1, baseline: 70.0, tau: 6 * 3_600_000 }
    }
}

/// One score. The default one has seen nothing and stands at the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Score {
    at: Ms,
    samples: u32,
    hundredths: u16,
}

impl Score {
    /// Where it stands now, 0 to 100. A clock that went back counts as one that stood still.
    pub(crate) fn points(&self, now: Ms, numbers: &ScoreNumbers) -> f64 {
        let base = numbers.baseline.clamp(0.0, 100.0);
        if self.samples == 0 {
            return base;
        }
        let kept = f64::from(self.hundredths) / 100.0;
        let elapsed = now.saturating_sub(self.at);
        if elapsed == 0 {
            return kept;
        }
        let part = elapsed as f64 / numbers.tau.max(1) as f64;
        // Most scores are asked for moments after they moved: then the first two terms of the series do.
        let left = if part < SHORT { 1.0 - part } else { (-part).exp() };
        base + (kept - base) * left
    }

    /// Takes in one observation, 0 to 100.
    pub(crate) fn observe(&mut self, observation: f64, now: Ms, numbers: &ScoreNumbers) {
        let alpha = numbers.alpha.clamp(0.0, 1.0);
        // In hundredths all along: a half is then exact where the original rounds one up.
        let drifted = self.points(now, numbers) * 100.0;
        let mixed = alpha * (observation.clamp(0.0, 100.0) * 100.0) + (1.0 - alpha) * drifted;
        self.hundredths = mixed.round() as u16;
        self.samples = self.samples.saturating_add(1);
        self.at = self.at.max(now);
    }

    /// How many observations it has taken in.
    pub(crate) const fn samples(&self) -> u32 {
        self.samples
    }
}

/// What each outcome says of an identity, as points; `None`: nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observations([Option<f64>; Outcome::ALL.len()]);

impl Default for Observations {
    fn default() -> Self {
        let mut table = Self([None; Outcome::ALL.len()]);
        for (outcome, points) in [
            (Outcome::Success, 100.0),
            (Outcome::Empty, 60.0),
            (Outcome::NetworkError, 50.0),
            (Outcome::RateLimited, 30.0),
            (Outcome::Forbidden, 10.0),
            (Outcome::Captcha, 0.0),
        ] {
            table.set(outcome, points);
        }
        table
    }
}

impl Observations {
    /// Overrides what one outcome says, as a policy may.
    pub(crate) fn set(&mut self, outcome: Outcome, points: f64) {
        if let Some(entry) = self.0.get_mut(outcome as usize) {
            *entry = Some(points);
        }
    }

    /// What a report says of its identity: success always, the rest only if the identity is to blame.
    pub(crate) fn of_identity(&self, outcome: Outcome, blame: Blame) -> Option<f64> {
        let counts = outcome == Outcome::Success || blame.has_identity();
        self.0.get(outcome as usize).copied().flatten().filter(|_| counts)
    }

    /// What a report says of its proxy: success always, the rest only if the proxy is to blame.
    pub(crate) const fn of_proxy(outcome: Outcome, blame: Blame) -> Option<f64> {
        match outcome {
            Outcome::Success => Some(100.0),
            Outcome::ProxyError if blame.has_proxy() => Some(0.0),
            Outcome::NetworkError if blame.has_proxy() => Some(40.0),
            Outcome::RateLimited if blame.has_proxy() => Some(30.0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const HOUR: Ms = 3_600_000;

    fn after(observations: &[f64]) -> Vec<f64> {
        let (mut score, numbers) = (Score::default(), ScoreNumbers::default());
        observations
            .iter()
            .map(|observation| {
                score.observe(*observation, 1_000, &numbers);
                score.points(1_000, &numbers)
            })
            .collect()
    }

    #[test]
    fn b192_scores_follow_the_vectors() {
        let captchas = [63.0, 56.7, 51.03, 45.927, 41.3343, 37.2009, 33.4808, 30.1327, 27.1194, 24.4075];
        let successes = [73.0, 75.7, 78.13, 80.317, 82.2853];
        for (observation, expected) in [(0.0, &captchas[..]), (100.0, &successes[..])] {
            let seen = after(&vec![observation; expected.len()]);
            for (step, (seen, expected)) in seen.iter().zip(expected).enumerate() {
                // The vectors are not rounded; the stored score is, by half a hundredth at each step.
                assert!((seen - expected).abs() <= 0.01 * (step + 1) as f64, "step {step}: {seen}, {expected}");
            }
        }
        for (from, hours, expected) in [(10_000, 6, 81.0364), (0, 6, 44.2484), (0, 1, 10.7463), (0, 24, 68.7179)] {
            let score = Score { at: 5, samples: 1, hundredths: from };
            let seen = score.points(5 + hours * HOUR, &ScoreNumbers::default());
            assert!((seen - expected).abs() < 0.0001, "{from} after {hours} h: {seen}");
        }
    }

    #[test]
    fn b160_forbidden_reports_lower_the_score_by_the_contracts_figures() {
        let seen = after(&[10.0; 24]);
        assert_eq!(format!("{:.2}", seen[9]), "30.93");
        assert_eq!(format!("{:.2}", seen[17]), "19.01");
        assert!(seen[16] >= 20.0 && seen[22] >= 15.0 && seen[23] < 15.0, "{seen:?}");
        assert!(after(&[30.0; 500]).iter().all(|points| *points >= 30.0));
    }

    #[test]
    fn b161_a_score_drifts_back_to_its_baseline() {
        let numbers = ScoreNumbers::default();
        for from in [0, 10_000] {
            let score = Score { at: 0, samples: 1, hundredths: from };
            let distance = |now| (score.points(now, &numbers) - 70.0).abs();
            assert!((distance(6 * HOUR) / distance(0) - (-1.0_f64).exp()).abs() < 1e-9);
            assert!(distance(100 * HOUR) < 0.001);
        }
    }

    #[test]
    fn b158_outcomes_that_blame_nobody_observe_nothing() {
        let table = Observations::default();
        for outcome in [Outcome::Unknown, Outcome::TargetError, Outcome::ClientError] {
            assert_eq!(table.of_identity(outcome, outcome.blame()), None);
            assert_eq!(Observations::of_proxy(outcome, outcome.blame()), None);
        }
    }

    #[test]
    fn b157_a_timeout_is_an_observation_of_the_proxy_alone() {
        let (outcome, blame) = (Outcome::NetworkError, Outcome::NetworkError.blame());
        assert_eq!(Observations::of_proxy(outcome, blame), Some(40.0));
        assert_eq!(Observations::default().of_identity(outcome, blame), None);
        assert_eq!(Observations::default().of_identity(outcome, Blame::Both), Some(50.0));
    }

    #[test]
    fn observations_depend_on_the_blame_and_a_policy_overrides_them() {
        let mut table = Observations::default();
        assert_eq!(table.of_identity(Outcome::Success, Blame::Nobody), Some(100.0));
        assert_eq!(table.of_identity(Outcome::RateLimited, Blame::Proxy), None);
        assert_eq!(table.of_identity(Outcome::RateLimited, Blame::Both), Some(30.0));
        assert_eq!(table.of_identity(Outcome::AuthInvalid, Blame::Identity), None);
        table.set(Outcome::AuthInvalid, 5.0);
        assert_eq!(table.of_identity(Outcome::AuthInvalid, Blame::Identity), Some(5.0));
        assert_eq!(Observations::of_proxy(Outcome::RateLimited, Blame::Both), Some(30.0));
        assert_eq!(Observations::of_proxy(Outcome::Captcha, Blame::Proxy), None);
        assert_eq!(Observations::of_proxy(Outcome::Success, Blame::Nobody), Some(100.0));
    }

    proptest! {
        #[test]
        fn decay_is_monotone_and_never_crosses_the_baseline(
            from in 0_u16..=10_000, earlier in 0_u64..400 * HOUR, more in 0_u64..400 * HOUR, base in 0.0..=100.0_f64,
        ) {
            let numbers = ScoreNumbers { baseline: base, ..ScoreNumbers::default() };
            let score = Score { at: 7, samples: 1, hundredths: from };
            let (first, then) = (score.points(7 + earlier, &numbers) - base, score.points(7 + earlier + more, &numbers) - base);
            prop_assert!(then.abs() <= first.abs() + 1e-9);
            prop_assert!(then * first >= -1e-9);
        }

        #[test]
        fn a_score_follows_the_formula_step_by_step(
            steps in prop::collection::vec((0.0..=100.0_f64, 0_u64..20 * HOUR), 1..60), alpha in 0.0..=1.0_f64,
        ) {
            let numbers = ScoreNumbers { alpha, ..ScoreNumbers::default() };
            let (mut score, mut slow, mut now) = (Score::default(), 70.0_f64, 0);
            for (observation, pause) in &steps {
                now += pause;
                let drifted = 70.0 + (slow - 70.0) * (-(*pause as f64) / (6.0 * HOUR as f64)).exp();
                slow = ((alpha * observation + (1.0 - alpha) * drifted) * 100.0).round() / 100.0;
                score.observe(*observation, now, &numbers);
                let seen = score.points(now, &numbers);
                prop_assert!((0.0..=100.0).contains(&seen));
                // A half may fall either way by the order of operations; what follows then differs by a hundredth.
                prop_assert!((seen - slow).abs() < 0.0101, "{} {}", seen, slow);
                slow = seen;
            }
            prop_assert_eq!(score.samples() as usize, steps.len());
        }
    }
}
