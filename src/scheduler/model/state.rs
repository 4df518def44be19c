//! The model itself: everything in ordered maps, looked at as a whole at each step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::scheduler::job::{Books, Job, Outcome, RequestId, SlotKey};
use crate::scheduler::store::{Cursors, Offered};

/// A job, as far as the model looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: RequestId,
    pub(super) host: String,
    pub(super) path: String,
    pub(super) priority: i32,
    pub(super) attempts: u32,
    pub(super) not_before: Duration,
    pub(super) out: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// By age.
    pub(super) jobs: BTreeMap<u64, Entry>,
    pub(super) seen: BTreeSet<u128>,
    pub(super) children: BTreeMap<RequestId, BTreeSet<RequestId>>,
    pub(super) books: Books,
    pub(super) cursors: Cursors,
    pub(super) gates: BTreeMap<SlotKey, Duration>,
    pub(super) states: BTreeMap<&'static str, Vec<u8>>,
    pub(super) last_age: u64,
}

impl State {
    pub(super) fn add(&mut self, job: &Job, not_before: Duration, out: bool) {
        self.last_age += 1;
        let entry = Entry {
            id: job.id,
            host: SlotKey::of(job.url()).0.to_string(),
            path: job.url().path().to_owned(),
            priority: job.request.priority_value(),
            attempts: job.attempts,
            not_before,
            out,
        };
        self.jobs.insert(self.last_age, entry);
    }

    pub(super) fn count_new(&mut self) {
        self.books.enqueued += 1;
        self.books.pending += 1;
    }

    pub(super) fn out(&self, id: RequestId) -> Option<u64> {
        self.jobs.iter().find(|(_, entry)| entry.out && entry.id == id).map(|(age, _)| *age)
    }

    pub(super) fn offer(&mut self, jobs: &[Job]) -> Offered {
        let mut offered = Offered::default();
        for job in jobs {
            let siblings = job.parent.and_then(|parent| self.children.get(&parent));
            if siblings.is_some_and(|siblings| siblings.contains(&job.id)) {
                offered.repeated += 1;
            } else if !job.request.is_unfiltered() && self.seen.contains(&job.key) {
                offered.duplicates += 1;
            } else {
                offered.stored += 1;
                self.seen.insert(job.key);
                if let Some(parent) = job.parent.filter(|parent| self.out(*parent).is_some()) {
                    self.children.entry(parent).or_default().insert(job.id);
                }
                self.count_new();
                self.add(job, Duration::ZERO, false);
            }
        }
        offered
    }

    pub(super) fn first(&mut self, host: &str, now: Duration) -> Result<&mut Entry, Option<Duration>> {
        let queued = || self.jobs.iter().filter(|(_, entry)| !entry.out && entry.host == host);
        let due = queued().filter(|(_, entry)| entry.not_before <= now);
        let first = due.max_by_key(|(age, entry)| (entry.priority, std::cmp::Reverse(**age))).map(|(age, _)| *age);
        let earliest = queued().map(|(_, entry)| entry.not_before).min();
        first.and_then(|age| self.jobs.get_mut(&age)).ok_or(earliest)
    }

    pub(super) fn settle(&mut self, id: RequestId, outcome: Outcome) -> bool {
        let Some(age) = self.out(id) else {
            return false;
        };
        self.jobs.remove(&age);
        self.children.remove(&id);
        self.books.settle(outcome);
        true
    }

    pub(super) fn put_back(&mut self, job: &Job, not_before: Duration) {
        if let Some(age) = self.out(job.id) {
            self.jobs.remove(&age);
            self.add(job, not_before, false);
        }
    }

    pub(super) fn replace(&mut self, job: &Job) {
        if let Some(entry) = self.jobs.values_mut().find(|entry| entry.out && entry.id == job.id) {
            entry.host = SlotKey::of(job.url()).0.to_string();
            entry.path = job.url().path().to_owned();
        }
    }

    pub(super) fn recover(&mut self) -> u64 {
        let out = self.jobs.values_mut().filter(|entry| entry.out);
        out.map(|entry| entry.out = false).count() as u64
    }

    pub(super) fn slots(&self, now: Duration) -> BTreeMap<String, Duration> {
        let mut slots = BTreeMap::new();
        for entry in self.jobs.values().filter(|entry| !entry.out) {
            let earliest = slots.entry(entry.host.clone()).or_insert(Duration::MAX);
            *earliest = entry.not_before.max(now).min(*earliest);
        }
        slots
    }
}
