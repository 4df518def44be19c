//! Crashes: the process ends between any two steps; store and record log as they were then are opened again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::script::Do::Flush;
use super::script::{follow, item};
use super::stand::Stand;
use super::{MILLI, SECOND};
use crate::actor::run_local;
use crate::apcloudy::Answer as SinkAnswer;
use crate::collector::Ends;
use crate::courier::MemorySink;
use crate::scheduler::MemoryStore;
use crate::scheduler::job::{Books, Job, Outcome as End, RequestId, SlotKey};
use crate::scheduler::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};
use crate::testkit::transport::Answer;

/// When the process ends: before or after the n-th step of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before(usize),
    After(usize),
    Never,
}

/// What outlives the process, and the moment of its end.
struct Disk {
    store: Mutex<MemoryStore>,
    when: When,
    steps: AtomicUsize,
    dead: AtomicBool,
    spool: PathBuf,
    /// The record log as it lay on the disk at that moment.
    copy: PathBuf,
}

/// A store on that disk. After the end nothing reaches it.
struct OnDisk(Arc<Disk>);

impl Disk {
    fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        copy(&self.spool, &self.copy);
    }

    fn step<T>(&self, dead: impl FnOnce() -> T, act: impl FnOnce(&mut MemoryStore) -> T) -> T {
        if self.dead.load(Ordering::SeqCst) {
            return dead();
        }
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        if self.when == When::Before(step) {
            self.die();
            return dead();
        }
        let done = act(&mut self.store.lock().unwrap());
        if self.when == When::After(step) {
            self.die();
        }
        done
    }
}

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

fn gone<T>() -> Result<T, StoreError> {
    Err(StoreError::Io("the process is over".to_owned()))
}

impl Store for OnDisk {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        self.0.step(gone, |store| store.offer(jobs))
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        self.0.step(gone, |store| store.admit(job))
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        self.0.step(gone, |store| store.pull(slot, now))
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        self.0.step(gone, |store| store.put_back(job, not_before))
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        self.0.step(gone, |store| store.mark_seen(key))
    }

    fn settle(&mut self, id: RequestId, outcome: End) -> Result<bool, StoreError> {
        self.0.step(gone, |store| store.settle(id, outcome))
    }

    fn books(&self) -> Books {
        self.0.store.lock().unwrap().books()
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.0.store.lock().unwrap().slots()
    }

    fn weight(&self) -> usize {
        self.0.store.lock().unwrap().weight()
    }

    fn medium(&self) -> Medium {
        Medium::Disk
    }

    fn cursors(&self) -> Cursors {
        self.0.store.lock().unwrap().cursors()
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.0.store.lock().unwrap().advance(to)
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        self.0.store.lock().unwrap().gate(slot, until)
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.0.store.lock().unwrap().gates(now)
    }

    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.0.store.lock().unwrap().save(name, state)
    }

    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.store.lock().unwrap().saved(name)
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.0.store.lock().unwrap().commit()
    }

    fn recover(&mut self) -> Result<u64, StoreError> {
        self.0.store.lock().unwrap().recover()
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

/// Runs until the crash, or to the end; how many steps there were.
fn first_run(disk: &Arc<Disk>, sink: &MemorySink) -> usize {
    let mut stand = site();
    stand.sink = sink.clone();
    stand.spool = Some(disk.spool.clone());
    stand.store = Some(Box::new(OnDisk(disk.clone())));
    let shared = disk.clone();
    stand.sink_fault = Box::new(move |_| {
        let dead = shared.dead.load(Ordering::SeqCst);
        dead.then(|| SinkAnswer::Retry { after: Some(3600 * SECOND), why: "the process is over".to_owned() })
    });
    let watched = disk.clone();
    run_local(async move {
        let (_, _, running, _rest) = stand.put_together();
        let mut ended = running.ended;
        // Dropping the runtime ends every actor where it stands.
        while !watched.dead.load(Ordering::SeqCst) {
            if tokio::time::timeout(5 * MILLI, &mut ended).await.is_ok() {
                break;
            }
        }
    });
    disk.steps.load(Ordering::SeqCst)
}

fn crash(when: When) -> usize {
    let dir = TempDir::new().unwrap();
    let disk = Arc::new(Disk {
        store: Mutex::new(MemoryStore::new(1 << 20)),
        when,
        steps: AtomicUsize::new(0),
        dead: AtomicBool::new(false),
        spool: dir.path().join("spool"),
        copy: dir.path().join("copy"),
    });
    let sink = MemorySink::new();
    let steps = first_run(&disk, &sink);
    if when == When::Never || !disk.dead.load(Ordering::SeqCst) {
        return steps;
    }
    // The same store goes on in a new process.
    let store = std::mem::replace(&mut *disk.store.lock().unwrap(), MemoryStore::new(1));
    let before = store.books();
    assert!(before.balances(), "{when:?}");
    let mut stand = site();
    stand.sink = sink;
    stand.spool = Some(disk.copy.clone());
    stand.store = Some(Box::new(store));
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
    steps
}

#[test]
fn a_crash_between_any_two_steps_loses_nothing_and_fetches_only_what_was_in_flight() {
    let steps = crash(When::Never);
    assert!(steps > 25, "{steps}");
    for step in 0..steps {
        crash(When::Before(step));
        crash(When::After(step));
    }
}
