//! How long a request takes, by a clock that nobody can set back.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Started when a request is sent, read by [`ReportDraft::timed`](super::ReportDraft::timed) when its body has come.
///
/// The two times of the report are one look at the calendar and the time that passed, so the first is never after the
/// second, whatever somebody does to the clock meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn read(self) -> Reading {
        Reading { at: Timestamp::now(), elapsed: self.elapsed() }
    }
}

impl From<std::time::Instant> for Stopwatch {
    /// Started at an instant that was kept elsewhere.
    fn from(started: std::time::Instant) -> Self {
        Self { started: Instant::from_std(started) }
    }
}

/// What a stopwatch showed, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) at: Timestamp,
    pub(super) elapsed: Duration,
}
