//! What the courier decides: what is tried next, what is repeated, split, set aside or given up.
//!
//! The state outlives an incarnation of the actor: a batch is never lost to a panic of the sink. Nothing here waits.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::message::{How, Settled};
use super::split::Split;
use super::webhook::{SinkError, Webhook};
use crate::actor::Slot;
use crate::api::stats::Stats;
use crate::backoff::Backoff;
use crate::collector::batch::{Batch, Counts};
use crate::collector::log::BatchId;

/// Panics of the sink in a row after which it is not called any more.
const PANICS: u32 = 3;
/// The longest wait a sink may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// The longest wait between two tries once the job closes.
const CLOSING_WAIT: Duration = Duration::from_secs(1);
/// Time between two log lines about a sink that stays away.
const REMIND: Duration = Duration::from_secs(30);

/// How the courier works.
#[derive(Debug, Clone)]
pub struct CourierOptions {
    /// The record log's own number, part of the ids of split batches.
    pub log_id: u64,
    /// Where refused records are put, one file a batch.
    pub quarantine: PathBuf,
    /// Start of the jitter's draws.
    pub seed: u64,
}

/// Batches on their way to a sink.
pub struct CourierState {
    sink: Box<dyn Webhook>,
    options: CourierOptions,
    stats: Stats,
    queue: VecDeque<(Batch, Slot)>,
    /// The first batch of the queue, taken apart.
    split: Option<Split>,
    backoff: Backoff,
    /// Tries in a row after which nothing was taken.
    failures: u32,
    retry_at: Option<Instant>,
    reminded: Option<Instant>,
    deadline: Option<Instant>,
    fatal: Option<String>,
    /// Set around a call of the sink: still set at the start of an incarnation, the call panicked.
    calling: bool,
    panics: u32,
}

/// What came of one look at the queue.
#[derive(Debug)]
pub(super) enum Step {
    /// A batch ended, and its place in the link is free again.
    Settled(Settled),
    /// Something was done; there is more to do now.
    Again,
    /// Nothing can be done before then.
    Wait(Instant),
    /// Nothing is queued.
    Idle,
}

impl CourierState {
    /// A courier with nothing to do.
    #[must_use]
    pub fn new(sink: Box<dyn Webhook>, options: CourierOptions, stats: Stats) -> Self {
        let backoff = Backoff::new(options.seed);
        Self {
            sink,
            options,
            stats,
            queue: VecDeque::new(),
            split: None,
            backoff,
            failures: 0,
            retry_at: None,
            reminded: None,
            deadline: None,
            fatal: None,
            calling: false,
            panics: 0,
        }
    }

    /// Looks after what the incarnation before left.
    pub(super) fn recover(&mut self, now: Instant) {
        if !std::mem::take(&mut self.calling) {
            return;
        }
        self.panics += 1;
        if self.panics >= PANICS {
            self.give_up("the sink panicked again and again".to_owned());
        } else {
            self.later(now, None, "the sink panicked");
        }
    }

    pub(super) fn take(&mut self, batch: Batch, slot: Slot) {
        self.queue.push_back((batch, slot));
    }

    /// Limits the time for everything that is queued and comes later.
    pub(super) fn close_by(&mut self, deadline: Instant) {
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        // One more try at once: what was wrong half a minute ago may be mended.
        self.retry_at = None;
    }

    /// Calls the sink once at most.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        let Some((batch, _)) = self.queue.front() else { return Step::Idle };
        if let Some(why) = &self.fatal {
            let why = why.clone();
            return self.settle(How::Spooled(why));
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return self.settle(How::Spooled("the job closed before the sink took it".to_owned()));
        }
        if let Some(at) = self.retry_at.filter(|at| *at > now) {
            return Step::Wait(self.deadline.map_or(at, |deadline| at.min(deadline)));
        }
        self.retry_at = None;
        let part = self.split.as_ref().and_then(|split| split.part(batch, self.options.log_id));
        let target = part.as_ref().unwrap_or(batch);
        let (counts, bytes) = (target.counts, target.body.len());
        self.calling = true;
        let answer = self.sink.deliver(target);
        self.calling = false;
        self.panics = 0;
        match answer {
            Ok(_) => {
                self.back();
                self.stats.inc("courier/batches");
                self.stats.add("courier/delivered", signed(records(counts)));
                self.stats.add("courier/bytes", i64::try_from(bytes).unwrap_or(i64::MAX));
                self.advance(None)
            }
            Err(SinkError::Retry { after, why }) => {
                self.stats.inc("courier/retries");
                self.later(now, after, &why);
                Step::Again
            }
            Err(SinkError::Fatal { why }) => {
                self.give_up(why.clone());
                self.settle(How::Spooled(why))
            }
            Err(SinkError::Reject { why }) => {
                self.back();
                if self.take_apart() {
                    return Step::Again;
                }
                let refused = part.as_ref().or_else(|| self.queue.front().map(|(batch, _)| batch));
                let Some((id, written)) = refused.map(|batch| (batch.id, self.quarantine(batch.id, &batch.body))) else {
                    return Step::Idle;
                };
                match written {
                    Ok(file) => {
                        tracing::error!(batch = %id, why, file = %file.display(), "the sink refuses a batch for good: it is in quarantine");
                        self.stats.add("courier/rejected", signed(records(counts)));
                        self.advance(Some((counts, why)))
                    }
                    Err(error) => {
                        let why = format!("the quarantine cannot be written: {error}");
                        self.later(now, None, &why);
                        Step::Again
                    }
                }
            }
        }
    }

    /// Batches not yet settled.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Splits the first batch, or the refused part of it further.
    fn take_apart(&mut self) -> bool {
        if let Some(split) = &mut self.split {
            return split.halve();
        }
        self.split = self.queue.front().and_then(|(batch, _)| Split::of(batch));
        self.split.is_some()
    }

    /// The sink took, or the quarantine has, what was just tried.
    fn advance(&mut self, rejected: Option<(Counts, String)>) -> Step {
        let Some(split) = &mut self.split else {
            return self.settle(rejected.map_or(How::Delivered, |(_, why)| How::Rejected(why)));
        };
        match rejected {
            Some((counts, why)) => split.reject(counts, why),
            None => split.next(),
        }
        if !split.is_done() {
            return Step::Again;
        }
        let (rejected, why) = (split.rejected, std::mem::take(&mut split.why));
        let all = self.queue.front().is_some_and(|(batch, _)| batch.counts == rejected);
        self.settle(match rejected == Counts::default() {
            // Each part passed alone: the whole was too large, or the sink has changed its mind.
            true => How::Delivered,
            false if all => How::Rejected(why),
            false => How::Split { rejected, why },
        })
    }

    fn settle(&mut self, how: How) -> Step {
        self.split = None;
        match self.queue.pop_front() {
            Some((batch, _)) => Step::Settled(Settled { id: batch.id, counts: batch.counts, how }),
            None => Step::Idle,
        }
    }

    fn later(&mut self, now: Instant, asked: Option<Duration>, why: &str) {
        self.failures = self.failures.saturating_add(1);
        let mut wait = at_least(self.backoff.wait(self.failures), asked);
        if self.deadline.is_some() {
            wait = wait.min(CLOSING_WAIT);
        }
        self.retry_at = Some(now + wait);
        if self.reminded.is_none_or(|at| now.duration_since(at) >= REMIND) {
            self.reminded = Some(now);
            tracing::warn!(why, failures = self.failures, wait_ms = wait.as_millis(), "the sink takes nothing: trying again");
        }
    }

    /// The sink answers again.
    fn back(&mut self) {
        self.failures = 0;
        if self.reminded.take().is_some() {
            tracing::info!("the sink takes batches again");
        }
    }

    fn give_up(&mut self, why: String) {
        tracing::error!(why, "the sink takes no batches: they stay in the spool");
        self.fatal = Some(why);
    }

    fn quarantine(&self, id: BatchId, body: &str) -> io::Result<PathBuf> {
        let dir = &self.options.quarantine;
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{id}.json"));
        let unfinished = dir.join(format!("{id}.part"));
        let mut file = File::create(&unfinished)?;
        file.write_all(body.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        Ok(path)
    }
}

/// The wait, no shorter than what the sink asks for within reason.
fn at_least(wait: Duration, asked: Option<Duration>) -> Duration {
    wait.max(asked.unwrap_or_default().min(LONGEST_ASKED))
}

const fn records(counts: Counts) -> u64 {
    counts.total() + counts.stats
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl fmt::Debug for CourierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CourierState")
            .field("queued", &self.queue.len())
            .field("split", &self.split.is_some())
            .field("fatal", &self.fatal)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sink_may_ask_for_more_within_reason() {
        let second = Duration::from_secs(1);
        for (own, asked, wait) in [(2, None, 2), (2, Some(7), 7), (9, Some(7), 9), (2, Some(9000), 300)] {
            assert_eq!(at_least(own * second, asked.map(|asked| asked * second)), wait * second, "{own} {asked:?}");
        }
    }
}
