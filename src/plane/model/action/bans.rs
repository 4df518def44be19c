//! What is remembered of past bans, and how they make the next one longer (wire contract, section 27).

use super::rules::Length;
use crate::plane::model::Ms;
use std::collections::VecDeque;

/// The longest window an escalation may look back over: 30 days.
const LONGEST: Ms = 30 * 24 * 3_600_000;

/// How many bans are remembered; an escalation that asks for more is never reached.
const MOST: usize = 256;

/// So many bans within so many milliseconds, the one at hand included, make it last so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Escalation {
    pub(crate) gte: u32,
    pub(crate) within: Ms,
    pub(crate) length: Length,
}

/// When one identity or account was banned.
#[derive(Debug, Clone, Default)]
pub(crate) struct BanHistory {
    moments: VecDeque<Ms>,
}

impl BanHistory {
    /// Remembers a ban that took effect.
    pub(crate) fn record(&mut self, now: Ms) {
        while self.moments.front().is_some_and(|at| now.saturating_sub(*at) > LONGEST) || self.moments.len() >= MOST {
            self.moments.pop_front();
        }
        let now = self.moments.back().map_or(now, |last| now.max(*last));
        self.moments.push_back(now);
    }

    /// How many bans took effect within the window that ends now.
    pub(crate) fn within(&self, now: Ms, window: Ms) -> u32 {
        self.moments.iter().rev().take_while(|at| now.saturating_sub(**at) <= window).count() as u32
    }

    /// What a new ban of this length becomes: the step that asks for the most bans of those reached decides, and never
    /// shortens.
    pub(super) fn escalate(&self, length: Length, now: Ms, steps: &[Escalation]) -> Length {
        let reached = steps.iter().filter(|step| self.within(now, step.within).saturating_add(1) >= step.gte);
        reached.max_by_key(|step| (step.gte, step.length)).map_or(length, |step| step.length.max(length))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    const DAY: Ms = 24 * 3_600_000;

    #[test]
    fn the_step_that_asks_for_most_decides_and_never_shortens() {
        let steps = [
            Escalation { gte: 3, within: 30 * DAY, length: Length::For(5 * DAY) },
            Escalation { gte: 2, within: 30 * DAY, length: Length::For(9 * DAY) },
        ];
        let mut history = BanHistory::default();
        assert_eq!(history.escalate(Length::For(DAY), DAY, &steps), Length::For(DAY));
        history.record(DAY);
        assert_eq!(history.escalate(Length::For(DAY), 2 * DAY, &steps), Length::For(9 * DAY));
        history.record(2 * DAY);
        assert_eq!(history.escalate(Length::For(DAY), 3 * DAY, &steps), Length::For(5 * DAY));
        assert_eq!(history.escalate(Length::For(6 * DAY), 3 * DAY, &steps), Length::For(6 * DAY));
        assert_eq!(history.escalate(Length::For(DAY), 40 * DAY, &steps), Length::For(DAY));
    }

    #[test]
    fn a_history_is_bounded_by_age_and_number() {
        let mut history = BanHistory::default();
        for day in 0..100 {
            history.record(day * DAY);
            assert!(history.moments.len() <= 31);
        }
        assert_eq!(history.within(99 * DAY, 7 * DAY), 8);
        for _ in 0..1_000 {
            history.record(99 * DAY);
        }
        assert_eq!(history.moments.len(), MOST);
    }
}
