//! Jobs, configurations and a store that fails, for the scheduler's own tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::config::SchedulerConfig;
use super::job::{Books, Job, Outcome, RequestId, SlotKey};
use super::memory::MemoryStore;
use super::message::Pacing;
use super::store::{Medium, Offered, Pulled, Store, StoreError};
use crate::api::request::Request;

/// A start request: its id from `index`, its seen key from its URL.
pub(crate) fn job(index: u64, url: &str) -> Job {
    let request = Request::get(url, &"Page").unwrap();
    Job::page(RequestId::child(None, index), xxhash_rust::xxh3::xxh3_128(url.as_bytes()), request)
}

/// The `index`-th child of `parent`.
pub(crate) fn child(parent: RequestId, index: u64, url: &str) -> Job {
    Job { id: RequestId::child(Some(parent), index), parent: Some(parent), depth: 1, ..job(0, url) }
}

/// `job` with a priority.
pub(crate) fn with_priority(mut job: Job, priority: i32) -> Job {
    job.request.priority(priority);
    job
}

/// `job` past the duplicate filter.
pub(crate) fn unfiltered(mut job: Job) -> Job {
    job.request.dont_filter();
    job
}

/// No limit, no delay, no robots.
pub(crate) fn config() -> SchedulerConfig {
    SchedulerConfig {
        allowed_domains: Vec::new(),
        depth_limit: 0,
        url_length_limit: 0,
        pacing: Pacing { per_slot: 8, delay: Duration::ZERO, jitter: 0.0 },
        robots_agent: None,
        seeds_stop_at: usize::MAX,
        returns_offsite: false,
        seed: 1,
    }
}

/// What a [`Fragile`] store does.
pub(crate) enum Fault {
    Panic,
    Error,
}

/// A store of which one pull goes wrong: the n-th from the time its counter is set to n.
pub(crate) struct Fragile {
    inner: MemoryStore,
    faults: Arc<AtomicU32>,
    how: Fault,
}

impl Fragile {
    pub(crate) fn new(how: Fault) -> (Self, Arc<AtomicU32>) {
        let faults = Arc::new(AtomicU32::new(0));
        (Self { inner: MemoryStore::new(usize::MAX), faults: Arc::clone(&faults), how }, faults)
    }
}

impl Store for Fragile {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        self.inner.offer(jobs)
    }
    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        self.inner.admit(job)
    }
    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        let left = self.faults.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match self.how {
            Fault::Panic if left == Ok(1) => panic!("the pull that was to panic"),
            Fault::Error if left == Ok(1) => Err(StoreError::Io("the disk is gone".into())),
            _ => self.inner.pull(slot, now),
        }
    }
    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        self.inner.put_back(job, not_before)
    }
    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        self.inner.mark_seen(key)
    }
    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError> {
        self.inner.settle(id, outcome)
    }
    fn books(&self) -> Books {
        self.inner.books()
    }
    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.inner.slots()
    }
    fn weight(&self) -> usize {
        self.inner.weight()
    }
    fn medium(&self) -> Medium {
        self.inner.medium()
    }
    fn start_cursor(&self) -> u64 {
        self.inner.start_cursor()
    }
    fn advance_start(&mut self, to: u64) -> Result<(), StoreError> {
        self.inner.advance_start(to)
    }
    fn recover(&mut self) -> Result<u64, StoreError> {
        self.inner.recover()
    }
}
