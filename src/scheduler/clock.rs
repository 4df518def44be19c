//! Clock: ties the monotonic clock to the time since the Unix epoch.
//!
//! Stores keep not-before times that must mean the same after a restart; pacing needs a clock that is never
//! set back. The tie is made once, so a change of the system's time does not move what is queued.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// One instant under both names.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
    unix: Duration,
}

impl Clock {
    /// Ties `now` to the system's time.
    #[must_use]
    pub fn start(now: Instant) -> Self {
        Self::at(now, SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Ties `origin` to `unix`, the time since the Unix epoch.
    #[must_use]
    pub const fn at(origin: Instant, unix: Duration) -> Self {
        Self { origin, unix }
    }

    /// The time since the Unix epoch at `instant`; before the tie it is that of the tie.
    #[must_use]
    pub fn unix(&self, instant: Instant) -> Duration {
        self.unix.saturating_add(instant.saturating_duration_since(self.origin))
    }

    /// The instant of `unix`; what lies before the tie is at the tie, and what no clock reaches a century on.
    #[must_use]
    pub fn instant(&self, unix: Duration) -> Instant {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
        let ahead = unix.saturating_sub(self.unix).min(CENTURY);
        self.origin.checked_add(ahead).unwrap_or(self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_mean_the_same_instant() {
        let origin = Instant::now();
        let clock = Clock::at(origin, Duration::from_secs(1_000));
        let later = origin + Duration::from_millis(1_500);
        assert_eq!(clock.unix(later), Duration::from_millis(1_001_500));
        assert_eq!(clock.instant(clock.unix(later)), later);
        assert_eq!(clock.instant(Duration::from_secs(1)), origin, "the past is due");
        assert!(clock.instant(Duration::MAX) > origin);
    }
}
