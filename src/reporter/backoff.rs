//! Back-off of the reporter: half of a cap that doubles with every failure, and up to as much again.
//!
//! With this equal jitter (wire contract, 12) a plane that comes back is never asked in a loop, and many nodes spread.

use std::time::Duration;

use crate::dice::Dice;

/// The cap after the first failure.
const FIRST: Duration = Duration::from_millis(500);

/// The cap after many.
const LONGEST: Duration = Duration::from_secs(30);

/// The wait after `failures` failures in a row; 0 counts as 1.
pub(super) fn wait(failures: u32, dice: &mut Dice) -> Duration {
    let doubled = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let half = FIRST.saturating_mul(doubled).min(LONGEST) / 2;
    let span = u64::try_from(half.as_micros()).unwrap_or(u64::MAX - 1);
    half + Duration::from_micros(dice.roll() % (span + 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn each_wait_is_between_half_of_its_cap_and_the_cap() {
        let mut dice = Dice::new(3);
        for (failures, cap) in [(0, 500), (1, 500), (2, 1_000), (3, 2_000), (6, 16_000), (7, 30_000), (u32::MAX, 30_000)] {
            let waits: Vec<Duration> = (0..2_000).map(|_| wait(failures, &mut dice)).collect();
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            let cap = Duration::from_millis(cap);
            assert!(*least >= cap / 2 && *most <= cap, "{failures}: {least:?} to {most:?}");
            assert!(*least < cap * 55 / 100 && *most > cap * 95 / 100, "{failures}: {least:?} to {most:?}");
        }
    }
}
