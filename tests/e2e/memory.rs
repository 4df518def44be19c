//! Memory has a bound, however much a spider asks for. `LONG_TESTS_OF_DRAGLINE=1` runs the full counts.

use super::harness::Folder;
use super::server::{Answer, Server};
use super::user_crate::start;

/// KiB.
const BOUND: u64 = 250 * 1024;

fn counts(short: u64, long: u64) -> String {
    let long_tests = std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some_and(|value| value == "1");
    if long_tests { long } else { short }.to_string()
}

fn server() -> Server {
    Server::start(|_| Answer::html("<title>x</title>"))
}

#[test]
fn a_million_start_requests_never_stand_in_memory_at_once() {
    let (folder, server) = (Folder::new(), server());
    let (base, count) = (format!("base={}", server.url("/")), format!("count={}", counts(200_000, 1_000_000)));
    let ended =
        start(&folder, &["crawl", "seeds", "-a", &base, "-a", &count, "-s", "CLOSESPIDER_PAGECOUNT=300"]).end().with_code(0);
    ended.says(&["closespider_pagecount"]);
    assert!(ended.high_water > 0 && ended.high_water < 100 * 1024, "{} KiB\n{ended}", ended.high_water);
    let taken = ended.number("requests", "taken");
    assert!(taken < 100_000, "{taken} start requests were taken for 300 pages");
}

#[test]
fn a_page_with_many_links_is_queued_within_the_bound() {
    let (folder, server) = (Folder::new(), server());
    let many = counts(50_000, 200_000);
    let (base, count) = (format!("base={}", server.url("/")), format!("count={many}"));
    let ended = start(
        &folder,
        &["crawl", "flood", "-a", &base, "-a", &count, "-s", "CLOSESPIDER_PAGECOUNT=300", "-s", "CALLBACK_TIMEOUT=600"],
    )
    .end()
    .with_code(0);
    assert!(ended.high_water > 0 && ended.high_water < BOUND, "{} KiB\n{ended}", ended.high_water);
    let left = ended.number("requests", "left");
    assert!(left + 400 > many.parse().unwrap() || ended.err.contains("closespider_pagecount"), "{ended}");
}

#[test]
fn a_frontier_that_is_full_of_itself_ends_the_crawl() {
    let (folder, server) = (Folder::new(), server());
    let (base, count) = (format!("base={}", server.url("/")), "count=100000".to_owned());
    let call =
        ["crawl", "flood", "-a", &base, "-a", &count, "-a", "every=true", "-s", "FRONTIER_MAX_BYTES=2MiB", "-s", "STALL_WARN=5"];
    let ended = start(&folder, &call).end().with_code(3);
    ended.says(&["frontier_full: flood, job ", "FRONTIER_MAX_BYTES"]);
    assert!(ended.high_water > 0 && ended.high_water < BOUND, "{} KiB\n{ended}", ended.high_water);
}
