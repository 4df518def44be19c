//! SIGINT and SIGTERM: what is in flight is finished, what was done stays, and it does not take long.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;

use super::books_of_a_job::{finish_reason, items};
use super::harness::{Ended, Folder, Shop};
use super::server::{Answer, Server};

const LIMIT: Duration = Duration::from_secs(25);

fn interrupted(signal: Signal) -> (Folder, Ended) {
    let folder = Folder::new();
    let shop = Shop::start(&folder, &["--products", "300", "--latency", "40"]);
    let running =
        folder.start(&["crawl", "bookshop", "-a", &format!("url={}", shop.url), "-o", "a.jsonl", "-o", "b.json", "-o", "c.csv"]);
    running.until("some items", || std::fs::read_to_string(folder.file("a.jsonl")).is_ok_and(|text| text.lines().count() > 10));
    running.signal(signal);
    let ended = running.end().with_code(2);
    (folder, ended)
}

fn everything_is_whole(folder: &Folder, ended: &Ended) {
    assert!(ended.took < LIMIT, "{ended}");
    ended.says(&["stopping: finishing what is in flight", "shutdown: bookshop, job ", "stopped by a signal"]);
    assert!(ended.number("requests", "left") > 0, "{ended}");
    assert_eq!(finish_reason(folder).as_deref(), Some("shutdown"));
    let kept = usize::try_from(ended.number("items", "kept")).unwrap();
    let lines = folder.items("a.jsonl");
    assert!(kept > 10 && kept == lines.len(), "{kept} kept, {} in the feed", lines.len());
    assert_eq!(items(folder).len(), kept, "everything kept is delivered");
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&folder.read("b.json")).unwrap(), lines);
    let rows = csv::Reader::from_reader(folder.read("c.csv").as_bytes()).records().map(Result::unwrap).count();
    assert_eq!(rows, kept);
    let urls: BTreeSet<&str> = lines.iter().map(|item| item["url"].as_str().unwrap()).collect();
    assert_eq!(urls.len(), kept, "no item twice");
}

#[test]
fn an_interrupted_crawl_keeps_what_it_has() {
    let (folder, ended) = interrupted(Signal::INT);
    everything_is_whole(&folder, &ended);
}

#[test]
fn a_terminated_crawl_keeps_what_it_has() {
    let (folder, ended) = interrupted(Signal::TERM);
    everything_is_whole(&folder, &ended);
}

/// A home page, then pages that take longer than anybody waits.
fn slow() -> Server {
    Server::start(|asked| match asked.path() {
        "/" => Answer::html("<title>x</title><a href=/a>a</a><a href=/b>b</a>"),
        _ => Answer::Silence(Duration::from_secs(60)),
    })
}

#[test]
fn one_signal_waits_no_longer_than_grace() {
    let (folder, server) = (Folder::new(), slow());
    let url = format!("url={}", server.url("/"));
    let running = folder.start(&["crawl", "bench", "-a", &url, "-s", "GRACE=2", "-s", "CLOSE_TIMEOUT=8", "-o", "x.jsonl"]);
    running.until("both pages", || server.times("/a") + server.times("/b") == 2);
    running.signal(Signal::INT);
    let ended = running.end().with_code(2);
    assert!((Duration::from_secs(1)..Duration::from_secs(11)).contains(&ended.took), "{ended}");
    assert_eq!(folder.items("x.jsonl").len(), 1);
}

#[test]
fn two_signals_end_it_at_once() {
    let (folder, server) = (Folder::new(), slow());
    let running = folder.start(&["crawl", "bench", "-a", &format!("url={}", server.url("/")), "-o", "x.jsonl"]);
    running.until("both pages", || server.times("/a") + server.times("/b") == 2);
    running.signal(Signal::INT);
    running.says("again to stop at once");
    running.signal(Signal::INT);
    let ended = running.end().with_code(2);
    assert!(ended.took < Duration::from_secs(8), "{ended}");
    ended.says(&["stopping at once"]);
    assert_eq!(folder.items("x.jsonl").len(), 1);
    assert_eq!(items(&folder).len(), 1);
}

#[test]
fn a_signal_wakes_a_start_that_waits_for_room() {
    let server = Server::start(|_| Answer::html("x").after(Duration::from_millis(100)));
    let folder = Folder::new();
    let base = format!("base={}", server.url("/"));
    let running = super::user_crate::start(
        &folder,
        &["crawl", "seeds", "-a", &base, "-a", "count=100000000", "-s", "CONCURRENT_REQUESTS=2", "-s", "GRACE=3"],
    );
    running.until("some pages", || server.asked().len() > 5);
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    let ended = running.end().with_code(2);
    assert!(ended.took < Duration::from_secs(12), "{ended}");
    assert!(ended.number("requests", "taken") < 1_000_000, "{ended}");
}

#[test]
fn a_shop_ends_with_a_signal() {
    let folder = Folder::new();
    let running = folder.start(&["site", "--listen", "127.0.0.1:0", "-n", "5"]);
    assert!(running.first_line().starts_with("listening on http://127.0.0.1:"));
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(ended.err, "", "{ended}");
}
