//! Damage is found, told with a way out, and takes nothing with it that can be read.
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::super::base::Batch;
use super::super::rows::{self, Head, Space};
use super::golden::copy;
use super::*;
use crate::scheduler::job::{Books, Outcome, SlotKey};
use crate::scheduler::model::Fault;
use crate::scheduler::testing::{child, job};

const NOW: Duration = Duration::from_secs(1_000);

/// Three queued requests, of which the first is out and has a child.
fn frontier(dir: &Path) -> DiskStore {
    let mut store = open(dir);
    suite::offer(&mut store, (0..3).map(|n| job(n, &format!("http://a/{n}"))));
    store.commit().unwrap();
    let parent = suite::pull(&mut store, "a", NOW).unwrap();
    suite::offer(&mut store, [child(parent.id, 0, "http://b/1")]);
    store.gate(&SlotKey("a".into()), NOW).unwrap();
    store.save("cookies", b"jar".to_vec()).unwrap();
    store.commit().unwrap();
    store
}

/// Writes a row as it is.
fn write(store: &mut DiskStore, space: Space, key: &[u8], value: Option<&[u8]>) {
    let mut batch = Batch::default();
    batch.set(space, key, value);
    store.base.as_mut().unwrap().write(&batch, false).unwrap();
}

fn value(store: &DiskStore, space: Space, key: &[u8]) -> Vec<u8> {
    store.base.as_ref().unwrap().get(space, key).unwrap().unwrap().to_vec()
}

/// Turns one bit of a row's value.
fn tear(store: &mut DiskStore, space: Space, key: &[u8]) {
    let mut torn = value(store, space, key);
    let middle = torn.len() / 2;
    torn[middle] ^= 4;
    write(store, space, key, Some(&torn));
}

/// Opens after a change to the rows: what was put right, once, and the store.
fn repaired(dir: &Path, change: impl FnOnce(&mut DiskStore)) -> (Repaired, DiskStore) {
    let mut store = frontier(dir);
    change(&mut store);
    drop(store);
    let (store, opened) = DiskStore::open(dir, options(), &HashMap::new()).unwrap();
    drop(store);
    let (store, again) = DiskStore::open(dir, options(), &HashMap::new()).unwrap();
    assert_eq!(again.repaired, None, "it is put right for good");
    assert!(store.books().balances());
    assert_eq!(store.books().pending, again.pending);
    (opened.repaired.unwrap(), store)
}

fn refused(dir: &Path, change: impl FnOnce(&mut DiskStore)) -> String {
    let mut store = frontier(dir);
    change(&mut store);
    drop(store);
    let error = DiskStore::open(dir, options(), &HashMap::new()).unwrap_err().to_string();
    assert_eq!(survey(dir).unwrap_err().to_string(), error, "a survey tells the same");
    error
}

#[test]
fn a_damaged_record_is_set_aside_and_the_rest_goes_on() {
    let dir = quick_dir();
    let (told, mut store) = repaired(dir.path(), |store| tear(store, Space::Jobs, &rows::numbered(2)));
    assert_eq!((told.damaged, told.named.as_slice()), (1, &["jobs 0000000000000002".to_owned()][..]));
    let text = told.to_string();
    assert!(text.starts_with("1 queued requests cannot be read and are set aside as damaged [jobs 00"), "{text}");
    assert_eq!(store.books(), Books { enqueued: 4, set_aside: 1, pending: 3, ..Books::default() });
    let left: Vec<String> =
        std::iter::from_fn(|| suite::pull(&mut store, "a", NOW)).map(|job| job.url().path().to_owned()).collect();
    assert_eq!(left, ["/0", "/2"]);
    drop(store);
    let mut inspection = Inspection::open(dir.path()).unwrap().unwrap();
    let damaged: Vec<Record> = inspection.kept(Kept::Damaged).map(Result::unwrap).collect();
    assert_eq!((damaged.len(), damaged[0].age), (1, 2));
    assert!(damaged[0].job.as_ref().unwrap_err().contains("damaged"));
    assert_eq!(inspection.requeue_set_aside(|_| true).unwrap(), 0, "it cannot be put back");
}

#[test]
fn a_record_damaged_while_it_waits_is_set_aside_when_it_is_pulled() {
    let dir = quick_dir();
    let mut store = frontier(dir.path());
    tear(&mut store, Space::Jobs, &rows::numbered(2));
    write(&mut store, Space::Jobs, &rows::numbered(3), None);
    assert!(suite::pull(&mut store, "a", NOW).is_none());
    assert_eq!(store.books(), Books { enqueued: 4, set_aside: 2, pending: 2, ..Books::default() });
    store.commit().unwrap();
    drop(store);
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, store.books().set_aside), (None, 2));
}

#[test]
fn lost_and_returned_rows_are_counted_and_the_books_put_right() {
    let dir = quick_dir();
    let (told, store) = repaired(dir.path(), |store| write(store, Space::Jobs, &rows::numbered(3), None));
    assert_eq!((told.lost, store.books()), (1, Books { enqueued: 3, pending: 3, ..Books::default() }));
    let dir = quick_dir();
    let (told, store) = repaired(dir.path(), |store| {
        let sealed = value(store, Space::Jobs, &rows::numbered(3));
        let body = rows::open(Space::Jobs, &rows::numbered(3), &sealed).unwrap().to_vec();
        let key = rows::numbered(77);
        write(store, Space::Jobs, &key, Some(&rows::seal(Space::Jobs, &key, body)));
    });
    assert_eq!((told.unsettled, store.books().pending), (1, 5));
    assert_eq!(store.last_age, 77, "no age is given twice");
}

#[test]
fn the_age_of_what_ended_is_not_given_again() {
    let dir = quick_dir();
    let mut store = frontier(dir.path());
    let late = job(5, "http://a/late");
    let mut record = Vec::new();
    crate::scheduler::record::encode(&late, Duration::ZERO, &mut record);
    let key = rows::numbered(77);
    write(&mut store, Space::Jobs, &key, Some(&rows::seal(Space::Jobs, &key, record)));
    drop(store);
    let ended = HashMap::from([(late.id, Outcome::SetAside)]);
    let (mut store, opened) = DiskStore::open(dir.path(), options(), &ended).unwrap();
    assert_eq!(opened.settled_from_log, 1);
    suite::offer(&mut store, [job(6, "http://a/6")]);
    store.commit().unwrap();
    drop(store);
    let ages: Vec<u64> = Inspection::open(dir.path()).unwrap().unwrap().queued().map(|record| record.unwrap().age).collect();
    assert_eq!(ages.last(), Some(&78), "{ages:?}");
}

#[test]
fn a_database_that_went_away_is_not_begun_anew() {
    let dir = quick_dir();
    let mut store = frontier(dir.path());
    let earlier = quick_dir();
    copy(&dir.path().join("db"), &earlier.path().join("db"));
    suite::offer(&mut store, [job(5, "http://a/5")]);
    store.commit().unwrap();
    suite::offer(&mut store, [job(6, "http://a/6")]);
    store.fault = Some(Fault::Before);
    store.commit().unwrap_err();
    let [db, away] = ["db", "away"].map(|name| dir.path().join(name));
    fs::rename(&db, &away).unwrap();
    let text = store.commit().unwrap_err().to_string();
    assert!(text.contains("its database is gone"), "{text}");
    assert!(!db.exists());
    let slot = SlotKey("a".into());
    assert!(store.pull(&slot, NOW).is_err(), "out of reach is not unreadable");
    assert_eq!((store.books().pending, store.slots().len()), (6, 2));
    copy(&earlier.path().join("db"), &db);
    let text = store.commit().unwrap_err().to_string();
    assert!(text.contains("commits of this run are gone from its database"), "{text}");
    fs::remove_dir_all(&db).unwrap();
    fs::rename(&away, &db).unwrap();
    store.commit().unwrap();
    assert_eq!(suite::pull(&mut store, "a", NOW).unwrap().url().path(), "/1", "it is at its place again");
    drop(store);
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, store.books().pending), (None, 6));
}

#[test]
fn a_hole_in_the_seen_keys_is_told_once() {
    let dir = quick_dir();
    let (told, mut store) = repaired(dir.path(), |store| write(store, Space::Seen, &rows::numbered(1), None));
    assert_eq!(told, Repaired { seen_rows: 1, ..Repaired::default() });
    assert_eq!(suite::offer(&mut store, [job(8, "http://b/1"), job(9, "http://a/2")]).stored, 1);
    let dir = quick_dir();
    let (told, _) = repaired(dir.path(), |store| tear(store, Space::Seen, &rows::numbered(2)));
    assert_eq!((told.seen_rows, told.named.len()), (1, 1));
    // The last one: nothing comes after it.
    let dir = quick_dir();
    let (told, mut store) = repaired(dir.path(), |store| write(store, Space::Seen, &rows::numbered(2), None));
    assert_eq!(told.seen_rows, 1);
    suite::offer(&mut store, [job(8, "http://c/1")]);
    store.commit().unwrap();
    drop(store);
    let (mut store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!(opened.repaired, None);
    assert_eq!(suite::offer(&mut store, [job(9, "http://c/1")]).duplicates, 1);
}

#[test]
fn a_row_of_seen_keys_that_the_head_does_not_tell_of_is_never_overwritten() {
    let dir = quick_dir();
    let mut store = frontier(dir.path());
    let key = rows::numbered(3);
    write(&mut store, Space::Seen, &key, Some(&rows::seal_ids(Space::Seen, &key, &[99])));
    drop(store);
    let mut store = open(dir.path());
    suite::offer(&mut store, [job(8, "http://c/1")]);
    store.commit().unwrap();
    drop(store);
    let mut store = open(dir.path());
    assert!(!store.mark_seen(99).unwrap());
    assert_eq!(suite::offer(&mut store, [job(9, "http://c/1")]).duplicates, 1);
}

#[test]
fn other_rows_that_cannot_be_read_are_dropped_and_told() {
    for (space, key) in [(Space::Meta, rows::gate_key("a")), (Space::Jobs, b"odd".to_vec()), (Space::Seen, b"odd".to_vec())] {
        let dir = quick_dir();
        let (told, _) = repaired(dir.path(), |store| write(store, space, &key, Some(b"")));
        assert_eq!((told.rows, told.named.len()), (1, 1), "{space:?}");
    }
    let dir = quick_dir();
    let (told, _) = repaired(dir.path(), |store| {
        let key = store.base.as_ref().unwrap().scan(Space::Children, &[]).next().unwrap().unwrap().0;
        tear(store, Space::Children, &key);
    });
    assert_eq!(told.rows, 1);
}

#[test]
fn a_damaged_state_counts_as_none() {
    let dir = quick_dir();
    let mut store = frontier(dir.path());
    tear(&mut store, Space::Meta, &rows::state_key("cookies"));
    assert_eq!(store.saved("cookies").unwrap(), None);
}

#[test]
fn a_head_that_is_missing_damaged_or_newer_is_refused_with_a_way_out() {
    let dir = quick_dir();
    let text = refused(dir.path(), |store| write(store, Space::Meta, rows::HEAD, None));
    assert!(text.contains("its head row is missing; bring the directory back from a copy, or move it away"), "{text}");
    let dir = quick_dir();
    let text = refused(dir.path(), |store| tear(store, Space::Meta, rows::HEAD));
    assert!(text.contains("its head row fails its checksum"), "{text}");
    let dir = quick_dir();
    let text = refused(dir.path(), |store| {
        let mut newer = Head::default().encode();
        newer[0] = 2;
        write(store, Space::Meta, rows::HEAD, Some(&newer));
    });
    assert!(text.contains("is a frontier of format 2, this program reads up to 1"), "{text}");
}

fn journal(dir: &Path) -> PathBuf {
    let mut journals: Vec<PathBuf> = fs::read_dir(dir.join("db")).unwrap().map(|entry| entry.unwrap().path()).collect();
    journals.retain(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    journals.sort();
    journals.pop().unwrap()
}

/// The place of a commit's bytes in the journal: that of a text only it has.
fn place_of(journal: &Path, text: &str) -> usize {
    let bytes = fs::read(journal).unwrap();
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[test]
fn a_journal_damaged_in_the_middle_is_told() {
    let make = |dir: &Path| {
        let mut store = open(dir);
        for n in 0..5 {
            suite::offer(&mut store, [job(n, &format!("http://a/page-{n}"))]);
            store.commit().unwrap();
        }
        drop(store);
        let journal = journal(dir);
        let at = place_of(&journal, "page-2");
        (fs::read(&journal).unwrap(), journal, at)
    };
    // A wrong bit in a value: the database itself finds it.
    let dir = quick_dir();
    let (mut bytes, journal, at) = make(dir.path());
    bytes[at] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let error = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("a journal is damaged"), "{error}");
    // A stretch of zeros, as a lost page leaves it: the database takes it for the end.
    let dir = quick_dir();
    let (mut bytes, journal, at) = make(dir.path());
    bytes[at - 150..at + 50].fill(0);
    fs::write(&journal, &bytes).unwrap();
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    let told = opened.repaired.unwrap();
    assert!(told.commits >= 2, "{told}");
    assert!(told.to_string().contains("commits that were safe are gone (a journal is damaged)"), "{told}");
    assert!(store.books().balances() && store.books().pending < 5);
}

/// The largest table of a space, which is the `number`-th of the database.
fn table(dir: &Path, number: u8) -> PathBuf {
    let tables = fs::read_dir(dir.join(format!("db/keyspaces/{number}/tables"))).unwrap();
    tables.map(|entry| entry.unwrap().path()).max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

fn tear_file(path: &Path, at: impl FnOnce(usize) -> usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn unreadable_blocks_take_only_their_own_rows_with_them() {
    let dir = quick_dir();
    let mut store = open(dir.path());
    for n in 0..500 {
        suite::offer(&mut store, (0..10).map(|m| job(n * 10 + m, &format!("http://a/page-{n}-{m}"))));
        store.commit().unwrap();
    }
    store.save("cookies", b"jar".to_vec()).unwrap();
    store.close().unwrap();
    // Two blocks of jobs, the first of them all, and one of seen keys.
    tear_file(&table(dir.path(), 1), |_| 100);
    tear_file(&table(dir.path(), 1), |len| len / 2);
    tear_file(&table(dir.path(), 2), |len| len / 2);
    let text = survey(dir.path()).unwrap_err().to_string();
    assert!(text.contains("some of it cannot be read") && text.contains("the next run copies what can"), "{text}");
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    let told = opened.repaired.unwrap();
    let kept = told.kept.clone().unwrap();
    assert!(told.to_string().contains("queued requests are gone") && told.to_string().contains("it is kept as"), "{told}");
    assert!((1..300).contains(&told.lost), "{told}");
    assert!((1..200).contains(&told.seen_rows), "{told}");
    assert_eq!(opened.pending, 5_000 - told.lost);
    assert_eq!(store.saved("cookies").unwrap().as_deref(), Some(&b"jar"[..]));
    drop(store);
    assert!(kept.join("version").exists());
    let (mut store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!(opened.repaired, None);
    let pulled = std::iter::from_fn(|| suite::pull(&mut store, "a", NOW)).count() as u64;
    assert_eq!(pulled, opened.pending);
}

#[test]
fn a_rescue_cut_short_is_begun_anew_or_finished() {
    let dir = quick_dir();
    drop(frontier(dir.path()));
    // While it was copied.
    fs::create_dir(dir.path().join("db.new")).unwrap();
    assert_eq!(survey(dir.path()).unwrap().unwrap().books.pending, 4);
    // After the old one was moved away.
    fs::remove_dir(dir.path().join("db.new")).unwrap();
    fs::rename(dir.path().join("db"), dir.path().join("db.new")).unwrap();
    let (store, opened) = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap();
    assert_eq!((opened.repaired, store.books().pending), (None, 4));
}

#[test]
fn a_table_whose_index_is_damaged_is_refused_with_a_way_out() {
    let dir = quick_dir();
    frontier(dir.path()).close().unwrap();
    tear_file(&table(dir.path(), 1), |len| len - 20);
    let error = DiskStore::open(dir.path(), options(), &HashMap::new()).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("bring the directory back from a copy"), "{error}");
}
