//! What a frontier store knows of its jobs without their bodies: seen keys, places in the queue, what is out, the books.
//!
//! It takes the decisions of [`Store`](super::store::Store) and says which body to keep, read or drop; where bodies are,
//! and what makes them survive, is the store's business. A job is known by its age here: a number that is given when it
//! is offered, admitted or put back, never again, and is the key of its body. The index is always in memory; it never
//! fails and never reads a body.

mod ages;
mod flight;
pub(crate) mod heap;
mod line;
mod lines;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

pub(crate) use self::flight::{Children, Out};
pub(crate) use self::lines::{Lines, Next, Queued};
pub(crate) use self::seen::Seen;
use super::job::{Books, Job, Outcome, RequestId, SlotKey, host_of};
use super::store::{Cursors, Offered};
use crate::api::failure::FailureKind;

/// Bytes of a gate: a place in a table, and a name that is mostly another's.
const GATE: usize = size_of::<(SlotKey, Duration)>();

/// The index of a store's jobs.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) seen: Seen,
    pub(crate) lines: Lines,
    pub(crate) out: Out,
    pub(crate) children: Children,
    pub(crate) books: Books,
    pub(crate) cursors: Cursors,
    gates: HashMap<SlotKey, Duration>,
    /// The youngest age given.
    age: u64,
}

/// What is known of an offered job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: it is to be queued.
    New,
    /// Its key was seen.
    Duplicate,
    /// Its parent offered it before.
    Repeated,
}

/// A job that was taken in: its body is to be kept under its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) age: u64,
    /// Its key was not seen before. It was if the job passes the duplicate filter.
    pub(crate) is_key_new: bool,
    /// It is remembered as a child of its parent, which is out.
    pub(crate) is_child: bool,
}

/// A job that was put back: its body moves from one age to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A job that was settled: its body is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) age: u64,
    /// Children were remembered with it, which are forgotten now.
    pub(crate) had_children: bool,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            seen: Seen::new(),
            lines: Lines::default(),
            out: Out::default(),
            children: Children::default(),
            books: Books::default(),
            cursors: Cursors::default(),
            gates: HashMap::new(),
            age: 0,
        }
    }

    /// What an offer of the job would come to; nothing is changed.
    pub(crate) fn look(&self, job: &Job) -> Found {
        if job.parent.is_some_and(|parent| self.children.contains(parent, job.id)) {
            Found::Repeated
        } else if !job.request.is_unfiltered() && self.seen.contains(job.key) {
            Found::Duplicate
        } else {
            Found::New
        }
    }

    /// Takes a job in, if it is new.
    pub(crate) fn take(&mut self, job: &Job) -> Result<Taken, Found> {
        if job.parent.is_some_and(|parent| self.children.contains(parent, job.id)) {
            return Err(Found::Repeated);
        }
        let is_key_new = self.seen.insert(job.key);
        if !is_key_new && !job.request.is_unfiltered() {
            return Err(Found::Duplicate);
        }
        let mut is_child = false;
        if let Some(parent) = job.parent
            && self.out.contains(parent)
        {
            is_child = self.children.insert(parent, job.id);
        }
        self.books.enqueued += 1;
        self.books.pending += 1;
        let age = self.next_age();
        self.lines.push(host(job), age, job.request.priority_value());
        Ok(Taken { age, is_key_new, is_child })
    }

    /// Takes in what is new of `jobs`, which it empties, and gives each such job to `keep`.
    pub(crate) fn offer(&mut self, jobs: &mut Vec<Job>, mut keep: impl FnMut(Taken, Job)) -> Offered {
        let mut offered = Offered::default();
        for job in jobs.drain(..) {
            match self.take(&job) {
                Ok(taken) => {
                    offered.stored += 1;
                    keep(taken, job);
                    continue;
                }
                Err(Found::Repeated) => offered.repeated += 1,
                Err(_) => offered.duplicates += 1,
            }
            if job.request.keeps_lease() {
                offered.kept_dropped.push(job.id);
            }
        }
        offered
    }

    /// Takes a job in as one that is out; the age to keep its body under, or none when it is out already.
    pub(crate) fn admit(&mut self, job: &Job) -> Option<u64> {
        let queued = Queued { host: host(job).into(), age: self.next_age(), priority: job.request.priority_value() };
        let age = queued.age;
        if !self.out.insert(job.id, queued) {
            return None;
        }
        self.books.enqueued += 1;
        self.books.pending += 1;
        Some(age)
    }

    /// Takes the slot's first job that is due out of its line. It is nowhere then: [`Index::went_out`],
    /// [`Index::return_unread`] or [`Index::set_damaged_aside`] must follow.
    pub(crate) fn pull(&mut self, slot: &SlotKey, now: Duration) -> Next {
        self.lines.pull(slot, now)
    }

    /// The pulled job is read. False when another of the same id is out: then this one has ended as dropped, since a second
    /// answer to one request could be settled by nobody, and its body is to be dropped.
    #[must_use]
    pub(crate) fn went_out(&mut self, id: RequestId, queued: Queued) -> bool {
        let is_alone = self.out.insert(id, queued);
        if !is_alone {
            self.books.settle(Outcome::Dropped(FailureKind::Internal));
        }
        is_alone
    }

    /// The pulled job will never be read: it has ended as set aside, and its body is to be dropped.
    pub(crate) fn set_damaged_aside(&mut self) {
        self.books.settle(Outcome::SetAside);
    }

    /// The pulled job could not be read: it goes back to its place.
    pub(crate) fn return_unread(&mut self, queued: &Queued) {
        self.lines.put_back(&queued.host, queued.age, queued.priority, Duration::ZERO);
    }

    /// Puts a job back that is out; none when it is not.
    pub(crate) fn put_back(&mut self, job: &Job, not_before: Duration) -> Option<Moved> {
        let from = self.out.remove(job.id)?.age;
        let to = self.next_age();
        self.lines.put_back(host(job), to, job.request.priority_value(), not_before);
        Some(Moved { from, to })
    }

    /// Ends a job that is out; none when it is not.
    pub(crate) fn settle(&mut self, id: RequestId, outcome: Outcome) -> Option<Settled> {
        let age = self.out.remove(id)?.age;
        self.books.settle(outcome);
        Some(Settled { age, had_children: self.children.forget(id) })
    }

    /// Puts everything that is out back to its place; how much that was.
    pub(crate) fn recover(&mut self) -> u64 {
        let mut count = 0;
        for queued in self.out.drain() {
            self.lines.put_back(&queued.host, queued.age, queued.priority, Duration::ZERO);
            count += 1;
        }
        count
    }

    /// Queues a job that was read from a disk, in rising order of ages; the books are not changed.
    pub(crate) fn restore(&mut self, host: &str, age: u64, priority: i32, not_before: Duration) {
        self.skip_to(age);
        if not_before.is_zero() {
            self.lines.push(host, age, priority);
        } else {
            self.lines.put_back(host, age, priority, not_before);
        }
    }

    /// An age that was never given, and will not be again.
    pub(crate) fn next_age(&mut self) -> u64 {
        self.age += 1;
        self.age
    }

    /// Gives no age up to `age` any more.
    pub(crate) fn skip_to(&mut self, age: u64) {
        self.age = self.age.max(age);
    }

    /// As [`Store::gate`](super::store::Store::gate); whether that changed anything.
    pub(crate) fn gate(&mut self, slot: &SlotKey, until: Duration) -> bool {
        let gate = self.gates.entry(slot.clone()).or_default();
        let is_later = until > *gate;
        *gate = until.max(*gate);
        is_later
    }

    /// As [`Store::gates`](super::store::Store::gates).
    pub(crate) fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.gates.retain(|_, until| *until > now);
        self.gates.iter().map(|(slot, until)| (slot.clone(), *until)).collect()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.seen.bytes()
            + self.lines.bytes()
            + self.out.bytes()
            + self.children.bytes()
            + heap::table(self.gates.capacity(), GATE)
    }

    /// Bytes more that it may hold when these jobs, all new, are in.
    pub(crate) fn growth<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone) -> usize {
        let count = jobs.clone().count();
        let hosts = jobs.clone().filter(|job| !self.lines.contains(host(job))).count();
        let children = jobs.clone().filter(|job| job.parent.is_some_and(|parent| self.out.contains(parent))).count();
        self.seen.growth(jobs.map(|job| job.key)) + self.lines.growth(count, hosts) + Children::growth(children)
    }

    /// Bytes more that it may hold when any `jobs` jobs are in; quick, and more than [`Index::growth`].
    pub(crate) fn most_growth(&self, jobs: usize) -> usize {
        self.seen.most_growth(jobs) + self.lines.growth(jobs, jobs) + Children::growth(jobs)
    }
}

fn host(job: &Job) -> &str {
    host_of(job.url())
}
