//! The last minute of a host: when its requests were sent, for `REQUESTS_PER_MINUTE`.

use std::collections::VecDeque;
use std::time::Duration;

use super::when::When;

/// How long a request counts.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// When requests were sent, the oldest first; at most as many as a minute may have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Minute(VecDeque<When>);

impl Minute {
    /// Of a host that was sent nothing.
    pub(super) const NONE: Self = Self(VecDeque::new());

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A request was sent.
    pub(super) fn sent(&mut self, at: When, per_minute: u32) {
        // Two may be told in the other order.
        let place = self.0.partition_point(|sent| *sent <= at);
        self.0.insert(place, at);
        while self.0.len() > per_minute as usize {
            self.0.pop_front();
        }
    }

    /// When the next request may go; `None` if nothing is in the way.
    pub(super) fn open_at(&self, per_minute: u32) -> Option<When> {
        // The n-th but last must be a minute ago.
        let nth = self.0.len().checked_sub(per_minute as usize)?;
        self.0.get(nth).filter(|_| per_minute > 0).map(|sent| sent.after(MINUTE))
    }

    /// When nothing of it counts any more.
    pub(super) fn ends(&self) -> Option<When> {
        self.0.back().map(|sent| sent.after(MINUTE))
    }

    /// Forgets what does not count any more.
    pub(super) fn tidy(&mut self, now: When) {
        while self.0.front().is_some_and(|sent| sent.after(MINUTE) <= now) {
            self.0.pop_front();
        }
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::time::Instant;

    use super::super::when::Era;
    use super::*;

    #[test]
    fn no_sixty_seconds_have_more_requests_than_allowed() {
        let (mut era, start) = (Era::default(), Instant::now());
        let mut at = |seconds: u64| era.when(start + Duration::from_secs(seconds));
        let mut minute = Minute::default();
        assert_eq!(minute.open_at(3), None);
        for seconds in [0, 20, 10] {
            minute.sent(at(seconds), 3);
        }
        assert_eq!((minute.open_at(3), minute.open_at(4), minute.open_at(0)), (Some(at(60)), None, None));
        assert_eq!(minute.open_at(1), Some(at(80)), "a limit that was lowered counts the last ones");
        minute.sent(at(60), 3);
        assert_eq!((minute.open_at(3), minute.ends()), (Some(at(70)), Some(at(120))));
        minute.tidy(at(80));
        assert_eq!((minute.open_at(1), minute.open_at(2)), (Some(at(120)), None));
        minute.tidy(at(120));
        assert_eq!(minute, Minute::NONE);
    }
}
