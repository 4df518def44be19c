//! A disk that is full, or cannot be written: in a small file system of its own, where the system lets us have one.
use std::fs;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::scheduler::job::{Books, Outcome};
use crate::scheduler::testing::job;

const CHILD: &str = "DRAGLINE_TEST_SMALL_DISK";
const NOW: Duration = Duration::from_secs(1_000);

/// Runs this test again as a process of its own in a namespace of its own, with a small disk mounted at a directory.
/// True in that process; false, with a note, when the system does not let us.
fn on_a_small_disk(test: &str, size: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size={size} none '{}'", dir.path().display());
    let can = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("not run: no file system may be mounted here");
        return false;
    }
    let exe = std::env::current_exe().unwrap();
    let run = format!("{mount} && exec '{}' --exact --nocapture scheduler::disk::tests::trouble::{test}", exe.display());
    let output = Command::new("unshare").args(["-rm", "sh", "-c", &run]).env(CHILD, dir.path()).output().unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    false
}

fn small_disk() -> std::path::PathBuf {
    std::env::var_os(CHILD).unwrap().into()
}

#[test]
fn a_full_disk_holds_commits_back_until_there_is_room() {
    if !on_a_small_disk("a_full_disk_holds_commits_back_until_there_is_room", "12m") {
        return;
    }
    let disk = small_disk();
    let mut store = open(&disk.join("frontier"));
    let mut offered = 0;
    let mut offer = |store: &mut DiskStore| {
        suite::offer(store, (offered..offered + 100).map(|n| job(n, &format!("http://a/a-rather-long-path/{n}"))));
        offered += 100;
        offered
    };
    let count = offer(&mut store);
    store.commit().unwrap();
    assert_eq!(count, 100);
    let filler = disk.join("filler");
    // All that is left, in smaller and smaller pieces.
    let mut file = fs::File::create(&filler).unwrap();
    for piece in [1 << 20, 1 << 12, 1] {
        while std::io::Write::write_all(&mut file, &vec![1; piece]).is_ok() {}
    }
    let mut failures = 0;
    let last = loop {
        let offered = offer(&mut store);
        if let Err(error) = store.commit() {
            let text = error.to_string();
            assert!(
                text.contains("no space left on the device; free some, the crawl goes on as soon as there is room"),
                "{text}"
            );
            failures += 1;
            // The queue is worked on meanwhile.
            let job = suite::pull(&mut store, "a", NOW).expect("what is queued can be read");
            store.settle(job.id, Outcome::Handled).unwrap();
        }
        assert!(offered < 1_000_000, "the disk must be full");
        if failures == 5 {
            break offered;
        }
    };
    drop(file);
    fs::remove_file(&filler).unwrap();
    store.commit().unwrap();
    let books = Books { enqueued: last, handled: 5, pending: last - 5, ..Books::default() };
    assert_eq!(store.books(), books);
    drop(store);
    let (mut store, opened) = DiskStore::open(&disk.join("frontier"), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, store.books()), (None, books));
    assert_eq!(suite::pull(&mut store, "a", NOW).unwrap().url().path(), "/a-rather-long-path/5");
}

#[test]
fn a_frontier_that_fills_its_disk_goes_on_when_the_disk_grows() {
    if !on_a_small_disk("a_frontier_that_fills_its_disk_goes_on_when_the_disk_grows", "8m") {
        return;
    }
    let disk = small_disk();
    let mut store = open(&disk.join("frontier"));
    let mut offered = 0;
    let mut offer = |store: &mut DiskStore| {
        suite::offer(store, (offered..offered + 100).map(|n| job(n, &format!("http://a/{:0400}", n))));
        offered += 100;
        offered
    };
    let mut failures = 0;
    while failures < 3 {
        let offered = offer(&mut store);
        failures += u32::from(store.commit().is_err());
        assert!(offered < 1_000_000);
    }
    let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(&disk).status().unwrap();
    assert!(grown.success());
    store.commit().unwrap();
    for _ in 0..100 {
        offer(&mut store);
        store.commit().unwrap();
    }
    let last = offer(&mut store);
    store.close().unwrap();
    let (store, opened) = DiskStore::open(&disk.join("frontier"), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, opened.pending), (None, last));
    assert_eq!(store.index.seen.len() as u64, last);
}

#[test]
fn a_read_only_disk_is_refused_with_what_to_do() {
    if !on_a_small_disk("a_read_only_disk_is_refused_with_what_to_do", "12m") {
        return;
    }
    let disk = small_disk();
    drop(open(&disk.join("frontier")));
    assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status().unwrap().success());
    for dir in [disk.join("frontier"), disk.join("other")] {
        let error = DiskStore::open(&dir, options(), &HashMap::new()).unwrap_err();
        assert!(matches!(error, DiskError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains("mount it writable or give this user the right to write"), "{error}");
    }
}
