//! Questions to the job store: what the summary of a run and the job lists show.

use rusqlite::Row;
use serde::Serialize;

use super::store::{JobStore, StoreError};
use crate::apcloudy::JobId;

/// All jobs, the one that was last started or heard of first. The index alone knows the last batch of each; only that
/// one is looked at.
const BY_AGE: &str = "FROM jobs j
    LEFT JOIN (SELECT job_id, max(rowid) AS newest FROM batches GROUP BY job_id) l ON l.job_id = j.id
    LEFT JOIN batches b ON b.rowid = l.newest
    ORDER BY max(j.started, coalesce(b.received_at, '')) DESC, l.newest DESC, j.rowid DESC";

/// What a job brought in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobSummary {
    /// Batches stored.
    pub batches: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Items.
    pub items: u64,
    /// Request records.
    pub requests: u64,
    /// Request records without a status of 200 to 299.
    pub failed_requests: u64,
    /// The most frequent errors first.
    pub top_errors: Vec<TopError>,
}

/// One kind of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopError {
    /// The error's class, or `HTTP <status>`.
    pub error: String,
    /// How often it happened.
    pub count: u64,
    /// A URL it happened to.
    pub example_url: String,
    /// What was said there; none for a status.
    pub example_text: Option<String>,
}

/// One job as it was noted at its start and end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobRow {
    /// Its id as text.
    pub id: String,
    /// The spider's name; empty for a job whose start nobody noted here.
    pub spider: String,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339; none while it runs or when it was killed.
    pub finished: Option<String>,
    /// Why it ended.
    pub finish_reason: Option<String>,
}

/// One job with the amounts stored for it, in the order a list of jobs shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobLine {
    /// The job.
    #[serde(flatten)]
    pub job: JobRow,
    /// Batches stored.
    pub batches: u64,
    /// Items.
    pub items: u64,
    /// Request records.
    pub requests: u64,
    /// Log records.
    pub logs: u64,
    /// Bytes of the bodies, as they were sent.
    pub bytes: u64,
}

/// A job as the choice by age sees it.
#[derive(Debug)]
pub(super) struct Aged {
    pub(super) id: String,
    pub(super) is_finished: bool,
}

impl JobStore {
    /// Counts what is stored for a job, with its most frequent errors, at most `errors` of them.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn summary(&self, job: &JobId, errors: u32) -> Result<JobSummary, StoreError> {
        self.ask_summary(&job.to_string(), errors).map_err(|source| self.explain("read", source))
    }

    /// All jobs, the one that was last started or heard of first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn jobs(&self) -> Result<Vec<JobRow>, StoreError> {
        let sql = format!("SELECT j.id, j.spider, j.started, j.finished, j.finish_reason {BY_AGE}");
        self.connection
            .prepare_cached(&sql)
            .and_then(|mut query| query.query_map((), job_row)?.collect())
            .map_err(|source| self.explain("read", source))
    }

    /// Hands each job with its amounts to `take`, in the order of [`jobs`](Self::jobs), until its first error.
    ///
    /// # Errors
    /// Those of `take`, and [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn each_job<E: From<StoreError>>(&self, mut take: impl FnMut(&JobLine) -> Result<(), E>) -> Result<(), E> {
        for job in self.jobs()? {
            let line = self.amounts(job).map_err(|source| self.explain("read", source))?;
            take(&line)?;
        }
        Ok(())
    }

    /// The ids of all jobs, the one that was last started or heard of first.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn job_ids(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.by_age()?.into_iter().map(|job| job.id).collect())
    }

    pub(super) fn by_age(&self) -> Result<Vec<Aged>, StoreError> {
        let sql = format!("SELECT j.id, j.finished IS NOT NULL {BY_AGE}");
        self.connection
            .prepare_cached(&sql)
            .and_then(|mut query| query.query_map((), |row| Ok(Aged { id: row.get(0)?, is_finished: row.get(1)? }))?.collect())
            .map_err(|source| self.explain("read", source))
    }

    fn amounts(&self, job: JobRow) -> rusqlite::Result<JobLine> {
        let sql = "SELECT count(*), coalesce(sum(json_array_length(body, '$.data.items')), 0),
                          coalesce(sum(json_array_length(body, '$.data.requests')), 0),
                          coalesce(sum(json_array_length(body, '$.data.logs')), 0), coalesce(sum(bytes), 0)
                   FROM bodies WHERE job_id = ?1";
        self.connection.prepare_cached(sql)?.query_row([job.id.clone()], |row| {
            Ok(JobLine {
                job,
                batches: number(row, 0)?,
                items: number(row, 1)?,
                requests: number(row, 2)?,
                logs: number(row, 3)?,
                bytes: number(row, 4)?,
            })
        })
    }

    fn ask_summary(&self, job: &str, errors: u32) -> rusqlite::Result<JobSummary> {
        let mut summary = self.connection.query_row(
            "SELECT count(*), coalesce(sum(bytes), 0),
                    coalesce(sum(json_array_length(body, '$.data.items')), 0),
                    coalesce(sum(json_array_length(body, '$.data.requests')), 0)
             FROM bodies WHERE job_id = ?1",
            [job],
            |row| {
                Ok(JobSummary {
                    batches: number(row, 0)?,
                    bytes: number(row, 1)?,
                    items: number(row, 2)?,
                    requests: number(row, 3)?,
                    ..JobSummary::default()
                })
            },
        )?;
        summary.failed_requests =
            self.connection
                .query_row("SELECT count(*) FROM requests WHERE job_id = ?1 AND NOT success", [job], |row| number(row, 0))?;
        // Messages carry URLs and numbers; the class before the colon is what repeats. Beside min(), a plain
        // column comes from the same row.
        summary.top_errors = self
            .connection
            .prepare_cached(
                "SELECT CASE WHEN error IS NULL THEN 'HTTP ' || status_code
                             ELSE substr(error, 1, instr(error || ':', ':') - 1) END AS class,
                        count(*) AS times, min(url), error
                 FROM requests WHERE job_id = ?1 AND NOT success
                 GROUP BY class ORDER BY times DESC, class LIMIT ?2",
            )?
            .query_map((job, errors), |row| {
                Ok(TopError { error: row.get(0)?, count: number(row, 1)?, example_url: row.get(2)?, example_text: row.get(3)? })
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(summary)
    }
}

/// SQLite has signed numbers only; none of these is ever negative.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::unsigned_abs)
}

fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    Ok(JobRow { id: row.get(0)?, spider: row.get(1)?, started: row.get(2)?, finished: row.get(3)?, finish_reason: row.get(4)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tempfile::TempDir;

    use super::*;
    use crate::courier::testing::{batch, deliver};

    #[test]
    fn a_summary_counts_one_job_and_groups_its_errors() {
        let dir = TempDir::new().unwrap();
        let mut store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        let job = JobId::from(7);
        assert_eq!(store.summary(&job, 5).unwrap(), JobSummary::default());
        for first in [1, 2] {
            deliver(&mut store, batch(7, first));
        }
        let mut missing = batch(7, 3);
        missing.body = missing.body.replace("\"DownloadTimeoutError: slow\"", "null").replace(": 0,", ": 404,");
        deliver(&mut store, missing);
        deliver(&mut store, batch(8, 1));
        let summary = store.summary(&job, 5).unwrap();
        assert_eq!((summary.batches, summary.items, summary.requests, summary.failed_requests), (3, 3, 6, 3));
        assert_eq!(
            summary.top_errors,
            [
                TopError {
                    error: "DownloadTimeoutError".into(),
                    count: 2,
                    example_url: "http://h/1/0".into(),
                    example_text: Some("DownloadTimeoutError: slow".into()),
                },
                TopError { error: "HTTP 404".into(), count: 1, example_url: "http://h/3/0".into(), example_text: None },
            ]
        );
        assert_eq!(store.summary(&job, 1).unwrap().top_errors.len(), 1);
    }

    #[test]
    fn a_job_line_has_the_amounts_and_the_last_heard_of_job_leads() {
        let dir = TempDir::new().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        for (job, at) in [(7, "2020-01-01T00:00:00.000000+00:00"), (8, "2020-01-02T00:00:00.000000+00:00")] {
            store.job_started(&JobId::from(job), "shop", at).unwrap();
        }
        assert_eq!(store.job_ids().unwrap(), ["8", "7"]);
        for first in [1, 2] {
            store.store(&first.to_string(), &JobId::from(7), &batch(7, first).body).unwrap();
        }
        assert_eq!(store.job_ids().unwrap(), ["7", "8"], "a batch is newer than any start");
        let mut lines = Vec::new();
        store
            .each_job::<StoreError>(|line| {
                lines.push(serde_json::to_string(line).unwrap());
                Ok(())
            })
            .unwrap();
        let bytes = 2 * batch(7, 1).body.len();
        assert_eq!(
            lines,
            [
                format!(r#"{{"id":"7","spider":"shop","started":"2020-01-01T00:00:00.000000+00:00","finished":null,"finish_reason":null,"batches":2,"items":2,"requests":4,"logs":2,"bytes":{bytes}}}"#),
                r#"{"id":"8","spider":"shop","started":"2020-01-02T00:00:00.000000+00:00","finished":null,"finish_reason":null,"batches":0,"items":0,"requests":0,"logs":0,"bytes":0}"#.to_owned(),
            ]
        );
    }

    #[test]
    fn a_job_is_listed_with_its_end_and_keeps_its_row_when_it_goes_on() {
        let dir = TempDir::new().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        store.job_started(&JobId::from("a"), "shop", "2026-11-30T10:00:00Z").unwrap();
        store.job_finished(&JobId::from("a"), "2026-11-30T10:05:00Z", "shutdown").unwrap();
        store.job_started(&JobId::from("b"), "news", "2026-11-30T11:00:00Z").unwrap();
        let jobs = store.jobs().unwrap();
        assert_eq!((jobs[0].id.as_str(), jobs[0].finished.as_deref()), ("b", None));
        assert_eq!(jobs[1].finish_reason.as_deref(), Some("shutdown"));
        store.job_started(&JobId::from("a"), "shop", "2026-11-30T12:00:00Z").unwrap();
        let again = store.jobs().unwrap().pop().unwrap();
        assert_eq!((again.started.as_str(), again.finished), ("2026-11-30T10:00:00Z", None));
    }
}
