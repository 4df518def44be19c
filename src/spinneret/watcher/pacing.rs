//! How soon a watcher asks again: the pauses between polls, after failures and after answers that bring nothing.
//!
//! Decides only; whoever asks it does the waiting.

use std::time::Duration;

use crate::dice::Dice;
use crate::spinneret::backoff::Backoff;
use crate::spinneret::code::Code;
use crate::spinneret::error::Error;

/// Answers that bring nothing are at least this far apart.
pub(super) const FLOOR: Duration = Duration::from_millis(200);

/// The same for a server that answers at once, again and again, instead of waiting.
const LONGEST_FLOOR: Duration = Duration::from_secs(5);

/// The first pause before asking a server that drains once more; half of it at least.
const RECONNECT: Duration = Duration::from_millis(200);

/// The longest hint of the server that is waited for.
const LONGEST_HINT: Duration = Duration::from_secs(30);

/// The rhythm of one watcher.
#[derive(Debug)]
pub(super) struct Pace {
    backoff: Backoff,
    reconnect: Backoff,
    poll_timeout: Duration,
    failures: u32,
    cancellations: u32,
    idle: u32,
}

impl Pace {
    pub(super) fn new(initial: Duration, longest: Duration, poll_timeout: Duration, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let reconnect = Backoff::new(RECONNECT, longest.max(RECONNECT), Dice::new(dice.roll()));
        Self { backoff: Backoff::new(initial, longest, dice), reconnect, poll_timeout, failures: 0, cancellations: 0, idle: 0 }
    }

    /// The time from the start of the poll that was just answered to the start of the next one, at least.
    ///
    /// Zero unless the answer came quickly and brought nothing; longer each time a server answers so without
    /// having waited as long as it was asked to.
    pub(super) fn after_answer(&mut self, took: Duration, is_progress: bool) -> Duration {
        (self.failures, self.cancellations) = (0, 0);
        if is_progress || took >= FLOOR {
            self.idle = 0;
            return Duration::ZERO;
        }
        if took >= self.poll_timeout {
            return FLOOR;
        }
        let doubled = 2_u32.checked_pow(self.idle).unwrap_or(u32::MAX);
        self.idle = self.idle.saturating_add(1);
        FLOOR.saturating_mul(doubled).min(LONGEST_FLOOR)
    }

    /// The pause after a failure: the back-off, or what the server asks for if that is longer.
    pub(super) fn after_failure(&mut self, error: &Error) -> Duration {
        let (backoff, count) = if is_cancelled(error) {
            (&mut self.reconnect, &mut self.cancellations)
        } else {
            (&mut self.backoff, &mut self.failures)
        };
        let wait = backoff.wait(*count);
        *count = count.saturating_add(1);
        wait.max(error.retry_after().unwrap_or_default().min(LONGEST_HINT))
    }
}

/// Whether a server that drains ended the poll: nothing to be alarmed about.
pub(super) fn is_cancelled(error: &Error) -> bool {
    *error.code() == Code::Canceled || error.http_status() == 499
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::spinneret::error::Details;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn pace() -> Pace {
        Pace::new(ms(1_000), ms(30_000), ms(30_000), 7)
    }

    fn failure(code: Code, hint: Option<u64>) -> Error {
        let mut details = Details::new(code, "", "");
        details.retry_after = hint.map(ms);
        Error::of(details)
    }

    #[test]
    fn an_answer_that_brings_something_or_took_its_time_is_followed_at_once() {
        let mut pace = pace();
        assert_eq!(pace.after_answer(ms(0), true), ms(0));
        assert_eq!(pace.after_answer(ms(200), false), ms(0));
        assert_eq!(pace.after_answer(ms(30_000), false), ms(0));
    }

    #[test]
    fn quick_useless_answers_are_farther_and_farther_apart_up_to_five_seconds() {
        let mut pace = pace();
        let floors: Vec<Duration> = (0..8).map(|_| pace.after_answer(ms(3), false)).collect();
        assert_eq!(floors, [200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000].map(ms));
        pace.after_answer(ms(3), true);
        assert_eq!(pace.after_answer(ms(3), false), ms(200));
        pace.after_answer(ms(250), false);
        assert_eq!(pace.after_answer(ms(199), false), ms(200));
    }

    #[test]
    fn a_server_that_waited_as_long_as_it_should_is_asked_again_at_the_floor() {
        let mut pace = Pace::new(ms(1_000), ms(30_000), ms(50), 7);
        for _ in 0..5 {
            assert_eq!(pace.after_answer(ms(50), false), ms(200));
        }
        assert_eq!([ms(49); 2].map(|took| pace.after_answer(took, false)), [ms(200), ms(400)]);
    }

    #[test]
    fn b114_failures_back_off_from_one_to_thirty_seconds_and_an_answer_ends_that() {
        let mut pace = pace();
        for (low, high) in [(500, 1_000), (1_000, 2_000), (2_000, 4_000), (4_000, 8_000), (8_000, 16_000), (15_000, 30_000)] {
            let wait = pace.after_failure(&failure(Code::PermissionDenied, None));
            assert!((ms(low)..ms(high)).contains(&wait), "{wait:?}");
        }
        pace.after_answer(ms(300), false);
        assert!(pace.after_failure(&failure(Code::Unavailable, None)) < ms(1_000));
    }

    #[test]
    fn a_hint_lengthens_the_pause_up_to_thirty_seconds_and_never_shortens_it() {
        assert_eq!(pace().after_failure(&failure(Code::ResourceExhausted, Some(7_000))), ms(7_000));
        assert_eq!(pace().after_failure(&failure(Code::Unavailable, Some(600_000))), ms(30_000));
        assert_eq!(pace().after_failure(&failure(Code::Canceled, Some(7_000))), ms(7_000));
        let short = pace().after_failure(&failure(Code::Unavailable, Some(1)));
        assert!((ms(500)..ms(1_000)).contains(&short), "{short:?}");
    }

    #[test]
    fn a_cancelled_poll_is_made_again_soon_and_does_not_count_as_a_failure() {
        let mut pace = pace();
        for (low, high) in [(100, 200), (200, 400), (400, 800)] {
            let wait = pace.after_failure(&failure(Code::Canceled, None));
            assert!((ms(low)..ms(high)).contains(&wait), "{wait:?}");
        }
        assert!(pace.after_failure(&failure(Code::Internal, None)) < ms(1_000));
        let mut bare = Details::new(Code::Unknown, "", "");
        bare.http_status = 499;
        assert!(is_cancelled(&Error::of(bare)));
    }
}
