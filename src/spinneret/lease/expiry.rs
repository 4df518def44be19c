//! When a lease ends, by the server's clock and by ours.
//!
//! The expiry is a time of the server's wall clock, which need not agree with this machine's. So the wall clocks are
//! compared once, when the lease is granted, checked against what the server itself says of the duration, and from then
//! on only differences count.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A fresh lease lives four times as long as it should be renewed before its end (wire contract, `Hints`).
const LIVES: u32 = 4;

/// The longest remaining time that is believed: further out than the server ever prolongs a lease at once, so a clock is
/// wrong.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The end of a lease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Expiry {
    at: Option<Timestamp>,
    ends: Option<Instant>,
}

impl Expiry {
    /// Of a lease granted just now, to be renewed `before` its end (zero when unknown); `wall` and `now` are this
    /// moment.
    pub(crate) fn granted(at: Option<Timestamp>, before: Duration, wall: Timestamp, now: Instant) -> Self {
        let by_hint = Some(before * LIVES).filter(|life| !life.is_zero());
        let by_clock = at
            .and_then(|at| Duration::try_from(at.duration_since(wall)).ok())
            // A lease that is due for renewal when it is granted is the sign of a clock that is ahead.
            .filter(|left| *left > before && *left <= LONGEST);
        // Too early is a renewal more, too late is a lease lost: the earlier end counts.
        let left = by_clock.into_iter().chain(by_hint).min();
        Self { at, ends: at.and(left).map(|left| now + left) }
    }

    /// The server moved the end.
    pub(crate) fn move_to(&mut self, at: Timestamp) {
        if let (Some(before), Some(ends)) = (self.at, self.ends) {
            let shift = at.duration_since(before);
            let later = Duration::try_from(shift).ok().map(|later| ends.checked_add(later));
            self.ends = later.unwrap_or_else(|| ends.checked_sub(shift.unsigned_abs()));
        }
        self.at = Some(at);
    }

    /// By the server's clock.
    pub(crate) const fn at(&self) -> Option<Timestamp> {
        self.at
    }

    /// By ours; `None` when nobody knows.
    pub(crate) const fn ends(&self) -> Option<Instant> {
        self.ends
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_end_is_found_whatever_the_clocks_say() {
        let now = Instant::now();
        // (expiry by the server, renewed so long before, the end from now)
        let table: [(Option<i64>, u64, Option<u64>); 9] = [
            (Some(120), 30, Some(120)),   // the clocks agree
            (Some(60), 30, Some(60)),     // ours is a minute ahead, or the lease is short: renewed a little early
            (Some(20), 30, Some(120)),    // ours is far ahead
            (Some(-3600), 30, Some(120)), // an hour ahead
            (Some(3720), 30, Some(120)),  // ours is an hour behind
            (Some(300), 0, Some(300)),    // no hint
            (Some(-5), 0, None),          // no hint, and a clock that is ahead
            (Some(86_400), 0, None),      // no hint, and a clock that is behind
            (None, 30, None),             // no expiry
        ];
        for (expires, before, ends) in table {
            let expiry = Expiry::granted(expires.map(at), s(before), at(0), now);
            assert_eq!(expiry.ends(), ends.map(|ends| now + s(ends)), "{expires:?} {before}");
            assert_eq!(expiry.at(), expires.map(at));
        }
    }

    #[test]
    fn a_renewal_moves_the_end_by_the_difference_alone() {
        let now = Instant::now();
        let mut expiry = Expiry::granted(Some(at(-3600)), s(30), at(0), now);
        expiry.move_to(at(-3510));
        assert_eq!((expiry.ends(), expiry.at()), (Some(now + s(210)), Some(at(-3510))));
        expiry.move_to(at(-3600));
        assert_eq!(expiry.ends(), Some(now + s(120)));
        let mut unknown = Expiry::granted(None, s(30), at(0), now);
        unknown.move_to(at(5));
        assert_eq!((unknown.ends(), unknown.at()), (None, Some(at(5))));
    }
}
