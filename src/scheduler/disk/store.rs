//! The store itself: the index in memory, the changes since the last commit, and the database under them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::DiskOptions;
use super::base::{Base, PATIENCE};
use super::changes::Changes;
use super::error::DiskError;
use super::place::Place;
use super::rows::{self, Head, Kept, Space};
use super::sync::Syncer;
use crate::scheduler::index::heap::KeyMap;
use crate::scheduler::index::{Index, Next, Queued};
use crate::scheduler::job::{Books, Job, JobKind, Outcome, RequestId, SlotKey};
use crate::scheduler::record;
use crate::scheduler::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};

/// A frontier on disk.
pub struct DiskStore {
    // In the order in which they end: the lock goes last.
    pub(super) syncer: Syncer,
    pub(super) base: Option<Base>,
    pub(super) index: Index,
    pub(super) changes: Changes,
    /// As of the last commit.
    pub(super) head: Head,
    /// The youngest age given.
    pub(super) last_age: u64,
    /// The commits in which children of a parent were written.
    pub(super) broods: KeyMap<Vec<u64>>,
    /// Records of jobs that are out, by age: what ends as failed is kept without reading it again.
    pub(super) out: HashMap<u64, Vec<u8>>,
    pub(super) options: DiskOptions,
    /// The last failure, and when to try again.
    pub(super) failed: Option<(DiskError, Instant)>,
    /// The database takes no writes any more; it can still be read.
    pub(super) broken: bool,
    /// A sync failed: what only journals hold is to be written anew.
    pub(super) unsynced: bool,
    #[cfg(test)]
    pub(super) fault: Option<crate::scheduler::model::Fault>,
    pub(super) place: Place,
}

impl DiskStore {
    /// Ends the store so that the next opening is quick: commits, and puts everything into its place.
    ///
    /// # Errors
    /// When something could not be written. What was committed before is safe all the same.
    pub fn close(mut self) -> Result<(), DiskError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), DiskError> {
        // Nobody waits for anything else now.
        self.options.patience = PATIENCE;
        self.base()?.set_patience(PATIENCE);
        self.write()?;
        self.base()?.settle_down()
    }

    /// Where it lies.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.place.dir()
    }

    /// Bytes on disk, as far as they are in tables.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.base.as_ref().map_or(0, Base::disk_bytes)
    }

    /// Writes the changes. After a failure the database is closed, and opened anew by the next try.
    pub(super) fn write(&mut self) -> Result<(), DiskError> {
        if let Some(error) = self.syncer.failed() {
            // It cannot be known what of the pages that were to be synced is on disk: they do not count as dirty now.
            tracing::error!(%error, "the frontier is written anew, since it could not be synced");
            self.broken = true;
            self.unsynced = true;
        }
        if self.broken || self.base.is_none() {
            self.reopen()?;
        }
        if self.unsynced {
            self.settle_down()?;
        }
        if self.changes.is_empty() {
            return Ok(());
        }
        let head = Head {
            commit: self.head.commit + 1,
            seen_rows: self.head.seen_rows + u64::from(self.changes.has_seen()),
            last_age: self.last_age,
            out: u64::try_from(self.index.out.len()).unwrap_or(u64::MAX),
            books: self.index.books,
            cursors: self.index.cursors,
        };
        if let Err(error) = self.write_as(&head) {
            self.broken = !matches!(error, DiskError::Slow { .. });
            return Err(self.remember(error));
        }
        self.head = head;
        for parent in self.changes.parents() {
            self.broods.entry(parent.0).or_default().push(head.commit);
        }
        self.changes = Changes::default();
        self.failed = None;
        self.syncer.wrote(head.commit);
        Ok(())
    }

    fn write_as(&mut self, head: &Head) -> Result<(), DiskError> {
        let batch = self.changes.batch(head);
        let sync = self.options.sync.is_zero();
        #[cfg(test)]
        let fault = self.fault.take();
        #[cfg(test)]
        if fault == Some(crate::scheduler::model::Fault::Before) {
            return Err(DiskError::Full { path: self.dir().to_owned() });
        }
        self.base()?.write(&batch, sync)?;
        #[cfg(test)]
        if fault.is_some() {
            return Err(DiskError::Full { path: self.dir().to_owned() });
        }
        Ok(())
    }

    /// Opens the database anew, unless that was tried a moment ago.
    fn reopen(&mut self) -> Result<(), DiskError> {
        if let Some((error, again)) = &self.failed
            && Instant::now() < *again
        {
            return Err(error.clone());
        }
        // Its lock must be free before.
        self.base = None;
        self.base = Some(self.opened_again().map_err(|error| self.remember(error))?);
        self.broken = false;
        Ok(())
    }

    /// The database that was closed: never another, nor an earlier state of it.
    fn opened_again(&self) -> Result<Base, DiskError> {
        let damaged = |what: &str| DiskError::Damaged { path: self.dir().to_owned(), what: what.to_owned() };
        if !self.place.has_database() {
            return Err(damaged("its database is gone"));
        }
        let mut base = Base::open(self.dir(), &self.place.database())?;
        if super::open::head(self.dir(), &base)?.commit < self.head.commit {
            return Err(damaged("commits of this run are gone from its database"));
        }
        base.set_patience(self.options.patience);
        Ok(base)
    }

    /// Writes anew what only journals hold that could not be synced.
    fn settle_down(&mut self) -> Result<(), DiskError> {
        if let Err(error) = self.base()?.settle_down() {
            self.broken = !matches!(error, DiskError::Slow { .. });
            return Err(self.remember(error));
        }
        self.unsynced = false;
        Ok(())
    }

    #[allow(clippy::expect_used, reason = "a failure to open it is an error")]
    pub(super) fn base(&mut self) -> Result<&mut Base, DiskError> {
        if self.base.is_none() {
            self.reopen()?;
        }
        Ok(self.base.as_mut().expect("it was opened above"))
    }

    /// Notes a failure: the first try after it may come at once, later ones are spaced.
    fn remember(&mut self, error: DiskError) -> DiskError {
        let wait = if self.failed.is_some() { self.options.retry } else { Duration::ZERO };
        self.failed = Some((error.clone(), Instant::now() + wait));
        error
    }

    /// Keeps a job's record under a new age.
    fn put(&mut self, age: u64, job: &Job, not_before: Duration) {
        self.last_age = self.last_age.max(age);
        self.changes.put_job(age, |into| record::encode(job, not_before, into));
    }

    /// The record of a job that has not ended; none when it cannot be read for good.
    fn record(&mut self, age: u64) -> Result<Option<Vec<u8>>, DiskError> {
        if let Some(record) = self.changes.job(age) {
            return Ok(Some(record.to_vec()));
        }
        let key = rows::numbered(age);
        let row = match self.base()?.get(Space::Jobs, &key) {
            Err(error) if error.is_damage() => None,
            row => row?,
        };
        Ok(row.and_then(|value| rows::open(Space::Jobs, &key, &value).map(<[u8]>::to_vec)))
    }

    fn job(&mut self, age: u64) -> Result<Result<(Job, Vec<u8>), String>, DiskError> {
        Ok(match self.record(age)? {
            Some(record) => match record::decode(&record) {
                Ok((job, _)) => Ok((job, record)),
                Err(error) => Err(error.to_string()),
            },
            None => Err("its record is missing or fails its checksum".to_owned()),
        })
    }

    /// Takes a job that cannot be read out of the queue: the others go on.
    fn set_damaged_aside(&mut self, age: u64, reason: &str) {
        tracing::error!(age, %reason, dir = %self.dir().display(), "a queued request cannot be read; it is set aside as damaged");
        let record = self.record(age).ok().flatten().unwrap_or_default();
        self.changes.keep(Kept::Damaged, age, Outcome::SetAside, &record);
        self.changes.remove_job(age);
        self.index.set_damaged_aside();
    }
}

impl Store for DiskStore {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        let Self { index, changes, last_age, .. } = self;
        Ok(index.offer(jobs, |taken, job| {
            *last_age = (*last_age).max(taken.age);
            changes.put_job(taken.age, |into| record::encode(&job, Duration::ZERO, into));
            if taken.is_key_new {
                changes.see(job.key);
            }
            if taken.is_child
                && let Some(parent) = job.parent
            {
                changes.add_child(parent, job.id);
            }
        }))
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        if let Some(age) = self.index.admit(job) {
            self.put(age, job, Duration::ZERO);
            let record = self.changes.job(age).map(<[u8]>::to_vec);
            self.out.insert(age, record.unwrap_or_default());
        }
        Ok(())
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        loop {
            let queued = match self.index.pull(slot, now) {
                Next::Job(queued) => queued,
                Next::NotBefore(at) => return Ok(Pulled::NotBefore(at)),
                Next::Empty => return Ok(Pulled::Empty),
            };
            match self.job(queued.age) {
                Ok(Ok((job, record))) => {
                    let age = queued.age;
                    if self.index.went_out(job.id, queued) {
                        self.out.insert(age, record);
                        return Ok(Pulled::Job(Box::new(job)));
                    }
                    self.changes.remove_job(age);
                }
                Ok(Err(reason)) => self.set_damaged_aside(queued.age, &reason),
                Err(error) => {
                    self.index.return_unread(&queued);
                    return Err(error.into());
                }
            }
        }
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        if let Some(moved) = self.index.put_back(&job, not_before) {
            self.out.remove(&moved.from);
            self.changes.remove_job(moved.from);
            self.put(moved.to, &job, not_before);
        }
        Ok(())
    }

    fn replace(&mut self, job: &Job) -> Result<(), StoreError> {
        if let Some(Queued { age, .. }) = self.index.out.remove(job.id) {
            // Its place is that of its new URL, also when it fails, or is recovered without another opening.
            let slot = SlotKey::of(job.url());
            self.index.out.insert(job.id, Queued { host: slot.0, age, priority: job.request.priority_value() });
            self.changes.replace_job(age, |into| record::encode(job, Duration::ZERO, into));
            let record = self.changes.job(age).map(<[u8]>::to_vec);
            self.out.insert(age, record.unwrap_or_default());
        }
        Ok(())
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        let is_new = self.index.seen.insert(key);
        if is_new {
            self.changes.see(key);
        }
        Ok(is_new)
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError> {
        let Some(age) = self.index.out.get(id).map(|queued| queued.age) else {
            return Ok(false);
        };
        let record = self.out.remove(&age);
        if let (Some(kept), Some(record)) = (Kept::of(outcome), record)
            // Robots.txt is asked for when a page needs it, and never again by hand.
            && record::peek(&record).is_ok_and(|peek| peek.kind == JobKind::Page)
        {
            self.changes.keep(kept, age, outcome, &record);
        }
        let settled = self.index.settle(id, outcome);
        self.changes.remove_job(age);
        if settled.is_some_and(|settled| settled.had_children) {
            self.changes.remove_children(id, self.broods.remove(&id.0).unwrap_or_default());
        }
        Ok(true)
    }

    fn books(&self) -> Books {
        self.index.books
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.index.lines.slots()
    }

    fn weight(&self) -> usize {
        self.index.bytes()
    }

    fn medium(&self) -> Medium {
        Medium::Disk
    }

    fn cursors(&self) -> Cursors {
        self.index.cursors
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        let before = self.index.cursors;
        self.index.cursors.advance(to);
        if self.index.cursors != before {
            self.changes.touch();
        }
        Ok(())
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        if self.index.gate(slot, until) {
            self.changes.gate(slot, Some(until));
        }
        Ok(())
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        for (slot, _) in self.index.gates(Duration::ZERO).into_iter().filter(|(_, until)| *until <= now) {
            self.changes.gate(&slot, None);
        }
        self.index.gates(now)
    }

    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.changes.save(name, state);
        Ok(())
    }

    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(state) = self.changes.saved(name) {
            return Ok(Some(state.to_vec()));
        }
        let key = rows::state_key(name);
        let row = match &self.base {
            Some(base) => base.get(Space::Meta, &key)?,
            None => return Err(StoreError::Io(self.failed.as_ref().map_or_else(String::new, |(error, _)| error.to_string()))),
        };
        let Some(row) = row else { return Ok(None) };
        let state = rows::open(Space::Meta, &key, &row);
        if state.is_none() {
            tracing::error!(name, dir = %self.dir().display(), "a saved state fails its checksum; it is begun anew");
        }
        Ok(state.map(<[u8]>::to_vec))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(self.end()?)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        Ok(self.write()?)
    }

    fn recover(&mut self) -> Result<u64, StoreError> {
        self.out.clear();
        Ok(self.index.recover())
    }
}

impl std::fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskStore")
            .field("dir", &self.dir())
            .field("books", &self.index.books)
            .field("commit", &self.head.commit)
            .finish_non_exhaustive()
    }
}
