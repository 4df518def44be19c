//! Poll: when to ask the server again without being asked for anything.

use std::time::Duration;

use tokio::time::Instant;

/// Between two asks for work that found none: this at first, then twice as long, up to [`SLOWEST`].
const FASTEST: Duration = Duration::from_millis(50);
const SLOWEST: Duration = Duration::from_secs(1);
/// The longest while something is queued that waits for a place rather than for a time.
const BUSY: Duration = Duration::from_millis(200);
/// A host that other workers have served before is not asked for at once again.
const BREATH: Duration = Duration::from_millis(2);

/// Times of what is done unasked.
#[derive(Debug)]
pub(super) struct Poll {
    /// When work is asked for again.
    work_at: Instant,
    pause: Duration,
    /// When what is in flight is renewed.
    renew_at: Instant,
    renew_every: Duration,
    /// When the job is looked at, if nothing else is asked.
    look_at: Instant,
    /// No work is asked for before: others have to renew first.
    quiet_until: Option<Instant>,
}

impl Poll {
    pub(super) fn new(visibility: Duration, now: Instant) -> Self {
        let renew_every = visibility / 3;
        Self { work_at: now, pause: FASTEST, renew_at: now + renew_every, renew_every, look_at: now, quiet_until: None }
    }

    /// Work was asked for: how much of it was of use, and when the server has the next.
    pub(super) fn leased(&mut self, useful: usize, has_queued: bool, next_due: Option<Duration>, now: Instant) {
        let slowest = if has_queued { BUSY } else { SLOWEST };
        self.pause = if useful > 0 { FASTEST } else { (self.pause * 2).min(slowest) };
        let pause = next_due.map_or(self.pause, |due| due.max(BREATH).min(self.pause));
        self.work_at = now + pause;
    }

    pub(super) fn wants_work(&self, stirred: bool, now: Instant) -> bool {
        self.quiet_until.is_none_or(|until| until <= now) && (stirred || self.work_at <= now)
    }

    pub(super) fn wants_renewal(&mut self, now: Instant) -> bool {
        let is_due = self.renew_at <= now;
        if is_due {
            self.renew_at = now + self.renew_every;
        }
        is_due
    }

    pub(super) fn wants_look(&self, now: Instant) -> bool {
        self.look_at <= now
    }

    /// The job was looked at.
    pub(super) fn looked(&mut self, now: Instant) {
        self.look_at = now + SLOWEST;
    }

    /// The server was out of reach for so long: first everybody renews what is in flight, since nobody could.
    pub(super) fn back_after(&mut self, outage: Duration, now: Instant) {
        self.renew_at = now;
        if outage * 3 > self.renew_every {
            self.quiet_until = Some(now + 2 * SLOWEST);
        }
    }

    /// When to wake, with work to be asked for or without.
    pub(super) fn wake(&self, for_work: bool) -> Instant {
        let work = for_work.then(|| self.quiet_until.map_or(self.work_at, |quiet| quiet.max(self.work_at)));
        work.into_iter().chain([self.renew_at, self.look_at]).min().unwrap_or(self.look_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_work_slow_down_and_the_next_due_time_is_kept() {
        let now = Instant::now();
        let mut poll = Poll::new(Duration::from_secs(60), now);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            poll.leased(0, false, None, now);
            pauses.push(poll.work_at.duration_since(now).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1_000, 1_000, 1_000]);
        poll.leased(0, true, None, now);
        assert_eq!(poll.work_at, now + BUSY);
        poll.leased(0, false, Some(Duration::from_millis(30)), now);
        assert_eq!(poll.work_at, now + Duration::from_millis(30));
        poll.leased(0, false, Some(Duration::ZERO), now);
        assert_eq!(poll.work_at, now + BREATH);
        poll.leased(1, false, None, now);
        assert_eq!(poll.work_at, now + FASTEST);
        assert!(!poll.wants_work(false, now) && poll.wants_work(true, now));
    }

    #[test]
    fn after_a_long_outage_everybody_renews_before_anybody_asks_for_work() {
        let now = Instant::now();
        let mut poll = Poll::new(Duration::from_secs(60), now);
        poll.back_after(Duration::from_secs(1), now);
        assert!(poll.wants_renewal(now) && poll.wants_work(true, now));
        poll.back_after(Duration::from_secs(30), now);
        assert!(!poll.wants_work(true, now) && poll.wants_renewal(now));
        assert!(poll.wants_work(true, now + 2 * SLOWEST));
    }
}
