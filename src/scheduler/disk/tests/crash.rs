//! What survives the end of the process, at once and in order.
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;
use crate::api::failure::FailureKind;
use crate::scheduler::job::{Books, Job, Outcome, RequestId, SlotKey};
use crate::scheduler::model::Fault;
use crate::scheduler::store::{Cursors, Pulled};
use crate::scheduler::testing::{child, job, unfiltered};

const NOW: Duration = Duration::from_secs(1_000);
const SECOND: Duration = Duration::from_secs(1);

fn pull(store: &mut DiskStore, host: &str) -> Box<Job> {
    suite::pull(store, host, NOW).unwrap()
}

fn paths(store: &mut DiskStore, host: &str, now: Duration) -> Vec<String> {
    std::iter::from_fn(|| suite::pull(store, host, now)).map(|job| job.url().path().to_owned()).collect()
}

#[test]
fn what_is_not_settled_is_queued_again_at_its_place_and_with_its_time() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::offer(&mut store, (0..5).map(|n| job(n, &format!("http://a/{n}"))));
    let [first, second, third] = [pull(&mut store, "a"), pull(&mut store, "a"), pull(&mut store, "a")];
    assert!(store.settle(first.id, Outcome::Handled).unwrap());
    store.put_back(*third, NOW + 9 * SECOND).unwrap();
    assert_eq!(store.out.len(), 1, "only of what is out a record is held");
    store.advance(Cursors { start: 5, idle: 2 }).unwrap();
    store.gate(&SlotKey("a".into()), NOW + SECOND).unwrap();
    store.save("cookies", b"jar".to_vec()).unwrap();
    store.mark_seen(99).unwrap();
    store.commit().unwrap();
    // None of this is committed.
    store.settle(second.id, Outcome::Handled).unwrap();
    suite::offer(&mut store, [job(6, "http://a/6")]);
    store.save("cookies", b"other".to_vec()).unwrap();
    drop(store);

    let (mut store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!(opened, Opened { pending: 4, settled_from_log: 0, returned: 1, repaired: None });
    assert_eq!(store.books(), Books { enqueued: 5, handled: 1, pending: 4, ..Books::default() });
    assert_eq!(store.cursors(), Cursors { start: 5, idle: 2 });
    assert_eq!(store.gates(NOW), [(SlotKey("a".into()), NOW + SECOND)]);
    assert_eq!(store.saved("cookies").unwrap().as_deref(), Some(&b"jar"[..]));
    assert!(!store.mark_seen(99).unwrap());
    assert_eq!(suite::offer(&mut store, [job(7, "http://a/0"), job(8, "http://a/6")]).duplicates, 1);
    assert_eq!(paths(&mut store, "a", NOW + 8 * SECOND), ["/1", "/3", "/4", "/6"]);
    let later = store.pull(&SlotKey("a".into()), NOW + 8 * SECOND).unwrap();
    assert!(matches!(later, Pulled::NotBefore(at) if at == NOW + 9 * SECOND));
    assert_eq!(paths(&mut store, "a", NOW + 9 * SECOND), ["/2"]);
}

#[test]
fn a_request_that_followed_a_redirect_comes_back_at_its_target_and_ends_there() {
    for ends in [false, true] {
        let dir = quick_dir();
        let mut store = open(dir.path());
        suite::offer(&mut store, [job(0, "http://a/from")]);
        store.commit().unwrap();
        let mut moved = pull(&mut store, "a");
        moved.request.set_url("http://b/to".parse().unwrap());
        store.replace(&moved).unwrap();
        if ends {
            store.settle(moved.id, Outcome::Failed(FailureKind::Timeout)).unwrap();
        }
        store.commit().unwrap();
        drop(store);
        let mut store = open(dir.path());
        assert_eq!(store.books().pending, u64::from(!ends));
        assert_eq!(paths(&mut store, "b", NOW), if ends { vec![] } else { vec!["/to"] });
        drop(store);
        let inspection = Inspection::open(dir.path()).unwrap().unwrap();
        let failed: Vec<_> = inspection.kept(Kept::Failed).map(|record| record.unwrap().job.unwrap().url().to_string()).collect();
        assert_eq!(failed, if ends { vec!["http://b/to"] } else { vec![] });
    }
}

#[test]
fn what_could_not_be_synced_is_written_anew() {
    let dir = quick_dir();
    let options = DiskOptions { sync: Duration::from_millis(5), ..options() };
    let (mut store, _) = DiskStore::open(dir.path(), options, &HashMap::new()).unwrap();
    let [db, away] = ["db", "away"].map(|name| dir.path().join(name));
    std::fs::rename(&db, &away).unwrap();
    suite::offer(&mut store, [job(0, "http://a/0")]);
    store.commit().unwrap();
    let since = std::time::Instant::now();
    while !store.syncer.has_failed() {
        assert!(since.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::rename(&away, &db).unwrap();
    assert_eq!(store.disk_bytes(), 0, "only a journal holds it");
    store.commit().unwrap();
    assert!(store.disk_bytes() > 0, "it is in a table, which is synced");
    suite::offer(&mut store, [job(1, "http://a/1")]);
    store.commit().unwrap();
    drop(store);
    assert_eq!(open(dir.path()).books().pending, 2);
}

#[test]
fn children_leave_the_disk_with_their_parent() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::offer(&mut store, [job(0, "http://a/p")]);
    let parent = pull(&mut store, "a");
    for index in 0..2 {
        suite::offer(&mut store, [child(parent.id, index, &format!("http://b/{index}"))]);
        store.commit().unwrap();
    }
    let rows = |store: &DiskStore| store.base.as_ref().unwrap().scan(super::super::rows::Space::Children, &[]).count();
    assert_eq!(rows(&store), 2);
    store.settle(parent.id, Outcome::Handled).unwrap();
    store.commit().unwrap();
    assert_eq!((rows(&store), store.broods.len()), (0, 0));
}

#[test]
fn a_gate_that_is_over_leaves_the_disk() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    store.gate(&SlotKey("a".into()), NOW).unwrap();
    store.gate(&SlotKey("b".into()), NOW + SECOND).unwrap();
    store.commit().unwrap();
    assert_eq!(store.gates(NOW), [(SlotKey("b".into()), NOW + SECOND)]);
    store.commit().unwrap();
    drop(store);
    assert_eq!(open(dir.path()).gates(Duration::ZERO), [(SlotKey("b".into()), NOW + SECOND)]);
}

#[test]
fn an_age_is_never_given_twice() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::offer(&mut store, [job(0, "http://a/0"), job(1, "http://a/1")]);
    for id in [pull(&mut store, "a").id, pull(&mut store, "a").id] {
        store.settle(id, Outcome::Failed(FailureKind::Timeout)).unwrap();
    }
    store.commit().unwrap();
    drop(store);
    // The youngest ages are those of jobs that are gone from the queue, but not from the failed ones.
    let mut store = open(dir.path());
    suite::offer(&mut store, [job(2, "http://a/2"), job(3, "http://a/3")]);
    let id = pull(&mut store, "a").id;
    store.settle(id, Outcome::Failed(FailureKind::Lost)).unwrap();
    store.close().unwrap();
    let kept: Vec<u64> =
        Inspection::open(dir.path()).unwrap().unwrap().kept(Kept::Failed).map(|record| record.unwrap().age).collect();
    assert_eq!(kept, [1, 2, 3]);
}

#[test]
fn children_offered_again_after_a_crash_are_known_even_when_they_have_ended() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::offer(&mut store, [job(0, "http://a/p")]);
    let parent = pull(&mut store, "a");
    let batch = || [child(parent.id, 0, "http://b/1"), unfiltered(child(parent.id, 1, "http://b/1"))];
    suite::offer(&mut store, batch().into_iter().take(1));
    store.commit().unwrap();
    suite::offer(&mut store, batch().into_iter().skip(1));
    let first = pull(&mut store, "b");
    store.settle(first.id, Outcome::Handled).unwrap();
    store.commit().unwrap();
    drop(store);
    let mut store = open(dir.path());
    let parent = pull(&mut store, "a");
    assert_eq!(suite::offer(&mut store, batch()).repeated, 2);
    store.settle(parent.id, Outcome::Handled).unwrap();
    store.commit().unwrap();
    assert_eq!(store.base.as_ref().unwrap().scan(super::super::rows::Space::Children, &[]).count(), 0);
    drop(store);
    let mut store = open(dir.path());
    assert_eq!(paths(&mut store, "b", NOW), ["/1"]);
    assert_eq!(store.books(), Books { enqueued: 3, handled: 2, pending: 1, ..Books::default() });
}

#[test]
fn what_is_known_to_have_ended_is_settled_at_the_opening() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::offer(&mut store, (0..4).map(|n| job(n, &format!("http://a/{n}"))));
    let handled = pull(&mut store, "a");
    suite::offer(&mut store, [child(handled.id, 0, "http://b/1")]);
    store.commit().unwrap();
    drop(store);
    let ended = HashMap::from([
        (handled.id, Outcome::Handled),
        (RequestId::child(None, 1), Outcome::Failed(FailureKind::Timeout)),
        (RequestId::child(None, 2), Outcome::SetAside),
        (RequestId(12), Outcome::Handled),
    ]);
    let (store, opened) = DiskStore::open(dir.path(), options(), &ended).unwrap();
    assert_eq!((opened.pending, opened.settled_from_log, opened.returned, opened.repaired), (2, 3, 0, None));
    let books = Books { enqueued: 5, handled: 1, failed: 1, set_aside: 1, pending: 2, ..Books::default() };
    assert_eq!(store.books(), books);
    let children = store.base.as_ref().unwrap().scan(super::super::rows::Space::Children, &[]).count();
    assert_eq!(children, 0, "nobody offers those of what has ended again");
    drop(store);
    // It was committed, so it needs not be told again, and nothing is settled twice.
    let (mut store, opened) = DiskStore::open(dir.path(), options(), &ended).unwrap();
    assert_eq!((opened.settled_from_log, store.books()), (0, books));
    assert_eq!(paths(&mut store, "a", NOW), ["/3"]);
    drop(store);
    let survey = survey(dir.path()).unwrap().unwrap();
    assert_eq!((survey.failed, survey.set_aside), (vec![(Outcome::Failed(FailureKind::Timeout), 1)], 1));
}

#[test]
fn a_failed_commit_keeps_everything_for_the_next() {
    for fault in [Fault::Before, Fault::After] {
        let dir = quick_dir();
        let mut store = open(dir.path());
        suite::offer(&mut store, (0..3).map(|n| job(n, &format!("http://a/{n}"))));
        store.fault = Some(fault);
        let text = store.commit().unwrap_err().to_string();
        assert!(text.contains("no space left on the device"), "{text}");
        // It goes on in memory meanwhile, also with what the failed commit may have written.
        let id = pull(&mut store, "a").id;
        store.settle(id, Outcome::Handled).unwrap();
        store.advance(Cursors { start: 3, idle: 0 }).unwrap();
        store.commit().unwrap();
        drop(store);
        let mut store = open(dir.path());
        assert_eq!(store.books(), Books { enqueued: 3, handled: 1, pending: 2, ..Books::default() });
        assert_eq!(store.cursors().start, 3);
        assert_eq!(paths(&mut store, "a", NOW), ["/1", "/2"]);
    }
}

#[test]
fn tries_after_failures_in_a_row_are_spaced() {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
        let dir = quick_dir();
        let options = DiskOptions { retry: Duration::from_millis(250), ..options() };
        let (mut store, _) = DiskStore::open(dir.path(), options, &HashMap::new()).unwrap();
        suite::offer(&mut store, [job(0, "http://a/0")]);
        for _ in 0..2 {
            store.fault = Some(Fault::Before);
            assert!(store.commit().is_err());
        }
        let text = store.commit().unwrap_err().to_string();
        assert!(text.contains("no space left"), "the last failure is told again: {text}");
        tokio::time::advance(Duration::from_millis(250)).await;
        store.commit().unwrap();
    });
}

#[test]
fn each_commit_can_be_synced_by_itself() {
    let dir = quick_dir();
    let options = DiskOptions { sync: Duration::ZERO, ..options() };
    let (mut store, _) = DiskStore::open(dir.path(), options, &HashMap::new()).unwrap();
    suite::offer(&mut store, [job(0, "http://a/0")]);
    store.commit().unwrap();
    drop(store);
    assert_eq!(open(dir.path()).books().pending, 1);
}

const CHILD: &str = "DRAGLINE_TEST_KILLED_FRONTIER";

/// Run as a process of its own, it offers, settles and commits until it is killed, and tells what was committed.
#[test]
fn what_was_committed_survives_kill_9() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let mut store = open(Path::new(&dir));
        for n in store.cursors().start.. {
            suite::offer(&mut store, [job(n, &format!("http://a/{n}"))]);
            if n % 3 == 2 {
                let id = pull(&mut store, "a").id;
                store.settle(id, Outcome::Handled).unwrap();
            }
            store.advance(Cursors { start: n + 1, idle: 0 }).unwrap();
            store.commit().unwrap();
            println!("committed {n}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..3 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "scheduler::disk::tests::crash::what_was_committed_survives_kill_9"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        // In the middle of a commit, most likely: it is killed as soon as one is told.
        let told = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("committed ")?.parse::<u64>().ok());
        let stop_at = last + 150 + round * 37;
        let told = told.inspect(|n| {
            if *n == stop_at {
                process.kill().unwrap();
            }
        });
        let told = told.last().unwrap();
        process.wait().unwrap();
        let (mut store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
        assert_eq!(opened.repaired, None);
        let start = store.cursors().start;
        assert!(start > told && start <= told + 2, "{start} after {told}");
        let (enqueued, handled) = (start, start / 3);
        assert_eq!(store.books(), Books { enqueued, handled, pending: enqueued - handled, ..Books::default() });
        let queued: BTreeSet<String> = paths(&mut store, "a", NOW).into_iter().collect();
        assert_eq!(queued, (handled..enqueued).map(|n| format!("/{n}")).collect());
        last = start;
    }
}
