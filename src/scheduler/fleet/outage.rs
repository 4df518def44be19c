//! Outage: how long the server has not been reached, when to try again, and when to give up.

use std::time::Duration;

use tokio::time::Instant;

/// Between two attempts: this at first, then twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

/// The present outage, if there is one.
#[derive(Debug)]
pub(super) struct Outage {
    /// `FRONTIER_WAIT`; `None` waits for ever.
    limit: Option<Duration>,
    since: Option<Instant>,
    retry_at: Instant,
    pause: Duration,
    given_up: bool,
}

/// What a failed attempt means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// The outage begins.
    First,
    /// It goes on.
    Again,
    /// It has lasted as long as it may; told once.
    TooLong(Duration),
}

impl Outage {
    pub(super) const fn new(limit: Option<Duration>, now: Instant) -> Self {
        Self { limit, since: None, retry_at: now, pause: FIRST, given_up: false }
    }

    /// When to try again, while that is ahead.
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        self.since.and(Some(self.retry_at)).filter(|at| *at > now)
    }

    /// Whether it is over for good: nothing is tried any more.
    pub(super) const fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// An attempt failed.
    pub(super) fn failed(&mut self, now: Instant) -> Failed {
        let is_first = self.since.is_none();
        let since = *self.since.get_or_insert(now);
        self.retry_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST);
        let lasted = now.saturating_duration_since(since);
        if self.limit.is_some_and(|limit| lasted >= limit) {
            self.given_up = true;
            return Failed::TooLong(lasted);
        }
        if let Some(limit) = self.limit {
            // The last attempt is at the limit, not after it.
            self.retry_at = self.retry_at.min(since + limit);
        }
        if is_first { Failed::First } else { Failed::Again }
    }

    /// Nothing will be tried any more.
    pub(super) const fn give_up(&mut self) {
        self.given_up = true;
    }

    /// An attempt succeeded; how long the outage was, if there was one.
    pub(super) fn reached(&mut self, now: Instant) -> Option<Duration> {
        self.pause = FIRST;
        self.since.take().map(|since| now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_spread_and_end_at_the_limit() {
        let began = Instant::now();
        let mut outage = Outage::new(Some(Duration::from_millis(2_000)), began);
        assert_eq!(outage.waits_until(began), None);
        let mut now = began;
        let mut tries = Vec::new();
        assert_eq!(outage.failed(now), Failed::First);
        while !outage.is_given_up() {
            now = outage.waits_until(now).unwrap_or(now);
            tries.push(now.duration_since(began).as_millis());
            outage.failed(now);
        }
        assert_eq!(tries, [100, 300, 700, 1_500, 2_000]);
    }

    #[test]
    fn without_a_limit_it_goes_on_for_ever_and_a_success_begins_anew() {
        let mut now = Instant::now();
        let mut outage = Outage::new(None, now);
        for _ in 0..1_000 {
            outage.failed(now);
            now += LONGEST;
        }
        assert!(!outage.is_given_up());
        assert_eq!(outage.reached(now), Some(LONGEST * 1_000));
        assert_eq!((outage.reached(now), outage.waits_until(now)), (None, None));
        assert_eq!(outage.failed(now), Failed::First);
    }
}
