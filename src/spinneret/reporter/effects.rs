//! What has to be done once the queue is unlocked: lines of the log, leases to give back, tasks to wake.

use std::time::Duration;

use tokio::sync::Notify;
use tracing::warn;

use crate::spinneret::lease::Releaser;

/// A line of the log is written at most so often about reports for which there was no room.
pub(super) const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// What a change of the queue asks for.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// The worker sleeps and must look again.
    pub(super) wakes_worker: bool,
    /// Something that callers wait for may have come about.
    pub(super) is_progress: bool,
    /// The leases of dropped reports that were to end them.
    pub(super) releases: Vec<String>,
    pub(super) notices: Vec<Notice>,
}

/// Reports that were dropped, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice {
    NoRoom { dropped: u64, total: u64 },
    InDoubtTooLong { dropped: u64 },
    NoTimeLeft { dropped: u64 },
}

impl Effects {
    pub(super) fn carry_out(self, releaser: &Releaser, worker: &Notify, progress: &Notify) {
        if self.wakes_worker {
            worker.notify_one();
        }
        if self.is_progress {
            progress.notify_waiters();
        }
        for notice in self.notices {
            notice.log();
        }
        for lease_id in self.releases {
            releaser.release(lease_id);
        }
    }
}

impl Notice {
    fn log(&self) {
        match self {
            Self::NoRoom { dropped, total } => warn!(
                target: "spinneret.reporter",
                dropped, total, "no room for more reports, the oldest are dropped; make max_queue_size larger or report less"
            ),
            Self::InDoubtTooLong { dropped } => warn!(
                target: "spinneret.reporter",
                dropped, "reports that may have arrived an hour ago are dropped: the server would count them twice"
            ),
            Self::NoTimeLeft { dropped } => {
                warn!(target: "spinneret.reporter", dropped, "the reporter closes and drops what it could not send in time");
            }
        }
    }
}
