//! The lines of all slots that hold a queued job; a host without one costs nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::heap::{allocation, table};
use super::line::{First, Line};
use crate::scheduler::job::SlotKey;

/// Bytes of the two counts before an `Arc`'s text.
const ARC_HEAD: usize = 2 * size_of::<usize>();

/// Bytes of a place in the table.
const PLACE: usize = size_of::<(Arc<str>, Line)>();

/// Fewer places are never given back.
const FEW: usize = 1_024;

/// Ages of queued jobs by slot.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: HashMap<Arc<str>, Line>,
    /// Bytes of names and of what lines hold outside the table.
    heap: usize,
}

/// What a slot gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// A job that may go now; it is in no line any more.
    Job(Queued),
    /// The slot's earliest job may go then.
    NotBefore(Duration),
    /// The slot is empty.
    Empty,
}

/// A job's place in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queued {
    /// The slot's host.
    pub(crate) host: Arc<str>,
    /// The job's age; a smaller number is older.
    pub(crate) age: u64,
    /// Its priority.
    pub(crate) priority: i32,
}

impl Lines {
    /// Adds the youngest job.
    pub(crate) fn push(&mut self, host: &str, age: u64, priority: i32) {
        self.change(host, |line| line.push(age, priority));
    }

    /// Adds a job at the place its age gives it, from `not_before` on.
    pub(crate) fn put_back(&mut self, host: &str, age: u64, priority: i32, not_before: Duration) {
        self.change(host, |line| line.put_back(age, priority, not_before));
    }

    /// Takes the slot's first job that is due: the highest priority, and the oldest within one.
    pub(crate) fn pull(&mut self, slot: &SlotKey, now: Duration) -> Next {
        let Some(line) = self.lines.get_mut(&slot.0) else {
            return Next::Empty;
        };
        let before = line.heap();
        let first = line.pull(now);
        self.heap = self.heap + line.heap() - before;
        if line.is_empty() {
            self.forget(&slot.0);
        }
        match first {
            First::Job { priority, age } => Next::Job(Queued { host: Arc::clone(&slot.0), age, priority }),
            First::NotBefore(at) => Next::NotBefore(at),
            First::Empty => Next::Empty,
        }
    }

    /// Whether the slot holds a queued job.
    pub(crate) fn contains(&self, host: &str) -> bool {
        self.lines.contains_key(host)
    }

    /// Slots with queued jobs, each with the time its earliest one may go; zero for now.
    pub(crate) fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.lines.iter().map(|(host, line)| (SlotKey(Arc::clone(host)), line.earliest())).collect()
    }

    /// Slots with queued jobs.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.heap + table(self.lines.capacity(), PLACE)
    }

    /// Bytes more that it may hold when `jobs` more jobs wait, `hosts` of them in new slots.
    pub(crate) fn growth(&self, jobs: usize, hosts: usize) -> usize {
        let (len, capacity) = (self.lines.len() + hosts, self.lines.capacity());
        // The table doubles, and both are there for a while.
        let table = if len > capacity { table(len.max(2 * capacity), PLACE) } else { 0 };
        table + jobs * 32 + hosts * 64
    }

    fn change(&mut self, host: &str, act: impl FnOnce(&mut Line)) {
        if let Some(line) = self.lines.get_mut(host) {
            let before = line.heap();
            act(line);
            self.heap = self.heap + line.heap() - before;
        } else {
            let mut line = Line::default();
            act(&mut line);
            self.heap += line.heap() + allocation(ARC_HEAD + host.len());
            self.lines.insert(Arc::from(host), line);
        }
    }

    fn forget(&mut self, host: &str) {
        if self.lines.remove(host).is_some() {
            self.heap -= allocation(ARC_HEAD + host.len());
        }
        let (len, capacity) = (self.lines.len(), self.lines.capacity());
        if capacity > FEW && len < capacity / 8 {
            self.lines.shrink_to(2 * len);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::cmp::Reverse;
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_host_of_one_job_takes_at_most_150_bytes() {
        let mut lines = Lines::default();
        let mut most = 0.0_f64;
        for n in 0..300_000_u64 {
            lines.push(&format!("shop-{n:07}.example"), n, 0);
            if n >= 10_000 {
                most = most.max(lines.bytes() as f64 / (n + 1) as f64);
            }
        }
        assert!(most <= 150.0, "{most} bytes a host");
        for n in 0..300_000_u64 {
            let slot = SlotKey(format!("shop-{n:07}.example").into());
            assert!(matches!(lines.pull(&slot, NOW), Next::Job(Queued { age, .. }) if age == n));
        }
        assert!(lines.is_empty() && lines.bytes() < 100_000, "{}", lines.bytes());
    }

    #[test]
    fn a_job_of_a_long_line_takes_at_most_sixteen_bytes() {
        let mut lines = Lines::default();
        (0..100_000).for_each(|n| lines.push("a", n, 0));
        assert!(lines.bytes() < 12 * 100_000, "{}", lines.bytes());
        (100_000..200_000).for_each(|n| lines.push("a", n, i32::from(n % 2 == 0)));
        assert!(lines.bytes() < 12 * 200_000, "{}", lines.bytes());
    }

    #[derive(Debug, Clone)]
    enum Op {
        Push { host: u8, priority: i32 },
        PutBack { host: u8, priority: i32, delay: u64, old: bool },
        Pull { host: u8 },
        Tick(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0_u8..3, -1_i32..2).prop_map(|(host, priority)| Op::Push { host, priority }),
            2 => (0_u8..3).prop_map(|host| Op::Push { host, priority: 0 }),
            2 => (0_u8..3, -1_i32..2, 0_u64..9, any::<bool>())
                .prop_map(|(host, priority, delay, old)| Op::PutBack { host, priority, delay, old }),
            6 => (0_u8..3).prop_map(|host| Op::Pull { host }),
            1 => (1_u64..9).prop_map(Op::Tick),
        ]
    }

    proptest! {
        #[test]
        fn they_are_sorted_by_priority_and_age(ops in proptest::collection::vec(op(), 0..300)) {
            let mut lines = Lines::default();
            // By host: priority, age and not-before time of what waits.
            let mut model: BTreeMap<u8, BTreeSet<(Reverse<i32>, u64, Duration)>> = BTreeMap::new();
            let (mut now, mut age) = (Duration::from_secs(50), 1_000);
            for op in ops {
                match op {
                    Op::Push { host, priority } => {
                        age += 1;
                        lines.push(&host.to_string(), age, priority);
                        model.entry(host).or_default().insert((Reverse(priority), age, Duration::ZERO));
                    }
                    Op::PutBack { host, priority, delay, old } => {
                        age += 1;
                        let (age, at) = (if old { 2_000 - age } else { age }, now + Duration::from_secs(delay));
                        lines.put_back(&host.to_string(), age, priority, at);
                        model.entry(host).or_default().insert((Reverse(priority), age, at));
                    }
                    Op::Pull { host } => {
                        let waiting = model.entry(host).or_default();
                        let due = waiting.iter().find(|(.., at)| *at <= now).copied();
                        let slot = SlotKey(host.to_string().into());
                        let expected = match due {
                            Some(first) => {
                                waiting.remove(&first);
                                Next::Job(Queued { host: Arc::clone(&slot.0), age: first.1, priority: first.0.0 })
                            }
                            None => waiting.iter().map(|w| w.2).min().map_or(Next::Empty, Next::NotBefore),
                        };
                        prop_assert_eq!(lines.pull(&slot, now), expected);
                    }
                    Op::Tick(seconds) => now += Duration::from_secs(seconds),
                }
                let mut slots: Vec<(String, bool)> = lines.slots().iter().map(|(s, at)| (s.0.to_string(), *at <= now)).collect();
                slots.sort();
                let expected = model.iter().filter(|(_, w)| !w.is_empty());
                let expected: Vec<_> = expected.map(|(h, w)| (h.to_string(), w.iter().any(|w| w.2 <= now))).collect();
                prop_assert_eq!(slots, expected);
                let counted: usize = lines.lines.iter().map(|(host, line)| allocation(ARC_HEAD + host.len()) + line.heap()).sum();
                prop_assert_eq!(lines.heap, counted);
            }
        }
    }
}
