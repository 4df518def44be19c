//! The ring log records come through: bounded, filled from any thread, emptied by the collector.
//!
//! Logs are the one kind of record that may be dropped: when the ring is full the newest is, and is counted. A push
//! holds the lock for a move of one record and never waits for the consumer. What the delivery says about itself
//! comes in by another way, which is narrow and ends with the last batch: it can never feed on itself.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::apcloudy::LogRecord;

/// Bytes of texts that wait at most: a few long ones take as much room as many short ones.
const MAX_BYTES: usize = 16 << 20;
/// Lines of the delivery's own that are taken at once.
const OWN_BURST: u32 = 20;
/// After that, one more for each of these.
const OWN_EVERY: Duration = Duration::from_secs(5);

/// A bounded queue of log records that numbers them.
#[derive(Debug)]
pub struct LogRing {
    bound: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<LogRecord>,
    /// Of the texts of these records.
    bytes: usize,
    next_index: u64,
    dropped: u64,
    own: Own,
}

/// How many lines of the delivery's own are still taken.
#[derive(Debug)]
struct Own {
    left: u32,
    /// Up to when time was counted.
    since: Duration,
    closing: bool,
    dropped: u64,
}

impl LogRing {
    /// A ring for at most `bound` records, with 16 MiB of texts.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self { bound, state: Mutex::default() }
    }

    /// Adds a record and gives it the next index; a full ring drops it and counts. An index is only used for a
    /// record that is kept, so the receiver sees 0, 1, 2 … without holes.
    pub fn push(&self, record: LogRecord) {
        // A record that is not taken is freed outside the lock.
        let refused = self.lock().push(record, self.bound);
        drop(refused);
    }

    /// As [`push`](Self::push) for what the delivery says about itself, with the time since 1970: 20 records at once
    /// and one more each 5 s. What is over is dropped and counted apart, as is everything from [`closing`](Self::closing) on.
    pub fn push_own(&self, record: LogRecord, now: Duration) {
        let mut state = self.lock();
        let refused = if state.own.take(now) { state.push(record, self.bound) } else { Some(record) };
        drop(state);
        drop(refused);
    }

    /// The last batch is cut: the delivery's own records are not taken any more, all others are.
    pub fn closing(&self) {
        self.lock().own.closing = true;
    }

    /// Moves everything to the end of `into`, oldest first.
    pub fn drain(&self, into: &mut Vec<LogRecord>) {
        let mut state = self.lock();
        state.bytes = 0;
        let taken = std::mem::take(&mut state.records);
        drop(state);
        into.extend(taken);
    }

    /// How many records were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// How many records of the delivery's own were dropped because they came too fast or too late.
    #[must_use]
    pub fn own_dropped(&self) -> u64 {
        self.lock().own.dropped
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

    /// Goes on with the given index: a resumed job numbers its records where the earlier run stopped. What waits
    /// already is numbered anew; an index that was passed is not used again.
    pub fn start_at(&self, index: u64) {
        let mut state = self.lock();
        let first = state.next_index.saturating_sub(state.records.len() as u64);
        let shift = index.saturating_sub(first);
        state.records.iter_mut().for_each(|record| record.index += shift);
        state.next_index += shift;
    }

    /// The index of the next record.
    #[must_use]
    pub fn next_index(&self) -> u64 {
        self.lock().next_index
    }

    /// No code that can panic runs under the lock, so a poisoned one still holds a good state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives back what is not taken.
    fn push(&mut self, mut record: LogRecord, bound: usize) -> Option<LogRecord> {
        let bytes = record.message.len() + record.exception.as_ref().map_or(0, String::len);
        if self.records.len() >= bound || self.bytes + bytes > MAX_BYTES {
            self.dropped += 1;
            return Some(record);
        }
        self.bytes += bytes;
        record.index = self.next_index;
        self.next_index += 1;
        self.records.push_back(record);
        None
    }
}

impl Own {
    fn take(&mut self, now: Duration) -> bool {
        if self.left == OWN_BURST || now < self.since {
            // Nothing to gain while there is no more to have; a clock that was set back begins anew.
            self.since = now;
        }
        let periods = (now - self.since).as_secs() / OWN_EVERY.as_secs();
        let earned = u32::try_from(periods).unwrap_or(u32::MAX).min(OWN_BURST - self.left);
        self.left += earned;
        self.since = if self.left == OWN_BURST { now } else { self.since + OWN_EVERY * earned };
        if self.closing || self.left == 0 {
            self.dropped += 1;
            return false;
        }
        self.left -= 1;
        true
    }
}

impl Default for Own {
    fn default() -> Self {
        Self { left: OWN_BURST, since: Duration::ZERO, closing: false, dropped: 0 }
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
    fn long_records_fill_a_ring_by_their_bytes() {
        let ring = LogRing::new(1000);
        let long = || LogRecord { exception: Some("x".repeat(MAX_BYTES / 4)), ..record(&"y".repeat(MAX_BYTES / 4)) };
        for _ in 0..3 {
            ring.push(long());
        }
        assert_eq!((ring.len(), ring.dropped()), (2, 1));
        ring.push(record(""));
        ring.drain(&mut Vec::new());
        ring.push(long());
        assert_eq!((ring.len(), ring.dropped()), (1, 1));
    }

    #[test]
    fn a_resumed_ring_goes_on_numbering() {
        let ring = LogRing::new(2);
        ring.start_at(40);
        ring.push(record("a"));
        let mut out = Vec::new();
        ring.drain(&mut out);
        assert_eq!(out[0].index, 40);
        assert_eq!(ring.next_index(), 41);
    }

    #[test]
    fn what_waits_when_the_index_is_known_is_numbered_anew() {
        let ring = LogRing::new(9);
        let mut out = Vec::new();
        ring.push(record("a"));
        ring.push(record("b"));
        ring.start_at(40);
        ring.push(record("c"));
        ring.drain(&mut out);
        ring.start_at(7);
        ring.push(record("d"));
        ring.drain(&mut out);
        assert_eq!(out.iter().map(|r| r.index).collect::<Vec<_>>(), [40, 41, 42, 43]);
    }

    #[test]
    fn the_delivery_s_own_records_come_through_a_narrow_gate() {
        let ring = LogRing::new(1000);
        let at = |seconds: u64| Duration::from_secs(1_700_000_000 + seconds);
        // (seconds, tried, taken)
        for (seconds, tried, taken) in
            [(0, 30, 20), (4, 1, 0), (5, 2, 1), (9, 1, 0), (16, 3, 2), (15, 1, 0), (21, 2, 1), (9999, 50, 20)]
        {
            let before = ring.len();
            (0..tried).for_each(|_| ring.push_own(record("own"), at(seconds)));
            assert_eq!(ring.len() - before, taken, "at {seconds}");
        }
        assert_eq!(ring.own_dropped(), 90 - 44);
        ring.closing();
        ring.push_own(record("own"), at(99_999));
        ring.push(record("other"));
        assert_eq!((ring.len(), ring.own_dropped(), ring.dropped()), (45, 47, 0));
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
