//! The line of one slot: jobs by priority, then by age, and those that must not go yet.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use crate::scheduler::job::Job;
use crate::scheduler::store::Pulled;

/// A slot's queued jobs.
#[derive(Debug)]
pub(super) struct Line {
    /// Jobs as they were offered.
    fresh: Levels,
    /// Jobs that were put back and may go now.
    back: BinaryHeap<Back>,
    /// Jobs that were put back and may not go yet.
    later: BinaryHeap<Reverse<Later>>,
}

/// A job and its age: a smaller number is older.
pub(super) type Aged = (u64, Box<Job>);

/// First in, first out by priority. Most slots see one priority only.
#[derive(Debug)]
enum Levels {
    One(i32, VecDeque<Aged>),
    Many(BTreeMap<Reverse<i32>, VecDeque<Aged>>),
}

#[derive(Debug)]
struct Back(Aged);

#[derive(Debug)]
struct Later {
    not_before: Duration,
    aged: Aged,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { fresh: Levels::One(0, VecDeque::new()), back: BinaryHeap::new(), later: BinaryHeap::new() }
    }

    /// Adds the youngest job.
    pub(super) fn push(&mut self, age: u64, job: Box<Job>) {
        self.fresh.push(job.request.priority_value(), (age, job));
    }

    /// Adds a job at the place its age gives it.
    pub(super) fn put_back(&mut self, age: u64, job: Box<Job>, not_before: Duration) {
        self.later.push(Reverse(Later { not_before, aged: (age, job) }));
    }

    pub(super) fn pull(&mut self, now: Duration) -> (u64, Pulled) {
        while self.later.peek().is_some_and(|later| later.0.not_before <= now)
            && let Some(Reverse(later)) = self.later.pop()
        {
            self.back.push(Back(later.aged));
        }
        let fresh_first = match (self.fresh.first(), self.back.peek()) {
            (Some(fresh), Some(back)) => fresh > back.rank(),
            (fresh, _) => fresh.is_some(),
        };
        let aged = if fresh_first { self.fresh.pop() } else { self.back.pop().map(|back| back.0) };
        match (aged, self.later.peek()) {
            (Some((age, job)), _) => (age, Pulled::Job(job)),
            (None, Some(later)) => (0, Pulled::NotBefore(later.0.not_before)),
            (None, None) => (0, Pulled::Empty),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fresh.first().is_none() && self.back.is_empty() && self.later.is_empty()
    }

    /// When the first job may go; zero when one may go now.
    pub(super) fn earliest(&self) -> Duration {
        if self.fresh.first().is_some() || !self.back.is_empty() {
            return Duration::ZERO;
        }
        self.later.peek().map_or(Duration::ZERO, |later| later.0.not_before)
    }
}

impl Levels {
    fn push(&mut self, priority: i32, aged: Aged) {
        match self {
            Self::One(present, queue) if *present == priority || queue.is_empty() => {
                *present = priority;
                queue.push_back(aged);
            }
            Self::One(present, queue) => {
                let old = (Reverse(*present), std::mem::take(queue));
                *self = Self::Many(BTreeMap::from([old, (Reverse(priority), VecDeque::from([aged]))]));
            }
            Self::Many(levels) => levels.entry(Reverse(priority)).or_default().push_back(aged),
        }
    }

    /// Priority and age of the first job; the greater goes first.
    fn first(&self) -> Option<(i32, Reverse<u64>)> {
        let (priority, queue) = match self {
            Self::One(priority, queue) => (*priority, queue),
            Self::Many(levels) => levels.first_key_value().map(|(priority, queue)| (priority.0, queue))?,
        };
        queue.front().map(|(age, _)| (priority, Reverse(*age)))
    }

    fn pop(&mut self) -> Option<Aged> {
        match self {
            Self::One(_, queue) => queue.pop_front(),
            Self::Many(levels) => {
                let mut first = levels.first_entry()?;
                let aged = first.get_mut().pop_front();
                if first.get().is_empty() {
                    first.remove();
                }
                aged
            }
        }
    }
}

impl Back {
    fn rank(&self) -> (i32, Reverse<u64>) {
        (self.0.1.request.priority_value(), Reverse(self.0.0))
    }
}

impl Later {
    fn rank(&self) -> (Duration, u64) {
        (self.not_before, self.aged.0)
    }
}

macro_rules! ordered_by_rank {
    ($($name:ident),*) => {$(
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.rank() == other.rank()
            }
        }
        impl Eq for $name {}
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.rank().cmp(&other.rank())
            }
        }
    )*};
}
ordered_by_rank!(Back, Later);
