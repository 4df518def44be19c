//! A `JOBDIR` on a disk that is full or cannot be written: the crawl waits, says why, and nothing is lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::books_of_a_job::items;
use super::harness::{Folder, Running};
use super::resumable::Books;
use super::server::{Answer, Server};
use super::small_disk::SmallDisk;

const PAGES: usize = 500;

/// A page with links to all others, which take a moment.
fn site() -> Server {
    Server::start(|asked| match asked.path() {
        "/" => Answer::html((0..PAGES).map(|n| format!("<a href=/p/{n}>{n}</a>")).collect::<String>()),
        _ => Answer::html("<title>x</title>").after(Duration::from_millis(30)),
    })
}

fn start(disk: &SmallDisk, folder: &Folder, server: &Server, more: &[&str]) -> Running {
    let url = format!("url={}", server.url("/"));
    disk.start(folder, &[&["crawl", "bench", "-a", &url, "--jobdir", "job", "-s", "STATS_DUMP=false"], more].concat())
}

/// Keeps the disk full until nothing has been fetched for so long. Whoever uses the disk frees some of it now and then, and
/// with room the crawl rightly goes on: so it is filled all the time.
fn fill(disk: &SmallDisk, server: &Server, running: &Running, still: Duration) {
    running.until("some pages", || server.asked().len() > 30);
    let (mut fetched, mut since) = (server.asked().len(), Instant::now());
    running.until("a crawl that stands still", || {
        disk.fill();
        let now = server.asked().len();
        if now != fetched {
            (fetched, since) = (now, Instant::now());
        }
        since.elapsed() >= still
    });
    assert!(fetched < PAGES, "the crawl is through");
}

/// Checks that every page was crawled and is in the store once.
#[track_caller]
fn every_page_is_there_once(folder: &Folder) {
    let urls: Vec<String> = items(folder).iter().map(|item| item["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls.iter().collect::<BTreeSet<_>>().len(), PAGES + 1);
    assert_eq!(urls.len(), PAGES + 1, "an item is there twice");
}

#[test]
fn a_crawl_on_a_full_disk_stands_still_and_goes_on_as_soon_as_there_is_room() {
    let (folder, server) = (Folder::new(), site());
    let Some(disk) = SmallDisk::at(&folder, "job", 24) else { return };
    let running = start(&disk, &folder, &server, &["-s", "DISK_WAIT=60", "-s", "STALL_WARN=2"]);
    fill(&disk, &server, &running, Duration::from_secs(3));
    running.says("No space left on device");
    running.says("no progress");
    disk.free();
    let ended = running.end().with_code(0);
    every_page_is_there_once(&folder);
    assert_eq!(server.asked().len(), PAGES + 2, "nothing was asked for again, {ended}");
}

#[test]
fn a_frontier_that_cannot_be_written_for_too_long_ends_the_run_and_the_next_one_goes_on() {
    let (folder, server) = (Folder::new(), site());
    // The spool has room: it is the frontier alone that cannot be written.
    let Some(disk) = SmallDisk::at(&folder, "job/frontier", 24) else { return };
    let running = start(&disk, &folder, &server, &["-s", "DISK_WAIT=3"]);
    fill(&disk, &server, &running, Duration::from_millis(700));
    let ended = running.end().with_code(3);
    ended.says(&["job/frontier", "no space left", "DISK_WAIT", "start again with the same JOBDIR", "disk_full"]);
    assert!(ended.number("requests", "left") > 0, "{ended}");
    let before = server.asked().len();

    // Still no room: that is said at the start, and costs nothing.
    let refused = start(&disk, &folder, &server, &["-s", "DISK_WAIT=1"]).end();
    assert!(matches!(refused.code, Some(3 | 64)), "{refused}");
    refused.says(&["job/frontier", "o space left"]);

    disk.free();
    let ended = start(&disk, &folder, &server, &[]).end().with_code(0);
    every_page_is_there_once(&folder);
    assert_eq!(Books::of(&ended).left, 0, "{ended}");
    let again = server.asked().len() - before;
    assert!(again < PAGES, "{again} pages after {before}");
}

#[test]
fn a_jobdir_that_cannot_be_written_is_refused_at_the_start() {
    let (folder, server) = (Folder::new(), site());
    let Some(disk) = SmallDisk::at(&folder, "job", 24) else { return };
    let first = start(&disk, &folder, &server, &["-s", "CLOSESPIDER_PAGECOUNT=20"]).end();
    assert_eq!(first.code, Some(0), "{first}");
    disk.make_read_only();
    let asked = server.asked().len();
    let refused = start(&disk, &folder, &server, &[]).end();
    assert_eq!(refused.code, Some(64), "{refused}");
    refused.says(&["job/", "ead-only file system"]);
    assert!(refused.err.contains("JOBDIR") || refused.err.contains("writable"), "{refused}");
    assert_eq!(server.asked().len(), asked, "nothing was fetched");
}
