//! The automatic cooldowns of the last window, so that an opening can take them back (wire contract, section 28).
//!
//! When a site turns everybody away, it is not the identities that failed. Holds at most [`MOST`]; the oldest are forgotten.

use super::numbers::{BreakerNumbers, RevertCooldowns};
use crate::plane::model::Ms;
use crate::plane::model::streak::Streak;
use std::collections::{BTreeMap, VecDeque};

/// So many cooldowns of one group are remembered.
pub(super) const MOST: usize = 4_096;

/// Where a cooldown of an identity holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// In the endpoint group.
    Endpoint,
    /// On the site.
    Site,
}

/// A cooldown that a rule applied to an identity, and what was before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) at: Ms,
    pub(crate) identity: u32,
    pub(crate) reach: Reach,
    /// When it ends.
    pub(crate) until: Ms,
    /// When the cooldown before it ended or would have ended.
    pub(crate) previous_until: Ms,
    /// The streak before the report: in the group for [`Reach::Endpoint`], else of the identity everywhere.
    pub(crate) previous_streak: Streak,
}

/// A cooldown to take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revert {
    pub(crate) identity: u32,
    pub(crate) reach: Reach,
    /// What the last automatic cooldown set. If something else stands there now, somebody set it by hand: leave it.
    pub(crate) applied_until: Ms,
    /// What to go back to.
    pub(crate) previous_until: Ms,
    pub(crate) previous_streak: Streak,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cooldowns(VecDeque<Applied>);

impl Cooldowns {
    pub(super) fn note(&mut self, applied: Applied, numbers: &BreakerNumbers) {
        if matches!((numbers.revert, applied.reach), (RevertCooldowns::None, _) | (RevertCooldowns::Endpoint, Reach::Site)) {
            return;
        }
        let is_old = |kept: &Applied| applied.at.saturating_sub(kept.at) > numbers.window;
        while self.0.front().is_some_and(is_old) || self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(applied);
    }

    /// Empties the log: one entry for each identity and reach cooled within the window, with what was before the first of
    /// its cooldowns, in the order of identities.
    pub(super) fn take(&mut self, now: Ms, numbers: &BreakerNumbers) -> Vec<Revert> {
        let mut reverts: BTreeMap<(u32, Reach), Revert> = BTreeMap::new();
        for applied in self.0.drain(..).filter(|applied| now.saturating_sub(applied.at) <= numbers.window) {
            let wanted = match numbers.revert {
                RevertCooldowns::None => false,
                RevertCooldowns::Endpoint => applied.reach == Reach::Endpoint,
                RevertCooldowns::All => true,
            };
            if wanted {
                let first = reverts.entry((applied.identity, applied.reach)).or_insert(Revert {
                    identity: applied.identity,
                    reach: applied.reach,
                    applied_until: applied.until,
                    previous_until: applied.previous_until,
                    previous_streak: applied.previous_streak,
                });
                first.applied_until = applied.until;
            }
        }
        reverts.into_values().collect()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::plane::model::streak::Step;

    fn applied(identity: u32, reach: Reach, at: Ms) -> Applied {
        Applied { at, identity, reach, until: at + 60_000, previous_until: at / 2, previous_streak: Streak::default() }
    }

    #[test]
    fn cooldowns_in_a_row_go_back_to_what_was_before_the_first_within_the_window() {
        let numbers = BreakerNumbers { revert: RevertCooldowns::All, ..BreakerNumbers::default() };
        let (mut log, mut streak) = (Cooldowns::default(), Streak::default());
        for (identity, reach, at) in [
            (1, Reach::Endpoint, 100_000),
            (1, Reach::Endpoint, 170_000),
            (1, Reach::Site, 175_000),
            (1, Reach::Endpoint, 200_000),
            (0, Reach::Endpoint, 210_000),
        ] {
            log.note(Applied { previous_streak: streak, ..applied(identity, reach, at) }, &numbers);
            streak.take(Step::Raise, at, 3_600_000);
        }
        let reverts = log.take(220_000, &numbers);
        let seen: Vec<_> = reverts
            .iter()
            .map(|r| (r.identity, r.reach, r.applied_until, r.previous_until, r.previous_streak.failures()))
            .collect();
        assert_eq!(
            seen,
            [
                (0, Reach::Endpoint, 270_000, 105_000, 4),
                (1, Reach::Endpoint, 260_000, 85_000, 1),
                (1, Reach::Site, 235_000, 87_500, 2),
            ]
        );
        assert!(log.take(220_000, &numbers).is_empty());
    }

    #[test]
    fn the_policy_says_which_cooldowns_are_remembered() {
        for (revert, expected) in [(RevertCooldowns::None, 0), (RevertCooldowns::Endpoint, 1), (RevertCooldowns::All, 2)] {
            let numbers = BreakerNumbers { revert, ..BreakerNumbers::default() };
            let mut log = Cooldowns::default();
            log.note(applied(1, Reach::Endpoint, 100_000), &numbers);
            log.note(applied(1, Reach::Site, 100_000), &numbers);
            assert_eq!(log.take(100_001, &numbers).len(), expected);
        }
    }

    #[test]
    fn the_log_is_bounded_by_number_and_age() {
        let (mut log, numbers) = (Cooldowns::default(), BreakerNumbers::default());
        for identity in 0..10_000 {
            log.note(applied(identity, Reach::Endpoint, 100_000), &numbers);
        }
        assert_eq!(log.0.len(), MOST);
        log.note(applied(1, Reach::Endpoint, 160_001), &numbers);
        assert_eq!(log.0.len(), 1);
    }
}
