//! Looking at a frontier that no crawl uses, and putting back what ended.
use std::time::Duration;

use super::*;
use crate::api::failure::FailureKind;
use crate::scheduler::job::{Books, Job, JobKind, Outcome, RequestId, SlotKey};
use crate::scheduler::store::Cursors;
use crate::scheduler::testing::job;

const NOW: Duration = Duration::from_secs(1_000);

/// Five queued requests of two slots, one of them in flight, and one ended in each way.
fn frontier(dir: &Path) {
    let mut store = open(dir);
    suite::offer(&mut store, (0..9).map(|n| job(n, &format!("http://{}/{n}", if n == 8 { "b" } else { "a" }))));
    let outcomes =
        [Outcome::Handled, Outcome::Failed(FailureKind::Timeout), Outcome::SetAside, Outcome::Dropped(FailureKind::Offsite)];
    for outcome in outcomes {
        let mut job = suite::pull(&mut store, "a", NOW).unwrap();
        job.attempts = 3;
        let id = job.id;
        store.put_back(*job, Duration::ZERO).unwrap();
        let again = std::iter::from_fn(|| suite::pull(&mut store, "a", NOW)).find(|job| job.id == id).unwrap();
        store.settle(again.id, outcome).unwrap();
        store.recover().unwrap();
    }
    suite::pull(&mut store, "a", NOW).unwrap();
    store.advance(Cursors { start: 9, idle: 0 }).unwrap();
    store.commit().unwrap();
}

fn paths(records: impl Iterator<Item = Result<Record, DiskError>>) -> Vec<String> {
    records.map(|record| record.unwrap().job.unwrap().url().path().to_owned()).collect()
}

#[test]
fn a_survey_counts_what_is_there() {
    let dir = quick_dir();
    assert_eq!(survey(&dir.path().join("none")).unwrap(), None);
    assert!(!dir.path().join("none").exists(), "a look makes nothing");
    frontier(dir.path());
    let survey = survey(dir.path()).unwrap().unwrap();
    let books = Books { enqueued: 9, handled: 1, failed: 1, dropped: 1, set_aside: 1, pending: 5 };
    assert_eq!((survey.format, survey.books, survey.in_flight, survey.seen), (1, books, 1, 9));
    assert_eq!(survey.cursors.start, 9);
    let slot = |slot: &str, queued| SlotCount { slot: SlotKey(slot.into()), queued, earliest: Duration::ZERO };
    assert_eq!(survey.slots, [slot("a", 4), slot("b", 1)]);
    assert_eq!((survey.oldest.as_deref(), survey.newest.as_deref()), (Some("http://a/4"), Some("http://b/8")));
    assert_eq!(survey.failed, [(Outcome::Failed(FailureKind::Timeout), 1)]);
    assert_eq!((survey.set_aside, survey.damaged, survey.unreadable), (1, 0, 0));
}

#[test]
fn a_frontier_in_use_is_not_looked_at() {
    let dir = quick_dir();
    let store = open(dir.path());
    let text = survey(dir.path()).unwrap_err().to_string();
    assert!(text.contains("in use by process"), "{text}");
    assert!(DiskStore::open(dir.path(), options(), &HashMap::new()).is_err());
    drop(store);
    survey(dir.path()).unwrap().unwrap();
}

#[test]
fn queued_and_kept_requests_are_listed_with_how_they_ended() {
    let dir = quick_dir();
    frontier(dir.path());
    let inspection = Inspection::open(dir.path()).unwrap().unwrap();
    assert_eq!(paths(inspection.queued()), ["/4", "/5", "/6", "/7", "/8"]);
    assert_eq!(paths(inspection.kept(Kept::Failed)), ["/1"]);
    assert_eq!(paths(inspection.kept(Kept::SetAside)), ["/2"]);
    assert_eq!(inspection.kept(Kept::Damaged).count(), 0);
    let failed = inspection.kept(Kept::Failed).next().unwrap().unwrap();
    assert_eq!(failed.ended, Some(Outcome::Failed(FailureKind::Timeout)));
    assert_eq!(failed.job.unwrap().attempts, 3, "as it was when it ended");
}

#[test]
fn what_is_put_back_is_queued_last_and_counted_once() {
    let dir = quick_dir();
    frontier(dir.path());
    let mut inspection = Inspection::open(dir.path()).unwrap().unwrap();
    assert_eq!(inspection.requeue_failed(|_| false).unwrap(), 0);
    assert_eq!(inspection.requeue_failed(|_| true).unwrap(), 1);
    assert_eq!(inspection.requeue_set_aside(|_| true).unwrap(), 1);
    assert_eq!(inspection.requeue_failed(|_| true).unwrap(), 0);
    assert_eq!(paths(inspection.queued()), ["/4", "/5", "/6", "/7", "/8", "/1", "/2"]);
    drop(inspection);
    let (mut store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!(opened.repaired, None);
    let books = Books { enqueued: 9, handled: 1, failed: 0, dropped: 1, set_aside: 0, pending: 7 };
    assert_eq!(store.books(), books);
    let back: Vec<Job> = std::iter::from_fn(|| suite::pull(&mut store, "a", NOW)).map(|job| *job).collect();
    assert_eq!(back.iter().map(|job| job.url().path()).collect::<Vec<_>>(), ["/4", "/5", "/6", "/7", "/1", "/2"]);
    assert!(back.iter().all(|job| job.attempts == 0), "with as many attempts as a new one");
}

#[test]
fn what_is_put_back_is_not_taken_for_what_had_ended() {
    let dir = quick_dir();
    frontier(dir.path());
    let mut inspection = Inspection::open(dir.path()).unwrap().unwrap();
    assert_eq!(inspection.requeue_failed(|_| true).unwrap(), 1);
    drop(inspection);
    // A log may still tell of the end that it had in an earlier run.
    let failed = RequestId::child(None, 1);
    let ended = HashMap::from([(failed, Outcome::Failed(FailureKind::Timeout))]);
    let (mut store, opened) = DiskStore::open(dir.path(), options(), &ended).unwrap();
    assert_eq!((opened.settled_from_log, store.books().failed), (0, 0));
    let back = std::iter::from_fn(|| suite::pull(&mut store, "a", NOW)).last().unwrap();
    assert_eq!(back.url().path(), "/1");
    assert_ne!(back.id, failed);
}

#[test]
fn requests_for_robots_txt_are_counted_and_not_kept() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    let robots = |round| Job { id: RequestId::robots("a", round), kind: JobKind::Robots, ..job(0, "http://a/robots.txt") };
    [1, 2].into_iter().for_each(|round| store.admit(&robots(round)).unwrap());
    let lost = Outcome::Failed(FailureKind::Lost);
    assert!(store.settle(robots(1).id, lost).unwrap());
    store.commit().unwrap();
    drop(store);
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::from([(robots(2).id, lost)])).unwrap();
    assert_eq!((opened.settled_from_log, store.books().failed), (1, 2));
    drop(store);
    assert_eq!(Inspection::open(dir.path()).unwrap().unwrap().kept(Kept::Failed).count(), 0);
}

#[test]
fn many_failed_requests_are_put_back_in_several_commits() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::offer(&mut store, (0..2_500).map(|n| job(n, &format!("http://a/{n}"))));
    while let Some(job) = suite::pull(&mut store, "a", NOW) {
        store.settle(job.id, Outcome::Failed(FailureKind::Refused)).unwrap();
    }
    store.close().unwrap();
    let mut inspection = Inspection::open(dir.path()).unwrap().unwrap();
    let even = |record: &Record| record.age.is_multiple_of(2);
    assert_eq!(inspection.requeue_failed(even).unwrap(), 1_250);
    assert_eq!(inspection.kept(Kept::Failed).count(), 1_250);
    drop(inspection);
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!(opened.repaired, None);
    assert_eq!(store.books(), Books { enqueued: 2_500, failed: 1_250, pending: 1_250, ..Books::default() });
}
