//! Probe: what one inbox has done, as numbers.
//!
//! The gauges are written by the lanes and the host and read by anyone, from any thread, without a lock.
//! Times are real time even under a paused clock: they measure this machine, never the crawl.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// One in this many orders and facts is stamped to measure its wait; the clock costs more than the queue.
pub(crate) const WAIT_SAMPLE: u64 = 16;

/// Reads the gauges of one inbox; cheap to clone and to keep.
#[derive(Clone, Debug)]
pub struct Probe {
    name: &'static str,
    bound: usize,
    gauges: Arc<Gauges>,
}

impl Probe {
    pub(crate) const fn new(name: &'static str, bound: usize, gauges: Arc<Gauges>) -> Self {
        Self { name, bound, gauges }
    }

    /// The gauges as they stand now. Each value is exact; together they may be a message apart.
    #[must_use]
    pub fn snapshot(&self) -> Reading {
        let g = &self.gauges;
        let samples = g.wait_samples.load(Relaxed);
        let wait_ns = g.wait_ns.load(Relaxed);
        Reading {
            name: self.name,
            bound: self.bound,
            depth: g.depth.load(Relaxed),
            high_water: g.high_water.load(Relaxed),
            accepted: g.accepted.load(Relaxed),
            handled: g.handled.load(Relaxed),
            controls: g.controls.load(Relaxed),
            turns: g.turns.load(Relaxed),
            discarded: g.discarded.load(Relaxed),
            restarts: g.restarts.load(Relaxed),
            waited: Duration::from_nanos(wait_ns.saturating_mul(WAIT_SAMPLE)),
            mean_wait: Duration::from_nanos(wait_ns.checked_div(samples).unwrap_or(0)),
            handling: Duration::from_nanos(g.handling_ns.load(Relaxed)),
            longest: Duration::from_nanos(g.longest_ns.load(Relaxed)),
        }
    }
}

/// The numbers of one inbox at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// Name of the inbox.
    pub name: &'static str,
    /// Most orders that may be queued or in progress.
    pub bound: usize,
    /// Orders and facts in the data lane now.
    pub depth: usize,
    /// The greatest depth seen.
    pub high_water: usize,
    /// Orders and facts ever queued.
    pub accepted: u64,
    /// Orders and facts handled to the end; one whose handler panicked is not among them.
    pub handled: u64,
    /// Controls handled, timers included.
    pub controls: u64,
    /// Turns ended.
    pub turns: u64,
    /// Orders and facts lost: in hand at a panic or replacement, or still queued when the actor ended.
    pub discarded: u64,
    /// Successors started after a panic or a replacement.
    pub restarts: u64,
    /// Total time from queue to handler, estimated from one message in 16.
    pub waited: Duration,
    /// Mean time from queue to handler over the measured messages.
    pub mean_wait: Duration,
    /// Total time spent in `handle`.
    pub handling: Duration,
    /// The longest single `handle`.
    pub longest: Duration,
}

/// The counters behind a [`Probe`].
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) depth: AtomicUsize,
    pub(crate) high_water: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    pub(crate) handled: AtomicU64,
    pub(crate) controls: AtomicU64,
    pub(crate) turns: AtomicU64,
    pub(crate) discarded: AtomicU64,
    pub(crate) restarts: AtomicU64,
    wait_ns: AtomicU64,
    wait_samples: AtomicU64,
    handling_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Gauges {
    pub(crate) fn set_depth(&self, depth: usize) {
        self.depth.store(depth, Relaxed);
        if depth > self.high_water.load(Relaxed) {
            self.high_water.store(depth, Relaxed);
        }
    }

    pub(crate) fn waited(&self, wait: Duration) {
        self.wait_ns.fetch_add(nanos(wait), Relaxed);
        self.wait_samples.fetch_add(1, Relaxed);
    }

    pub(crate) fn handled(&self, took: Duration) {
        let took = nanos(took);
        self.handled.fetch_add(1, Relaxed);
        self.handling_ns.fetch_add(took, Relaxed);
        self.longest_ns.fetch_max(took, Relaxed);
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
