//! The frontier in memory: for runs without a job directory.
//!
//! Bounded by bytes; what is offered beyond is refused. It never touches a disk, so it ends with its process,
//! but it outlives the scheduler that uses it. Jobs that are out are kept as copies (their number is that of
//! the requests in flight), so that [`Store::recover`] can give them back.

mod line;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use self::line::Line;
use super::job::{Books, Job, Outcome, RequestId, SlotKey};
use super::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};

/// Bytes of an id or seen key in a hash table, with its control byte.
const KEY_BYTES: usize = 17;

/// Bytes of a slot beside its jobs: its line, its name, its place in the table.
const SLOT_BYTES: usize = size_of::<Line>() + size_of::<SlotKey>() + 64;

/// Bytes of a queued job beside itself: its place in a line, which may be half empty.
const PLACE_BYTES: usize = 2 * size_of::<line::Aged>();

/// Bytes of a child that is remembered with its parent: a table of few is up to a quarter full only.
const CHILD_BYTES: usize = KEY_BYTES * 4;

/// A frontier in memory.
#[derive(Debug)]
pub struct MemoryStore {
    bound: usize,
    lines: HashMap<Arc<str>, Line>,
    seen: Keys,
    out: HashMap<u128, Out, KeyHash>,
    /// What each parent that is not settled has queued; for offers that are made twice.
    children: HashMap<u128, Keys, KeyHash>,
    books: Books,
    cursors: Cursors,
    gates: HashMap<SlotKey, Duration>,
    states: HashMap<&'static str, Vec<u8>>,
    next_age: u64,
    /// Bytes of jobs, queued and out.
    job_bytes: usize,
    child_count: usize,
}

/// A job that was pulled.
#[derive(Debug)]
struct Out {
    age: u64,
    job: Box<Job>,
}

type Keys = HashSet<u128, KeyHash>;
type KeyHash = BuildHasherDefault<Folded>;

/// Ids and seen keys are hashes already: they are folded, not hashed again.
#[derive(Debug, Default)]
struct Folded(u64);

impl MemoryStore {
    /// A frontier that holds at most `bound` bytes (`FRONTIER_MAX_BYTES`), seen set included.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self {
            bound,
            lines: HashMap::new(),
            seen: Keys::default(),
            out: HashMap::default(),
            children: HashMap::default(),
            books: Books::default(),
            cursors: Cursors::default(),
            gates: HashMap::new(),
            states: HashMap::new(),
            next_age: 0,
            job_bytes: 0,
            child_count: 0,
        }
    }

    /// Whether the job is to be dropped, by the rules of [`Store::offer`]; nothing is changed.
    fn find(&self, job: &Job) -> Found {
        let siblings = job.parent.and_then(|parent| self.children.get(&parent.0));
        if siblings.is_some_and(|siblings| siblings.contains(&job.id.0)) {
            Found::Repeated
        } else if !job.request.is_unfiltered() && self.seen.contains(&job.key) {
            Found::Duplicate
        } else {
            Found::New
        }
    }

    /// Fails when these jobs, as far as they are new, have no room.
    fn check_room(&self, jobs: &[Job]) -> Result<(), StoreError> {
        // What is queued of a parent that is out is remembered with it.
        let child = |job: &Job| if job.parent.is_some_and(|p| self.out.contains_key(&p.0)) { CHILD_BYTES } else { 0 };
        let all: usize = jobs.iter().map(|job| bytes_of(job) + child(job)).sum();
        if self.weight().saturating_add(all).saturating_add(self.growth(jobs.len())) <= self.bound {
            return Ok(());
        }
        // Most of a batch is usually known; what counts is the rest.
        let found_new = jobs.iter().filter(|job| self.find(job) == Found::New);
        let new: Vec<usize> = found_new.map(|job| bytes_of(job) + child(job)).collect();
        let held = self.weight();
        if !new.is_empty() && held + new.iter().sum::<usize>() + self.growth(new.len()) > self.bound {
            return Err(StoreError::Full { held, bound: self.bound });
        }
        Ok(())
    }

    /// Bytes by which the seen set grows to take `keys` more: it doubles.
    fn growth(&self, keys: usize) -> usize {
        if self.seen.len() + keys > self.seen.capacity() { table_bytes(self.seen.capacity().max(keys)) } else { 0 }
    }

    fn take_in(&mut self, job: Job) {
        if let Some(parent) = job.parent
            && self.out.contains_key(&parent.0)
        {
            self.children.entry(parent.0).or_default().insert(job.id.0);
            self.child_count += 1;
        }
        self.books.enqueued += 1;
        self.books.pending += 1;
        let age = self.next_age();
        self.job_bytes += bytes_of(&job);
        line_of(&mut self.lines, &job).push(age, Box::new(job));
    }

    fn next_age(&mut self) -> u64 {
        self.next_age += 1;
        self.next_age
    }
}

impl Store for MemoryStore {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        self.check_room(jobs)?;
        let mut offered = Offered::default();
        for job in jobs.drain(..) {
            let found = self.find(&job);
            if found != Found::New && job.request.keeps_lease() {
                offered.kept_dropped.push(job.id);
            }
            match found {
                Found::Repeated => offered.repeated += 1,
                Found::Duplicate => offered.duplicates += 1,
                Found::New => {
                    offered.stored += 1;
                    self.seen.insert(job.key);
                    self.take_in(job);
                }
            }
        }
        Ok(offered)
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        let age = self.next_age();
        if let Entry::Vacant(place) = self.out.entry(job.id.0) {
            place.insert(Out { age, job: Box::new(job.clone()) });
            self.job_bytes += bytes_of(job);
            self.books.enqueued += 1;
            self.books.pending += 1;
        }
        Ok(())
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        let Some(line) = self.lines.get_mut(&slot.0) else {
            return Ok(Pulled::Empty);
        };
        let (age, pulled) = line.pull(now);
        if line.is_empty() {
            self.lines.remove(&slot.0);
        }
        if let Pulled::Job(job) = &pulled {
            self.out.insert(job.id.0, Out { age, job: job.clone() });
        }
        Ok(pulled)
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        let Some(out) = self.out.remove(&job.id.0) else {
            return Ok(());
        };
        self.job_bytes = (self.job_bytes + bytes_of(&job)).saturating_sub(bytes_of(&out.job));
        let age = self.next_age();
        line_of(&mut self.lines, &job).put_back(age, Box::new(job), not_before);
        Ok(())
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        Ok(self.seen.insert(key))
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError> {
        let Some(out) = self.out.remove(&id.0) else {
            return Ok(false);
        };
        self.job_bytes = self.job_bytes.saturating_sub(bytes_of(&out.job));
        if let Some(children) = self.children.remove(&id.0) {
            self.child_count = self.child_count.saturating_sub(children.len());
        }
        self.books.settle(outcome);
        Ok(true)
    }

    fn books(&self) -> Books {
        self.books
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.lines.iter().map(|(host, line)| (SlotKey(Arc::clone(host)), line.earliest())).collect()
    }

    fn weight(&self) -> usize {
        self.job_bytes
            + table_bytes(self.seen.capacity())
            + self.lines.capacity() * SLOT_BYTES
            + self.out.capacity() * (KEY_BYTES + size_of::<Out>())
            + self.child_count * CHILD_BYTES
    }

    fn medium(&self) -> Medium {
        Medium::Memory
    }

    fn cursors(&self) -> Cursors {
        self.cursors
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.cursors.advance(to);
        Ok(())
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        let gate = self.gates.entry(slot.clone()).or_default();
        *gate = until.max(*gate);
        Ok(())
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.gates.retain(|_, until| *until > now);
        self.gates.iter().map(|(slot, until)| (slot.clone(), *until)).collect()
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
        let out = std::mem::take(&mut self.out);
        let count = u64::try_from(out.len()).unwrap_or(u64::MAX);
        for Out { age, job } in out.into_values() {
            line_of(&mut self.lines, &job).put_back(age, job, Duration::ZERO);
        }
        Ok(count)
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "both halves are folded into one")]
    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64 ^ key as u64;
    }
}

/// What the store knows of an offered job.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    New,
    Duplicate,
    Repeated,
}

fn line_of<'a>(lines: &'a mut HashMap<Arc<str>, Line>, job: &Job) -> &'a mut Line {
    let host = job.url().host_str().unwrap_or_default();
    lines.entry(Arc::from(host)).or_insert_with(Line::new)
}

fn bytes_of(job: &Job) -> usize {
    job.weight() + PLACE_BYTES
}

/// Bytes of a table of keys that holds `capacity` of them: it is at most seven eighths full.
const fn table_bytes(capacity: usize) -> usize {
    capacity / 7 * 8 * KEY_BYTES
}

#[cfg(test)]
mod tests;
