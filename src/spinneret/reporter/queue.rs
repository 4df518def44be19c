//! The decisions of a reporter: what waits, when a batch is due, what becomes of it, who is dropped.
//!
//! No I/O, no clock, no lock and no log: times are passed in, and what is to be done outside is left in [`Effects`].

use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use super::effects::{Effects, NOTICE_INTERVAL, Notice};
use super::lanes::{Class, Entry, Lanes, Mark};
use super::options::{ReporterOptions, ReporterStats};
use super::verdict::Verdict;
use super::weight;
use crate::dice::Dice;
use crate::later::later;
use crate::spinneret::backoff::Backoff;
use crate::spinneret::messages::{Report, ReportRequest, ReportResponse};

/// The longest hint of the server that is followed (wire contract, section 12).
const LONGEST_HINT: Duration = Duration::from_secs(30);
/// How long the server knows a report again (wire contract, section 24).
const DEDUP_WINDOW: Duration = Duration::from_secs(60 * 60);

/// The reports of a reporter and everything known about them.
#[derive(Debug)]
pub(super) struct Queue {
    limits: ReporterOptions,
    lanes: Lanes,
    next_place: u64,
    busy: Option<Busy>,
    backoff: Backoff,
    failures: u32,
    not_before: Option<Instant>,
    flushes: usize,
    closing: Option<Instant>,
    is_left: bool,
    is_watched: bool,
    unsaid: u64,
    total_lost: u64,
    said_at: Option<Instant>,
    stats: ReporterStats,
    effects: Effects,
}

/// The batch the worker has.
#[derive(Debug, Clone, Copy)]
struct Busy {
    first_place: u64,
    in_flight: usize,
}

/// Reports taken out to be sent.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) request: ReportRequest,
    marks: Vec<Mark>,
    sent_at: Instant,
}

/// What the worker does next.
#[derive(Debug)]
pub(super) enum Step {
    Send(Batch),
    /// Until this time, or until it is woken.
    Wait(Option<Instant>),
    /// The reporter is closed and nothing is left.
    End,
}

impl Queue {
    /// A queue with these limits, which are valid.
    pub(super) fn new(limits: ReporterOptions, dice: Dice) -> Self {
        Self {
            backoff: Backoff::new(limits.backoff_initial, limits.backoff_max, dice),
            limits,
            lanes: Lanes::default(),
            next_place: 0,
            busy: None,
            failures: 0,
            not_before: None,
            flushes: 0,
            closing: None,
            is_left: false,
            is_watched: false,
            unsaid: 0,
            total_lost: 0,
            said_at: None,
            stats: ReporterStats::default(),
            effects: Effects::default(),
        }
    }

    /// Adds a report, and drops the ones there is no room for.
    pub(super) fn push(&mut self, report: Report, class: Class, now: Instant) {
        let class = if class == Class::Ordinary && report.release { Class::Kept } else { class };
        let mark = Mark { place: self.next_place, class, queued_at: now, doubtful_since: None };
        self.next_place += 1;
        self.stats.submitted += 1;
        let was_empty = self.lanes.is_empty();
        self.lanes.push(Entry { report, mark });
        self.trim(now);
        if self.is_watched && (was_empty || self.is_due_at_once()) {
            self.wake_worker();
        }
    }

    /// Whether a report finds room that is then kept for it: what is in flight may come back and needs its place.
    pub(super) fn has_room(&self) -> bool {
        self.lanes.len() + self.in_flight() < self.limits.max_queue_size
    }

    /// What the worker does now. It has no batch.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        self.is_watched = false;
        loop {
            self.expire(now);
            if self.is_left || (self.closing.is_some() && self.lanes.is_empty()) {
                return Step::End;
            }
            if let Some(until) = self.not_before.filter(|until| now < *until) {
                return Step::Wait(Some(self.closing.map_or(until, |deadline| until.min(deadline))));
            }
            let due_at = self.due_at();
            if due_at.is_none_or(|due_at| now < due_at) {
                self.is_watched = true;
                return Step::Wait(due_at);
            }
            if let Some(batch) = self.take(now) {
                return Step::Send(batch);
            }
        }
    }

    /// The batch arrived. Until [`Self::told`] it counts as unsettled when there are rejected reports.
    pub(super) fn delivered(&mut self, batch: &Batch, answer: &ReportResponse) {
        let count = |count: i32| u64::try_from(count).unwrap_or(0);
        self.stats.sent += count_of(batch.marks.len());
        self.stats.accepted += count(answer.accepted);
        self.stats.duplicated += count(answer.duplicated);
        self.stats.rejected += count_of(answer.rejected.len());
        self.forget_failures();
        if let Some(busy) = &mut self.busy {
            busy.in_flight = 0;
        }
        // The server ends no lease with a report it does not take; one it does not know is ended already.
        for rejected in answer.rejected.iter().filter(|rejected| rejected.reason != "lease_unknown") {
            let report = batch.request.reports.iter().find(|report| report.report_id == rejected.report_id);
            self.effects.releases.extend(report.filter(|report| report.release).map(|report| report.lease_id.clone()));
        }
        if answer.rejected.is_empty() {
            self.told();
        }
    }

    /// Everybody knows what became of the batch.
    pub(super) fn told(&mut self) {
        self.busy = None;
        self.effects.is_progress = true;
    }

    /// The call failed. Answers how long the queue rests, if the batch is sent again.
    pub(super) fn failed(&mut self, batch: Batch, verdict: Verdict, now: Instant) -> Option<Duration> {
        self.stats.failed_sends += 1;
        match verdict {
            Verdict::Again { hint, is_doubtful } => {
                let hinted = hint.unwrap_or_default().min(LONGEST_HINT);
                let wait = self.backoff.wait(self.failures).max(hinted);
                self.failures = self.failures.saturating_add(1);
                self.not_before = Some(later(now, wait));
                self.put_back(batch, is_doubtful, now);
                Some(wait)
            }
            Verdict::GiveUp { can_release } => {
                self.forget_failures();
                for report in batch.request.reports {
                    self.stats.dropped += 1;
                    if can_release && report.release {
                        self.effects.releases.push(report.lease_id);
                    }
                }
                self.told();
                None
            }
        }
    }

    /// Puts a batch back to its old place, where it is the oldest.
    pub(super) fn put_back(&mut self, batch: Batch, is_doubtful: bool, now: Instant) {
        let doubt = is_doubtful.then_some(batch.sent_at);
        let entries = batch.request.reports.into_iter().zip(batch.marks).map(|(report, mark)| {
            let doubtful_since = mark.doubtful_since.or(doubt);
            Entry { report, mark: Mark { doubtful_since, ..mark } }
        });
        self.lanes.put_back(entries);
        self.trim(now);
        self.told();
    }

    /// Somebody waits until everything that is here now is settled. Answers the mark to ask [`Self::is_settled`] with.
    pub(super) fn begin_flush(&mut self) -> u64 {
        self.flushes += 1;
        if self.is_watched && !self.lanes.is_empty() {
            self.wake_worker();
        }
        self.next_place
    }

    pub(super) const fn end_flush(&mut self) {
        self.flushes = self.flushes.saturating_sub(1);
    }

    /// Whether every report is settled that was submitted before this mark.
    pub(super) fn is_settled(&self, before: u64) -> bool {
        let waiting = self.lanes.oldest().map(|entry| entry.mark.place);
        let sending = self.busy.map(|busy| busy.first_place);
        waiting.into_iter().chain(sending).all(|place| place >= before)
    }

    /// Whether nothing waits and nothing is in flight.
    pub(super) fn is_clear(&self) -> bool {
        self.lanes.is_empty() && self.in_flight() == 0
    }

    /// Takes no more reports, and sends what waits for so long at most. Of several limits the nearest counts.
    pub(super) fn begin_close(&mut self, limit: Duration, now: Instant) {
        if self.is_left {
            return;
        }
        let deadline = later(now, limit);
        if self.closing.is_none() {
            self.not_before = None;
            if self.unsaid > 0 {
                self.say_lost();
            }
        }
        self.closing = Some(self.closing.map_or(deadline, |earlier| earlier.min(deadline)));
        self.expire(now);
        self.wake_worker();
        self.effects.is_progress = true;
    }

    /// Drops what waits if the time to close is over.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.is_left || self.closing.is_none_or(|deadline| now < deadline) || self.lanes.is_empty() {
            return;
        }
        let mut dropped = 0;
        while let Some(entry) = self.lanes.pop() {
            dropped += 1;
            self.drop_report(entry.report);
        }
        self.effects.notices.push(Notice::NoTimeLeft { dropped });
        self.effects.is_progress = true;
    }

    /// Closing is over, whatever still comes back from a call that was broken off.
    pub(super) const fn leave(&mut self) {
        self.is_left = true;
        self.effects.is_progress = true;
    }

    /// Whether the last call failed.
    pub(super) const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    pub(super) const fn is_left(&self) -> bool {
        self.is_left
    }

    /// When closing ends at the latest; none while reports are taken.
    pub(super) const fn closing(&self) -> Option<Instant> {
        self.closing
    }

    /// Whether closing is over because nothing is left.
    pub(super) fn is_ended(&self) -> bool {
        self.closing.is_some() && self.lanes.is_empty() && self.busy.is_none()
    }

    /// Whether a worker has anything to do.
    pub(super) fn has_work(&self) -> bool {
        !self.lanes.is_empty() && !self.is_left
    }

    pub(super) fn stats(&self) -> ReporterStats {
        ReporterStats { queued: count_of(self.lanes.len()), in_flight: count_of(self.in_flight()), ..self.stats }
    }

    /// What is to be done outside.
    pub(super) fn take_effects(&mut self) -> Effects {
        mem::take(&mut self.effects)
    }

    fn in_flight(&self) -> usize {
        self.busy.map_or(0, |busy| busy.in_flight)
    }

    /// A batch that failed was due and still is when the queue has rested.
    fn is_due_at_once(&self) -> bool {
        self.closing.is_some()
            || self.flushes > 0
            || self.failures > 0
            || self.lanes.has_releasing()
            || self.lanes.len() >= self.limits.batch_size
    }

    fn due_at(&self) -> Option<Instant> {
        let oldest = self.lanes.oldest()?.mark.queued_at;
        Some(if self.is_due_at_once() { oldest } else { later(oldest, self.limits.flush_interval) })
    }

    /// The oldest reports, as many as a call may have. None when all of them were too old.
    fn take(&mut self, now: Instant) -> Option<Batch> {
        let most = self.lanes.len().min(self.limits.max_batch_size);
        let mut reports = Vec::with_capacity(most);
        let mut marks: Vec<Mark> = Vec::with_capacity(most);
        let (mut weight, mut too_old) = (0, 0);
        while let Some(entry) = self.lanes.oldest().filter(|_| reports.len() < most) {
            let is_too_old = entry.mark.doubtful_since.is_some_and(|since| now >= later(since, DEDUP_WINDOW));
            weight += if is_too_old { 0 } else { weight::of(&entry.report) };
            if weight > weight::MOST && !reports.is_empty() {
                break;
            }
            let Some(entry) = self.lanes.pop() else { break };
            if is_too_old {
                too_old += 1;
                self.drop_report(entry.report);
            } else {
                reports.push(entry.report);
                marks.push(entry.mark);
            }
        }
        if too_old > 0 {
            self.effects.notices.push(Notice::InDoubtTooLong { dropped: too_old });
            self.effects.is_progress = true;
        }
        let first_place = marks.first()?.place;
        self.busy = Some(Busy { first_place, in_flight: reports.len() });
        Some(Batch { request: ReportRequest { reports }, marks, sent_at: now })
    }

    fn trim(&mut self, now: Instant) {
        while self.lanes.len() > self.limits.max_queue_size {
            let Some(entry) = self.lanes.pop_droppable() else { break };
            self.drop_report(entry.report);
            self.unsaid += 1;
            self.total_lost += 1;
        }
        if self.unsaid > 0 && self.said_at.is_none_or(|said_at| now >= later(said_at, NOTICE_INTERVAL)) {
            self.say_lost();
            self.said_at = Some(now);
        }
    }

    fn say_lost(&mut self) {
        self.effects.notices.push(Notice::NoRoom { dropped: mem::take(&mut self.unsaid), total: self.total_lost });
    }

    fn drop_report(&mut self, report: Report) {
        self.stats.dropped += 1;
        if report.release {
            self.effects.releases.push(report.lease_id);
        }
    }

    const fn forget_failures(&mut self) {
        self.failures = 0;
        self.not_before = None;
    }

    const fn wake_worker(&mut self) {
        self.is_watched = false;
        self.effects.wakes_worker = true;
    }
}

fn count_of(reports: usize) -> u64 {
    u64::try_from(reports).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
