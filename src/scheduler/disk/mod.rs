//! The frontier on disk: what is queued, what was seen, and how everything ended, in `JOBDIR/frontier/`.
//!
//! An index in memory answers every question; records of jobs lie in an embedded database and are read when a job is
//! pulled. A pull writes nothing: whatever has not ended is in the queue again after a crash, at its old place. All that
//! happened since the last commit is written as one batch, which survives the end of the process at once and a power
//! cut a moment later.
//!
//! What cannot be written is kept and written by the next commit. What cannot be read is set aside by itself, counted
//! and named; it never takes the rest with it.

mod base;
mod changes;
mod error;
mod inspect;
mod open;
mod place;
mod rows;
mod salvage;
mod store;
mod survey;
mod sync;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::error::DiskError;
pub use self::inspect::{Inspection, Kept, Record};
pub use self::open::{Opened, Repaired};
pub use self::store::DiskStore;
pub use self::survey::{SlotCount, Survey, survey};

/// How a frontier on disk works.
#[derive(Debug, Clone)]
pub struct DiskOptions {
    /// How long a commit may be lost to a power cut (`FRONTIER_SYNC_MS`); zero syncs each commit. No commit is lost to a
    /// `kill -9`.
    pub sync: Duration,
    /// How long to wait before another try after the second failure to write in a row.
    pub retry: Duration,
    /// How long a commit waits for a disk that is behind before it fails, to be tried again. The thread that commits does
    /// nothing else meanwhile.
    pub patience: Duration,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { sync: Duration::from_millis(100), retry: Duration::from_millis(250), patience: Duration::from_secs(2) }
    }
}
