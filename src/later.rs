//! Moments in the future that always exist: a caller's limit may be longer than any clock can say.

use std::time::Duration;

use tokio::time::Instant;

/// Stands for a time that never comes.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// So long after a moment, or as good as never.
pub(crate) fn later(at: Instant, by: Duration) -> Instant {
    at.checked_add(by).unwrap_or_else(|| at + FAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_no_clock_can_say_is_far_away() {
        let now = Instant::now();
        assert_eq!(later(now, Duration::from_secs(5)), now + Duration::from_secs(5));
        assert_eq!(later(now, Duration::MAX), now + FAR);
    }
}
