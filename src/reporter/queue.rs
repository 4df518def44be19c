//! Queue: the reports the control plane has not taken yet, in order.
//!
//! Pure: knows neither plane nor clock. `S` goes with each report until it is settled; for the actor it is
//! the place in its link's bound, so that the link is full when the queue is.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::plane::{LeaseId, Rejected, Report};

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

/// Reports waiting and under way. Never drops one.
#[derive(Debug)]
pub struct Queue<S> {
    waiting: VecDeque<Entry<S>>,
    /// In the call being made, oldest first; at most one call is.
    flying: VecDeque<Entry<S>>,
    /// Waiting reports that end a lease: they free an identity, so they are worth a call at once.
    releasing: usize,
    haste: Haste,
    failures: u32,
    retry_at: Option<Instant>,
}

/// What the reports that are queued do not wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Haste {
    /// They wait for others, and for the back-off.
    None,
    /// They do not wait for others.
    Flush,
    /// They wait for nothing.
    HandOver,
}

#[derive(Debug)]
struct Entry<S> {
    report: Report,
    since: Instant,
    _slot: S,
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
    pub const fn new() -> Self {
        Self { waiting: VecDeque::new(), flying: VecDeque::new(), releasing: 0, haste: Haste::None, failures: 0, retry_at: None }
    }

    /// Adds a report.
    pub fn push(&mut self, report: Report, slot: S, now: Instant) {
        self.releasing += usize::from(report.release);
        self.waiting.push_back(Entry { report, since: now, _slot: slot });
    }

    /// Has everything that is queued sent with this haste, or with the greater one it has already.
    pub fn hurry(&mut self, haste: Haste) {
        self.haste = if self.waiting.is_empty() { Haste::None } else { self.haste.max(haste) };
    }

    /// Reports waiting and under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() + self.flying.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a call is to be made at `now`.
    #[must_use]
    pub fn due(&self, limits: Limits, now: Instant) -> Due {
        let Some(oldest) = self.waiting.front().filter(|_| self.flying.is_empty()) else { return Due::No };
        if self.haste == Haste::HandOver {
            return Due::Now;
        }
        let at = match self.retry_at {
            Some(retry_at) => retry_at,
            None if self.haste == Haste::Flush || self.releasing > 0 || self.waiting.len() >= limits.batch => return Due::Now,
            None => oldest.since.checked_add(limits.flush).unwrap_or(now),
        };
        if at <= now { Due::Now } else { Due::At(at) }
    }

    /// The reports of the next call; it must be ended by [`Queue::taken`], [`Queue::refused`] or
    /// [`Queue::failed`] before the next.
    pub fn call(&mut self, limits: Limits) -> Vec<Report> {
        if self.flying.is_empty() {
            let some = limits.batch.max(1).min(self.waiting.len());
            self.flying = self.waiting.drain(..some).collect();
            self.releasing -= self.flying.iter().filter(|entry| entry.report.release).count();
            if self.waiting.is_empty() {
                self.haste = Haste::None;
            }
        }
        self.flying.iter().map(|entry| entry.report.clone()).collect()
    }

    /// Ends a call the plane answered. Answers about other reports than those sent are ignored.
    pub fn taken(&mut self, mut rejected: Vec<Rejected>) -> Settled {
        self.answered();
        rejected.sort_by_key(|no| no.id);
        rejected.dedup_by_key(|no| no.id);
        let mut settled = Settled::default();
        for Entry { report, .. } in std::mem::take(&mut self.flying) {
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
    pub fn refused(&mut self, reason: &str) -> Settled {
        self.answered();
        let reject = |Entry { report, .. }: Entry<S>| {
            let rejected = Rejected { id: report.id, is_unknown_lease: false, reason: reason.to_owned() };
            (rejected, report.release.then_some(report.lease))
        };
        Settled { rejected: std::mem::take(&mut self.flying).into_iter().map(reject).collect(), ..Settled::default() }
    }

    /// Ends a call that failed: its reports go back to their place, first in line; answers the number of
    /// failures in a row. [`Queue::hold_until`] must follow.
    pub fn failed(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.haste = Haste::None;
        self.releasing += self.flying.iter().filter(|entry| entry.report.release).count();
        while let Some(entry) = self.flying.pop_back() {
            self.waiting.push_front(entry);
        }
        self.failures
    }

    /// Makes no call before `at`, but in the greatest haste.
    pub fn hold_until(&mut self, at: Instant) {
        self.retry_at = Some(at);
    }

    fn answered(&mut self) {
        self.failures = 0;
        self.retry_at = None;
    }
}

impl<S> Default for Queue<S> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::reporter::tests::report;

    const LIMITS: Limits = Limits { batch: 3, flush: Duration::from_millis(200) };

    fn ids(reports: &[Report]) -> Vec<u64> {
        reports.iter().map(|report| report.id).collect()
    }

    fn no(id: u64) -> Rejected {
        Rejected { id, is_unknown_lease: false, reason: "no".to_owned() }
    }

    #[test]
    fn a_call_is_due_by_size_by_age_or_by_a_release() {
        let start = Instant::now();
        let mut queue = Queue::new();
        assert_eq!(queue.due(LIMITS, start), Due::No);
        queue.push(report(1, false), (), start);
        queue.push(report(2, false), (), start + Duration::from_millis(150));
        assert_eq!(queue.due(LIMITS, start), Due::At(start + LIMITS.flush));
        assert_eq!(queue.due(LIMITS, start + LIMITS.flush), Due::Now);
        queue.push(report(3, false), (), start);
        assert_eq!(queue.due(LIMITS, start), Due::Now, "a full batch");
        assert_eq!(ids(&queue.call(LIMITS)), [1, 2, 3]);
        assert_eq!(queue.due(LIMITS, start), Due::No);
        queue.push(report(4, true), (), start);
        assert_eq!(queue.due(LIMITS, start), Due::No, "one call at a time");
        let end = queue.taken(vec![no(2), no(2), no(9)]);
        assert_eq!((end.handed, end.rejected), (2, vec![(no(2), None)]));
        assert_eq!(queue.due(LIMITS, start), Due::Now, "a releasing report");
    }

    #[test]
    fn a_failed_call_goes_back_to_its_place_and_waits() {
        let start = Instant::now();
        let mut queue = Queue::new();
        for id in 1..=5 {
            queue.push(report(id, id == 2), (), start);
        }
        assert_eq!(ids(&queue.call(LIMITS)), [1, 2, 3]);
        assert_eq!(queue.failed(), 1);
        let later = start + Duration::from_secs(1);
        queue.hold_until(later);
        assert_eq!(queue.due(LIMITS, start), Due::At(later));
        queue.hurry(Haste::Flush);
        assert_eq!(queue.due(LIMITS, start), Due::At(later), "a plane that failed is not asked in a loop");
        queue.hurry(Haste::HandOver);
        queue.hurry(Haste::Flush);
        assert_eq!(queue.due(LIMITS, start), Due::Now, "the last reports do not wait");
        assert_eq!(ids(&queue.call(LIMITS)), [1, 2, 3]);
        assert_eq!(queue.failed(), 2);
        queue.hold_until(later);
        assert_eq!(queue.due(LIMITS, start), Due::At(later), "one haste is one try");
        assert_eq!(ids(&queue.call(LIMITS)), [1, 2, 3]);
        assert_eq!(queue.taken(Vec::new()).handed, 3);
        queue.hurry(Haste::Flush);
        assert_eq!(queue.due(LIMITS, start), Due::Now, "without a failure a flush does not wait");
        assert_eq!(ids(&queue.call(LIMITS)), [4, 5]);
        let end = queue.refused("over");
        assert_eq!(end.handed, 0);
        assert_eq!(
            end.rejected.iter().map(|(no, _)| (no.id, no.reason.as_str())).collect::<Vec<_>>(),
            [(4, "over"), (5, "over")]
        );
        assert!(queue.is_empty());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(bool),
        Call,
        Taken(Vec<u64>),
        Refused,
        Failed,
        Hurry(Haste),
    }

    proptest! {
        #[test]
        fn every_report_is_settled_once_in_order_and_keeps_its_slot_until_then(
            steps in proptest::collection::vec(prop_oneof![
                5 => any::<bool>().prop_map(Step::Push),
                4 => Just(Step::Call),
                3 => proptest::collection::vec(0u64..60, 0..4).prop_map(Step::Taken),
                1 => Just(Step::Refused),
                2 => Just(Step::Failed),
                1 => prop_oneof![Just(Haste::Flush), Just(Haste::HandOver)].prop_map(Step::Hurry),
            ], 1..120)
        ) {
            let now = Instant::now();
            let slot = Rc::new(());
            let mut queue = Queue::new();
            let (mut pushed, mut settled) = (0u64, 0u64);
            let mut flying: Vec<u64> = Vec::new();
            for step in steps {
                match step {
                    Step::Push(release) => {
                        queue.push(report(pushed, release), Rc::clone(&slot), now);
                        pushed += 1;
                    }
                    Step::Call => {
                        let sent = ids(&queue.call(LIMITS));
                        prop_assert!(sent.len() <= LIMITS.batch);
                        prop_assert_eq!(&sent, &(settled..settled + sent.len() as u64).collect::<Vec<_>>());
                        flying = sent;
                    }
                    Step::Taken(rejected) => {
                        let end = queue.taken(rejected.into_iter().map(no).collect());
                        prop_assert!(end.rejected.iter().all(|(no, _)| flying.contains(&no.id)));
                        prop_assert_eq!(end.handed + end.rejected.len() as u64, flying.len() as u64);
                        settled += std::mem::take(&mut flying).len() as u64;
                    }
                    Step::Refused => {
                        let end = queue.refused("no");
                        prop_assert_eq!(end.rejected.len(), flying.len());
                        settled += std::mem::take(&mut flying).len() as u64;
                    }
                    Step::Failed => {
                        queue.failed();
                        queue.hold_until(now);
                        flying.clear();
                    }
                    Step::Hurry(haste) => queue.hurry(haste),
                }
                prop_assert_eq!(queue.len() as u64, pushed - settled);
                prop_assert_eq!(Rc::strong_count(&slot) - 1, queue.len());
                prop_assert_eq!(queue.due(LIMITS, now + LIMITS.flush) == Due::No, queue.is_empty() || !flying.is_empty());
                let releasing = queue.waiting.iter().filter(|entry| entry.report.release).count();
                prop_assert_eq!(queue.releasing, releasing);
            }
        }
    }
}
