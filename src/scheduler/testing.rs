//! Jobs, configurations and a store that fails, for the scheduler's own tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod jobs;
mod journal;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) use self::jobs::{child, job, unfiltered, with_priority};
pub(crate) use self::journal::{Crash, Journal};
use super::config::SchedulerConfig;
use super::job::{Books, Job, Outcome, RequestId, SlotKey};
use super::memory::MemoryStore;
use super::message::Pacing;
use super::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};
use crate::reach::Reach;
use crate::settings::PrivateAddresses;

/// No limit, no delay, no robots.
pub(crate) fn config() -> SchedulerConfig {
    SchedulerConfig {
        allowed_domains: Vec::new(),
        depth_limit: 0,
        url_length_limit: 0,
        reach: Reach::of(PrivateAddresses::Allow),
        pacing: Pacing { per_slot: 8, delay: Duration::ZERO, jitter: 0.0 },
        robots_agent: None,
        seeds_stop_at: usize::MAX,
        max_bytes: usize::MAX,
        returns_offsite: false,
        disk_wait: Duration::from_secs(60),
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
    fn cursors(&self) -> Cursors {
        self.inner.cursors()
    }
    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.inner.advance(to)
    }
    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        self.inner.gate(slot, until)
    }
    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.inner.gates(now)
    }
    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.inner.save(name, state)
    }
    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.saved(name)
    }
    fn commit(&mut self) -> Result<(), StoreError> {
        self.inner.commit()
    }
    fn recover(&mut self) -> Result<u64, StoreError> {
        self.inner.recover()
    }
}
