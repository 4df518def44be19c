//! The store on real files: what is kept, what is refused, and old versions.
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
    assert_eq!(store.stats_text("7").unwrap(), None);
}

#[test]
fn a_batch_of_a_job_that_nobody_announced_shows_in_the_list_of_jobs() {
    let dir = TempDir::new().unwrap();
    let mut store = store(&dir);
    assert_eq!(deliver(&mut store, batch(7, 1)), Answer::Delivered);
    assert_eq!(deliver(&mut store, batch(7, 2)), Answer::Delivered);
    assert_eq!(store.job_ids().unwrap(), ["7"]);
    let noted = store.jobs().unwrap().remove(0);
    assert!(noted.spider.is_empty() && noted.started.parse::<jiff::Timestamp>().is_ok(), "{noted:?}");
    store.job_started(&JobId::from(7), "shop", "2026-11-30T10:00:00.000000+00:00").unwrap();
    assert_eq!(store.jobs().unwrap().remove(0).spider, "shop");
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
    fs::write(&path, include_bytes!("../../../tests/data/jobs/v1.db")).unwrap();
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
