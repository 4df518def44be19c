//! The way into the job store for batches of other programs: several in one transaction, each with its own answer.
//!
//! Unlike the embedded sink's, these batches are not ours: an id may come again with another body, a job may come that nobody
//! announced. It judges no body; who calls has read it.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::store::{ADD_JOB, JobStore, StoreError};
use crate::apcloudy::JobId;

/// A batch that came from another program.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// What it is told apart by.
    pub(crate) id: String,
    pub(crate) job: JobId,
    pub(crate) body: Body,
    /// What its stats say about the job, if it has stats.
    pub(crate) end: Option<End>,
}

/// The text of a batch.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Strict JSON, as sent.
    Strict(String),
    /// Something near JSON, and the nearest strict text.
    Loose { sent: Vec<u8>, strict: String },
}

/// What stats say about a job's time. Times are in RFC 3339, UTC with microseconds, as a crawl of ours notes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) started: Option<String>,
    /// The time of arrival unless said.
    pub(crate) finished: Option<String>,
    pub(crate) reason: Option<String>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is there now.
    Stored,
    /// The same one was there already.
    Duplicate,
    /// Another one with its id is there, and stays.
    OtherBody,
}

impl Body {
    /// The bytes as sent.
    pub(crate) fn sent(&self) -> &[u8] {
        match self {
            Self::Strict(text) => text.as_bytes(),
            Self::Loose { sent, .. } => sent,
        }
    }

    /// The strict JSON.
    pub(crate) fn strict(&self) -> &str {
        match self {
            Self::Strict(strict) | Self::Loose { strict, .. } => strict,
        }
    }

    fn raw(&self) -> Option<&[u8]> {
        match self {
            Self::Strict(_) => None,
            Self::Loose { sent, .. } => Some(sent),
        }
    }
}

impl JobStore {
    /// From now on a commit waits until the disk has it: what is told to be stored then survives a loss of power as well.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub(crate) fn survive_power_loss(&self) -> Result<(), StoreError> {
        self.connection.pragma_update(None, "synchronous", "FULL").map_err(|source| self.explain("open", source))
    }

    /// Takes batches, all in one transaction. When this returns they are committed, but those with an error of their own.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`], [`StoreError::Damaged`] or [`StoreError::Gone`]: then none of them is stored.
    pub(crate) fn take(&self, arrivals: &[&Arrival]) -> Result<Vec<Result<Taken, StoreError>>, StoreError> {
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
            .map_err(|source| self.explain("write to", source))?;
        let mut taken = Vec::with_capacity(arrivals.len());
        for arrival in arrivals {
            let result = take_one(&transaction, arrival);
            let result = result.map_err(|source| self.explain("write to", source));
            // A full disk may end the transaction on its own; then what was said about the others is no longer true.
            if result.is_err() && transaction.is_autocommit() {
                return result.map(|_| Vec::new());
            }
            taken.push(result);
        }
        transaction.commit().map_err(|source| self.explain("write to", source))?;
        self.in_place()?;
        Ok(taken)
    }
}

fn take_one(connection: &Connection, arrival: &Arrival) -> rusqlite::Result<Taken> {
    let sent = arrival.body.sent();
    let stored: Option<bool> = connection
        .prepare_cached("SELECT coalesce(raw, CAST(body AS BLOB)) = ?2 FROM batches WHERE id = ?1")?
        .query_row((&arrival.id, sent), |row| row.get(0))
        .optional()?;
    match stored {
        Some(true) => return Ok(Taken::Duplicate),
        Some(false) => return Ok(Taken::OtherBody),
        None => {}
    }
    let job = arrival.job.to_string();
    // The job first: a row without batches is harmless, should the second statement fail.
    connection.prepare_cached(ADD_JOB)?.execute([&job])?;
    connection
        .prepare_cached(
            "INSERT INTO batches (id, job_id, job, received_at, bytes, body, raw)
             VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?4, ?5, ?6)",
        )?
        .execute((
            &arrival.id,
            &job,
            arrival.job.to_json(),
            i64::try_from(sent.len()).unwrap_or(i64::MAX),
            arrival.body.strict(),
            arrival.body.raw(),
        ))?;
    if let Some(end) = &arrival.end {
        // A job that was announced knows its start itself.
        connection
            .prepare_cached(
                "UPDATE jobs SET finished = coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now')), finish_reason = ?3,
                                 started = CASE spider WHEN '' THEN min(started, coalesce(?4, started)) ELSE started END
                 WHERE id = ?1",
            )?
            .execute((&job, &end.finished, &end.reason, &end.started))?;
    }
    Ok(Taken::Stored)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tempfile::TempDir;

    use super::*;

    fn arrival(id: &str, job: i64, body: &str) -> Arrival {
        Arrival { id: id.to_owned(), job: job.into(), body: Body::Strict(body.to_owned()), end: None }
    }

    fn take(store: &JobStore, arrivals: &[&Arrival]) -> Vec<Taken> {
        store.take(arrivals).unwrap().into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn a_batch_is_stored_once_and_its_id_is_no_cover_for_another() {
        let dir = TempDir::new().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        store.survive_power_loss().unwrap();
        let (one, other) = (arrival("a", 7, "{\"n\": 1}"), arrival("a", 7, "{\"n\": 2}"));
        assert_eq!(take(&store, &[&one, &other, &one]), [Taken::Stored, Taken::OtherBody, Taken::Duplicate]);
        assert_eq!(take(&store, &[&one]), [Taken::Duplicate]);
        let loose = Arrival {
            body: Body::Loose { sent: b"{\"n\": NaN}".to_vec(), strict: "{\"n\": null}".to_owned() },
            ..arrival("b", 7, "")
        };
        let strict = arrival("b", 7, "{\"n\": null}");
        assert_eq!(take(&store, &[&loose, &loose, &strict]), [Taken::Stored, Taken::Duplicate, Taken::OtherBody]);
        let row: (i64, String, Vec<u8>) = store
            .connection
            .query_row("SELECT bytes, body, raw FROM batches WHERE id = 'b'", (), |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(row, (10, "{\"n\": null}".to_owned(), b"{\"n\": NaN}".to_vec()));
    }

    #[test]
    fn a_job_is_known_from_its_first_batch_and_ends_with_its_stats() {
        let dir = TempDir::new().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        take(&store, &[&arrival("a", 7, "{}")]);
        let job = store.jobs().unwrap().remove(0);
        assert_eq!((job.id.as_str(), job.spider.as_str(), job.finished), ("7", "", None));
        assert!(job.started.parse::<jiff::Timestamp>().is_ok(), "{}", job.started);
        let end = End {
            started: Some("2020-01-01T00:00:00.000000+00:00".to_owned()),
            finished: Some("2020-01-01T00:01:00.000000+00:00".to_owned()),
            reason: Some("finished".to_owned()),
        };
        take(&store, &[&Arrival { end: Some(end.clone()), ..arrival("b", 7, "{}") }, &arrival("c", 7, "{}")]);
        let job = store.jobs().unwrap().remove(0);
        assert_eq!((Some(&job.started), &job.finished, &job.finish_reason), (end.started.as_ref(), &end.finished, &end.reason));

        store.job_started(&8.into(), "shop", "2026-11-30T10:00:00.000000+00:00").unwrap();
        take(&store, &[&Arrival { end: Some(End { finished: None, ..end }), ..arrival("d", 8, "{}") }]);
        let job = store.jobs().unwrap().remove(0);
        assert_eq!((job.spider.as_str(), job.started.as_str()), ("shop", "2026-11-30T10:00:00.000000+00:00"));
        assert!(job.finished.is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok()));
    }

    #[test]
    fn a_batch_the_database_does_not_take_costs_only_itself() {
        let dir = TempDir::new().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        let trigger = "CREATE TRIGGER small BEFORE INSERT ON batches WHEN length(NEW.body) > 100
                       BEGIN SELECT RAISE(ABORT, 'too large'); END";
        store.connection.execute_batch(trigger).unwrap();
        let (small, large) = (arrival("a", 7, "{}"), arrival("b", 8, &" ".repeat(101)));
        let taken = store.take(&[&large, &small]).unwrap();
        assert!(taken[0].is_err() && matches!(taken[1], Ok(Taken::Stored)), "{taken:?}");
        assert_eq!(store.summary(&7.into(), 1).unwrap().batches, 1);
    }
}
