//! The reporter of plain threads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::background::Background;
use crate::spinneret::messages::Report;
use crate::spinneret::{self, ReporterStats, Result};

/// Sends reports in the background. Clones share one queue.
///
/// Does what [`spinneret::Reporter`](crate::spinneret::Reporter) does. What waits answers
/// [`Error::Configuration`](crate::spinneret::Error::Configuration) inside a tokio runtime.
#[derive(Clone)]
pub struct Reporter {
    // Before the background, so that its end finds the runtime.
    reporter: spinneret::Reporter,
    background: Arc<Background>,
}

impl Reporter {
    pub(super) const fn new(background: Arc<Background>, reporter: spinneret::Reporter) -> Self {
        Self { reporter, background }
    }

    /// Queues a report; never waits, and may be called anywhere.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::spinneret::Error::InvalidArgument) when a bound of a report is broken,
    /// [`Error::ReporterClosed`](crate::spinneret::Error::ReporterClosed) after [`Self::close`].
    pub fn submit(&self, report: Report) -> Result<()> {
        let _inside = self.background.enter()?;
        self.reporter.submit(report)
    }

    /// Queues a report that must not be dropped for want of room: waits until there is some, and then keeps it.
    ///
    /// # Errors
    /// As [`Self::submit`], the second also for those who wait.
    pub fn submit_wait(&self, report: Report) -> Result<()> {
        self.background.wait(self.reporter.submit_wait(report))
    }

    /// Sends at once what is queued, and waits until every report submitted before is settled: true when it is, false when
    /// the limit is over. Without a limit it waits as long as that takes. It does not shorten the wait after a failure.
    ///
    /// # Errors
    /// [`Error::Configuration`](crate::spinneret::Error::Configuration) inside a tokio runtime, also in
    /// [`ReporterOptions::on_rejected`](crate::spinneret::ReporterOptions::on_rejected), and after a fork.
    pub fn flush(&self, limit: Option<Duration>) -> Result<bool> {
        self.background.wait_for(self.reporter.flush(limit))
    }

    /// Takes no more reports and sends what is queued, at most this long (by default
    /// [`ReporterOptions::close_timeout`](crate::spinneret::ReporterOptions::close_timeout)); what is left then is
    /// dropped. Closing twice is fine.
    ///
    /// # Errors
    /// As [`Self::flush`]; it is not closed then.
    pub fn close(&self, limit: Option<Duration>) -> Result<()> {
        self.background.wait_for(self.reporter.close(limit))
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> ReporterStats {
        self.reporter.stats()
    }

    /// Whether no report is taken any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.reporter.is_closed()
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reporter.fmt(f)
    }
}
