//! The end of a job's delivery: the last batch, the wait for the courier, and the counts that are left.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::config::Tidy;
use super::leftovers::remove_if_empty;
use super::message::{Closed, Fact};
use super::state::CollectorState;
use crate::apcloudy::to_text;

/// How much longer than the courier the collector waits: its answers must arrive.
const MARGIN: Duration = Duration::from_millis(500);

/// How far the job is.
#[derive(Debug)]
pub(super) enum Phase {
    Open,
    Closing(Close),
    Closed(Closed),
}

/// A close under way.
#[derive(Debug)]
pub(super) struct Close {
    stats: Option<String>,
    /// When the courier gives up.
    deadline: Instant,
    /// The stats are written, if there are any.
    pub(super) stats_in: bool,
    /// The last batch is cut.
    pub(super) cut: bool,
}

impl Phase {
    pub(super) const fn is_closing(&self) -> bool {
        matches!(self, Self::Closing(_))
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Closing(close) => Some(close.deadline + MARGIN),
            Self::Open | Self::Closed(_) => None,
        }
    }
}

impl Close {
    pub(super) fn new(stats: Map<String, Value>, deadline: Instant) -> Self {
        let text = if stats.is_empty() { Ok(None) } else { to_text(&stats).map(Some) };
        let stats = text.unwrap_or_else(|error| {
            tracing::error!(%error, "the closing stats have no text form and are not sent");
            None
        });
        Self { stats, deadline, stats_in: false, cut: false }
    }

    pub(super) fn stats_text(&self) -> Option<String> {
        self.stats.clone()
    }

    pub(super) fn time_left(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
    }
}

impl CollectorState {
    /// The close may take no longer than `limit`, also one that is under way.
    pub(super) fn hurry(&mut self, limit: Duration, now: Instant) {
        self.config.close_within = self.config.close_within.min(limit);
        if let Phase::Closing(close) = &mut self.phase {
            close.deadline = close.deadline.min(now + limit);
        }
    }

    /// Ends the job once everything is settled, or time is up.
    pub(super) fn finish_if_done(&mut self, now: Instant) {
        let Phase::Closing(close) = &self.phase else { return };
        // What others than the delivery said meanwhile goes too.
        let settled = close.cut && self.outbox.is_idle() && self.ring.is_empty() && self.logs.is_empty();
        if !settled && self.phase.due().is_some_and(|due| now < due) {
            return;
        }
        let closed = self.finish();
        self.facts.push(Fact::Closed(closed.clone()));
        self.phase = Phase::Closed(closed);
    }

    fn finish(&mut self) -> Closed {
        let (feeds, feed_errors) = self.feeds.close();
        let Some(mut log) = self.log.take() else { return Closed::default() };
        let unwritten = self.waiting.len();
        if unwritten > 0 {
            tracing::error!(unwritten, "groups could not be written before the close: their requests are not settled");
        }
        self.waiting.clear();
        let mut totals = self.outbox.finish(&mut log);
        let open = self.batcher.open_counts();
        totals.spooled += open.items;
        totals.undelivered_records += open.total() + open.stats;
        totals.left += open.total() + open.stats;
        let closed = Closed {
            items: self.items,
            delivered: totals.delivered,
            spooled: totals.spooled,
            rejected: totals.rejected,
            undelivered_records: totals.undelivered_records,
            left: totals.left,
            recovered: totals.recovered,
            feeds,
            feed_errors,
        };
        if let Err(error) = self.numbers.end(self.ring.next_index()) {
            tracing::warn!(%error, "the job's card does not know the last index of a log record: the next run leaves some out");
        }
        match log.close() {
            Ok(left) if left.cuts.is_empty() && left.uncut.is_none() => {
                if self.tidy == Tidy::Remove
                    && let Err(error) = remove_if_empty(&self.spool)
                {
                    tracing::warn!(%error, spool = %self.spool.display(), "the empty spool cannot be removed");
                }
            }
            Ok(_) => tracing::warn!(
                records = closed.left,
                "not everything was delivered: the rest stays in the spool; `dragline deliver --spool {}` sends it",
                self.spool.display()
            ),
            Err(error) => tracing::error!(%error, "the record log cannot be closed: what is on disk is still good"),
        }
        closed
    }
}
