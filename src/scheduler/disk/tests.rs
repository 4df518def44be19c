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
    DiskOptions { sync: Duration::from_secs(3_600), retry: Duration::ZERO }
}

fn open(dir: &Path) -> DiskStore {
    DiskStore::open(dir, options(), &HashMap::new()).unwrap().0
}

/// A directory in memory where there is one: what is tested is not how fast a disk syncs.
fn quick_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
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
