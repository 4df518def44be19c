//! The frontier in memory: for runs without a job directory.
//!
//! It keeps each job as a record of a hundred bytes or two, beside the index. Bounded by bytes: at the bound the youngest
//! records go to a temporary file, where there is one, so that only the index grows; when that is at the bound, offers
//! are refused. What the file does not give back is set aside by itself. It ends with its process, but outlives the scheduler that uses it: the records of jobs that are out stay,
//! so that [`Store::recover`] can give them back.

mod bodies;
mod page;
mod spill;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use self::bodies::Bodies;
use self::spill::Spill;
use super::index::heap::allocation;
use super::index::{Found, Index, Next};
use super::job::{Books, Job, Outcome, RequestId, SlotKey};
use super::record;
use super::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};

/// A record is at most so many bytes longer than what [`Job::weight`] counts and the fields it leaves out.
const RECORD_BYTES: usize = 64;

/// A frontier in memory.
#[derive(Debug)]
pub struct MemoryStore {
    bound: usize,
    /// The weight from which on records are spilled: the bound.
    spill_at: usize,
    index: Index,
    bodies: Bodies,
    states: HashMap<&'static str, Vec<u8>>,
    /// The record at hand.
    record: Vec<u8>,
    /// Spilling failed, and has not succeeded since.
    spill_fails: bool,
}

impl MemoryStore {
    /// A frontier that holds at most `bound` bytes (`FRONTIER_MAX_BYTES`), seen set included, and refuses what is
    /// beyond.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self::over(bound, None)
    }

    /// A frontier that holds at most `bound` bytes (`FRONTIER_MAX_BYTES`), and moves queued jobs to a temporary file
    /// below `dir` where they have no room, so that some 40 bytes a job stay. The file is made when it is needed and
    /// removed with the store; what killed processes left below `dir` is removed now.
    #[must_use]
    pub fn spilling(bound: usize, dir: &Path) -> Self {
        Self::over(bound, Some(Spill::below(dir)))
    }

    /// Bytes of queued jobs that are in the temporary file, those included that are not wanted any more.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.bodies.spill().map_or(0, Spill::bytes)
    }

    fn over(bound: usize, spill: Option<Spill>) -> Self {
        Self {
            bound,
            spill_at: bound,
            index: Index::new(),
            bodies: Bodies::new(spill),
            states: HashMap::new(),
            record: Vec::new(),
            spill_fails: false,
        }
    }

    /// Fails when these jobs, as far as they are new, have no room, and cannot be given any.
    fn make_room(&mut self, jobs: &[Job]) -> Result<(), StoreError> {
        let bytes = jobs.iter().map(|job| record_bytes(job, &mut self.record)).sum();
        let most = self.index.most_growth(jobs.len()) + self.bodies.growth(jobs.len(), bytes);
        if self.weight().saturating_add(most) <= self.bound {
            return Ok(());
        }
        // Most of a batch is usually known; what counts is the rest.
        let new = jobs.iter().filter(|job| self.index.look(job) == Found::New);
        let (mut count, mut bytes) = (0, 0);
        for job in new.clone() {
            self.record.clear();
            record::encode(job, Duration::ZERO, &mut self.record);
            count += 1;
            bytes += self.record.len();
        }
        if count == 0 {
            return Ok(());
        }
        let of_index = self.index.growth(new);
        let growth = of_index + self.bodies.growth(count, bytes);
        if self.weight() + growth <= self.bound {
            return Ok(());
        }
        if self.bodies.spills() {
            // Records that have no room beside the others are spilled as soon as they are in: a page may offer more than
            // the bound, and what it offers is in memory anyway. What the index takes stays.
            let room = self.spill_down_to(self.bound.saturating_sub(growth));
            if room || !self.spill_fails && self.weight() + of_index <= self.bound {
                return Ok(());
            }
        }
        Err(StoreError::Full { held: self.weight(), bound: self.bound })
    }

    /// Spills until so few bytes are held; false when that does not come about.
    fn spill_down_to(&mut self, bytes: usize) -> bool {
        while self.weight() > bytes {
            match self.bodies.spill_one() {
                Ok(true) => self.spill_fails = false,
                Ok(false) => return false,
                Err(error) => {
                    if !std::mem::replace(&mut self.spill_fails, true) {
                        let dir = self.bodies.spill().map(|spill| spill.above().display().to_string()).unwrap_or_default();
                        tracing::warn!(dir, %error, "queued requests cannot be moved to disk; the frontier takes no more for now");
                    }
                    return false;
                }
            }
        }
        true
    }

    /// For what has room whatever is held: it is made where it can be.
    fn spill_what_is_over(&mut self) {
        if self.bodies.spills() && self.weight() > self.spill_at {
            self.spill_down_to(self.spill_at);
        }
    }

    fn keep(&mut self, age: u64, job: &Job, not_before: Duration) {
        self.record.clear();
        record::encode(job, not_before, &mut self.record);
        self.bodies.keep(age, &self.record);
    }

    /// A job, or why it cannot be read: what is lost from a temporary file does not come back.
    fn read(&mut self, age: u64) -> Result<Job, String> {
        self.record.clear();
        match self.bodies.read(age, &mut self.record) {
            Ok(true) => record::decode(&self.record).map(|(job, _)| job).map_err(|error| error.to_string()),
            Ok(false) => Err("its record is gone".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Store for MemoryStore {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        self.make_room(jobs)?;
        let Self { index, bodies, record, .. } = self;
        let offered = index.offer(jobs, |taken, job| {
            record.clear();
            record::encode(&job, Duration::ZERO, record);
            bodies.keep(taken.age, record);
        });
        self.spill_what_is_over();
        Ok(offered)
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        if let Some(age) = self.index.admit(job) {
            self.keep(age, job, Duration::ZERO);
            self.spill_what_is_over();
        }
        Ok(())
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        loop {
            let queued = match self.index.pull(slot, now) {
                Next::Empty => return Ok(Pulled::Empty),
                Next::NotBefore(at) => return Ok(Pulled::NotBefore(at)),
                Next::Job(queued) => queued,
            };
            let age = queued.age;
            match self.read(age) {
                Ok(job) if self.index.went_out(job.id, queued) => return Ok(Pulled::Job(Box::new(job))),
                Ok(_) => {}
                Err(reason) => {
                    // The next one may be readable, and nobody waits for this one for ever.
                    tracing::error!(age, host = &*slot.0, %reason, "a queued request cannot be read; it counts as set aside");
                    self.index.set_damaged_aside();
                }
            }
            self.bodies.drop_record(age);
        }
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        if let Some(moved) = self.index.put_back(&job, not_before) {
            self.bodies.drop_record(moved.from);
            self.keep(moved.to, &job, not_before);
            self.spill_what_is_over();
        }
        Ok(())
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        Ok(self.index.seen.insert(key))
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError> {
        let settled = self.index.settle(id, outcome);
        if let Some(settled) = settled {
            self.bodies.drop_record(settled.age);
        }
        Ok(settled.is_some())
    }

    fn books(&self) -> Books {
        self.index.books
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.index.lines.slots()
    }

    fn weight(&self) -> usize {
        let states: usize = self.states.values().map(|state| allocation(state.capacity())).sum();
        self.index.bytes() + self.bodies.bytes() + states
    }

    fn medium(&self) -> Medium {
        Medium::Memory
    }

    fn cursors(&self) -> Cursors {
        self.index.cursors
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.index.cursors.advance(to);
        Ok(())
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        self.index.gate(slot, until);
        Ok(())
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.index.gates(now)
    }

    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.states.insert(name, state);
        Ok(())
    }

    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.states.get(name).cloned())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn recover(&mut self) -> Result<u64, StoreError> {
        Ok(self.index.recover())
    }
}

/// Bytes of a job's record at most.
fn record_bytes(job: &Job, record: &mut Vec<u8>) -> usize {
    if job.request.parts().extra.is_some() {
        record.clear();
        record::encode(job, Duration::ZERO, record);
        return record.len();
    }
    let text = |text: &Option<std::sync::Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    job.url().as_str().len()
        + job.request.step().len()
        + text(&job.parent_url)
        + text(&job.first_url)
        + 16 * (job.chain.len() + 3)
        + RECORD_BYTES
}

#[cfg(test)]
mod tests;
