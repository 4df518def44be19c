//! Calls `on_rejected`, and knows when it is being called.
//!
//! A callback runs on the worker's task, so nothing moves on until it returns: what waits for the worker must not wait
//! inside of it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::{debug, warn};

use super::options::OnRejected;
use crate::spinneret::messages::RejectedReport;

/// As many rejected reports of a batch are logged.
const MOST_LOGGED: usize = 16;

thread_local! {
    /// The reporter whose callback this thread is in; 0 for none.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread is inside a callback of this reporter.
pub(super) fn is_inside(reporter: usize) -> bool {
    INSIDE.get() == reporter
}

/// Logs rejected reports and hands each to the callback once.
pub(super) fn tell(reporter: usize, callback: Option<&OnRejected>, rejected: &[RejectedReport]) {
    for (n, report) in rejected.iter().take(MOST_LOGGED).enumerate() {
        let RejectedReport { report_id, reason, message: why, .. } = report;
        if n == 0 {
            warn!(target: "spinneret.reporter", report_id, reason, why, rejected = rejected.len(), "the server rejects a report");
        } else {
            debug!(target: "spinneret.reporter", report_id, reason, why, "the server rejects a report");
        }
    }
    let Some(callback) = callback else { return };
    let before = INSIDE.replace(reporter);
    for report in rejected {
        if catch_unwind(AssertUnwindSafe(|| callback(report))).is_err() {
            warn!(target: "spinneret.reporter", report_id = report.report_id, "on_rejected panicked");
        }
    }
    INSIDE.set(before);
}
