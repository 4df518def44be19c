//! Presence: whether a remote control plane answers, since when it does not, and when that is too long.
//!
//! Any answer is a sign of life, a refusal too. Pure: the clock is an argument, and it says nothing itself.

use std::time::Duration;

use tokio::time::Instant;

/// A plane nobody has tried to reach for so long is not given up: the next failed call decides.
const RECENT: Duration = Duration::from_secs(90);

/// What is known of a plane's answers.
#[derive(Debug)]
pub(super) struct Presence {
    limit: Option<Duration>,
    answered: Option<Instant>,
    away: Option<Away>,
}

#[derive(Debug)]
struct Away {
    since: Instant,
    last: Instant,
    error: String,
    given_up: bool,
}

impl Presence {
    /// A plane that may be away for `limit`, without one for ever.
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self { limit, answered: None, away: None }
    }

    /// Tells of an answer; for how long the plane was away, if it was.
    pub(super) fn heard(&mut self, now: Instant) -> Option<Duration> {
        self.answered = Some(now);
        self.away.take().map(|away| now.duration_since(away.since))
    }

    /// Tells of a call without an answer, begun at `begun`; whether the plane is away only since then.
    pub(super) fn missed(&mut self, begun: Instant, now: Instant, error: &str) -> bool {
        if let Some(away) = &mut self.away {
            away.last = now;
            error.clone_into(&mut away.error);
            return false;
        }
        // The plane answered another call after this one began: it was there.
        if self.answered.is_some_and(|answered| begun < answered) {
            return false;
        }
        self.away = Some(Away { since: begun, last: now, error: error.to_owned(), given_up: false });
        true
    }

    /// When [`Presence::lost`] is to be asked, if nothing is heard before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let away = self.away.as_ref().filter(|away| !away.given_up)?;
        away.since.checked_add(self.limit?).filter(|at| *at <= away.last + RECENT)
    }

    /// Whether the loss was told, and nothing was heard since.
    pub(super) fn is_given_up(&self) -> bool {
        self.away.as_ref().is_some_and(|away| away.given_up)
    }

    /// Whether the plane is away for too long by now, told once: for how long, and the last error.
    pub(super) fn lost(&mut self, now: Instant) -> Option<(Duration, String)> {
        if self.deadline()? > now {
            return None;
        }
        let away = self.away.as_mut()?;
        away.given_up = true;
        Some((now.duration_since(away.since), away.error.clone()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn absence_begins_with_the_first_call_that_got_no_answer_and_ends_with_any() {
        let start = Instant::now();
        let mut presence = Presence::new(Some(seconds(60)));
        assert_eq!(presence.heard(start), None);
        assert!(presence.missed(start + seconds(1), start + seconds(11), "timed out"));
        assert!(!presence.missed(start + seconds(2), start + seconds(12), "refused"));
        assert_eq!(presence.deadline(), Some(start + seconds(61)));
        assert_eq!(presence.heard(start + seconds(21)), Some(seconds(20)));
        assert_eq!((presence.deadline(), presence.heard(start + seconds(22))), (None, None));
    }

    #[test]
    fn a_call_from_before_the_last_answer_says_nothing() {
        let start = Instant::now();
        let mut presence = Presence::new(Some(seconds(60)));
        presence.heard(start + seconds(5));
        assert!(!presence.missed(start, start + seconds(10), "timed out"));
        assert_eq!(presence.deadline(), None);
    }

    #[test]
    fn it_is_lost_once_and_with_the_last_error() {
        let start = Instant::now();
        let mut presence = Presence::new(Some(seconds(60)));
        presence.missed(start, start, "first");
        presence.missed(start + seconds(40), start + seconds(50), "last");
        assert_eq!(presence.lost(start + seconds(59)), None);
        assert_eq!(presence.lost(start + seconds(60)), Some((seconds(60), "last".to_owned())));
        assert_eq!((presence.lost(start + seconds(61)), presence.deadline()), (None, None));
        assert!(presence.is_given_up());
        presence.heard(start + seconds(62));
        assert!(!presence.is_given_up());
    }

    #[test]
    fn a_plane_nobody_tries_to_reach_is_lost_only_with_the_next_failure() {
        let start = Instant::now();
        let mut presence = Presence::new(Some(seconds(300)));
        presence.missed(start, start, "refused");
        assert_eq!((presence.deadline(), presence.lost(start + seconds(300))), (None, None));
        presence.missed(start + seconds(400), start + seconds(400), "still refused");
        assert_eq!(presence.lost(start + seconds(400)), Some((seconds(400), "still refused".to_owned())));
    }

    #[test]
    fn without_a_limit_it_is_never_lost() {
        let start = Instant::now();
        let mut presence = Presence::new(None);
        presence.missed(start, start, "refused");
        assert_eq!((presence.deadline(), presence.lost(start + seconds(1_000_000))), (None, None));
    }
}
