//! Reports that the control plane refuses, told now and then: a plane that was started again refuses all that were under way.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Between two lines about the same reason.
const PAUSE: Duration = Duration::from_secs(60);
/// Reasons that are told apart; the others share one line.
const REASONS: usize = 16;

/// When each reason was told last, and how many came since.
#[derive(Debug, Default)]
pub(super) struct RefusedReports(BTreeMap<Box<str>, (Instant, u64)>);

impl RefusedReports {
    /// Counts one; how many are to be told now, if it is time for that.
    pub(super) fn note(&mut self, reason: &str, now: Instant) -> Option<u64> {
        let reason = if self.0.len() < REASONS || self.0.contains_key(reason) { reason } else { "" };
        let Some((told, since)) = self.0.get_mut(reason) else {
            self.0.insert(reason.into(), (now, 0));
            return Some(1);
        };
        *since += 1;
        if now.duration_since(*told) < PAUSE {
            return None;
        }
        *told = now;
        Some(std::mem::take(since))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn the_first_of_a_reason_is_told_and_the_others_are_summed_up() {
        let (mut refused, begin) = (RefusedReports::default(), Instant::now());
        assert_eq!(refused.note("lease_unknown", begin), Some(1));
        for _ in 0..300 {
            assert_eq!(refused.note("lease_unknown", begin + Duration::from_secs(59)), None);
        }
        assert_eq!(refused.note("report_too_late", begin), Some(1));
        assert_eq!(refused.note("lease_unknown", begin + Duration::from_secs(60)), Some(301));
        assert_eq!(refused.note("lease_unknown", begin + Duration::from_secs(61)), None);
    }

    #[test]
    fn many_reasons_take_no_more_room_than_a_few() {
        let (mut refused, now) = (RefusedReports::default(), Instant::now());
        let told = (0..1_000).filter(|number| refused.note(&format!("reason {number}"), now).is_some()).count();
        assert_eq!((told, refused.0.len()), (REASONS + 1, REASONS + 1));
    }
}
