//! Crashes: the process ends between any two steps; store and record log as they were then are opened again.

use std::path::Path;

use tempfile::TempDir;

use super::script::Do::Flush;
use super::script::{follow, item};
use super::stand::Stand;
use super::{MILLI, SECOND};
use crate::actor::run_local;
use crate::apcloudy::Answer as SinkAnswer;
use crate::collector::Ends;
use crate::courier::MemorySink;
use crate::scheduler::store::Store as _;
use crate::scheduler::testing::{Crash, Journal};
use crate::testkit::transport::Answer;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn url(path: &str) -> String {
    format!("http://a.test/{path}")
}

/// A site with links across, commits in the middle, a retry and a failure.
fn site() -> Stand {
    let mut stand = Stand::new()
        .start(["a", "b", "c"].map(|path| follow(&url(path))))
        .page(
            &url("a"),
            [item("a1"), follow(&url("d")), follow(&url("e")), Flush, item("a2"), follow(&url("f")), follow(&url("b"))],
        )
        .page(&url("b"), [item("b"), follow(&url("d")), follow(&url("g"))])
        .page(&url("d"), [item("d"), Flush, follow(&url("h"))])
        .page(&url("g"), [item("g")])
        .page(&url("h"), [item("h")])
        .answers(&url("e"), [Answer::new(503, ""), Answer::html("ok")])
        .answers(&url("c"), [Answer::new(404, "no")])
        .on_failed(&url("c"), [item("c failed"), follow(&url("i"))])
        .with(|s| {
            s.concurrent_requests = 3;
            s.apcloudy_batch_size = 3;
        });
    stand.ends = Ends::Journaled;
    stand
}

const PAGES: u64 = 9;
const ITEMS: [&str; 7] = ["a1", "a2", "b", "c failed", "d", "g", "h"];

/// Runs until the crash, or to the end.
fn first_run(store: &Journal, spool: &Path, sink: &MemorySink) {
    let mut stand = site();
    stand.sink = sink.clone();
    stand.spool = Some(spool.to_owned());
    stand.store = Some(Box::new(store.clone()));
    let shared = store.clone();
    stand.sink_fault = Box::new(move |_| {
        let why = "the process is over".to_owned();
        shared.is_dead().then_some(SinkAnswer::Retry { after: Some(3600 * SECOND), why })
    });
    let watched = store.clone();
    run_local(async move {
        let (_, _, running, _rest) = stand.put_together();
        let mut ended = running.ended;
        // Dropping the runtime ends every actor where it stands.
        while !watched.is_dead() {
            if tokio::time::timeout(5 * MILLI, &mut ended).await.is_ok() {
                break;
            }
        }
    });
}

/// A crawl with a crash, and the run after it; how many steps the first took.
fn crash(when: Crash) -> usize {
    let dir = TempDir::new().unwrap();
    let spool = dir.path().join("spool");
    // The record log as it lay on the disk at that moment.
    let left = dir.path().join("copy");
    let (from, to) = (spool.clone(), left.clone());
    let store = Journal::crashing(when, move || copy(&from, &to));
    let sink = MemorySink::new();
    first_run(&store, &spool, &sink);
    if !store.is_dead() {
        return store.steps();
    }
    let next = store.next_run();
    let before = next.books();
    assert!(before.balances(), "{when:?}");
    let mut stand = site();
    stand.sink = sink;
    stand.spool = Some(left);
    stand.log_id += 1;
    stand.store = Some(Box::new(next));
    let done = stand.run();
    assert_eq!(done.ended.imbalances, Vec::<String>::new(), "{when:?}");
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("finished", 0), "{when:?}");
    let books = done.ended.books;
    assert_eq!((books.enqueued, books.handled, books.failed, books.pending), (PAGES, PAGES - 1, 1, 0), "{when:?}");
    // Committed parts of a callback that did not end are made again by its next run: those, and nothing else.
    let mut ids = done.ids();
    let parts = ["a1", "d"];
    for part in parts {
        if let Some(twice) = ids.iter().position(|id| id == part).filter(|at| ids.get(at + 1).is_some_and(|id| id == part)) {
            ids.remove(twice);
        }
    }
    assert_eq!(ids, ITEMS, "{when:?}");
    assert!(done.asked.len() as u64 <= before.pending + (PAGES - before.enqueued) + 1, "{when:?}: {:?}", done.lines);
    assert!(!done.segments_left, "{when:?}: every end is settled, so nothing of the record log is needed any more");
    store.steps()
}

#[test]
fn a_crash_between_any_two_steps_loses_nothing_and_fetches_only_what_was_in_flight() {
    let steps = crash(Crash::Never);
    assert!(steps > 40, "{steps}");
    for step in 0..steps {
        crash(Crash::Before(step));
        crash(Crash::After(step));
    }
}
