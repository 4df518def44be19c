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

/// A job that was not announced begins with its first batch.
pub(super) const ADD_JOB: &str =
    "INSERT INTO jobs (id, spider, started) VALUES (?1, '', strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))
    ON CONFLICT (id) DO NOTHING";

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
        // What an earlier run left may come into a store that is newer than its job.
        self.connection.prepare_cached(ADD_JOB)?.execute([job.to_string()])?;
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
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::fs;

    use rusqlite::types::FromSql;
    use tempfile::TempDir;

    use super::*;
    use crate::courier::testing::{batch, deliver};

    fn store(dir: &TempDir) -> JobStore {
        JobStore::open(&dir.path().join("deep/.dragline/jobs.db")).unwrap()
    }

    fn ask<T: FromSql>(store: &JobStore, sql: &str) -> T {
        store.connection.query_row(sql, (), |row| row.get(0)).unwrap()
    }

    #[test]
    fn views_answer_in_sql() {
        let dir = TempDir::new().unwrap();
        let mut store = store(&dir);
        for first in [1, 5] {
            assert_eq!(deliver(&mut store, batch(7, first)), Answer::Delivered);
        }
        let mut closing = batch(7, 9);
        closing.body =
            closing.body.replace("]}}", "], \"stats\": {\"downloader/request_count\": 4, \"finish_reason\": \"finished\"}}}");
        deliver(&mut store, closing);
        for (sql, expected) in [
            ("SELECT count(*) FROM items WHERE job_id = '7'", 3),
            ("SELECT sum(record ->> 'n') FROM items", 15),
            ("SELECT count(*) FROM requests WHERE success", 3),
            ("SELECT count(*) FROM requests WHERE status_code = 0 AND error LIKE 'DownloadTimeout%'", 3),
            ("SELECT count(*) FROM requests WHERE parent_url IS NULL AND n IN (0, 1)", 6),
            ("SELECT max(log_index) FROM logs WHERE logger = 'a.b' AND exception IS NULL", 4),
            ("SELECT value FROM stats WHERE name = 'downloader/request_count'", 4),
            ("SELECT count(*) FROM batches WHERE job = '7' AND bytes = length(body)", 3),
        ] {
            assert_eq!(ask::<i64>(&store, sql), expected, "{sql}");
        }
        let body: String = ask(&store, "SELECT body FROM batches ORDER BY rowid LIMIT 1");
        assert_eq!(body, batch(7, 1).body);
        let title: String = ask(&store, "SELECT record ->> 'title' FROM items LIMIT 1");
        assert_eq!(title, "Ж");
        let received: String = ask(&store, "SELECT received_at FROM batches LIMIT 1");
        assert!(received.parse::<jiff::Timestamp>().is_ok(), "{received}");
        assert_eq!(ask::<String>(&store, "PRAGMA journal_mode"), "wal");
    }

    #[test]
    fn what_is_written_into_a_removed_or_replaced_file_is_not_delivered() {
        let dir = TempDir::new().unwrap();
        let mut first = store(&dir);
        let path = first.path().to_owned();
        assert_eq!(deliver(&mut first, batch(7, 1)), Answer::Delivered);
        fs::remove_file(&path).unwrap();
        let gone = |answer| matches!(answer, Answer::Fatal { why } if why.contains("removed or replaced while it was open"));
        assert!(gone(deliver(&mut first, batch(7, 2))));
        for name in ["jobs.db-wal", "jobs.db-shm"] {
            let _ = fs::remove_file(path.with_file_name(name));
        }
        let mut second = store(&dir);
        assert!(gone(deliver(&mut first, batch(7, 3))), "another file has the name");
        assert_eq!(deliver(&mut second, batch(7, 2)), Answer::Delivered);
        assert_eq!(second.job_ids().unwrap(), ["7"], "the new store was never told that the job began");
        assert!(matches!(first.take(&[]), Err(StoreError::Gone { .. })));
    }

    #[test]
    fn a_body_that_is_no_json_costs_only_itself() {
        let dir = TempDir::new().unwrap();
        let mut store = store(&dir);
        let job = JobId::from(7);
        store.store("garbage", &job, "{\"data\": {\"items\": [").unwrap();
        let loose = r#"{"job_id": 7, "data": {"requests": [], "items": [{"x": NaN, "y": -Infinity}], "logs": []}}"#;
        assert_eq!(store.store("loose", &job, loose).unwrap(), Stored::New);
        assert_eq!(store.store("loose", &job, "{}").unwrap(), Stored::Known);
        assert_eq!(deliver(&mut store, batch(7, 1)), Answer::Delivered);
        // What is not strict JSON is kept, and shows in no view: those must work in an sqlite3 of any age.
        assert_eq!(ask::<i64>(&store, "SELECT count(*) FROM items"), 1);
        let summary = store.summary(&job, 3).unwrap();
        assert_eq!((summary.batches, summary.items, summary.requests), (3, 1, 2));
        assert_eq!(store.first_items(&job, 9).unwrap().len(), 1);
        assert_eq!(store.stats(&job).unwrap(), None);
    }

    #[test]
    fn a_repeated_batch_is_already_there_also_after_reopening() {
        let dir = TempDir::new().unwrap();
        let mut first = store(&dir);
        assert_eq!(deliver(&mut first, batch(7, 1)), Answer::Delivered);
        assert_eq!(deliver(&mut first, batch(7, 1)), Answer::Delivered);
        drop(first);
        let mut again = store(&dir);
        let known = batch(7, 1);
        assert_eq!(again.store(&known.id.to_string(), &known.job, &known.body).unwrap(), Stored::Known);
        assert_eq!(deliver(&mut again, batch(8, 1)), Answer::Delivered);
        assert_eq!(ask::<i64>(&again, "SELECT count(*) FROM batches"), 2);
    }

    #[test]
    fn a_newer_schema_is_named_and_left_alone() {
        let dir = TempDir::new().unwrap();
        let old = store(&dir);
        let path = old.path().to_owned();
        old.connection.pragma_update(None, "user_version", 3).unwrap();
        drop(old);
        for open in [JobStore::open, JobStore::open_to_read] {
            let error = open(&path).unwrap_err();
            assert!(matches!(error, StoreError::Newer { found: 3, supported: 2, .. }), "{error}");
        }
        let error = JobStore::open(&path).unwrap_err();
        assert!(error.to_string().contains("jobs.db"));
    }

    #[test]
    fn a_store_of_version_1_is_brought_up_and_answers_as_before() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        fs::write(&path, include_bytes!("../../tests/data/jobs/v1.db")).unwrap();
        let questions = [
            ("SELECT group_concat(record ->> 'n') FROM items WHERE job_id = '7'", "1,2,3"),
            ("SELECT count(*) || '' FROM requests WHERE success AND job_id <> '8'", "4"),
            ("SELECT value FROM stats WHERE job_id = '7' AND name = 'finish_reason'", "finished"),
            ("SELECT group_concat(id || ' ' || spider) FROM jobs WHERE id <> '8'", "7 shop,b news"),
        ];
        let answers = |store: &JobStore| {
            for (sql, expected) in questions {
                assert_eq!(ask::<String>(store, sql), expected, "{sql}");
            }
        };
        let old = JobStore::open_to_read(&path).unwrap();
        assert_eq!(ask::<i64>(&old, "PRAGMA user_version"), 1);
        answers(&old);
        drop(old);
        for _ in 0..2 {
            let new = JobStore::open(&path).unwrap();
            assert_eq!(ask::<i64>(&new, "PRAGMA user_version"), 2);
            assert_eq!(ask::<i64>(&new, "SELECT count(*) FROM batches WHERE raw IS NULL AND job_id = '7'"), 2);
            answers(&new);
            new.store("8", &JobId::from(8), &batch(8, 1).body).unwrap();
        }
        let error = JobStore::open_to_read(&dir.path().join("none.db")).unwrap_err();
        assert!(matches!(error, StoreError::Missing { .. }) && error.to_string().contains("none.db"), "{error}");
        assert!(!dir.path().join("none.db").exists());
    }

    #[test]
    fn a_damaged_file_is_named_with_what_to_do() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        fs::write(&path, "this is no database, but long enough to be looked at".repeat(50)).unwrap();
        let error = JobStore::open(&path).unwrap_err().to_string();
        assert!(error.contains("jobs.db") && error.contains("move it away"), "{error}");

        let path = dir.path().join("torn.db");
        let mut store = JobStore::open(&path).unwrap();
        for first in 0..200 {
            deliver(&mut store, batch(7, first));
        }
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[4096..middle].fill(0xAA);
        fs::write(&path, bytes).unwrap();
        let outcome = JobStore::open(&path).map(|mut store| deliver(&mut store, batch(7, 1)));
        let text = match outcome {
            Err(error) => error.to_string(),
            Ok(Answer::Fatal { why }) => why,
            other => panic!("{other:?}"),
        };
        assert!(text.contains("torn.db") && text.contains("move it away"), "{text}");
    }

    #[test]
    fn a_database_of_something_else_is_not_touched() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("other.db");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE t (a)").unwrap();
        drop(other);
        let before = fs::read(&path).unwrap();
        assert!(matches!(JobStore::open(&path), Err(StoreError::Foreign { .. })));
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn several_writers_share_a_file_and_none_loses_a_batch() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        let writers: Vec<_> = (0..4)
            .map(|job| {
                let path = path.clone();
                std::thread::spawn(move || {
                    let mut store = JobStore::open(&path).unwrap();
                    for first in 0..50 {
                        assert_eq!(deliver(&mut store, batch(job, first)), Answer::Delivered);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        let store = JobStore::open(&path).unwrap();
        assert_eq!(ask::<i64>(&store, "SELECT count(*) FROM items"), 200);
        assert_eq!(ask::<i64>(&store, "SELECT count(DISTINCT job_id) FROM batches"), 4);
    }
}
