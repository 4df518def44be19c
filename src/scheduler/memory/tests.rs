#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use super::*;
use crate::scheduler::model::{Harness, Lost, run_model};
use crate::scheduler::suite;
use crate::scheduler::testing::{child, job};

const MIB: usize = 1 << 20;

/// A store that keeps no record in memory.
fn all_spilled(bound: usize) -> (MemoryStore, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = MemoryStore::spilling(bound, dir.path());
    store.spill_at = 0;
    (store, dir)
}

#[test]
fn it_does_what_every_store_must() {
    suite::run(MemoryStore::new);
}

#[test]
fn it_does_what_every_store_must_with_every_job_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    suite::run(|bound| {
        let mut store = MemoryStore::spilling(bound, dir.path());
        store.spill_at = 0;
        store
    });
    let (mut store, _dir) = all_spilled(usize::MAX);
    suite::offer(&mut store, [job(0, "http://a/1")]);
    assert!(store.spilled() > 0, "the first job is spilled");
}

/// Runs the model: a crash is one of the scheduler, which the store outlives.
fn behaves_like_the_model(make: impl Fn() -> MemoryStore + 'static) {
    let crash = |mut store: MemoryStore| {
        store.recover().unwrap();
        (store, Lost::Nothing)
    };
    run_model(&Harness { make: Box::new(make), crash: Box::new(crash), fail: Box::new(|_, _| false) });
}

#[test]
fn it_behaves_like_the_model() {
    behaves_like_the_model(|| MemoryStore::new(usize::MAX));
}

#[test]
fn it_behaves_like_the_model_with_every_job_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    behaves_like_the_model(move || {
        let mut store = MemoryStore::spilling(usize::MAX, &path);
        store.spill_at = 0;
        store
    });
}

#[test]
fn a_full_store_takes_nothing_of_a_batch() {
    suite::a_full_store_takes_nothing_of_a_batch(&mut MemoryStore::new(MIB));
}

#[test]
fn a_spilling_store_is_full_when_its_index_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut plain = MemoryStore::new(MIB);
    let mut spilling = MemoryStore::spilling(MIB, dir.path());
    suite::a_full_store_takes_nothing_of_a_batch(&mut plain);
    suite::a_full_store_takes_nothing_of_a_batch(&mut spilling);
    let (few, many) = (plain.books().enqueued, spilling.books().enqueued);
    assert!(many > few * 3 / 2, "{few} jobs without a file, {many} with one");
    let on_disk = spilling.spilled();
    assert!(on_disk > 60 * many, "{on_disk} bytes on disk for {many} jobs");
    assert!(spilling.weight() <= MIB);
}

#[test]
fn a_spilling_store_holds_its_bound_and_gives_everything_in_order() {
    const BOUND: usize = 4 * MIB;
    let dir = tempfile::tempdir().unwrap();
    let mut store = MemoryStore::spilling(BOUND, dir.path());
    let url = |n: u64| format!("http://{}.test/some/longer/path/to/a/page-{n:08}.html", n % 7);
    for start in (0..60_000).step_by(30) {
        suite::offer(&mut store, (start..start + 30).map(|n| job(n, &url(n))));
        assert!(store.weight() <= BOUND, "{} of {BOUND} after {start}", store.weight());
    }
    assert!(store.spilled() > 3_000_000, "{}", store.spilled());
    for n in 0..60_000 {
        let got = suite::pull(&mut store, &format!("{}.test", n % 7), Duration::ZERO).unwrap();
        assert_eq!(got.url().as_str(), url(n));
        if n % 2 == 0 {
            store.settle(got.id, Outcome::Handled).unwrap();
        } else {
            store.put_back(*got, Duration::from_secs(5)).unwrap();
        }
        assert!(store.weight() <= BOUND, "{} of {BOUND} after {n}", store.weight());
    }
    for n in (1..60_000).step_by(2) {
        let got = suite::pull(&mut store, &format!("{}.test", n % 7), Duration::from_secs(5)).unwrap();
        assert_eq!(got.url().as_str(), url(n));
        store.settle(got.id, Outcome::Handled).unwrap();
    }
    assert_eq!((store.books().handled, store.books().pending), (60_000, 0));
    assert_eq!(store.spilled(), 0);
    drop(store);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count(), 0);
}

#[test]
fn a_page_may_offer_more_than_the_bound_if_the_index_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = MemoryStore::spilling(MIB, dir.path());
    let long = "x".repeat(900);
    suite::offer(&mut store, (0..3_000).map(|n| job(n, &format!("http://a/{n:04}?{long}"))));
    assert!(store.weight() <= MIB, "{}", store.weight());
    assert!(store.spilled() > 2 * MIB as u64, "{}", store.spilled());
    for n in 0..3_000 {
        assert!(suite::pull(&mut store, "a", Duration::ZERO).unwrap().url().as_str().starts_with(&format!("http://a/{n:04}?")));
    }
}

#[test]
fn whatever_comes_in_is_spilled_over_the_bound() {
    let (mut store, _dir) = all_spilled(usize::MAX);
    store.admit(&job(0, "http://a/1")).unwrap();
    let admitted = store.spilled();
    assert!(admitted > 0);
    suite::offer(&mut store, [job(1, "http://a/2")]);
    let offered = store.spilled();
    assert!(offered > admitted);
    let back = suite::pull(&mut store, "a", Duration::ZERO).unwrap();
    store.put_back(*back, Duration::from_secs(1)).unwrap();
    assert!(store.spilled() > offered, "it is written anew, and the segment still holds the old record");
}

#[test]
fn what_is_known_needs_no_room() {
    let mut store = MemoryStore::new(MIB);
    suite::offer(&mut store, [job(0, "http://a/1")]);
    store.bound = 0;
    assert_eq!(suite::offer(&mut store, [job(1, "http://a/1")]).duplicates, 1);
    assert!(store.offer(&mut vec![job(2, "http://a/2")]).is_err());
}

#[test]
fn where_nothing_can_be_spilled_the_store_is_full_until_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut store = MemoryStore::spilling(MIB, &file.join("below"));
    let mut next = 0;
    let mut batch = || {
        next += 10;
        (next - 10..next).map(|n| job(n, &format!("http://a/{n:08}"))).collect::<Vec<_>>()
    };
    let mut refused = loop {
        let mut jobs = batch();
        if let Err(error) = store.offer(&mut jobs) {
            assert!(matches!(error, StoreError::Full { .. }), "{error}");
            break jobs;
        }
    };
    let before = store.books();
    assert!(store.offer(&mut refused).is_err());
    assert_eq!((refused.len(), store.books()), (10, before), "nothing of it was taken");
    std::fs::remove_file(&file).unwrap();
    suite::offer(&mut store, refused);
    suite::offer(&mut store, batch());
    assert!(store.spilled() > 0);
}

#[test]
fn a_job_that_cannot_be_read_is_set_aside_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = MemoryStore::spilling(usize::MAX, dir.path());
    store.spill_at = 0;
    suite::offer(&mut store, (0..3).map(|n| job(n, &format!("http://a/{n}"))));
    let folder = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let segment = folder.join("0");
    let whole = std::fs::read(&segment).unwrap();
    let bytes = whole.len() / 3;
    let damaged = [&[9], &whole[1..2 * bytes]].concat();
    std::fs::write(&segment, damaged).unwrap();
    assert_eq!(suite::pull(&mut store, "a", Duration::ZERO).unwrap().url().path(), "/1", "the first has another format");
    assert!(matches!(store.pull(&SlotKey("a".into()), Duration::ZERO), Ok(Pulled::Empty)), "the last is cut off");
    assert_eq!(store.books(), Books { enqueued: 3, set_aside: 2, pending: 1, ..Books::default() });
    assert!(store.slots().is_empty());
    store.settle(RequestId::child(None, 1), Outcome::Handled).unwrap();
    assert!(store.bodies.is_empty(), "nothing is kept of them");
}

#[test]
fn what_cannot_be_read_back_is_set_aside() {
    suite::what_cannot_be_read_back_is_set_aside(&mut MemoryStore::new(usize::MAX));
}

#[test]
fn a_name_that_is_out_is_not_given_out_again() {
    let mut store = MemoryStore::new(usize::MAX);
    suite::a_name_that_is_out_is_not_given_out_again(&mut store);
    while let Some(job) = suite::pull(&mut store, "a", Duration::ZERO) {
        store.settle(job.id, Outcome::Handled).unwrap();
    }
    let out = [RequestId::child(None, 0), RequestId::child(None, 1)];
    out.into_iter().for_each(|id| assert!(store.settle(id, Outcome::Handled).unwrap()));
    assert!(store.bodies.is_empty() && store.books().pending == 0);
}

#[test]
fn a_drained_store_holds_nothing_but_what_it_has_seen() {
    let mut store = MemoryStore::new(usize::MAX);
    for n in 0..1_000 {
        suite::offer(&mut store, [job(n, &format!("http://{n}.test/"))]);
    }
    for n in 0..1_000 {
        let parent = suite::pull(&mut store, &format!("{n}.test"), Duration::ZERO).unwrap();
        suite::offer(&mut store, [child(parent.id, 0, &format!("http://{n}.test/"))]);
        store.settle(parent.id, Outcome::Handled).unwrap();
    }
    let index = &store.index;
    assert!(index.lines.is_empty() && index.out.len() == 0 && index.children.parents().count() == 0);
    assert!(store.bodies.is_empty());
}

/// Bytes this process has resident.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[cfg(target_os = "linux")]
fn a_queued_job_takes_at_most_200_bytes_and_a_seen_key_32() {
    // In a process of its own: the other tests of this one come and go meanwhile.
    let this = std::env::current_exe().unwrap();
    let name = "scheduler::memory::tests::measure_jobs_and_keys";
    let run = std::process::Command::new(this).args(["--exact", name, "--ignored", "--nocapture"]).output().unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "run by the test above"]
fn measure_jobs_and_keys() {
    const KEYS: u32 = 2_000_000;
    const JOBS: u32 = 400_000;
    let mut store = MemoryStore::new(usize::MAX);
    suite::offer(&mut store, [job(u64::MAX, "https://shop.example/")]);
    let (told, real) = (store.weight(), resident());
    for n in 0..KEYS {
        store.mark_seen(xxhash_rust::xxh3::xxh3_128(&n.to_le_bytes())).unwrap();
    }
    let seen = (store.weight() - told, resident().saturating_sub(real));
    let (told, real) = (store.weight(), resident());
    for start in (0..u64::from(JOBS)).step_by(20) {
        let url = |n: u64| format!("https://shop.example/category/garden-tool-{:02}/item-{n:07}.html", n % 100);
        assert_eq!(url(7).len(), 62);
        suite::offer(&mut store, (start..start + 20).map(|n| Job { parent: Some(RequestId(7)), ..job(n, &url(n)) }));
    }
    let queued = (store.weight() - told, resident().saturating_sub(real));
    assert_eq!(store.books().pending, u64::from(JOBS) + 1);
    for (what, count, (told, real)) in [("seen", KEYS, seen), ("queued", JOBS, queued)] {
        println!("{what}: {} bytes told, {} resident", told / count as usize, real / count as usize);
        let most = if what == "seen" { 32 } else { 200 };
        assert!(told <= most * count as usize && real <= most * count as usize, "{what}: {told} told, {real} resident");
        assert!(told.abs_diff(real) < real / 5, "{what}: weight() tells {told} of {real} bytes");
    }
}
