//! Back-off: how long to wait before a control plane or a sink is asked again.
//!
//! Exponential with full jitter, from a seed, so that many workers spread and a test repeats. Never sleeps.

use std::time::Duration;

use crate::dice::Dice;

/// The wait before the first retry is at most this.
const FIRST: Duration = Duration::from_millis(500);

/// No wait is longer than this, however many failures came before, if nobody says otherwise.
const LONGEST: Duration = Duration::from_secs(30);

/// No wait is shorter than this: full jitter alone may draw nothing and ask in a loop.
const SHORTEST: Duration = Duration::from_millis(50);

/// Draws waits; each is uniform between [`SHORTEST`] and a cap that doubles with every failure.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    dice: Dice,
    longest: Duration,
}

impl Backoff {
    /// A back-off that draws from `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), longest: LONGEST }
    }

    /// The same with another cap, which must be longer than the shortest wait.
    pub(crate) const fn up_to(self, longest: Duration) -> Self {
        Self { longest, ..self }
    }

    /// The wait after `failures` failures in a row; 0 counts as 1.
    pub(crate) fn wait(&mut self, failures: u32) -> Duration {
        let doubled = 2u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let cap = FIRST.saturating_mul(doubled).min(self.longest);
        let span = u64::try_from(cap.saturating_sub(SHORTEST).as_micros()).unwrap_or(u64::MAX);
        SHORTEST + Duration::from_micros(self.dice.roll() % (span + 1))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_cap_doubles_up_to_half_a_minute() {
        let mut backoff = Backoff::new(7);
        for (failures, cap) in
            [(0, 500), (1, 500), (2, 1_000), (3, 2_000), (6, 16_000), (7, 30_000), (40, 30_000), (u32::MAX, 30_000)]
        {
            let longest = (0..2_000).map(|_| backoff.wait(failures)).max().unwrap();
            let shortest = (0..2_000).map(|_| backoff.wait(failures)).min().unwrap();
            assert!(longest <= Duration::from_millis(cap), "{failures}: {longest:?}");
            assert!(longest > Duration::from_millis(cap) * 9 / 10, "{failures}: {longest:?}");
            assert!(shortest >= SHORTEST && shortest < SHORTEST + Duration::from_millis(cap) / 10, "{failures}: {shortest:?}");
        }
    }

    #[test]
    fn the_cap_can_be_another() {
        let mut backoff = Backoff::new(7).up_to(Duration::from_secs(60));
        for (failures, cap) in [(1, 500), (7, 32_000), (8, 60_000), (u32::MAX, 60_000)] {
            let longest = (0..2_000).map(|_| backoff.wait(failures)).max().unwrap();
            assert!(longest <= Duration::from_millis(cap), "{failures}: {longest:?}");
            assert!(longest > Duration::from_millis(cap) * 9 / 10, "{failures}: {longest:?}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_waits() {
        let draw = |seed| (1..9).map(|n| Backoff::new(seed).wait(n)).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
