//! Reading a job's records back: one batch at a time, each record as the text it was sent in.
//!
//! No question here holds the store for longer than one batch takes, so a slow reader of a long list is in nobody's way.

use rusqlite::OptionalExtension as _;

use super::lists::Body;
use super::store::{JobStore, StoreError};
use crate::apcloudy::RecordKind;

impl JobStore {
    /// Hands each record of a kind to `take`, in the order of arrival, as the JSON text it was stored in. Ends with its first
    /// error. A body that is no JSON has no records.
    ///
    /// # Errors
    /// Those of `take`, and [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn each_record<E: From<StoreError>>(
        &self,
        job: &str,
        kind: RecordKind,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut after = i64::MIN;
        while let Some((arrival, body)) = self.body_after(job, after)? {
            after = arrival;
            let Ok(Body { data }) = serde_json::from_str::<Body<'_>>(&body) else { continue };
            let records = match kind {
                RecordKind::Request => data.requests,
                RecordKind::Item => data.items,
                RecordKind::Log => data.logs,
                RecordKind::Stats => data.stats.into_iter().collect(),
            };
            for record in records {
                take(record.get())?;
            }
        }
        Ok(())
    }

    /// The last stats of a job as the JSON text they were stored in; none before they came.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`] or [`StoreError::Damaged`].
    pub fn stats_text(&self, job: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT body FROM bodies WHERE job_id = ?1 AND json_type(body, '$.data.stats') = 'object'
                   ORDER BY arrival DESC LIMIT 1";
        let body: Option<String> =
            self.connection.query_row(sql, [job], |row| row.get(0)).optional().map_err(|source| self.explain("read", source))?;
        Ok(body.and_then(|body| Some(serde_json::from_str::<Body<'_>>(&body).ok()?.data.stats?.get().to_owned())))
    }

    fn body_after(&self, job: &str, after: i64) -> Result<Option<(i64, String)>, StoreError> {
        let sql = "SELECT rowid, body FROM batches WHERE job_id = ?1 AND rowid > ?2 ORDER BY rowid LIMIT 1";
        self.connection
            .prepare_cached(sql)
            .and_then(|mut query| query.query_row((job, after), |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(|source| self.explain("read", source))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tempfile::TempDir;

    use super::*;
    use crate::apcloudy::JobId;

    #[test]
    fn records_come_out_as_they_went_in() {
        let dir = TempDir::new().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        let job = JobId::from(7);
        for (id, body) in [
            (
                "a",
                r#"{"job_id": 7, "data": {"requests": [], "items": [{"big":  1180591620717411303424, "f": 9.0}, {"t": "\u0416"}]}}"#,
            ),
            ("b", "not JSON"),
            ("c", r#"{"job_id": 7, "data": {"items": [{"n": 3}], "logs": [{"message": "m"}], "stats": {"k": 1.0}}}"#),
            ("d", r#"{"job_id": 7, "data": {"items": [], "stats": null}}"#),
        ] {
            store.store(id, &job, body).unwrap();
        }
        store.store("e", &JobId::from(8), r#"{"job_id": 8, "data": {"items": [{"n": 8}]}}"#).unwrap();
        let texts = |kind| {
            let mut texts = Vec::new();
            store
                .each_record::<StoreError>("7", kind, |text| {
                    texts.push(text.to_owned());
                    Ok(())
                })
                .unwrap();
            texts
        };
        let items = [r#"{"big":  1180591620717411303424, "f": 9.0}"#, r#"{"t": "\u0416"}"#, r#"{"n": 3}"#];
        assert_eq!(texts(RecordKind::Item), items);
        assert_eq!(texts(RecordKind::Log), [r#"{"message": "m"}"#]);
        assert_eq!(texts(RecordKind::Request), [""; 0]);
        assert_eq!(store.stats_text("7").unwrap().as_deref(), Some(r#"{"k": 1.0}"#));
        assert_eq!(store.stats_text("8").unwrap(), None);

        #[derive(Debug)]
        struct Enough;
        impl From<StoreError> for Enough {
            fn from(_: StoreError) -> Self {
                Self
            }
        }
        let mut seen = 0;
        let ended = store.each_record("7", RecordKind::Item, |_| {
            seen += 1;
            if seen == 2 { Err(Enough) } else { Ok(()) }
        });
        assert!(ended.is_err() && seen == 2);
    }
}
