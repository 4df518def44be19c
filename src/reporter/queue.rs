//! Queue: the reports the control plane has not taken yet, and which of them the next call brings there.
//!
//! Several calls may be out, of different leases: a report stays behind while a call has an earlier one of its lease.
//! Across leases no order is promised (wire contract, 24). A call that fails gives its reports their places back; then
//! one call at a time finds out whether the plane takes any. What becomes of a call that was begun before a failure
//! says nothing about the plane since then. Never drops a report, knows neither plane nor clock.
//! `S` goes with each report until it is settled; for the actor it is the place in its link's bound, so that the link
//! is full when the queue is.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::plane::{LeaseId, Rejected, Report};

/// Calls out at once at most. A report that ends a lease waits for no more than about a third of the call before it,
/// instead of all of it, and one slow answer leaves two. More would save less time each than they cost.
pub const CALLS: usize = 3;

/// When a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most reports in a call, and as many as are worth one at once; at least 1.
    pub batch: usize,
    /// How long the oldest report waits for others.
    pub flush: Duration,
}

/// Whether a call is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Now.
    Now,
    /// Then, if nothing happens before.
    At(Instant),
    /// Not until something happens.
    No,
}

/// Names a call that is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId(u64);

/// Reports waiting and under way. Never drops one.
#[derive(Debug)]
pub struct Queue<S> {
    /// May go, oldest first.
    waiting: VecDeque<Entry<S>>,
    /// Those of them that end a lease: they free an identity, so they are worth a call at once.
    releasing: usize,
    /// Wait for a call that has an earlier report of their lease.
    behind: VecDeque<Entry<S>>,
    calls: Vec<Out<S>>,
    /// Leases with a report under way that does not end them. One that does is the last of its lease.
    open: HashSet<LeaseId>,
    pushed: u64,
    called: u64,
    haste: Haste,
    failures: u32,
    /// Counts failures of the plane; calls that were out together fail as one.
    round: u64,
    retry_at: Option<Instant>,
}

/// What the reports that are queued do not wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// They wait for others, and for the back-off.
    None,
    /// They do not wait for others, as if each ended a lease.
    Flush,
    /// They wait for nothing.
    HandOver,
}

#[derive(Debug)]
struct Entry<S> {
    report: Report,
    /// Its number in the order of all.
    place: u64,
    since: Instant,
    _slot: S,
}

/// A call that is out, its reports oldest first.
#[derive(Debug)]
struct Out<S> {
    id: CallId,
    round: u64,
    entries: Vec<Entry<S>>,
}

/// What became of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Reports taken.
    pub handed: u64,
    /// How many of them end a lease.
    pub ends: u64,
    /// Reports that never will be, each with the lease it was to end.
    pub rejected: Vec<(Rejected, Option<LeaseId>)>,
}

impl<S> Queue<S> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            releasing: 0,
            behind: VecDeque::new(),
            calls: Vec::new(),
            open: HashSet::new(),
            pushed: 0,
            called: 0,
            haste: Haste::None,
            failures: 0,
            round: 0,
            retry_at: None,
        }
    }

    /// Adds a report.
    pub fn push(&mut self, report: Report, slot: S, now: Instant) {
        self.pushed += 1;
        let entry = Entry { report, place: self.pushed, since: now, _slot: slot };
        if self.open.contains(&entry.report.lease) {
            self.behind.push_back(entry);
        } else {
            self.releasing += usize::from(entry.report.release);
            self.waiting.push_back(entry);
        }
    }

    /// Has everything that is queued sent with this haste, or with the greater one it has already.
    pub fn hurry(&mut self, haste: Haste) {
        self.haste = self.haste.max(haste);
        self.rest();
    }

    /// Reports waiting and under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() + self.behind.len() + self.under_way()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// So many reports are settled, of all that ever came and from the first on, without a gap.
    #[must_use]
    pub fn through(&self) -> u64 {
        // Each of `behind` has an older one in a call.
        let calls = self.calls.iter().filter_map(|call| call.entries.first());
        let oldest = calls.chain(self.waiting.front()).map(|entry| entry.place).min();
        oldest.map_or(self.pushed, |place| place.saturating_sub(1))
    }

    /// Whether a call is to be made at `now`.
    #[must_use]
    pub fn due(&self, limits: Limits, now: Instant) -> Due {
        let Some(oldest) = self.waiting.front().filter(|_| self.calls.len() < CALLS) else { return Due::No };
        if self.haste == Haste::HandOver || (self.retry_at.is_none() && self.is_worth_a_call(limits)) {
            return Due::Now;
        }
        let at = match self.retry_at {
            // That one finds out whether the plane takes any.
            Some(_) if self.calls.iter().any(|call| call.round == self.round) => return Due::No,
            Some(retry_at) => retry_at,
            None => oldest.since.checked_add(limits.flush).unwrap_or(now),
        };
        if at <= now { Due::Now } else { Due::At(at) }
    }

    /// The reports of the next call, if any may go; it must be ended by [`Queue::taken`], [`Queue::refused`] or
    /// [`Queue::failed`].
    pub fn call(&mut self, limits: Limits) -> Option<(CallId, Vec<Report>)> {
        if self.waiting.is_empty() || self.calls.len() >= CALLS {
            return None;
        }
        let some = limits.batch.max(1).min(self.waiting.len());
        let entries: Vec<_> = self.waiting.drain(..some).collect();
        let reports = entries.iter().map(|entry| entry.report.clone()).collect();
        let ends = entries.iter().filter(|entry| entry.report.release).count();
        self.releasing -= ends;
        if ends < entries.len() {
            self.open.extend(entries.iter().filter(|entry| !entry.report.release).map(|entry| entry.report.lease.clone()));
            let (behind, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|entry| self.is_behind(entry));
            self.waiting = waiting;
            self.releasing = self.waiting.iter().filter(|entry| entry.report.release).count();
            self.behind.extend(behind);
        }
        self.rest();
        self.called += 1;
        let id = CallId(self.called);
        self.calls.push(Out { id, round: self.round, entries });
        Some((id, reports))
    }

    /// Ends a call the plane answered. Answers about other reports than those sent are ignored.
    pub fn taken(&mut self, call: CallId, mut rejected: Vec<Rejected>) -> Settled {
        rejected.sort_by_key(|no| no.id);
        rejected.dedup_by_key(|no| no.id);
        let mut settled = Settled::default();
        for Entry { report, .. } in self.answered(call) {
            // Ids rise by one within a job, but nothing here relies on their order.
            if let Some(place) = rejected.iter().position(|no| no.id == report.id) {
                settled.rejected.push((rejected.swap_remove(place), report.release.then_some(report.lease)));
            } else {
                settled.handed += 1;
                settled.ends += u64::from(report.release);
            }
        }
        settled
    }

    /// Ends a call the plane will never take any report of.
    pub fn refused(&mut self, call: CallId, reason: &str) -> Settled {
        let reject = |Entry { report, .. }: Entry<S>| {
            let rejected = Rejected { id: report.id, is_unknown_lease: false, reason: reason.to_owned() };
            (rejected, report.release.then_some(report.lease))
        };
        Settled { rejected: self.answered(call).into_iter().map(reject).collect(), ..Settled::default() }
    }

    /// Ends a call that failed: its reports go back to their places. Answers the number of failures in a row, for
    /// which [`Queue::hold_until`] must follow; `None` for a call that was begun before the last of them.
    pub fn failed(&mut self, call: CallId) -> Option<u32> {
        let Out { round, entries, .. } = self.end(call)?;
        self.put_back(entries);
        self.haste = Haste::None;
        if round != self.round {
            return None;
        }
        self.round += 1;
        self.failures = self.failures.saturating_add(1);
        Some(self.failures)
    }

    /// Makes no call before `at`, but in the greatest haste.
    pub fn hold_until(&mut self, at: Instant) {
        self.retry_at = Some(at);
    }

    fn under_way(&self) -> usize {
        self.calls.iter().map(|call| call.entries.len()).sum()
    }

    /// Whether the waiting reports go without a reason in time. Beside calls that are out they must have become a fair
    /// share first: else all calls would go one after the other, and what comes then would wait for all of them.
    fn is_worth_a_call(&self, limits: Limits) -> bool {
        let presses = self.releasing > 0 || self.haste == Haste::Flush;
        let is_share = self.waiting.len().saturating_mul(CALLS) >= self.under_way();
        (presses && is_share) || self.waiting.len() >= limits.batch
    }

    fn is_behind(&self, entry: &Entry<S>) -> bool {
        self.open.contains(&entry.report.lease)
    }

    /// There is no haste about nothing.
    fn rest(&mut self) {
        if self.waiting.is_empty() && self.behind.is_empty() {
            self.haste = Haste::None;
        }
    }

    fn answered(&mut self, call: CallId) -> Vec<Entry<S>> {
        let Some(Out { round, entries, .. }) = self.end(call) else { return Vec::new() };
        if round == self.round {
            self.failures = 0;
            self.retry_at = None;
        }
        entries
    }

    /// The call is no longer out, and those behind its reports may go.
    fn end(&mut self, call: CallId) -> Option<Out<S>> {
        let at = self.calls.iter().position(|out| out.id == call)?;
        let out = self.calls.swap_remove(at);
        for entry in out.entries.iter().filter(|entry| !entry.report.release) {
            self.open.remove(&entry.report.lease);
        }
        if !self.behind.is_empty() {
            let (behind, free): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut self.behind).into_iter().partition(|entry| self.is_behind(entry));
            self.behind = behind;
            self.put_back(free);
        }
        Some(out)
    }

    /// To their places among those that may go.
    fn put_back(&mut self, entries: impl IntoIterator<Item = Entry<S>>) {
        for entry in entries {
            self.releasing += usize::from(entry.report.release);
            self.waiting.push_back(entry);
        }
        self.waiting.make_contiguous().sort_by_key(|entry| entry.place);
    }
}

impl<S> Default for Queue<S> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
