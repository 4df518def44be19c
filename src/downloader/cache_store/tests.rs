//! The store on a real directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, Version};
use tempfile::TempDir;

use super::*;

fn head(url: &str) -> Head {
    Head {
        url: url.to_owned(),
        method: "GET".to_owned(),
        site: "shop".to_owned(),
        identity: "anna".to_owned(),
        status: StatusCode::OK,
        version: Version::HTTP_11,
        stored_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        headers: HeaderMap::new(),
        vary: vec![],
        decoded: false,
        not_as_labelled: false,
    }
}

fn store(dir: &TempDir, most: u64) -> CacheStore {
    CacheStore::open(&dir.path().join("cache"), false, most).unwrap()
}

async fn body_of(store: &CacheStore, name: EntryName) -> Option<Bytes> {
    match store.find(name).await.unwrap() {
        Some(found) => Some(store.body(found).await.unwrap()),
        None => None,
    }
}

fn files(dir: &TempDir) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![dir.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() { folders.push(entry) } else { all.push(entry) }
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn an_answer_is_found_by_another_run_and_replaced_by_a_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    for gzip in [false, true] {
        let open = || CacheStore::open(&dir.path().join("cache"), gzip, 0).unwrap();
        let first = open();
        let name = first.name(&[b"GET", b"https://shop.example/", &[u8::from(gzip)]]);
        assert!(first.find(name).await.unwrap().is_none());
        first.put(name, head("https://shop.example/"), Bytes::from_static(b"one")).await.unwrap();
        let second = open();
        assert_eq!(name, second.name(&[b"GET", b"https://shop.example/", &[u8::from(gzip)]]));
        assert_eq!(second.find(name).await.unwrap().unwrap().head, head("https://shop.example/"));
        second.put(name, head("https://shop.example/"), Bytes::from_static(b"two")).await.unwrap();
        assert_eq!(body_of(&first, name).await.unwrap(), "two");
        assert!(first.remove(name).await.unwrap() && !first.remove(name).await.unwrap());
        assert!(second.find(name).await.unwrap().is_none());
    }
    assert_eq!(files(&dir).len(), 1, "the key alone: {:?}", files(&dir));
}

#[tokio::test]
async fn names_tell_parts_apart_and_say_nothing() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, other) = (store(&a, 0), store(&b, 0));
    assert_ne!(store.name(&[b"ab", b"c"]), store.name(&[b"a", b"bc"]));
    assert_ne!(store.name(&[b"a"]), other.name(&[b"a"]), "each directory has a key of its own");
    assert_ne!(store.print(&[b"a"]), hex(&store.name(&[b"a"]).0));
    assert_eq!(format!("{:?}", store.0.key), "Key");
}

#[tokio::test]
async fn a_body_that_was_found_stays_readable_when_its_file_goes() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir, 0);
    let name = store.name(&[b"a"]);
    store.put(name, head("http://a/"), Bytes::from_static(b"old")).await.unwrap();
    let found = store.find(name).await.unwrap().unwrap();
    store.put(name, head("http://a/"), Bytes::from_static(b"new")).await.unwrap();
    assert_eq!(store.body(found).await.unwrap(), "old");
}

#[tokio::test]
async fn what_is_damaged_torn_or_foreign_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir, 0);
    let name = store.name(&[b"a"]);
    store.put(name, head("http://a/"), Bytes::from_static(b"body")).await.unwrap();
    let path = store.0.path(name);
    let whole = fs::read(&path).unwrap();
    let mut damaged_body = whole.clone();
    *damaged_body.last_mut().unwrap() ^= 1;
    fs::write(&path, damaged_body).unwrap();
    let found = store.find(name).await.unwrap().unwrap();
    assert!(matches!(store.body(found).await, Err(CacheError::Unusable { .. })));
    let mut newer = whole.clone();
    newer[4] = 9;
    for bytes in [
        &whole[..whole.len() - 1],
        &whole[..50],
        &whole[..10],
        b"",
        b"foreign, and longer than any prefix of ours is long",
        &newer,
    ] {
        fs::write(&path, bytes).unwrap();
        let error = store.find(name).await.unwrap_err();
        assert!(matches!(&error, CacheError::Unusable { path: at, .. } if *at == path), "{error}");
    }
}

#[tokio::test]
async fn the_oldest_go_when_all_are_too_many_bytes_and_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir, 20_000);
    let foreign = dir.path().join("cache/notes.txt");
    fs::write(&foreign, vec![0; 50_000]).unwrap();
    let names: Vec<EntryName> = (0..12_u8).map(|n| store.name(&[&[n]])).collect();
    let mut gone = 0;
    for (n, name) in names.iter().enumerate() {
        gone += store.put(*name, head("http://a/"), vec![0; 2_000].into()).await.unwrap();
        let file = File::options().write(true).open(store.0.path(*name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(n as u64)).unwrap();
    }
    let mut left = Vec::new();
    for (n, name) in names.iter().enumerate() {
        if store.find(*name).await.unwrap().is_some() {
            left.push(n);
        }
    }
    assert!(gone >= 3 && left.len() + gone as usize == 12, "{gone} {left:?}");
    assert_eq!(left, (gone as usize..12).collect::<Vec<_>>(), "the oldest went");
    assert!(foreign.exists());
    let error = store.put(names[0], head("http://a/"), vec![0; 30_000].into()).await.unwrap_err();
    assert!(error.to_string().contains("HTTPCACHE_MAX_BYTES"), "{error}");
}

#[tokio::test]
async fn another_run_counts_what_lies_there_and_removes_what_nobody_will_finish() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(&dir, 0);
    for n in 0..10_u8 {
        first.put(first.name(&[&[n]]), head("http://a/"), vec![0; 2_000].into()).await.unwrap();
    }
    let part = first.0.path(first.name(&[&[0]])).with_extension("1-1.part");
    let left_over = File::create(&part).unwrap();
    left_over.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    let second = store(&dir, 10_000);
    let gone = second.put(second.name(&[&[10]]), head("http://a/"), vec![0; 2_000].into()).await.unwrap();
    assert!(gone >= 6, "{gone}");
    assert!(!part.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_looks_into_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir, 0);
    let name = store.name(&[b"a"]);
    store.put(name, head("http://a/"), Bytes::from_static(b"x")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = store.0.path(name);
    assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(&store.0.dir)), (0o600, 0o700, 0o700));
    assert_eq!(mode(&store.0.dir.join(KEY)), 0o600);
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error_that_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = CacheStore::open(&file.join("cache"), false, 0).unwrap_err().to_string();
    assert!(error.contains("HTTPCACHE_DIR"), "{error}");
    fs::write(dir.path().join(KEY), "short").unwrap();
    let error = CacheStore::open(dir.path(), false, 0).unwrap_err().to_string();
    assert!(error.contains("remove the directory"), "{error}");
}
