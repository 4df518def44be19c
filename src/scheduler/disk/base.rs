//! The database under a frontier: opening, writing a batch, reading, and keeping its memory and journals small.
//!
//! It is the only file that knows the database's ways. A database that failed to write takes no more writes until it
//! is opened anew; nothing here waits without end for its background thread, which may have died of the same failure.
//!
//! Memory tables are turned over by us, never by the database: it would ask its thread once for each batch above the
//! bound, and its queue of such messages can block that very thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fjall::compaction::Leveled;
use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy, PinningPolicy,
};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Slice};

use super::error::DiskError;
use super::rows::{HEARTBEAT, Space};

/// Bytes of one space's memory table, as the database counts them, before it is written to disk.
const TABLE_BYTES: u64 = 3 << 20;

/// Bytes written to memory tables before all of them go to disk, so that no journal is kept for a few rows.
const ROUND_BYTES: u64 = 32 << 20;

/// Memory tables and runs that may wait for the background thread. Twice as many tables, or five runs more, and the
/// database would wait for that thread by itself, without end.
const WAITING_TABLES: usize = 2;
const WAITING_RUNS: usize = 15;

/// How long the background thread is waited for by what nobody waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Blocks read are cached up to this many bytes.
const CACHE_BYTES: u64 = 2 << 20;

/// An open database.
pub(super) struct Base {
    // Handles go before the database they belong to.
    spaces: [Keyspace; 5],
    database: Database,
    dir: PathBuf,
    /// Bytes since all memory tables went to disk.
    round: u64,
    /// How long the background thread is waited for.
    patience: Duration,
}

/// Rows to be written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    rows: Vec<(Space, Slice, Option<Slice>)>,
}

impl Batch {
    /// Writes a row, or removes it when there is no value.
    pub(super) fn set<'a>(&mut self, space: Space, key: impl AsRef<[u8]>, value: impl Into<Option<&'a [u8]>>) {
        self.rows.push((space, Slice::new(key.as_ref()), value.into().map(Slice::new)));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

impl Base {
    /// Opens the database at `dir`, which belongs to the frontier at `owner`, or makes it.
    pub(super) fn open(owner: &Path, dir: &Path) -> Result<Self, DiskError> {
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let database = Database::builder(dir)
                .worker_threads(1)
                .cache_size(CACHE_BYTES)
                .max_cached_files(Some(128))
                .max_journaling_size(128 << 20)
                .open()?;
            let [a, b, c, d, e] = Space::ALL;
            let space = |space: Space| database.keyspace(space.name(), || options(space));
            Ok((database.clone(), [space(a)?, space(b)?, space(c)?, space(d)?, space(e)?]))
        }));
        match opened {
            Ok(Ok((database, spaces))) => Ok(Self { spaces, database, dir: owner.to_owned(), round: 0, patience: PATIENCE }),
            Ok(Err(error)) => Err(DiskError::database(owner, "open the database", &error)),
            // Its reader takes some things for granted that a damaged disk does not keep to.
            Err(_) => {
                let what = "the database is damaged (reading it failed, see the message above)".to_owned();
                Err(DiskError::Damaged { path: owner.to_owned(), what })
            }
        }
    }

    /// Waits so long for the background thread from now on.
    pub(super) const fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Writes a batch, all of it or nothing. When this is back it survives the end of the process, and with `sync` a
    /// power cut.
    pub(super) fn write(&mut self, batch: &Batch, sync: bool) -> Result<(), DiskError> {
        self.wait_for_room()?;
        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut write = OwnedWriteBatch::with_capacity(self.database.clone(), batch.rows.len()).durability(Some(mode));
        for (space, key, value) in &batch.rows {
            let at = self.space(*space);
            match value {
                Some(value) => write.insert(at, key.clone(), value.clone()),
                None => write.remove(at, key.clone()),
            }
            self.round += (key.len() + value.as_ref().map_or(0, |value| value.len()) + 64) as u64;
        }
        write.commit().map_err(|error| self.failed("write", &error))?;
        self.turn_over()
    }

    /// A row.
    pub(super) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Slice>, DiskError> {
        self.space(space).get(key).map_err(|error| self.failed("read", &error))
    }

    /// Rows in the order of their keys, from `from` on.
    pub(super) fn scan<'a>(
        &'a self,
        space: Space,
        from: &[u8],
    ) -> impl Iterator<Item = Result<(Slice, Slice), DiskError>> + use<'a> {
        let rows = self.space(space).range(from..);
        let rows = rows.map(|row| row.into_inner().map_err(|error| self.failed("read", &error)));
        rows.filter(|row| !row.as_ref().is_ok_and(|(key, _)| **key == *HEARTBEAT))
    }

    /// Bytes on disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.spaces.iter().map(|space| space.disk_space()).sum()
    }

    /// Journals on disk.
    #[cfg(test)]
    pub(super) fn journals(&self) -> usize {
        self.database.journal_count()
    }

    /// Puts everything that only journals hold into tables, for a quick next opening.
    pub(super) fn settle_down(&self) -> Result<(), DiskError> {
        self.healthy()?;
        for space in &self.spaces {
            space.rotate_memtable().map_err(|error| self.failed("write", &error))?;
        }
        self.wait_until(|space| space.tree.sealed_memtable_count() == 0)?;
        self.database.persist(PersistMode::SyncAll).map_err(|error| self.failed("write", &error))
    }

    fn space(&self, space: Space) -> &Keyspace {
        let [jobs, seen, children, ended, meta] = &self.spaces;
        match space {
            Space::Jobs => jobs,
            Space::Seen => seen,
            Space::Children => children,
            Space::Ended => ended,
            Space::Meta => meta,
        }
    }

    /// Turns memory tables over that are big, or all of them after a round.
    fn turn_over(&mut self) -> Result<(), DiskError> {
        let round = self.round >= ROUND_BYTES;
        for space in Space::ALL {
            let at = self.space(space);
            if (round || at.tree.active_memtable().size() > TABLE_BYTES) && !is_behind(at) {
                if round && matches!(space, Space::Children | Space::Ended) {
                    // What an idle space wrote last must be in a table, else the journal that holds it stays.
                    at.insert(HEARTBEAT, []).map_err(|error| self.failed("write", &error))?;
                }
                at.rotate_memtable().map_err(|error| self.failed("write", &error))?;
            }
        }
        if round {
            self.round = 0;
        }
        Ok(())
    }

    /// Waits while the background thread is too far behind for one more batch.
    fn wait_for_room(&self) -> Result<(), DiskError> {
        let has_room = |space: &Keyspace| !is_behind(space) || space.tree.active_memtable().size() < 2 * TABLE_BYTES;
        let is_far_behind = |space: &Keyspace| {
            space.tree.sealed_memtable_count() >= 2 * WAITING_TABLES || space.tree.l0_run_count() >= WAITING_RUNS + 5
        };
        self.wait_until(|space| has_room(space) && !is_far_behind(space))
    }

    fn wait_until(&self, done: impl Fn(&Keyspace) -> bool) -> Result<(), DiskError> {
        if self.spaces.iter().all(&done) {
            return Ok(());
        }
        let since = Instant::now();
        loop {
            self.healthy()?;
            std::thread::sleep(Duration::from_millis(2));
            if self.spaces.iter().all(&done) {
                return Ok(());
            }
            if since.elapsed() > self.patience {
                return Err(DiskError::Slow { path: self.dir.clone(), waited: self.patience });
            }
        }
    }

    /// Fails when a write failed before, also one of the background thread.
    fn healthy(&self) -> Result<(), DiskError> {
        self.database.persist(PersistMode::Buffer).map_err(|error| self.failed("write", &error))
    }

    fn failed(&self, what: &'static str, error: &fjall::Error) -> DiskError {
        DiskError::database(&self.dir, what, error)
    }
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("dir", &self.dir).field("journals", &self.database.journal_count()).finish_non_exhaustive()
    }
}

fn is_behind(space: &Keyspace) -> bool {
    space.tree.sealed_memtable_count() >= WAITING_TABLES || space.tree.l0_run_count() >= WAITING_RUNS
}

fn options(space: Space) -> KeyspaceCreateOptions {
    let leveled = Leveled::default().with_table_target_size(8 << 20);
    let options = KeyspaceCreateOptions::default()
        // Never reached: see the module's header.
        .max_memtable_size(u64::MAX)
        .compaction_strategy(std::sync::Arc::new(leveled));
    match space {
        // A job is read once, by its age, at a time that has nothing to do with its neighbours'. With all filters and
        // block indexes in memory (about 3 bytes a job) that is one block.
        Space::Jobs => options
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0))))
            .filter_block_pinning_policy(PinningPolicy::all(true))
            .index_block_pinning_policy(PinningPolicy::all(true))
            .filter_block_partitioning_policy(PartitioningPolicy::all(false))
            .index_block_partitioning_policy(PartitioningPolicy::all(false)),
        // Keys are hashes: they cannot be compressed, and are only read from one end to the other.
        Space::Seen => {
            options.filter_policy(FilterPolicy::disabled()).data_block_compression_policy(CompressionPolicy::disabled())
        }
        Space::Children | Space::Ended | Space::Meta => options.filter_policy(FilterPolicy::disabled()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_disk_that_is_behind_is_not_waited_for_longer_than_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut base = Base::open(dir.path(), &dir.path().join("db")).unwrap();
        base.set_patience(Duration::from_millis(50));
        let since = Instant::now();
        let error = base.wait_until(|_| false).unwrap_err();
        assert!((50..10_000).contains(&since.elapsed().as_millis()));
        assert!(matches!(&error, DiskError::Slow { .. }), "{error}");
        assert!(error.to_string().ends_with("did not take what was to be written within 50ms; it is tried again"), "{error}");
        let mut batch = Batch::default();
        batch.set(Space::Jobs, [1], &b"x"[..]);
        base.write(&batch, false).unwrap();
        base.settle_down().unwrap();
    }
}
