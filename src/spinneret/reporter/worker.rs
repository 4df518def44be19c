//! The task that sends: one batch at a time, until the reporter is closed and nothing is left.
//!
//! Decides nothing by itself; the queue says what comes next.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, error, warn};

use super::callback;
use super::queue::{Batch, Step};
use super::shared::Shared;
use super::verdict::{Verdict, judge};
use crate::spinneret::messages::ReportResponse;

/// A worker's place. Given up before the work is done, it says so, and its batch goes back to the queue.
pub(super) struct Guard {
    shared: Arc<Shared>,
    generation: u64,
    batch: Option<Batch>,
    has_started: bool,
    has_ended: bool,
}

impl Guard {
    pub(super) const fn new(shared: Arc<Shared>, generation: u64) -> Self {
        Self { shared, generation, batch: None, has_started: false, has_ended: false }
    }

    fn delivered(&mut self, mut answer: ReportResponse) {
        let Some(batch) = self.batch.take() else { return };
        // The server cannot reject more than it was sent.
        answer.rejected.truncate(batch.request.reports.len());
        let callback = self.shared.with(|state| {
            state.queue.delivered(&batch, &answer);
            state.crew.on_rejected()
        });
        drop(batch);
        if !answer.rejected.is_empty() {
            callback::tell(self.shared.id(), callback.as_ref(), &answer.rejected);
            self.shared.with(|state| state.queue.told());
        }
    }

    fn failed(&mut self, verdict: Verdict, error: &dyn fmt::Display) {
        let Some(batch) = self.batch.take() else { return };
        let reports = batch.request.reports.len();
        let now = Instant::now();
        let (wait, is_first) = self.shared.with(|state| {
            let is_first = !state.queue.is_failing();
            (state.queue.failed(batch, verdict, now), is_first)
        });
        match (verdict, wait) {
            (Verdict::Again { .. }, Some(wait)) if is_first => {
                warn!(target: "spinneret.reporter", reports, %error, ?wait, "reports could not be sent, they are sent again");
            }
            (Verdict::Again { .. }, wait) => {
                debug!(target: "spinneret.reporter", reports, %error, ?wait, "reports could not be sent, they are sent again");
            }
            (Verdict::GiveUp { .. }, _) => {
                error!(target: "spinneret.reporter", reports, %error, "reports are dropped, the server refuses them for good");
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.lose(self.generation, self.batch.take(), self.has_started);
        }
    }
}

/// Works until nothing is left.
pub(super) async fn run(mut guard: Guard) {
    guard.has_started = true;
    loop {
        match guard.shared.with(|state| state.queue.step(Instant::now())) {
            Step::Send(batch) => {
                let request = &guard.batch.insert(batch).request;
                // A call that panics would do so again: its batch is not worth the reports behind it.
                match AssertUnwindSafe(guard.shared.wire.call_once(request)).catch_unwind().await {
                    Ok(Ok(answer)) => guard.delivered(answer),
                    Ok(Err(error)) => guard.failed(judge(&error), &error),
                    Err(_) => guard.failed(Verdict::GiveUp { can_release: true }, &"the call panicked"),
                }
            }
            Step::Wait(None) => guard.shared.worker.notified().await,
            Step::Wait(Some(until)) => {
                // Late or woken: the queue is asked again either way.
                let _ = timeout_at(until, guard.shared.worker.notified()).await;
            }
            Step::End => break,
        }
    }
    guard.has_ended = true;
    guard.shared.dismiss(guard.generation);
}
