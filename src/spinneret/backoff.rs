//! Waits between attempts: they double, and half of each is left to chance, so that many nodes spread.

use std::time::Duration;

use crate::dice::Dice;

/// Exponential back-off with equal jitter: a wait is drawn from the upper half of its step.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    initial: Duration,
    longest: Duration,
    dice: Dice,
}

impl Backoff {
    /// Steps of `initial`, twice that, and so on, at most `longest`.
    pub(crate) const fn new(initial: Duration, longest: Duration, dice: Dice) -> Self {
        Self { initial, longest, dice }
    }

    /// The wait after this many failures before this one (0 for the first).
    pub(crate) fn wait(&mut self, failures: u32) -> Duration {
        let doubled = 2_u32.checked_pow(failures).unwrap_or(u32::MAX);
        let half = self.initial.saturating_mul(doubled).min(self.longest) / 2;
        half + half.mul_f64(f64::midpoint(self.dice.throw(), 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The ranges of the wire contract (section 36).
    #[test]
    fn b192_waits_lie_in_their_ranges() {
        let unary: [(u64, u64); 6] = [(50, 100), (100, 200), (200, 400), (400, 800), (800, 1600), (1000, 2000)];
        let reporter =
            [(250, 500), (500, 1000), (1000, 2000), (2000, 4000), (4000, 8000), (8000, 16000), (15000, 30000), (15000, 30000)];
        let watcher = [(500, 1000), (1000, 2000), (2000, 4000), (4000, 8000), (8000, 16000), (15000, 30000), (15000, 30000)];
        check(ms(100), ms(2_000), &unary);
        check(ms(500), ms(30_000), &reporter);
        check(ms(1_000), ms(30_000), &watcher);
    }

    fn check(initial: Duration, longest: Duration, ranges: &[(u64, u64)]) {
        let mut backoff = Backoff::new(initial, longest, Dice::new(7));
        for (n, (low, high)) in ranges.iter().enumerate() {
            let waits: Vec<Duration> = (0..2_000).map(|_| backoff.wait(u32::try_from(n).unwrap_or(0))).collect();
            let (low, high) = (ms(*low), ms(*high));
            assert!(waits.iter().all(|wait| (low..high).contains(wait)), "{n}");
            let spread = waits.iter().max().copied().unwrap_or_default() - waits.iter().min().copied().unwrap_or_default();
            assert!(spread > (high - low) * 9 / 10, "{n}: {spread:?}");
        }
        assert!(backoff.wait(u32::MAX) <= longest);
    }
}
