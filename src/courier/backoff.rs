//! How long to wait before a batch is tried again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// The longest wait a sink may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// Exponential waits with full jitter: each is drawn from zero to a limit that doubles from 0.5 s to 30 s, so that many
/// couriers of a sink that comes back do not meet.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    state: u64,
    failures: u32,
}

impl Backoff {
    /// Draws follow from the seed alone.
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed, failures: 0 }
    }

    /// The wait after one more failure; never shorter than what the sink asks for, up to five minutes.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let limit = 2_u32.checked_pow(self.failures).map_or(LONGEST, |factor| FIRST.saturating_mul(factor).min(LONGEST));
        self.failures = self.failures.saturating_add(1);
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let drawn = Duration::from_millis(self.draw() % (millis + 1));
        drawn.max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }

    /// Something was taken: the next failure is a first one.
    pub(super) const fn reset(&mut self) {
        self.failures = 0;
    }

    pub(super) const fn failures(&self) -> u32 {
        self.failures
    }

    /// SplitMix64.
    const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_doubles_up_to_half_a_minute() {
        for (failures, limit) in [(0, 500), (1, 1000), (3, 4000), (6, 30_000), (40, 30_000)] {
            let mut longest = Duration::ZERO;
            let mut sum = Duration::ZERO;
            for seed in 0..400 {
                let mut backoff = Backoff { state: seed, failures };
                let wait = backoff.next(None);
                longest = longest.max(wait);
                sum += wait;
            }
            let limit = Duration::from_millis(limit);
            assert!(longest <= limit && longest > limit * 9 / 10, "{failures}: {longest:?}");
            assert!(sum / 400 > limit * 2 / 5 && sum / 400 < limit * 3 / 5);
        }
    }

    #[test]
    fn the_sink_may_ask_for_more_within_reason() {
        let mut backoff = Backoff::new(1);
        assert!(backoff.next(Some(Duration::from_secs(7))) >= Duration::from_secs(7));
        assert_eq!(backoff.next(Some(Duration::from_secs(9000))), LONGEST_ASKED);
        backoff.reset();
        assert!(backoff.next(None) <= FIRST);
    }
}
