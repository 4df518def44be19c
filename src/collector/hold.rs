//! Whether keeping goes on: the bound of the spool, and a disk that refuses writes.

use std::time::Duration;

use tokio::time::Instant;

use super::log::LogError;

/// Time between two tries of a disk that refuses.
const RETRY: Duration = Duration::from_secs(1);

/// What the engine must hear.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    Blocked(String),
    Unblocked,
    GaveUp(String),
}

/// The two things that can hold up keeping, and what was said about them.
#[derive(Debug)]
pub(super) struct Hold {
    max_bytes: u64,
    wait: Duration,
    disk: Option<Disk>,
    /// The spool reached its bound and has not yet fallen clearly below it.
    full: bool,
    /// Since when the spool is full and nothing leaves it any more.
    stuck: Option<Instant>,
    told: bool,
    gave_up: bool,
}

#[derive(Debug)]
struct Disk {
    since: Instant,
    next: Instant,
    why: String,
}

impl Hold {
    /// The last sixteenth of the bound is for what a turn appends beyond it: the disk never holds more.
    pub(super) const fn new(max_bytes: u64, wait: Duration) -> Self {
        Self { max_bytes: max_bytes - max_bytes / 16, wait, disk: None, full: false, stuck: None, told: false, gave_up: false }
    }

    /// Whether the disk may be tried.
    pub(super) fn may_write(&self, now: Instant) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.next <= now)
    }

    /// Whether the last write failed.
    pub(super) const fn is_held(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether that many bytes are too many to take another group. Once full, an eighth must be delivered first.
    pub(super) const fn is_full(&self, undelivered: u64) -> bool {
        if self.full { undelivered > self.max_bytes - self.max_bytes / 8 } else { undelivered >= self.max_bytes }
    }

    /// Everything was written.
    pub(super) fn wrote(&mut self) {
        self.disk = None;
    }

    /// A write failed.
    pub(super) fn refused(&mut self, now: Instant, error: &LogError) {
        let why = error.to_string();
        let disk = self.disk.get_or_insert_with(|| Disk { since: now, next: now, why: why.clone() });
        if disk.next <= now {
            disk.next = now + RETRY;
            disk.why = why;
        }
    }

    /// Compares with what was told. `stopped` is why nothing leaves the spool any more, if that is so.
    pub(super) fn judge(&mut self, now: Instant, undelivered: u64, stopped: Option<&str>) -> Trouble {
        self.full = self.is_full(undelivered);
        self.stuck = if self.full && stopped.is_some() { self.stuck.or(Some(now)) } else { None };
        let why = || match (&self.disk, stopped) {
            (Some(disk), _) => format!("the disk refuses writes: {}", disk.why),
            (None, Some(stopped)) => {
                format!("the spool holds {undelivered} bytes that the sink does not have (SPOOL_MAX_BYTES) and {stopped}")
            }
            (None, None) => {
                format!(
                    "the spool holds {undelivered} bytes that the sink does not have (SPOOL_MAX_BYTES): the sink is slower than the crawl"
                )
            }
        };
        let held = self.full || self.disk.is_some();
        if held != self.told {
            let trouble = if held { Trouble::Blocked(why()) } else { Trouble::Unblocked };
            self.told = held;
            return trouble;
        }
        if !self.gave_up && self.over().is_some_and(|over| over <= now) {
            let trouble = Trouble::GaveUp(format!("{}; waited {:?} (DISK_WAIT)", why(), self.wait));
            self.gave_up = true;
            return trouble;
        }
        Trouble::None
    }

    /// When to look again.
    pub(super) fn due(&self) -> Option<Instant> {
        let over = self.over().filter(|_| !self.gave_up);
        self.disk.as_ref().map(|disk| disk.next).into_iter().chain(over).min()
    }

    /// When patience ends.
    fn over(&self) -> Option<Instant> {
        let since = self.disk.as_ref().map(|disk| disk.since).into_iter().chain(self.stuck).min()?;
        since.checked_add(self.wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn broken() -> LogError {
        LogError::Stalled { file: "seg".into() }
    }

    #[test]
    fn a_full_spool_blocks_once_and_unblocks_an_eighth_below() {
        let now = Instant::now();
        let mut hold = Hold::new(853, SECOND);
        assert_eq!(hold.judge(now, 799, None), Trouble::None);
        assert!(matches!(hold.judge(now, 800, None), Trouble::Blocked(why) if why.contains("SPOOL_MAX_BYTES")));
        for bytes in [900, 799, 701] {
            assert_eq!(hold.judge(now + 99 * SECOND, bytes, None), Trouble::None);
            assert!(hold.is_full(bytes));
        }
        assert_eq!(hold.judge(now, 700, None), Trouble::Unblocked);
        assert!(!hold.is_full(799));
    }

    #[test]
    fn a_disk_that_refuses_is_tried_every_second_until_patience_ends() {
        let now = Instant::now();
        let mut hold = Hold::new(800, 3 * SECOND);
        hold.refused(now, &broken());
        assert!(matches!(hold.judge(now, 0, None), Trouble::Blocked(why) if why.contains("seg")));
        assert!(!hold.may_write(now) && hold.may_write(now + SECOND));
        hold.refused(now + SECOND, &broken());
        assert_eq!(hold.judge(now + SECOND, 0, None), Trouble::None);
        assert_eq!(hold.due(), Some(now + 2 * SECOND));
        assert!(matches!(hold.judge(now + 3 * SECOND, 0, None), Trouble::GaveUp(why) if why.contains("DISK_WAIT")));
        assert_eq!(hold.judge(now + 9 * SECOND, 0, None), Trouble::None);
        hold.wrote();
        assert_eq!(hold.judge(now, 0, None), Trouble::Unblocked);
        assert_eq!(hold.due(), None);
    }

    #[test]
    fn a_full_spool_gives_up_only_when_the_sink_takes_nothing_any_more() {
        let now = Instant::now();
        let mut hold = Hold::new(853, SECOND);
        assert!(matches!(hold.judge(now, 800, None), Trouble::Blocked(_)));
        assert_eq!(hold.judge(now + 99 * SECOND, 800, None), Trouble::None);
        assert_eq!(hold.judge(now + 100 * SECOND, 800, Some("401")), Trouble::None);
        assert_eq!(hold.due(), Some(now + 101 * SECOND));
        assert!(matches!(hold.judge(now + 101 * SECOND, 800, Some("401")), Trouble::GaveUp(why) if why.contains("401")));
    }
}
