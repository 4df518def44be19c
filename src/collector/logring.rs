//! The ring log records come through: bounded, filled from any thread, emptied by the collector.
//!
//! Logs are the one kind of record that may be dropped: when the ring is full the newest is, and is counted. A push
//! holds the lock for a move of one record and never waits for the consumer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::apcloudy::LogRecord;

/// A bounded queue of log records that numbers them when they leave it.
#[derive(Debug)]
pub struct LogRing {
    bound: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<LogRecord>,
    next_index: u64,
    dropped: u64,
}

impl LogRing {
    /// A ring for at most `bound` records.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self { bound, state: Mutex::default() }
    }

    /// Adds a record; a full ring drops it and counts.
    pub fn push(&self, record: LogRecord) {
        let mut state = self.lock();
        if state.records.len() >= self.bound {
            state.dropped += 1;
            // Freed outside the lock.
            drop(state);
            drop(record);
            return;
        }
        state.records.push_back(record);
    }

    /// Moves everything to the end of `into`, oldest first, and gives each the next index: what was logged before
    /// [`start_at`](Self::start_at) is numbered after it all the same, and no index is used for what was dropped.
    pub fn drain(&self, into: &mut Vec<LogRecord>) {
        let (taken, first) = {
            let mut state = self.lock();
            let taken = std::mem::take(&mut state.records);
            let first = state.next_index;
            state.next_index += taken.len() as u64;
            (taken, first)
        };
        into.extend((first..).zip(taken).map(|(index, record)| LogRecord { index, ..record }));
    }

    /// The index that the next record to leave gets.
    #[must_use]
    pub fn next_index(&self) -> u64 {
        self.lock().next_index
    }

    /// How many records were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// How many records wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().records.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Goes on with the given index: a resumed job numbers its records where the earlier run stopped.
    pub fn start_at(&self, index: u64) {
        let mut state = self.lock();
        state.next_index = state.next_index.max(index);
    }

    /// No code that can panic runs under the lock, so a poisoned one still holds a good state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::apcloudy::LogLevel;

    fn record(message: &str) -> LogRecord {
        LogRecord::new(Duration::ZERO, LogLevel::Info, "x".into(), message.into())
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_counts_it() {
        let ring = LogRing::new(2);
        for message in ["a", "b", "c", "d"] {
            ring.push(record(message));
        }
        assert_eq!((ring.len(), ring.dropped()), (2, 2));
        let mut out = Vec::new();
        ring.drain(&mut out);
        ring.push(record("e"));
        ring.drain(&mut out);
        let seen: Vec<_> = out.iter().map(|r| (r.message.as_str(), r.index)).collect();
        assert_eq!(seen, [("a", 0), ("b", 1), ("e", 2)]);
        assert!(ring.is_empty());
    }

    #[test]
    fn a_resumed_ring_goes_on_numbering_also_what_came_before() {
        let ring = LogRing::new(2);
        ring.push(record("early"));
        ring.start_at(40);
        ring.push(record("a"));
        let mut out = Vec::new();
        ring.drain(&mut out);
        assert_eq!(out.iter().map(|r| r.index).collect::<Vec<_>>(), [40, 41]);
        assert_eq!(ring.next_index(), 42);
    }

    #[test]
    fn many_threads_give_every_record_its_own_index() {
        let ring = Arc::new(LogRing::new(10_000));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let ring = Arc::clone(&ring);
                std::thread::spawn(move || (0..500).for_each(|_| ring.push(record("x"))))
            })
            .collect();
        let mut out = Vec::new();
        for thread in threads {
            ring.drain(&mut out);
            thread.join().unwrap();
        }
        ring.drain(&mut out);
        assert!(out.iter().map(|r| r.index).eq(0..2000));
    }
}
