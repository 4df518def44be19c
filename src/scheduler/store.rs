//! The frontier behind the scheduler: what a store must do, and nothing about pacing.
//!
//! A store owns every request from the offer to the settle, the seen set, and the books; each method is
//! one atomic step, and a store that survives a crash gives back what was pulled and not settled. Stores
//! know no clock (times are passed in, as time since the Unix epoch): when a job may go is the scheduler's
//! business, except for the not-before time a job was sent back with, which the store keeps with it.

use std::time::Duration;

use super::job::{Books, Job, Outcome, RequestId, SlotKey};

/// A frontier store.
pub trait Store: Send {
    /// Takes jobs in: drops what was seen before (unless the request passes the filter, which marks it as seen
    /// all the same) and what was queued before as the same child of the same unsettled parent, queues the rest.
    ///
    /// # Errors
    /// When the store cannot write; then none of the batch was taken, and `jobs` is as it was. Otherwise it is
    /// empty.
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError>;

    /// Takes a job in as one that is pulled already, past the seen set and the bound: robots.txt requests, for
    /// which pages wait that are pulled themselves. They go back into the queue by [`Store::recover`] only.
    ///
    /// # Errors
    /// When the store cannot write.
    fn admit(&mut self, job: &Job) -> Result<(), StoreError>;

    /// Takes the slot's next job that is due at `now`: highest priority first, oldest first within one, by when
    /// it was offered or put back. The job counts as pending until it is settled or put back. One that never will be
    /// readable ends as set aside, with an error in the log, and the next one is taken.
    ///
    /// # Errors
    /// When the store cannot read for now; the job is where it was.
    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError>;

    /// Puts a pulled job back, to go at `not_before` at the earliest; `job` replaces what was stored
    /// (attempts, URL after a redirect, priority). A job that is not out changes nothing. There is always room.
    ///
    /// # Errors
    /// When the store cannot write.
    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError>;

    /// Notes what a pulled job has become, one that follows a redirect: after a crash this is what is in the queue again.
    /// Without it the job would come back as it was, meet its own redirect target as seen before, and lose that page.
    /// A store that ends with its process has nothing to do; a job that is not out changes nothing.
    ///
    /// # Errors
    /// When the store cannot write.
    fn replace(&mut self, job: &Job) -> Result<(), StoreError> {
        let _ = job;
        Ok(())
    }

    /// Marks a key as seen; false when it was seen before. For redirect targets.
    ///
    /// # Errors
    /// When the store cannot write.
    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError>;

    /// Ends a pulled job. Settling twice, or settling an unknown id, changes nothing and answers false.
    ///
    /// # Errors
    /// When the store cannot write.
    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError>;

    /// The books.
    fn books(&self) -> Books;

    /// Slots that hold a queued job, each with its earliest not-before time.
    fn slots(&self) -> Vec<(SlotKey, Duration)>;

    /// Bytes held in memory.
    fn weight(&self) -> usize;

    /// Where the queue is kept, for the counters' names.
    fn medium(&self) -> Medium;

    /// How many requests of no page were accepted, in order: where `start()` goes on after a restart, and from where
    /// `idle` numbers what it makes.
    fn cursors(&self) -> Cursors;

    /// Moves the cursors forward; neither ever goes back.
    ///
    /// # Errors
    /// When the store cannot write.
    fn advance(&mut self, to: Cursors) -> Result<(), StoreError>;

    /// Remembers that nothing of the slot may be sent before `until`; the later one of two holds.
    ///
    /// # Errors
    /// When the store cannot write.
    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError>;

    /// What [`Store::gate`] was told, except what was over at `now`, which is forgotten.
    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)>;

    /// Keeps a small state of another part of the job (cookies, counters) under a name; it replaces what was there.
    ///
    /// # Errors
    /// When the store cannot write.
    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError>;

    /// What was saved under a name.
    ///
    /// # Errors
    /// When the store cannot read.
    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Makes everything since the last commit survive the end of this process, all of it or nothing. What is not
    /// committed is answered by the other methods as if it were, but nobody else may hear of it before.
    ///
    /// # Errors
    /// When the store cannot write; nothing is lost, and another commit tries again.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Commits and sees to it that a power cut takes nothing any more; nothing is done with the store afterwards.
    ///
    /// # Errors
    /// When the store cannot write: what was not committed is lost, as by a crash.
    fn close(&mut self) -> Result<(), StoreError> {
        self.commit()
    }

    /// Jobs pulled and neither settled nor put back: after a crash they go back to their place in the queue.
    /// What is known to have ended must be settled before.
    ///
    /// # Errors
    /// When the store cannot write.
    fn recover(&mut self) -> Result<u64, StoreError>;
}

/// How many requests were taken in of those that no page's callback made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursors {
    /// Requests of `start()`.
    pub start: u64,
    /// Requests of `idle`.
    pub idle: u64,
}

impl Cursors {
    /// Moves each forward to `to`.
    pub(crate) fn advance(&mut self, to: Self) {
        self.start = self.start.max(to.start);
        self.idle = self.idle.max(to.idle);
    }
}

/// Where a store keeps its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// In memory.
    Memory,
    /// On disk.
    Disk,
    /// At a Redis server.
    Redis,
}

impl Medium {
    /// Whether what is committed is there in the next run.
    #[must_use]
    pub const fn is_durable(self) -> bool {
        matches!(self, Self::Disk | Self::Redis)
    }
}

/// What an offer came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offered {
    /// Queued.
    pub stored: u64,
    /// Dropped as seen before.
    pub duplicates: u64,
    /// Offered before by the same parent: nothing to do.
    pub repeated: u64,
    /// Those not queued whose request keeps the lease of the page it was found on: nobody waits for it now.
    pub kept_dropped: Vec<RequestId>,
}

/// What a slot gave.
#[derive(Debug)]
pub enum Pulled {
    /// A job that may go now.
    Job(Box<Job>),
    /// The slot's earliest job may go then.
    NotBefore(Duration),
    /// The slot is empty.
    Empty,
}

/// A store that cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The frontier is at its bound and nothing can be spilled.
    #[error(
        "the frontier holds {held} bytes of at most {bound} (FRONTIER_MAX_BYTES); raise it or let the spider follow fewer links"
    )]
    Full {
        /// Bytes held.
        held: usize,
        /// The bound.
        bound: usize,
    },
    /// Reading or writing failed: what, where, and what to do.
    #[error("{0}")]
    Io(String),
}
