//! `kill -9`: what was kept is still there, and the next crawl sends it.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use super::harness::{Folder, Running, Shop};

/// A shop that takes its time.
pub(crate) fn shop(folder: &Folder) -> Shop {
    Shop::start(folder, &["--products", "200", "--latency", "30"])
}

/// Starts a crawl whose batches never fill, and waits for its first items: they are in the spool only.
pub(crate) fn hoarding(folder: &Folder, shop: &Shop, job: &str, more: &[&str]) -> Running {
    let (url, id, feed) = (format!("url={}", shop.url), format!("JOB_ID={job}"), format!("{job}.jsonl"));
    let call = ["crawl", "bookshop", "-a", &url, "-a", &id, "-o", &feed];
    let batches = ["-s", "APCLOUDY_BATCH_SIZE=100000", "-s", "APCLOUDY_FLUSH_INTERVAL=600"];
    let before = std::fs::read_to_string(folder.file(&feed)).map_or(0, |text| text.lines().count());
    let running = folder.start(&[&call[..], &batches, more].concat());
    running
        .until("some items", || std::fs::read_to_string(folder.file(&feed)).is_ok_and(|text| text.lines().count() > before + 5));
    running
}

/// Kills such a crawl and answers its spool.
pub(crate) fn killed(folder: &Folder, shop: &Shop, job: &str) -> PathBuf {
    kill(folder, hoarding(folder, shop, job, &[]), job)
}

pub(crate) fn kill(folder: &Folder, running: Running, job: &str) -> PathBuf {
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    let of_job = |spool: &PathBuf| spool.file_name().unwrap().to_str().unwrap().starts_with(&format!("{job}-"));
    let mut spools: Vec<_> = spools(folder).into_iter().filter(of_job).collect();
    assert_eq!(spools.len(), 1, "{spools:?}");
    spools.remove(0)
}

/// The directories below `.dragline/spool`.
pub(crate) fn spools(folder: &Folder) -> Vec<PathBuf> {
    let entries = folder.file(".dragline/spool").read_dir().map(|entries| entries.map(|entry| entry.unwrap().path()));
    entries.map_or_else(|_| Vec::new(), Iterator::collect)
}

/// The items of whole groups in a spool's segments, sorted.
pub(crate) fn kept(spool: &Path) -> Vec<String> {
    const ITEM: u8 = 1;
    let mut items: Vec<String> = spooled(spool, ITEM).iter().map(|text| compact(text)).collect();
    items.sort();
    items
}

/// The records of one kind of whole groups in a spool's segments, as they were written.
pub(crate) fn spooled(spool: &Path, kind: u8) -> Vec<String> {
    let mut records = Vec::new();
    for entry in spool.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "log") {
            continue;
        }
        let bytes = std::fs::read(path).unwrap();
        let (mut at, mut group) = (48, Vec::new());
        while let Some(head) = bytes.get(at..at + 13) {
            let length = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
            let Some(payload) = bytes.get(at + 13..at + 13 + length).filter(|_| bytes.len() >= at + 21 + length) else { break };
            if head[4] & 0x7f == kind {
                group.push(String::from_utf8(payload.to_vec()).unwrap());
            }
            if head[4] & 0x80 != 0 {
                records.append(&mut group);
            }
            at += 21 + length;
        }
    }
    records
}

/// The items of a job in the job store, sorted.
pub(crate) fn stored(folder: &Folder, job: &str) -> Vec<String> {
    let mut items: Vec<String> = ask(folder, "SELECT record FROM items WHERE job_id = ?1", job);
    items.iter_mut().for_each(|item| *item = compact(item));
    items.sort();
    items
}

pub(crate) fn ask<T: rusqlite::types::FromSql>(folder: &Folder, sql: &str, job: &str) -> Vec<T> {
    let store = rusqlite::Connection::open(folder.file(".dragline/jobs.db")).unwrap();
    let mut query = store.prepare(sql).unwrap();
    query.query_map([job], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn compact(text: &str) -> String {
    serde_json::from_str::<Value>(text).unwrap().to_string()
}

#[test]
fn a_killed_crawl_is_named_and_sent_by_the_next_one() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let spool = killed(&folder, &shop, "killed");
    let items = kept(&spool);
    assert!(!items.is_empty());
    assert!(stored(&folder, "killed").is_empty());

    let url = format!("url={}", shop.url);
    let next = folder.run(&["crawl", "bookshop", "-a", &url, "-o", "killed.jsonl", "-s", "CLOSESPIDER_ITEMCOUNT=5"]).with_code(0);
    let name = spool.file_name().unwrap().to_str().unwrap();
    next.says(&["an earlier run left records that were not delivered: job killed in", name, "sent what job killed left"]);
    assert_eq!(stored(&folder, "killed"), items, "each item once");
    assert!(spools(&folder).is_empty(), "both spools are gone: {:?}", spools(&folder));
    // The feed of the killed crawl was cut at its last whole line and goes on after it.
    assert!(folder.items("killed.jsonl").len() > 10);
}

#[test]
fn log_records_of_a_job_go_on_numbering_after_a_kill_and_never_repeat() {
    let folder = Folder::new();
    let shop = shop(&folder);
    for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
        let running = hoarding(&folder, &shop, "logs", &["--jobdir", "job"]);
        running.signal(signal);
        running.end();
    }
    let url = format!("url={}", shop.url);
    let last = ["crawl", "bookshop", "-a", &url, "-a", "JOB_ID=logs", "--jobdir", "job", "-s", "CLOSESPIDER_ITEMCOUNT=5"];
    folder.run(&last).with_code(0);
    let indexes: Vec<i64> = ask(&folder, "SELECT log_index FROM logs WHERE job_id = ?1 ORDER BY log_index", "logs");
    assert!(indexes.len() > 20, "{}", indexes.len());
    assert!(indexes.windows(2).all(|pair| pair[0] < pair[1]), "{indexes:?}");
    assert_eq!(indexes[0], 0);
    // Each kill left the rest of its block unused.
    assert!(indexes.last().unwrap() > &2000, "{indexes:?}");
    let card: Value = serde_json::from_str(&folder.read("job/job.json")).unwrap();
    assert_eq!(card["next_log_index"].as_i64().unwrap(), indexes.last().unwrap() + 1, "exact after an end in order");
}
