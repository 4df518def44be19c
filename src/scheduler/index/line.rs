//! The line of one slot: ages by priority, then by age, and those that must not go yet.
//!
//! Most slots hold one job, or many of one priority, and nothing that was put back: these forms are small.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::ages::Ages;
use super::heap::allocation;

/// A slot's queued jobs.
#[derive(Debug, Default)]
pub(super) enum Line {
    #[default]
    Empty,
    /// One job.
    One {
        priority: i32,
        age: u64,
    },
    /// Jobs of one priority, as they were offered. The box keeps the hosts of one job small.
    Level {
        priority: i32,
        ages: Box<Ages>,
    },
    Mixed(Box<Mixed>),
}

/// What a line gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Job { priority: i32, age: u64 },
    NotBefore(Duration),
    Empty,
}

/// Jobs of several priorities, or some that were put back.
#[derive(Debug, Default)]
pub(super) struct Mixed {
    /// Jobs as they were offered; no level is empty.
    fresh: BTreeMap<Reverse<i32>, Ages>,
    /// Jobs that were put back and may go now.
    back: BinaryHeap<(i32, Reverse<u64>)>,
    /// Jobs that were put back and may not go yet.
    later: BinaryHeap<Reverse<(Duration, u64, i32)>>,
    /// Bytes of all of `fresh` beside the map itself.
    fresh_heap: usize,
}

impl Line {
    /// Adds the youngest job.
    pub(super) fn push(&mut self, age: u64, priority: i32) {
        match self {
            Self::Empty => *self = Self::One { priority, age },
            Self::One { priority: present, age: first } if *present == priority => {
                let mut ages = Box::<Ages>::default();
                ages.push(*first);
                ages.push(age);
                *self = Self::Level { priority, ages };
            }
            Self::Level { priority: present, ages } if *present == priority => ages.push(age),
            _ => self.mix(|mixed| mixed.push(age, priority)),
        }
    }

    /// Adds a job at the place its age gives it, from `not_before` on.
    pub(super) fn put_back(&mut self, age: u64, priority: i32, not_before: Duration) {
        self.mix(|mixed| mixed.later.push(Reverse((not_before, age, priority))));
    }

    pub(super) fn pull(&mut self, now: Duration) -> First {
        let taken = match self {
            Self::Empty => return First::Empty,
            Self::One { priority, age } => Some((*priority, *age)),
            Self::Level { priority, ages } => ages.pop().map(|age| (*priority, age)),
            Self::Mixed(mixed) => mixed.pull(now),
        };
        let is_used_up = match self {
            Self::Empty | Self::One { .. } => true,
            Self::Level { ages, .. } => ages.is_empty(),
            Self::Mixed(mixed) => mixed.is_empty(),
        };
        let first = match (taken, &*self) {
            (Some((priority, age)), _) => First::Job { priority, age },
            (None, Self::Mixed(mixed)) => mixed.later.peek().map_or(First::Empty, |later| First::NotBefore(later.0.0)),
            (None, _) => First::Empty,
        };
        if is_used_up {
            *self = Self::Empty;
        }
        first
    }

    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// When the first job may go; zero when one may go now.
    pub(super) fn earliest(&self) -> Duration {
        match self {
            Self::Mixed(mixed) if mixed.fresh.is_empty() && mixed.back.is_empty() => {
                mixed.later.peek().map_or(Duration::ZERO, |later| later.0.0)
            }
            _ => Duration::ZERO,
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        match self {
            Self::Empty | Self::One { .. } => 0,
            Self::Level { ages, .. } => allocation(size_of::<Ages>()) + ages.heap(),
            Self::Mixed(mixed) => allocation(size_of::<Mixed>()) + mixed.heap(),
        }
    }

    /// Does something to the line in its general form, which it has from then on.
    fn mix(&mut self, act: impl FnOnce(&mut Mixed)) {
        let mut mixed = match std::mem::take(self) {
            Self::Mixed(mixed) => mixed,
            Self::Empty => Box::default(),
            Self::One { priority, age } => {
                let mut mixed = Box::<Mixed>::default();
                mixed.push(age, priority);
                mixed
            }
            Self::Level { priority, ages } => {
                let fresh_heap = ages.heap();
                Box::new(Mixed { fresh: BTreeMap::from([(Reverse(priority), *ages)]), fresh_heap, ..Mixed::default() })
            }
        };
        act(&mut mixed);
        *self = Self::Mixed(mixed);
    }
}

impl Mixed {
    fn push(&mut self, age: u64, priority: i32) {
        let level = self.fresh.entry(Reverse(priority)).or_default();
        let before = level.heap();
        level.push(age);
        self.fresh_heap = self.fresh_heap + level.heap() - before;
    }

    fn pull(&mut self, now: Duration) -> Option<(i32, u64)> {
        while self.later.peek().is_some_and(|later| later.0.0 <= now)
            && let Some(Reverse((_, age, priority))) = self.later.pop()
        {
            self.back.push((priority, Reverse(age)));
        }
        let fresh = self.fresh.first_key_value().and_then(|(priority, ages)| Some((priority.0, Reverse(ages.first()?))));
        match (fresh, self.back.peek()) {
            (Some(fresh), Some(back)) if fresh < *back => self.pop_back(),
            (Some(_), _) => self.pop_fresh(),
            (None, _) => self.pop_back(),
        }
    }

    fn pop_back(&mut self) -> Option<(i32, u64)> {
        self.back.pop().map(|(priority, age)| (priority, age.0))
    }

    fn pop_fresh(&mut self) -> Option<(i32, u64)> {
        let mut level = self.fresh.first_entry()?;
        let priority = level.key().0;
        let before = level.get().heap();
        let age = level.get_mut().pop();
        let mut after = level.get().heap();
        if level.get().is_empty() {
            level.remove();
            after = 0;
        }
        self.fresh_heap = self.fresh_heap + after - before;
        age.map(|age| (priority, age))
    }

    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.back.is_empty() && self.later.is_empty()
    }

    fn heap(&self) -> usize {
        // Nodes of a B-tree are half full at least, and have up to eleven entries.
        let entry = size_of::<Reverse<i32>>() + size_of::<Ages>();
        let nodes = self.fresh.len().div_ceil(6) * allocation(11 * entry + 16);
        nodes
            + self.fresh_heap
            + allocation(self.back.capacity() * size_of::<(i32, Reverse<u64>)>())
            + allocation(self.later.capacity() * size_of::<Reverse<(Duration, u64, i32)>>())
    }
}
