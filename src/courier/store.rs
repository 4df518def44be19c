//! The embedded sink: batches in a local SQLite file.
//!
//! A batch is one row, its id the key, its body stored as it would be sent: storing is nearly free, and the views
//! `items`, `requests`, `logs` and `stats` answer in SQL by taking the JSON apart when asked. Several processes may
//! write one file. What comes over HTTP enters through `intake`; only `prune` deletes.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

pub use super::store_error::StoreError;
use super::store_error::explain;
use super::webhook::{Pending, Webhook};
use crate::apcloudy::{Answer, JobId};
use crate::collector::batch::Batch;

/// The schema this program writes, in `PRAGMA user_version`.
const SCHEMA_VERSION: i64 = 2;
/// How long a statement waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const SCHEMA: &str = include_str!("schema.sql");

/// From version 1 to 2. The views name their columns and stay as they are.
const FROM_1_TO_2: &str = "
    ALTER TABLE batches ADD COLUMN raw BLOB;
    INSERT OR IGNORE INTO jobs (id, spider, started) SELECT job_id, '', min(received_at) FROM batches GROUP BY job_id;
    PRAGMA user_version = 2;
";

/// What became of a body that was given to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// It is there now.
    New,
    /// It was there already.
    Known,
}

/// A local store of jobs and their batches.
#[derive(Debug)]
pub struct JobStore {
    path: PathBuf,
    /// Which file that is.
    file: Option<FileId>,
    pub(super) connection: Connection,
}

impl JobStore {
    /// Opens the store, or makes it with its directory.
    ///
    /// # Errors
    /// [`StoreError`] names the file and what to do.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(|source| StoreError::Directory { path: dir.to_owned(), source })?;
        }
        let explain = |what| move |source| explain(what, path, source);
        let mut connection = Connection::open(path).map_err(explain("open"))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(explain("open"))?;
        // Before anything is written: a newer or foreign file stays as it is.
        let snapshot = connection.transaction().map_err(explain("read"))?;
        let is_new = version(&snapshot, path)? == 0;
        drop(snapshot);
        if is_new {
            // Only before the first page is written; what is pruned then goes back to the disk in small steps.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(explain("open"))?;
        }
        use_wal(&connection).map_err(explain("open"))?;
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(explain("open"))?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain("open"))?;
        match version(&transaction, path)? {
            0 => transaction.execute_batch(SCHEMA).map_err(explain("create tables in"))?,
            1 => transaction.execute_batch(FROM_1_TO_2).map_err(explain("bring to schema version 2"))?,
            _ => {}
        }
        transaction.commit().map_err(explain("create tables in"))?;
        Ok(Self { path: path.to_owned(), file: FileId::of(path), connection })
    }

    /// Opens a store to ask it; it stays as it is, of whichever version.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when there is none, else as [`JobStore::open`].
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        let explain = |what| move |source| explain(what, path, source);
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(explain("open"))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(explain("open"))?;
        if version(&connection, path)? == 0 {
            return Err(StoreError::Foreign { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), file: FileId::of(path), connection })
    }

    /// Where the store lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes the start of a job; a job that starts again keeps its row. `at` is a time in RFC 3339.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn job_started(&self, job: &JobId, spider: &str, at: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "INSERT INTO jobs (id, spider, started) VALUES (?1, ?2, ?3)
                 ON CONFLICT (id) DO UPDATE SET spider = ?2, finished = NULL, finish_reason = NULL",
            )
            .and_then(|mut insert| insert.execute((job.to_string(), spider, at)))
            .map(|_| ())
            .map_err(|source| self.explain("write to", source))
    }

    /// Notes the end of a job. `at` is a time in RFC 3339.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn job_finished(&self, job: &JobId, at: &str, reason: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached("UPDATE jobs SET finished = ?2, finish_reason = ?3 WHERE id = ?1")
            .and_then(|mut update| update.execute((job.to_string(), at, reason)))
            .map(|_| ())
            .map_err(|source| self.explain("write to", source))
    }

    /// Whether what was written lies in the file that has the name now. SQLite goes on writing into a file that was
    /// removed, and nobody would ever read it.
    pub(super) fn in_place(&self) -> Result<(), StoreError> {
        if self.file.is_some() && FileId::of(&self.path) != self.file {
            return Err(StoreError::Gone { path: self.path.clone() });
        }
        Ok(())
    }

    pub(super) fn explain(&self, what: &'static str, source: rusqlite::Error) -> StoreError {
        explain(what, &self.path, source)
    }

    /// Keeps a body under its id; one that is there already is left as it is.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn store(&self, id: &str, job: &JobId, body: &str) -> Result<Stored, StoreError> {
        let rows = self.insert(id, job, body).map_err(|source| self.explain("write to", source))?;
        Ok(if rows == 0 { Stored::Known } else { Stored::New })
    }

    fn insert(&self, id: &str, job: &JobId, body: &str) -> rusqlite::Result<usize> {
        // What an earlier run left may come into a store that was made since.
        announce(&self.connection, &job.to_string())?;
        self.connection
            .prepare_cached(
                "INSERT OR IGNORE INTO batches (id, job_id, job, received_at, bytes, body)
                 VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?4, ?5)",
            )?
            .execute((id, job.to_string(), job.to_json(), i64::try_from(body.len()).unwrap_or(i64::MAX), body))
    }

    fn refusal(&self, source: rusqlite::Error) -> Answer {
        let code = source.sqlite_error_code();
        let why = self.explain("write to", source).to_string();
        match code {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ReadOnly) => Answer::Fatal { why },
            Some(ErrorCode::TooBig) => Answer::Reject { why },
            Some(ErrorCode::DiskFull) => Answer::Retry { after: Some(Duration::from_secs(5)), why },
            _ => Answer::Retry { after: None, why },
        }
    }
}

impl Webhook for JobStore {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        let stored = self.insert(&batch.id.to_string(), &batch.job, &batch.body);
        let answer = match stored.map(|_| self.in_place()) {
            Ok(Ok(())) => Answer::Delivered,
            Ok(Err(gone)) => Answer::Fatal { why: gone.to_string() },
            Err(error) => self.refusal(error),
        };
        Box::pin(std::future::ready(answer))
    }

    fn place(&self) -> String {
        format!("embedded {}", self.path.display())
    }
}

/// A file whatever its name: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|of| Self(of.dev(), of.ino()))
    }
}

/// Has a row for the job of a batch that comes, if nobody noted its start. Before the batch: a row without batches is
/// harmless, should the next statement fail.
pub(super) fn announce(connection: &Connection, job: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO jobs (id, spider, started) VALUES (?1, '', strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
             ON CONFLICT (id) DO NOTHING",
        )?
        .execute([job])
        .map(|_| ())
}

/// The schema version; 0 for a new file. Anything that is not ours is an error. Asked within a transaction, so that
/// another process making its tables is seen before or after and not in between.
fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let read = |sql| connection.query_row(sql, (), |row| row.get::<_, i64>(0)).map_err(|source| explain("read", path, source));
    let found = read("PRAGMA user_version")?;
    let has_batches = read("SELECT count(*) FROM sqlite_schema WHERE name = 'batches'")? > 0;
    let is_empty = read("SELECT count(*) FROM sqlite_schema")? == 0;
    if is_empty && found == 0 {
        return Ok(0);
    }
    if !has_batches || found < 1 {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found, supported: SCHEMA_VERSION });
    }
    Ok(found)
}

/// Switching to WAL does not wait for other connections that do the same at this moment, so it is repeated.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests;
