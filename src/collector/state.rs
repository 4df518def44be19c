//! What the collector knows and decides. It outlives the incarnations of the actor.
//!
//! A turn writes what it gathered, in this order: groups and logs into the record log, items into the feeds, what was
//! delivered and what was cut into the log, one write to the system, then `Kept`. What a panic interrupts is taken up
//! by the next incarnation where it stopped; what the disk or a full spool holds up keeps its slot, so that the link
//! fills and nothing grows.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::batch::{Batcher, CutBatch};
use super::closing::{Close, Phase};
use super::config::{CollectorConfig, Tidy};
use super::feeds::FeedSet;
use super::hold::{Hold, Trouble};
use super::log::{LogError, RecordLog, Recovered};
use super::logring::LogRing;
use super::message::{Fact, Group};
use super::numbers::Numbers;
use super::outbox::{Origin, Outbox};
use super::written::Written;
use crate::actor::{Link, Slot};
use crate::apcloudy::{JobId, LogRecord};
use crate::api::stats::Stats;
use crate::courier::message::{Order, Report};
use crate::engine::ticket::Tag;
use crate::scheduler::job::RequestId;
use crate::testkit::Watched;

/// Where a test may end an incarnation.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    Begin,
    Appended,
    Fed,
    Journaled,
    Flushed,
    Synced,
    Offered,
}

/// The collector's state.
pub struct CollectorState {
    pub(super) config: CollectorConfig,
    pub(super) spool: PathBuf,
    pub(super) tidy: Tidy,
    /// `None` once the job is closed.
    pub(super) log: Option<RecordLog>,
    pub(super) batcher: Batcher,
    pub(super) outbox: Outbox,
    pub(super) feeds: FeedSet,
    pub(super) ring: Arc<LogRing>,
    pub(super) stats: Stats,
    pub(super) numbers: Numbers,
    pub(super) waiting: VecDeque<(Arc<Group>, Slot)>,
    pub(super) logs: VecDeque<LogRecord>,
    pub(super) written: Written,
    /// Written, not yet flushed and told.
    pub(super) kept: Vec<(Tag, u32)>,
    pub(super) slots: Vec<Slot>,
    /// For the engine, not yet posted.
    pub(super) facts: Vec<Fact>,
    /// Ends that the frontier has not settled: their numbers in the log.
    pub(super) ends: HashMap<u128, u64>,
    pub(super) hold: Hold,
    pub(super) phase: Phase,
    asked_again: bool,
    pub(super) items: u64,
    last_sync: Option<Instant>,
    sync_fails: bool,
    pub(super) next_ring: Instant,
    /// Something was delivered or settled: a segment may be done.
    deletable: bool,
    pub(super) full: Vec<CutBatch>,
    pub(super) texts: String,
    pub(super) watched: Watched,
    #[cfg(test)]
    pub(super) fault: Option<Box<dyn FnMut(Step) + Send>>,
}

/// What a state is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) config: CollectorConfig,
    pub(super) job: JobId,
    pub(super) spool: PathBuf,
    pub(super) tidy: Tidy,
    pub(super) log: RecordLog,
    pub(super) recovered: Recovered,
    pub(super) feeds: FeedSet,
    pub(super) ring: Arc<LogRing>,
    pub(super) stats: Stats,
    pub(super) numbers: Numbers,
}

impl CollectorState {
    /// Goes on where the log ends: cuts of an earlier run wait for the courier, records in no batch get one.
    pub(super) fn new(parts: Parts) -> Result<Self, LogError> {
        let Parts { config, job, spool, tidy, mut log, recovered, feeds, ring, stats, numbers } = parts;
        let now = Instant::now();
        let mut batcher = Batcher::new(job.clone(), log.log_id(), config.limits);
        let mut outbox = Outbox::new(job, &recovered);
        if let Some(range) = recovered.uncut {
            let mut full = Vec::new();
            for entry in log.read(range)? {
                let (seq, entry) = entry?;
                batcher.add(seq, &entry, now, &mut full);
                full.drain(..).for_each(|cut| outbox.push(cut, Origin::Earlier));
            }
            // Records of two runs never share a batch: the counts of this run stay its own.
            batcher.close().into_iter().for_each(|cut| outbox.push(cut, Origin::Earlier));
        }
        Ok(Self {
            written: Written::new(config.remembered),
            hold: Hold::new(config.spool_max_bytes, config.disk_wait),
            config,
            spool,
            tidy,
            log: Some(log),
            batcher,
            outbox,
            feeds,
            ring,
            stats,
            numbers,
            waiting: VecDeque::new(),
            logs: VecDeque::new(),
            kept: Vec::new(),
            slots: Vec::new(),
            facts: Vec::new(),
            ends: recovered.ends.into_iter().map(|(seq, end)| (end.request, seq)).collect(),
            phase: Phase::Open,
            asked_again: false,
            items: 0,
            last_sync: None,
            sync_fails: false,
            next_ring: now,
            deletable: true,
            full: Vec::new(),
            texts: String::new(),
            watched: Watched::default(),
            #[cfg(test)]
            fault: None,
        })
    }

    /// Takes an order; it is written at the end of the turn.
    pub(super) fn gather(&mut self, group: Arc<Group>, slot: Slot) {
        self.waiting.push_back((group, slot));
    }

    /// The frontier has persisted these ends.
    pub(crate) fn settle(&mut self, requests: &[RequestId]) {
        let Some(log) = &mut self.log else { return };
        for request in requests {
            if let Some(seq) = self.ends.remove(&request.0) {
                log.mark_settled(seq);
                self.deletable = true;
            }
        }
    }

    /// The courier is through with a batch or a part of one, or with all.
    pub(super) fn hear(&mut self, report: Report) {
        match report {
            Report::Part(part) => self.outbox.part(part),
            Report::Settled(settled) => {
                self.outbox.settled(settled);
                self.deletable = true;
            }
            // At the close the job stops as it is.
            Report::Refused(why) if matches!(self.phase, Phase::Open) => self.facts.push(Fact::DeliveryStopped(why)),
            Report::Refused(_) => {}
        }
    }

    /// Begins the end.
    pub(super) fn close(&mut self, stats: Map<String, Value>, now: Instant) {
        match self.phase {
            Phase::Open => self.phase = Phase::Closing(Close::new(stats, now + self.config.close_within)),
            Phase::Closing(_) => {}
            Phase::Closed(_) => self.asked_again = true,
        }
    }

    /// Writes and offers what can be written and offered now. Tells when to look again although nothing comes in.
    /// `queued` orders wait behind this turn.
    pub(super) fn turn(&mut self, now: Instant, queued: usize, courier: &Link<Order>) -> Option<Instant> {
        if self.log.is_none() {
            // Too late for anything; the orders keep their tickets open, which the engine counts.
            self.waiting.clear();
            if std::mem::take(&mut self.asked_again)
                && let Phase::Closed(closed) = &self.phase
            {
                self.facts.push(Fact::Closed(closed.clone()));
            }
            return None;
        }
        self.step_for_test(0);
        if self.hold.may_write(now) {
            match self.write(now, queued) {
                Ok(()) => self.hold.wrote(),
                Err(error) => self.hold.refused(now, &error),
            }
        }
        self.offer(now, courier);
        self.judge(now);
        self.finish_if_done(now);
        self.due()
    }

    fn write(&mut self, now: Instant, queued: usize) -> Result<(), LogError> {
        let unix_seconds = (self.config.clock)();
        let Some(log) = &mut self.log else { return Ok(()) };
        if self.hold.is_held() {
            // What a failed write left in the log's memory comes first; a segment that goes may make room for it.
            let _ = log.delete_delivered();
            log.flush_writes()?;
        }
        let appended = self.append_groups(now, unix_seconds).and_then(|()| self.append_logs(now));
        self.step_for_test(1);
        self.feeds.write();
        self.step_for_test(2);
        appended?;
        self.append_stats(now, queued)?;
        let Some(log) = &mut self.log else { return Ok(()) };
        self.full.extend(self.batcher.tick(now));
        self.full.drain(..).for_each(|cut| self.outbox.push(cut, Origin::Present));
        self.outbox.journal(log)?;
        self.step_for_test(3);
        if let Some(log) = &mut self.log {
            log.flush_writes()?;
        }
        self.step_for_test(4);
        self.watched.tell();
        if !self.kept.is_empty() {
            self.stats.max("collector/kept_turn_max", i64::try_from(self.kept.len()).unwrap_or(i64::MAX));
            self.facts.push(Fact::Kept(std::mem::take(&mut self.kept)));
        }
        self.slots.clear();
        self.sync(now);
        self.step_for_test(5);
        Ok(())
    }

    /// Syncs when it is time. A failure is told and counted: the records still survive the process.
    fn sync(&mut self, now: Instant) {
        let Some(log) = &mut self.log else { return };
        if !log.needs_sync() && !self.outbox.wants_sync() {
            return;
        }
        let closing = self.phase.is_closing() && self.outbox.wants_sync();
        if !closing && self.last_sync.is_some_and(|last| now < last + self.config.sync_every) {
            return;
        }
        self.last_sync = Some(now);
        let synced = log.sync();
        let failed_before = std::mem::replace(&mut self.sync_fails, synced.is_err());
        if let Err(error) = synced {
            self.stats.inc("collector/sync_errors");
            if !failed_before {
                tracing::warn!(%error, "the record log cannot be synced: a power cut could lose records, a kill could not");
            }
        }
        self.outbox.synced();
        if std::mem::take(&mut self.deletable)
            && let Err(error) = log.delete_delivered()
        {
            tracing::warn!(%error, "a delivered segment cannot be removed: it is tried again");
            self.deletable = true;
        }
    }

    fn offer(&mut self, now: Instant, courier: &Link<Order>) {
        let Some(log) = &mut self.log else { return };
        let spool_full = self.hold.is_full(log.held_bytes());
        if spool_full && self.outbox.is_idle() && self.outbox.stuck().is_none() {
            // The batch that would make room is still filling.
            self.full.extend(self.batcher.close());
            self.full.drain(..).for_each(|cut| self.outbox.push(cut, Origin::Present));
        }
        if let Err(error) = self.outbox.offer(log, courier) {
            self.hold.refused(now, &error);
        }
        self.step_for_test(6);
    }

    /// Tells the engine whether keeping goes on.
    fn judge(&mut self, now: Instant) {
        // At the close everything is taken: the links bound it.
        let log = self.log.as_ref().filter(|_| !self.phase.is_closing());
        let undelivered = log.map_or(0, RecordLog::held_bytes);
        match self.hold.judge(now, undelivered, self.outbox.stuck()) {
            Trouble::None => {}
            Trouble::Blocked(why) => {
                self.stats.inc("collector/blocked_count");
                tracing::warn!(why, "the collector keeps nothing for now");
                self.facts.push(Fact::Blocked { why });
            }
            Trouble::Unblocked => self.facts.push(Fact::Unblocked),
            Trouble::GaveUp(why) => self.facts.push(Fact::GaveUp(why)),
        }
    }

    fn due(&self) -> Option<Instant> {
        let log = self.log.as_ref()?;
        let synced = log.needs_sync() || self.outbox.wants_sync();
        let sync = synced.then(|| self.last_sync.map(|last| last + self.config.sync_every)).flatten();
        let held = self.hold.due();
        // While the disk refuses, only its next try matters.
        let usual =
            if self.hold.is_held() { None } else { [sync, self.batcher.due(), Some(self.next_ring)].into_iter().flatten().min() };
        [usual, held, self.phase.due()].into_iter().flatten().min()
    }

    #[cfg(test)]
    fn step_for_test(&mut self, step: usize) {
        const STEPS: [Step; 7] =
            [Step::Begin, Step::Appended, Step::Fed, Step::Journaled, Step::Flushed, Step::Synced, Step::Offered];
        if let (Some(fault), Some(step)) = (&mut self.fault, STEPS.get(step)) {
            fault(*step);
        }
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "where the tests end an incarnation")]
    const fn step_for_test(&mut self, _step: usize) {}
}

impl fmt::Debug for CollectorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorState")
            .field("spool", &self.spool)
            .field("waiting", &self.waiting.len())
            .field("items", &self.items)
            .field("hold", &self.hold)
            .field("outbox", &self.outbox)
            .finish_non_exhaustive()
    }
}
