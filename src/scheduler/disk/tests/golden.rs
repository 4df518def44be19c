//! A directory that the first program of format 1 wrote: every later one opens it.
use std::fs;
use std::time::Duration;

use super::*;
use crate::api::failure::FailureKind;
use crate::scheduler::job::{Books, Outcome, SlotKey};
use crate::scheduler::store::Cursors;
use crate::scheduler::testing::{child, job, unfiltered, with_priority};

const NOW: Duration = Duration::from_secs(1_000);

fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/frontier/v1")
}

/// What the directory holds, written by the program as it is now. Where there is none, it becomes the golden one: a
/// format begins.
#[test]
fn this_program_writes_what_the_golden_directory_holds() {
    let dir = quick_dir();
    let dir = dir.path().join("frontier");
    let mut store = open(&dir);
    let mut full = child(crate::scheduler::job::RequestId(9), 3, "https://u:p@a:444/x?y#z");
    full.request.header("x-a", "1").unwrap().cookie("c", "2").body("body").meta("m", 3).retries(4);
    full.request.set_method(http::Method::POST);
    full.parent_url = Some("http://a/from".into());
    (full.depth, full.attempts, full.hops, full.chain) = (5, 6, 7, vec![1, u128::MAX]);
    suite::offer(&mut store, (0..6).map(|n| with_priority(job(n, &format!("http://a/{n}")), i32::from(n == 5))));
    suite::offer(&mut store, [full]);
    for outcome in [Outcome::Handled, Outcome::Failed(FailureKind::Timeout), Outcome::SetAside] {
        let job = suite::pull(&mut store, "a", NOW).unwrap();
        store.settle(job.id, outcome).unwrap();
    }
    store.commit().unwrap();
    let parent = suite::pull(&mut store, "a", NOW).unwrap();
    suite::offer(&mut store, [child(parent.id, 0, "http://b/1"), unfiltered(child(parent.id, 1, "http://b/1"))]);
    let back = suite::pull(&mut store, "a", NOW).unwrap();
    store.put_back(*back, NOW + Duration::from_millis(1_500)).unwrap();
    store.advance(Cursors { start: 6, idle: 1 }).unwrap();
    store.gate(&SlotKey("a".into()), NOW + Duration::from_secs(1)).unwrap();
    store.save("cookies", b"jar".to_vec()).unwrap();
    store.commit().unwrap();
    // Tables, and a journal that is cut to what is in it.
    store.close().unwrap();
    let mut store = open(&dir);
    store.save("counters", b"7".to_vec()).unwrap();
    store.commit().unwrap();
    drop(store);
    drop(open(&dir));
    if !golden().exists() {
        copy(&dir, &golden());
    }
    holds_all(&dir);
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

#[test]
fn a_directory_of_format_1_is_opened() {
    let dir = quick_dir();
    copy(&golden(), dir.path());
    holds_all(dir.path());
}

#[track_caller]
fn holds_all(dir: &Path) {
    let (mut store, opened) = DiskStore::open(dir, options(), &HashMap::new()).unwrap();
    assert_eq!(opened, Opened { pending: 6, settled_from_log: 0, returned: 0, repaired: None });
    assert_eq!(store.books(), Books { enqueued: 9, handled: 1, failed: 1, set_aside: 1, pending: 6, ..Books::default() });
    assert_eq!(store.cursors(), Cursors { start: 6, idle: 1 });
    assert_eq!(store.gates(NOW), [(SlotKey("a".into()), NOW + Duration::from_secs(1))]);
    assert_eq!(store.saved("cookies").unwrap().as_deref(), Some(&b"jar"[..]));
    assert_eq!(store.saved("counters").unwrap().as_deref(), Some(&b"7"[..]));
    assert_eq!(store.index.seen.len(), 8);
    let parent = suite::pull(&mut store, "a", NOW).unwrap();
    assert_eq!(parent.url().path(), "/2");
    let again = [child(parent.id, 0, "http://b/1"), unfiltered(child(parent.id, 1, "http://b/1"))];
    assert_eq!(suite::offer(&mut store, again).repeated, 2);
    let later = NOW + Duration::from_secs(2);
    let rest: Vec<_> = std::iter::from_fn(|| suite::pull(&mut store, "a", later)).collect();
    assert_eq!(rest.iter().map(|job| job.url().path()).collect::<Vec<_>>(), ["/4", "/x", "/3"]);
    let full = &rest[1];
    assert_eq!((full.url().as_str(), full.method()), ("https://u:p@a:444/x?y#z", &http::Method::POST));
    assert_eq!((full.attempts, full.chain.as_slice(), full.request.retries_value()), (6, &[1, u128::MAX][..], Some(4)));
    store.close().unwrap();
    let mut inspection = Inspection::open(dir).unwrap().unwrap();
    let failed = inspection.kept(Kept::Failed).next().unwrap().unwrap();
    assert_eq!(failed.ended, Some(Outcome::Failed(FailureKind::Timeout)));
    assert_eq!((inspection.requeue_failed(|_| true).unwrap(), inspection.requeue_set_aside(|_| true).unwrap()), (1, 1));
}
