#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
mod crash;
mod damage;
mod golden;
mod inspection;
mod trouble;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::scheduler::model::{Harness, Lost, run_model};
use crate::scheduler::store::Store;
use crate::scheduler::suite;

/// Syncs are far between and failures tried again at once.
fn options() -> DiskOptions {
    DiskOptions { sync: Duration::from_secs(3_600), retry: Duration::ZERO, patience: Duration::from_secs(20) }
}

fn open(dir: &Path) -> DiskStore {
    DiskStore::open(dir, options(), &HashMap::new()).unwrap().0
}

/// A directory in memory where there is one: what is tested is not how fast a disk syncs.
fn quick_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Writes 200 MB, so it only runs with `LONG_TESTS_OF_DRAGLINE`.
#[test]
fn what_is_seldom_written_keeps_no_journal_alive() {
    use crate::scheduler::job::Outcome;
    use crate::scheduler::testing::{child, job};
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_none() {
        return;
    }
    let dir = quick_dir();
    let mut store = open(dir.path());
    let mut noise = 1_u64;
    let mut body = || {
        let words = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (noise >> 32).to_le_bytes()
        });
        words.take(10_000).flatten().collect::<Vec<u8>>()
    };
    // Every space has a row in the first journal, and only jobs and seen keys have any later.
    suite::offer(&mut store, [job(0, "http://a/p"), job(1, "http://a/q")]);
    let failed = suite::pull(&mut store, "a", Duration::ZERO).unwrap();
    let parent = suite::pull(&mut store, "a", Duration::ZERO).unwrap();
    store.settle(failed.id, Outcome::Failed(crate::api::failure::FailureKind::Lost)).unwrap();
    suite::offer(&mut store, [child(parent.id, 0, "http://b/1")]);
    let mut most = 0;
    for n in 2..2_500 {
        let mut big = job(n, &format!("http://c/{n}"));
        big.request.body(body());
        suite::offer(&mut store, [big]);
        store.commit().unwrap();
        let done = suite::pull(&mut store, "c", Duration::ZERO).unwrap();
        store.settle(done.id, Outcome::Handled).unwrap();
        store.commit().unwrap();
        most = most.max(store.base.as_ref().unwrap().journals());
    }
    assert!((2..=4).contains(&most), "{most} journals");
}

#[test]
fn it_does_what_every_store_must() {
    let dirs = RefCell::new(Vec::new());
    suite::run(|_| {
        let dir = quick_dir();
        let store = open(dir.path());
        dirs.borrow_mut().push(dir);
        store
    });
}

#[test]
fn what_cannot_be_read_back_is_set_aside_for_good() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::what_cannot_be_read_back_is_set_aside(&mut store);
    let books = store.books();
    drop(store);
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, store.books()), (None, books));
}

#[test]
fn a_name_that_is_out_is_not_given_out_again() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    suite::a_name_that_is_out_is_not_given_out_again(&mut store);
    let books = store.books();
    drop(store);
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, store.books()), (None, books));
}

#[test]
fn it_behaves_like_the_model() {
    let dir: Rc<RefCell<Option<tempfile::TempDir>>> = Rc::default();
    let made = Rc::clone(&dir);
    run_model(&Harness {
        make: Box::new(move || {
            let dir = quick_dir();
            let store = open(dir.path());
            *made.borrow_mut() = Some(dir);
            store
        }),
        crash: Box::new(move |store| {
            drop(store);
            let dir = dir.borrow().as_ref().unwrap().path().to_owned();
            let (store, opened) = DiskStore::open(&dir, options(), &HashMap::new()).unwrap();
            assert_eq!(opened.repaired, None);
            (store, Lost::Uncommitted)
        }),
        fail: Box::new(|store, fault| {
            // A commit with nothing to write cannot fail.
            let fails = !store.changes.is_empty();
            store.fault = fails.then_some(fault);
            fails
        }),
    });
}
