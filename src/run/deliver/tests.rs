//! Spools as a kill leaves them, sent to sinks that follow a script, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::actor::run_local;
use crate::apcloudy::Answer;
use crate::collector::CARD;
use crate::collector::leftovers as files;
use crate::collector::log::{Entry, LogOptions, RecordLog};
use crate::courier::MemorySink;
use crate::run::leftovers::Spool;
use crate::settings::Settings;

const SECOND: Duration = Duration::from_secs(1);

/// A spool with that many items, never cut into batches.
fn killed(dir: &Path, job: &str, items: usize) -> Spool {
    let (mut log, _) = RecordLog::open(dir, &JobId::from(job), LogOptions::new(5)).unwrap();
    for n in 0..items {
        log.append_group(&[Entry::Item(format!(r#"{{"n": {n}}}"#).into())]).unwrap();
    }
    log.flush_writes().unwrap();
    std::fs::write(dir.join(CARD), format!(r#"{{"version":1,"job_id":"{job}","spider":"s","sink":"memory"}}"#)).unwrap();
    drop(log);
    Spool::look(dir).unwrap()
}

fn config() -> CollectorConfig {
    CollectorConfig::from_settings(&Settings { apcloudy_batch_size: 10, ..Settings::default() })
}

async fn send(
    spool: &Spool,
    job: &str,
    sink: &MemorySink,
    ending: impl Future<Output = Duration>,
) -> Result<Outcome, DeliverError> {
    deliver_spool(spool, &JobId::from(job), Box::new(sink.clone()), config(), Place::Here, Stats::new(), ending).await
}

async fn never() -> Duration {
    std::future::pending().await
}

fn away(times: usize) -> MemorySink {
    let sink = MemorySink::new();
    sink.fail(times, Answer::Retry { after: None, why: "503".into() });
    sink
}

/// The numbers of all items, in order.
fn items(sink: &MemorySink) -> Vec<u64> {
    let bodies = sink.bodies();
    let bodies = bodies.iter().map(|body| serde_json::from_str::<serde_json::Value>(body).unwrap());
    bodies
        .flat_map(|body| body["data"]["items"].as_array().unwrap().iter().map(|i| i["n"].as_u64().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn what_a_kill_left_is_sent_and_the_spool_is_gone() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = killed(&dir.path().join("spool/7-1"), "7", 25);
        let sink = away(3);
        let sent = send(&spool, "7", &sink, never()).await.unwrap();
        assert_eq!(sent, Outcome { delivered: 25, batches: 3, ..Outcome::default() });
        assert_eq!(items(&sink), (0..25).collect::<Vec<_>>());
        assert!(!spool.dir.exists());
    });
}

#[test]
fn the_spool_of_a_jobdir_stays_for_its_next_run() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join(CARD), r#"{"version":1,"job_id":"7","spider":"s"}"#).unwrap();
        killed(&dir.path().join("spool"), "7", 3);
        std::fs::remove_file(dir.path().join("spool").join(CARD)).unwrap();
        let spool = Spool::look(&dir.path().join("spool")).unwrap();
        let sink = MemorySink::new();
        assert_eq!(send(&spool, "7", &sink, never()).await.unwrap().delivered, 3);
        assert!(spool.dir.join("lock").exists());
        let again = send(&spool, "7", &sink, never()).await.unwrap();
        assert_eq!((again, items(&sink).len()), (Outcome::default(), 3));
    });
}

#[test]
fn a_sink_that_is_away_leaves_everything_counted_and_nothing_is_sent_twice_later() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = killed(&dir.path().join("7-1"), "7", 25);
        let sink = away(100_000);
        let begun = Instant::now();
        let sent = send(&spool, "7", &sink, async {
            tokio::time::sleep(30 * SECOND).await;
            Duration::ZERO
        });
        assert_eq!(sent.await.unwrap(), Outcome { left: 25, ..Outcome::default() });
        assert!(begun.elapsed() < 33 * SECOND, "{:?}", begun.elapsed());
        let lossy = MemorySink::new();
        lossy.lose_answers(2);
        let sent = send(&spool, "7", &lossy, never()).await.unwrap();
        assert_eq!((sent.delivered, sent.left), (25, 0));
        assert_eq!(items(&lossy), (0..25).collect::<Vec<_>>());
        assert!(!spool.dir.exists());
    });
}

#[test]
fn a_sink_that_takes_nothing_any_more_is_asked_once_and_named() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = killed(&dir.path().join("7-1"), "7", 25);
        let sink = MemorySink::new();
        sink.fail(1, Answer::Fatal { why: "401".into() });
        let sent = send(&spool, "7", &sink, never()).await.unwrap();
        assert_eq!((sent.left, sink.calls()), (25, 1));
        assert!(sent.stopped.unwrap().contains("401"));
        assert!(!Spool::look(&spool.dir).unwrap().in_use, "its lock is free again");
    });
}

#[test]
fn a_disk_that_refuses_writes_is_named_and_not_the_sink() {
    run_local(async {
        for (patience, told) in [(30 * SECOND, "the disk refuses writes"), (300 * SECOND, "DISK_WAIT")] {
            let dir = TempDir::new().unwrap();
            let spool = killed(&dir.path().join("7-1"), "7", 25);
            let config = CollectorConfig { segment_bytes: 64, ..config() };
            let sink = Box::new(MemorySink::new());
            // Once it is open and before anything is written: the next segment has no place.
            let ending = async {
                std::fs::remove_dir_all(&spool.dir).unwrap();
                tokio::time::sleep(patience).await;
                Duration::ZERO
            };
            let sent = deliver_spool(&spool, &JobId::from("7"), sink, config, Place::Here, Stats::new(), ending).await.unwrap();
            assert_eq!((sent.delivered, sent.left), (0, 25));
            assert!(sent.stopped.as_deref().is_some_and(|why| why.contains(told)), "{:?}", sent.stopped);
        }
    });
}

#[test]
fn what_damage_took_with_it_is_counted() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = killed(&dir.path().join("7-1"), "7", 9);
        let segment = spool.dir.join(format!("seg-{:020}.log", 1));
        let mut bytes = std::fs::read(&segment).unwrap();
        let hit = bytes.windows(8).position(|text| text == br#"{"n": 4}"#).unwrap();
        bytes[hit..hit + 8].fill(0);
        std::fs::write(&segment, bytes).unwrap();
        let sink = MemorySink::new();
        let sent = send(&spool, "7", &sink, never()).await.unwrap();
        assert_eq!((sent.delivered, sent.left, sent.lost), (8, 0, 1));
        assert_eq!(items(&sink), [0, 1, 2, 3, 5, 6, 7, 8]);
    });
}

#[test]
fn a_spool_of_a_running_process_or_of_another_job_is_left_alone() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = killed(&dir.path().join("7-1"), "7", 2);
        let sink = MemorySink::new();
        let other = send(&spool, "8", &sink, never()).await.unwrap_err();
        assert!(matches!(other, DeliverError::Log(LogError::OtherJob { .. })), "{other}");
        let lock = files::lock(&spool.dir).unwrap().unwrap();
        let busy = send(&spool, "7", &sink, never()).await.unwrap_err();
        assert!(matches!(busy, DeliverError::Log(LogError::Locked { .. })), "{busy}");
        drop(lock);
        assert_eq!(sink.calls(), 0);
        assert_eq!(send(&spool, "7", &sink, never()).await.unwrap().delivered, 2);
    });
}

#[test]
fn refused_records_are_counted_apart_and_stay_in_the_spool() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = killed(&dir.path().join("7-1"), "7", 1);
        let sink = MemorySink::new();
        sink.fail(1, Answer::Reject { why: "422".into() });
        let sent = send(&spool, "7", &sink, never()).await.unwrap();
        assert_eq!((sent.delivered, sent.refused, sent.left), (0, 1, 0));
        let left = Spool::look(&spool.dir).unwrap();
        assert_eq!((left.holds.rejected, left.holds.segments), (1, 0));
        assert!(left.card.unwrap().is_some(), "whose they are stays known");
    });
}

fn two(dir: &TempDir) -> Vec<(Spool, JobCard)> {
    let spools = ["a", "b"].map(|job| killed(&dir.path().join(job), job, 12));
    spools.into_iter().map(|spool| (spool.clone(), spool.card.unwrap().unwrap())).collect()
}

fn background(spools: Vec<(Spool, JobCard)>, sink: &MemorySink, stats: &Stats) -> Background {
    let sink = sink.clone();
    let make: MakeSink = Arc::new(move || Ok(Box::new(sink.clone()) as Box<dyn Webhook>));
    Background::start(spools, make, config(), Place::Here, stats.clone())
}

fn dirs(spools: &[(Spool, JobCard)]) -> Vec<PathBuf> {
    spools.iter().map(|(spool, _)| spool.dir.clone()).collect()
}

#[test]
fn leftovers_go_one_spool_after_the_other_and_are_counted_beside_the_job() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let (sink, stats) = (away(2), Stats::new());
        let spools = two(&dir);
        let dirs = dirs(&spools);
        let background = background(spools, &sink, &stats);
        tokio::time::sleep(20 * SECOND).await;
        assert_eq!(items(&sink), (0..12).chain(0..12).collect::<Vec<_>>());
        assert!(dirs.iter().all(|dir| !dir.exists()));
        let begun = Instant::now();
        background.end(5 * SECOND, never()).await;
        assert!(begun.elapsed() < SECOND);
        assert_eq!((stats.count("courier/leftover_batches"), stats.count("courier/leftover_records")), (4, 24));
        assert_eq!(stats.count("courier/delivered"), 0, "the job's own books know nothing of it");
    });
}

#[test]
fn the_end_of_a_crawl_waits_no_longer_than_its_limit_for_leftovers() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let (sink, stats) = (MemorySink::new(), Stats::new());
        sink.block();
        let spools = two(&dir);
        let dirs = dirs(&spools);
        let background = background(spools, &sink, &stats);
        tokio::time::sleep(60 * SECOND).await;
        let begun = Instant::now();
        background.end(3 * SECOND, never()).await;
        assert!(begun.elapsed() <= 5 * SECOND, "{:?}", begun.elapsed());
        for dir in dirs {
            let spool = Spool::look(&dir).unwrap();
            assert!(spool.holds.segments > 0 && !spool.in_use, "{spool:?}");
        }
    });
}

#[test]
fn whoever_is_impatient_leaves_spools_that_nobody_holds() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let (sink, stats) = (MemorySink::new(), Stats::new());
        sink.block();
        let spools = two(&dir);
        let dirs = dirs(&spools);
        let background = background(spools, &sink, &stats);
        tokio::time::sleep(60 * SECOND).await;
        let begun = Instant::now();
        background.end(60 * SECOND, tokio::time::sleep(SECOND)).await;
        assert!(begun.elapsed() < 2 * SECOND, "{:?}", begun.elapsed());
        for dir in dirs {
            let spool = Spool::look(&dir).unwrap();
            assert!(spool.holds.segments > 0 && !spool.in_use, "{spool:?}");
        }
    });
}

#[test]
fn after_a_fatal_answer_the_other_spools_are_not_tried() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let (sink, stats) = (MemorySink::new(), Stats::new());
        sink.fail(1, Answer::Fatal { why: "401".into() });
        let background = background(two(&dir), &sink, &stats);
        tokio::time::sleep(20 * SECOND).await;
        assert_eq!(sink.calls(), 1);
        background.end(SECOND, never()).await;
    });
}
