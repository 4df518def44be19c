//! Deleting jobs from the store, and giving their room back to the disk.
//!
//! A job goes in small steps, so that a crawl which writes to the same file waits for none of them long. One that has not ended
//! is deleted only when it is named.

use std::path::Path;

use super::store::{JobStore, StoreError};

/// Batches deleted in one transaction.
const STEP: u32 = 64;
/// Pages given back in one transaction.
const PAGES: u32 = 1_000;

/// What was deleted of one job.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pruned {
    /// The job's id as text.
    pub id: String,
    /// Its batches.
    pub batches: u64,
    /// Bytes of their bodies, as they were sent.
    pub bytes: u64,
}

impl JobStore {
    /// Deletes the finished jobs beyond the newest `keep` of them; 0 keeps all. The age of a job is that of its last batch, or of
    /// its start. Free room is given back as far as that goes in small steps; see [`JobStore::reclaim`].
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`]. What was deleted before stays so.
    pub fn prune(&self, keep: u64) -> Result<Vec<Pruned>, StoreError> {
        let beyond: Vec<String> = match usize::try_from(keep) {
            Ok(0) | Err(_) => return Ok(Vec::new()),
            Ok(keep) => self.by_age()?.into_iter().filter(|job| job.is_finished).skip(keep).map(|job| job.id).collect(),
        };
        let pruned: Vec<Pruned> = beyond.iter().map(|id| self.delete(id, Only::Finished)).collect::<Result<_, _>>()?;
        if !pruned.is_empty() {
            self.shrink()?;
        }
        Ok(pruned)
    }

    /// Deletes the jobs with these ids, whether they have ended or not. An unknown one has no batches.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`]. What was deleted before stays so.
    pub fn prune_jobs(&self, ids: &[String]) -> Result<Vec<Pruned>, StoreError> {
        let pruned = ids.iter().map(|id| self.delete(id, Only::Any)).collect::<Result<_, _>>()?;
        self.shrink()?;
        Ok(pruned)
    }

    /// Gives all free room of the file back to the disk. A store of the first version is written anew for it, which takes as much
    /// room again for that time; it gives its room back in small steps from then on.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`]; nothing is lost, free room is used again.
    pub fn reclaim(&self) -> Result<(), StoreError> {
        let mode: i64 = self.number("PRAGMA auto_vacuum")?;
        if mode == 0 {
            self.connection
                .pragma_update(None, "auto_vacuum", "INCREMENTAL")
                .and_then(|()| self.connection.execute_batch("VACUUM"))
                .map_err(|source| self.explain("shrink", source))?;
        }
        self.shrink()
    }

    /// Bytes of the database file, and of its log of writes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let mut wal = self.path().as_os_str().to_owned();
        wal.push("-wal");
        [self.path(), Path::new(&wal)].iter().filter_map(|path| std::fs::metadata(path).ok()).map(|meta| meta.len()).sum()
    }

    fn delete(&self, id: &str, only: Only) -> Result<Pruned, StoreError> {
        let explain = |source| self.explain("delete from", source);
        let mut pruned = Pruned { id: id.to_owned(), batches: 0, bytes: 0 };
        loop {
            // A job may begin again between two steps; what is not named then stays.
            let mut step = self
                .connection
                .prepare_cached(
                    "DELETE FROM batches WHERE rowid IN (SELECT rowid FROM batches WHERE job_id = ?1 ORDER BY rowid LIMIT ?2)
                     AND (?3 OR EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND finished IS NOT NULL)) RETURNING bytes",
                )
                .map_err(explain)?;
            let deleted: Vec<i64> =
                step.query_map((id, STEP, only == Only::Any), |row| row.get(0)).and_then(Iterator::collect).map_err(explain)?;
            if deleted.is_empty() {
                break;
            }
            pruned.batches += deleted.len() as u64;
            pruned.bytes += deleted.iter().map(|bytes| bytes.unsigned_abs()).sum::<u64>();
        }
        self.connection
            .execute(
                "DELETE FROM jobs WHERE id = ?1 AND (?2 OR finished IS NOT NULL)
                 AND NOT EXISTS (SELECT 1 FROM batches WHERE job_id = ?1)",
                (id, only == Only::Any),
            )
            .map_err(explain)?;
        Ok(pruned)
    }

    /// Free pages leave the file, where its format allows it, and the log of writes is emptied unless someone still reads it.
    fn shrink(&self) -> Result<(), StoreError> {
        let mut free = i64::MAX;
        loop {
            let left = self.number("PRAGMA freelist_count")?;
            // A file of the first version keeps its free pages.
            if left == 0 || left >= free {
                break;
            }
            free = left;
            self.step_through(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        }
        self.step_through("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Runs a statement to its end: the vacuum gives one page back with each of its steps.
    fn step_through(&self, sql: &str) -> Result<(), StoreError> {
        let explain = |source| self.explain("shrink", source);
        let mut query = self.connection.prepare(sql).map_err(explain)?;
        let mut rows = query.query(()).map_err(explain)?;
        while rows.next().map_err(explain)?.is_some() {}
        Ok(())
    }

    fn number(&self, sql: &str) -> Result<i64, StoreError> {
        self.connection.query_row(sql, (), |row| row.get(0)).map_err(|source| self.explain("read", source))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Only {
    Finished,
    Any,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::apcloudy::JobId;

    fn filled(path: &Path) -> JobStore {
        let store = JobStore::open(path).unwrap();
        for (n, name) in ["a", "b", "c", "d", "e"].iter().enumerate() {
            let job = JobId::from(*name);
            store.job_started(&job, "shop", &format!("2099-01-0{}T00:00:00.000000+00:00", n + 1)).unwrap();
            for batch in 0..100 {
                let body = format!("{{\"job_id\": \"{name}\", \"data\": {{\"items\": [{{\"x\": \"{}\"}}]}}}}", "y".repeat(3_000));
                store.store(&format!("{name}-{batch}"), &job, &body).unwrap();
            }
            if *name != "b" {
                store.job_finished(&job, "2099-02-01T00:00:00.000000+00:00", "finished").unwrap();
            }
        }
        store
    }

    fn ids(store: &JobStore) -> Vec<String> {
        store.jobs().unwrap().into_iter().map(|job| job.id).collect()
    }

    #[test]
    fn the_newest_finished_jobs_and_every_unfinished_one_stay() {
        let dir = TempDir::new().unwrap();
        let store = filled(&dir.path().join("jobs.db"));
        assert_eq!(store.prune(0).unwrap(), []);
        assert_eq!(store.prune(4).unwrap(), []);
        let full = store.file_bytes();
        let pruned = store.prune(2).unwrap();
        assert_eq!(pruned.iter().map(|p| (p.id.as_str(), p.batches)).collect::<Vec<_>>(), [("c", 100), ("a", 100)]);
        let body = "{\"job_id\": \"a\", \"data\": {\"items\": [{\"x\": \"\"}]}}".len() as u64 + 3_000;
        assert_eq!(pruned[0].bytes, 100 * body);
        assert_eq!(ids(&store), ["e", "d", "b"]);
        assert!(store.file_bytes() < full);
    }

    #[test]
    fn a_named_job_goes_even_unfinished_and_the_file_shrinks() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        let store = filled(&path);
        let full = store.file_bytes();
        let pruned = store.prune_jobs(&["b".to_owned(), "nobody".to_owned()]).unwrap();
        assert_eq!(pruned.iter().map(|p| p.batches).collect::<Vec<_>>(), [100, 0]);
        assert_eq!(ids(&store), ["e", "d", "c", "a"]);
        store.reclaim().unwrap();
        assert!(full - store.file_bytes() > 100 * 3_000, "{full} {}", store.file_bytes());
    }

    #[test]
    fn a_store_of_version_1_shrinks_when_it_is_asked_to() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        fs::write(&path, include_bytes!("../../tests/data/jobs/v1.db")).unwrap();
        let store = JobStore::open(&path).unwrap();
        for batch in 0..50 {
            store.store(&batch.to_string(), &JobId::from("x"), &"z".repeat(5_000)).unwrap();
        }
        store.prune_jobs(&["x".to_owned()]).unwrap();
        let full = fs::metadata(&path).unwrap().len();
        store.reclaim().unwrap();
        assert!(full - fs::metadata(&path).unwrap().len() > 200_000);
        assert_eq!(store.number("PRAGMA auto_vacuum").unwrap(), 2);
        assert_eq!(ids(&store), ["b", "7"]);
    }
}
