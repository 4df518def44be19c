//! Reports in the background: gathered, sent in batches, sent again (wire contract, section 12).
//!
//! A report is never lost silently: it is sent, rejected, dropped and counted, or still queued. Sending is the work of
//! one task, started by the first report, with at most one call under way.

mod callback;
mod effects;
mod lanes;
mod options;
mod queue;
mod shared;
mod verdict;
mod weight;
mod worker;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

pub use options::{OnRejected, ReporterOptions, ReporterStats};

use self::lanes::Class;
use self::shared::{Shared, State};
use super::Result;
use super::error::Error;
use super::lease::Releaser;
use super::messages::Report;
use super::wire::Wire;
use crate::later::later;

/// How long a call may outlast the end of closing.
const GRACE: Duration = Duration::from_millis(500);
/// How long a broken-off task may take to notice.
const ABORT_GRACE: Duration = Duration::from_millis(100);
/// A flush or a close starts a lost worker so often.
const MOST_RESTARTS: u32 = 3;

/// Whether the server waits for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Ordinary,
    /// Of a lease with which the server tries something out.
    Probe,
}

/// Sends reports in the background. Clones share one queue.
///
/// Reports are gathered for [`ReporterOptions::flush_interval`] or until [`ReporterOptions::batch_size`] of them wait,
/// and sent in their order. A report that ends its lease does not wait: with it the batch is due as soon as no call
/// is under way. What fails and may succeed later is sent again, after waits that double; what the server refuses for good
/// is dropped and counted.
///
/// # When there is no room
/// The queue holds [`ReporterOptions::max_queue_size`] reports. One more, and the oldest ordinary report is dropped; when
/// only reports are left that end their lease or belong to a probe, the oldest of those. Reports that came by
/// [`Self::submit_wait`] are never dropped for others. Whenever a report is dropped that was to end its lease, the lease is
/// given back by a call instead, unless the token or the client itself is refused.
///
/// # When it is unknown whether a report arrived
/// The server knows a report again for an hour. One that may have arrived longer ago is dropped rather than sent again: it
/// would count twice.
///
/// # Runtime
/// The task runs on the tokio runtime in which a report is first submitted. From a plain thread it is started on the runtime
/// in which the reporter was made or last started its task; where none was ever seen, reports only queue until an
/// `async` method is awaited. The task gets on only while its runtime runs. When that runtime ends, or the task with it,
/// queued reports stay, and the next call of a method starts another task with a warning; the server recognises what it
/// has already.
///
/// When the last handle is dropped, what is queued is still sent for [`ReporterOptions::close_timeout`] at most, as long as
/// the runtime lives. Call [`Self::close`] to wait for that.
#[derive(Debug, Clone)]
pub struct Reporter {
    owner: Arc<Owner>,
}

/// The handles together; the worker is not one of them.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    close_timeout: Duration,
}

impl Reporter {
    /// A reporter with these options, which are valid. No I/O, no task yet.
    pub(crate) fn new(wire: Arc<Wire>, releaser: Releaser, options: ReporterOptions) -> Self {
        let close_timeout = options.close_timeout;
        Self { owner: Arc::new(Owner { shared: Arc::new(Shared::new(wire, releaser, options)), close_timeout }) }
    }

    /// Queues a report; never waits, and may be called from any thread.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when a bound of a report is broken, [`Error::ReporterClosed`] after [`Self::close`].
    pub fn submit(&self, report: Report) -> Result<()> {
        self.submit_as(report, Standing::Ordinary)
    }

    pub(crate) fn submit_as(&self, report: Report, standing: Standing) -> Result<()> {
        let class = match standing {
            Standing::Ordinary => Class::Ordinary,
            Standing::Probe => Class::Kept,
        };
        // One report that breaks a bound would spoil the batch it is in.
        report.validate()?;
        let now = Instant::now();
        let is_manned = self.shared().with(|State { queue, crew }| {
            if queue.closing().is_some() {
                return Err(Error::reporter_closed());
            }
            queue.push(report, class, now);
            Ok(crew.is_manned())
        })?;
        if !is_manned {
            self.shared().man();
        }
        Ok(())
    }

    /// Queues a report that must not be dropped for want of room: waits until there is some, and then keeps it.
    ///
    /// Callers get room in the order in which they came; while others submit more than can be sent, without a break, there is
    /// none. A caller that stops waiting takes its report with it. Inside
    /// [`ReporterOptions::on_rejected`] it does not wait but does what [`Self::submit`] does. Needs a tokio runtime.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when a bound of a report is broken, [`Error::ReporterClosed`] after [`Self::close`], for
    /// those who wait too.
    pub async fn submit_wait(&self, report: Report) -> Result<()> {
        if callback::is_inside(self.shared().id()) {
            return self.submit(report);
        }
        report.validate()?;
        let mut waiting = Some(report);
        let _turn = self.shared().turn.lock().await;
        loop {
            let mut progress = pin!(self.shared().progress.notified());
            progress.as_mut().enable();
            let now = Instant::now();
            self.shared().with(|State { queue, .. }| {
                if queue.closing().is_some() {
                    return Err(Error::reporter_closed());
                }
                if queue.has_room()
                    && let Some(report) = waiting.take()
                {
                    queue.push(report, Class::Awaited, now);
                }
                Ok(())
            })?;
            self.shared().man();
            if waiting.is_none() {
                return Ok(());
            }
            progress.await;
        }
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> ReporterStats {
        self.shared().with(|state| state.queue.stats())
    }

    /// Whether no report is taken any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().with(|state| state.queue.closing().is_some())
    }

    /// How long closing may take when nobody says so.
    pub(crate) fn close_timeout(&self) -> Duration {
        self.owner.close_timeout
    }

    /// Sends at once what is queued, and waits until every report submitted before is settled: true when it is, false when
    /// the limit is over or nobody can send. Without a limit it waits as long as that takes.
    ///
    /// It does not shorten the wait after a failure. Inside [`ReporterOptions::on_rejected`], and outside of a tokio
    /// runtime, it answers at once whether nothing is queued and nothing in flight.
    pub async fn flush(&self, limit: Option<Duration>) -> bool {
        if !self.can_wait() {
            return self.shared().with(|state| state.queue.is_clear());
        }
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let flushing = Flushing::begin(self.shared());
        let mut starts = 0;
        loop {
            let mut progress = pin!(self.shared().progress.notified());
            progress.as_mut().enable();
            let (is_settled, is_manned, is_left) = self
                .shared()
                .with(|State { queue, crew }| (queue.is_settled(flushing.before), crew.is_manned(), queue.is_left()));
            if is_settled || is_left {
                return is_settled;
            }
            if !is_manned {
                if starts > MOST_RESTARTS {
                    return false;
                }
                starts += 1;
                self.shared().man();
            }
            match deadline {
                None => progress.await,
                Some(deadline) if timeout_at(deadline, progress).await.is_err() => return false,
                Some(_) => {}
            }
        }
    }

    /// Takes no more reports and sends what is queued, at most this long (by default [`ReporterOptions::close_timeout`]);
    /// what is left then is dropped. Zero drops what is queued.
    ///
    /// Calls that fail are made again within the limit. A call under way may outlast it by half a second; then it is broken
    /// off, and its reports count as queued. Closing again waits for the same end, and a nearer limit makes it come
    /// sooner. Inside [`ReporterOptions::on_rejected`], and outside of a tokio runtime, it does not wait.
    pub async fn close(&self, limit: Option<Duration>) {
        let shared = self.shared();
        shared.with(|state| state.queue.begin_close(limit.unwrap_or(self.owner.close_timeout), Instant::now()));
        shared.man();
        if !self.can_wait() {
            return;
        }
        if self.wait_for_end().await {
            shared.forget_callback();
            return;
        }
        shared.with(|state| {
            state.queue.leave();
            state.crew.abort();
        });
        let _ = tokio::time::timeout(ABORT_GRACE, self.wait_for_loss()).await;
        shared.forget_callback();
        let stats = self.stats();
        warn!(
            target: "spinneret.reporter",
            queued = stats.queued, in_flight = stats.in_flight, "a call was still under way when the reporter was closed"
        );
    }

    /// Whether closing came to an end by itself.
    async fn wait_for_end(&self) -> bool {
        let shared = self.shared();
        let mut starts = 0;
        loop {
            let mut progress = pin!(shared.progress.notified());
            progress.as_mut().enable();
            let now = Instant::now();
            let (is_over, deadline, is_manned) = shared.with(|State { queue, crew }| {
                queue.expire(now);
                (queue.is_ended() || queue.is_left(), queue.closing().unwrap_or(now), crew.is_manned())
            });
            if is_over {
                return true;
            }
            if !is_manned {
                if starts > MOST_RESTARTS {
                    shared.with(|state| state.queue.begin_close(Duration::ZERO, now));
                }
                starts += 1;
                shared.man();
            }
            let last = later(deadline, GRACE);
            if now >= last {
                return false;
            }
            // What waits is dropped at the deadline, whatever the call under way does.
            let until = if now < deadline { deadline } else { last };
            let _ = timeout_at(until, progress).await;
        }
    }

    /// Until there is no worker.
    async fn wait_for_loss(&self) {
        loop {
            let mut progress = pin!(self.shared().progress.notified());
            progress.as_mut().enable();
            if self.shared().with(|state| !state.crew.is_manned()) {
                return;
            }
            progress.await;
        }
    }

    /// Whether waiting here is possible and does not keep the worker from what is waited for.
    fn can_wait(&self) -> bool {
        !callback::is_inside(self.shared().id()) && Handle::try_current().is_ok()
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.with(|state| state.queue.begin_close(self.close_timeout, Instant::now()));
        self.shared.man();
    }
}

/// Somebody who waits for a flush; ends with it.
struct Flushing<'a> {
    shared: &'a Shared,
    before: u64,
}

impl<'a> Flushing<'a> {
    fn begin(shared: &'a Shared) -> Self {
        Self { shared, before: shared.with(|state| state.queue.begin_flush()) }
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.shared.with(|state| state.queue.end_flush());
    }
}

#[cfg(test)]
mod tests;
