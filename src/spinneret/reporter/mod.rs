//! Reports in the background: gathered, sent in batches, sent again.

mod options;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking::Queue;

pub use options::{ReporterOptions, ReporterStats};

use super::Result;
use super::error::Error;
use super::lease::Releaser;
use super::messages::{Report, ReportRequest};
use super::wire::Wire;

mod parking {
    pub(super) type Queue = std::sync::Mutex<Vec<super::Report>>;
}

/// Whether the server waits for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Ordinary,
    /// Of a lease with which the server tries something out.
    Probe,
}

/// Sends reports in the background. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Reporter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wire: Arc<Wire>,
    options: ReporterOptions,
    queue: Queue,
    is_closed: AtomicBool,
}

impl Reporter {
    pub(crate) fn new(wire: Arc<Wire>, _releaser: Releaser, options: ReporterOptions) -> Self {
        Self { shared: Arc::new(Shared { wire, options, queue: Queue::default(), is_closed: AtomicBool::new(false) }) }
    }

    /// Queues a report; never waits.
    ///
    /// # Errors
    /// [`Error::ReporterClosed`] after [`Self::close`].
    pub fn submit(&self, report: Report) -> Result<()> {
        self.submit_as(report, Standing::Ordinary)
    }

    pub(crate) fn submit_as(&self, report: Report, _standing: Standing) -> Result<()> {
        if self.is_closed() {
            return Err(Error::reporter_closed());
        }
        if let Ok(mut queue) = self.shared.queue.lock() {
            queue.push(report);
        }
        Ok(())
    }

    /// Whether no report is taken any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// How long closing may take.
    pub(crate) fn close_timeout(&self) -> Duration {
        self.shared.options.close_timeout
    }

    /// Waits until every report is settled, at most this long; true when it is.
    pub async fn flush(&self, _limit: Option<Duration>) -> bool {
        let reports = self.shared.queue.lock().map(|mut queue| std::mem::take(&mut *queue)).unwrap_or_default();
        reports.is_empty() || self.shared.wire.call_once(&ReportRequest { reports }).await.is_ok()
    }

    /// Takes no more reports and sends what is queued, at most this long (by default `close_timeout`).
    pub async fn close(&self, limit: Option<Duration>) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.flush(limit.or(Some(self.shared.options.close_timeout))).await;
    }
}
