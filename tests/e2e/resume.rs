//! A job that goes on in its `JOBDIR`: what else must survive, and directories that cannot be used.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::books_of_a_job::{items, stat};
use super::harness::{Ended, Folder, Running};
use super::resumable::Books;
use super::server::{Answer, Server};
use super::user_crate;

/// A home page that links to `pages` others, which take a moment.
fn site(pages: usize) -> Server {
    Server::start(move |asked| match asked.path() {
        "/" => Answer::html((0..pages).map(|n| format!("<a href=/p/{n}>{n}</a>")).collect::<String>()),
        _ => Answer::html("<title>x</title>").after(Duration::from_millis(40)),
    })
}

fn start(folder: &Folder, server: &Server, more: &[&str]) -> Running {
    let url = format!("url={}", server.url("/"));
    folder.start(&[&["crawl", "bench", "-a", &url, "-a", "JOB_ID=7", "--jobdir", "job", "-s", "STATS_DUMP=false"], more].concat())
}

/// Kills a run as soon as so many requests have come.
fn kill_after(server: &Server, requests: usize, running: Running) {
    running.until("some pages", || server.asked().len() >= requests);
    // Not at the very moment of sending: what is known of it is written in a moment.
    std::thread::sleep(Duration::from_millis(100));
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None, "killed while it crawled");
}

/// The moments at which anything but robots.txt was asked for.
fn moments(server: &Server) -> Vec<Instant> {
    server.asked().iter().filter(|asked| asked.path() != "/robots.txt").map(|asked| asked.at).collect()
}

#[test]
fn a_job_that_is_through_has_nothing_to_do() {
    let (folder, server) = (Folder::new(), site(20));
    let first = start(&folder, &server, &[]).end().with_code(0);
    assert_eq!(Books::of(&first).left, 0, "{first}");
    let asked = server.asked().len();
    let second = start(&folder, &server, &[]).end();
    assert_eq!((second.code, server.asked().len()), (Some(0), asked), "{second}");
    second.says(&["nothing is left to do"]);
    assert_eq!(Books::of(&second), Books::of(&first), "the books are those of the job: {second}");
    assert_eq!(items(&folder).len(), 21);
}

#[test]
fn a_delay_is_kept_over_a_kill() {
    const DELAY: Duration = Duration::from_secs(3);
    let (folder, server) = (Folder::new(), site(3));
    let more = ["-s", "DOWNLOAD_DELAY=3", "-s", "RANDOMIZE_DOWNLOAD_DELAY=false", "-s", "ROBOTSTXT_OBEY=false"];
    kill_after(&server, 1, start(&folder, &server, &more));
    kill_after(&server, 2, start(&folder, &server, &more));
    kill_after(&server, 3, start(&folder, &server, &more));
    let gaps: Vec<Duration> = moments(&server).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.len(), 2);
    assert!(gaps.iter().all(|gap| *gap + Duration::from_millis(10) >= DELAY), "{gaps:?}");
}

#[test]
fn a_retry_after_is_kept_over_a_kill() {
    const WAIT: Duration = Duration::from_secs(4);
    let limited = AtomicBool::new(false);
    let server = Server::start(move |asked| match asked.path() {
        "/" => Answer::html("<a href=/a>a</a>"),
        "/a" if !limited.swap(true, Ordering::Relaxed) => Answer::Whole(429, vec![("retry-after", "4".to_owned())], Vec::new()),
        _ => Answer::html("<title>x</title>"),
    });
    let folder = Folder::new();
    let running = start(&folder, &server, &[]);
    running.until("the refusal", || server.times("/a") == 1);
    // The answer is on its way; it takes effect in a moment.
    std::thread::sleep(Duration::from_millis(700));
    running.signal(Signal::KILL);
    running.end();
    start(&folder, &server, &[]).end().with_code(0);
    let asked: Vec<Instant> = server.asked().iter().filter(|asked| asked.path() == "/a").map(|asked| asked.at).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked[1] - asked[0] >= WAIT, "{:?}", asked[1] - asked[0]);
    assert_eq!(items(&folder).len(), 2);
}

#[test]
fn cookies_and_counters_are_kept_over_a_stop_and_counters_are_those_of_all_runs() {
    const PAGES: usize = 200;
    let server = Server::start(move |asked| match asked.path() {
        "/" => {
            let links: String = (0..PAGES).map(|n| format!("<a href=/p/{n}>{n}</a>")).collect();
            let headers = vec![("content-type", "text/html".to_owned()), ("set-cookie", "visit=42; Path=/".to_owned())];
            Answer::Whole(200, headers, links.into_bytes())
        }
        _ => Answer::html("<title>x</title>").after(Duration::from_millis(40)),
    });
    let folder = Folder::new();
    let running = start(&folder, &server, &[]);
    running.until("some pages", || server.asked().len() > 15);
    running.signal(Signal::TERM);
    running.end().with_code(2);
    let before = server.asked().len();
    let last = start(&folder, &server, &[]).end().with_code(0);
    assert!(server.asked().len() > before, "{last}");
    for asked in server.asked().iter().filter(|asked| asked.path().starts_with("/p/")) {
        assert_eq!(asked.header("cookie"), Some("visit=42"), "{asked:?}");
    }
    assert_eq!(stat(&folder, "item_scraped_count"), Some(PAGES as u64 + 1), "{last}");
    assert_eq!(stat(&folder, "downloader/request_count"), Some(server.asked().len() as u64), "{last}");
    assert_eq!(stat(&folder, "books/enqueued"), Some(Books::of(&last).taken), "{last}");
}

#[test]
fn two_crawls_in_one_jobdir_the_second_is_refused() {
    let (folder, server) = (Folder::new(), site(2_000));
    let running = start(&folder, &server, &[]);
    running.until("some pages", || server.asked().len() > 5);
    let refused = start(&folder, &server, &[]).end();
    assert_eq!(refused.code, Some(64), "{refused}");
    refused.says(&["job/"]);
    assert!(refused.err.contains("in use") || refused.err.contains("another process"), "{refused}");
    let so_far = server.asked().len();
    running.until("the first one goes on", || server.asked().len() > so_far + 50);
    running.signal(Signal::TERM);
    running.end().with_code(2);
}

/// A run in a directory that must be refused: what it says.
#[track_caller]
fn refused(folder: &Folder, server: &Server) -> Ended {
    let asked = server.asked().len();
    let ended = start(folder, server, &[]).end();
    assert_eq!(ended.code, Some(64), "{ended}");
    assert_eq!(server.asked().len(), asked, "nothing is fetched");
    ended.says(&["job/frontier"]);
    assert!(!ended.err.contains("panicked"), "{ended}");
    ended
}

#[test]
fn a_frontier_that_cannot_be_used_is_refused_with_the_way_out_and_left_as_it_is() {
    const PAGES: usize = 300;
    let server = site(PAGES);
    let foreign = Folder::new();
    foreign.write("job/frontier/thesis.txt", "the only copy");
    refused(&foreign, &server).says(&["thesis.txt", "JOBDIR"]);
    assert_eq!(foreign.read("job/frontier/thesis.txt"), "the only copy");

    let begun = || {
        let folder = Folder::new();
        let requests = server.asked().len() + 15;
        kill_after(&server, requests, start(&folder, &server, &[]));
        folder
    };
    let newer = begun();
    let format = newer.read("job/frontier/format");
    newer.write("job/frontier/format", &format.replace('1', "9"));
    refused(&newer, &server).says(&["format 9", "JOBDIR"]);
    // It was only the number: with it put right, all goes on.
    newer.write("job/frontier/format", &format);
    let before = server.asked().len();
    start(&newer, &server, &[]).end().with_code(0);
    assert!(server.asked().len() > before);
    let urls: BTreeSet<String> = items(&newer).iter().map(|item| item["url"].to_string()).collect();
    assert_eq!((urls.len(), items(&newer).len()), (PAGES + 1, PAGES + 1));

    let gone = begun();
    std::fs::remove_dir_all(gone.file("job/frontier/db")).unwrap();
    refused(&gone, &server).says(&["gone"]);

    let torn = begun();
    torn.write("job/frontier/format", "x\u{0}y");
    refused(&torn, &server).says(&["JOBDIR"]);
}

/// A frontier whose files have turned to noise: it is refused, or what was lost is told. Never a panic, never silence.
#[test]
fn a_damaged_frontier_is_told() {
    let server = site(400);
    let folder = Folder::new();
    kill_after(&server, 120, start(&folder, &server, &[]));
    let inside = |path: &std::path::Path| path.starts_with(folder.file("job/frontier/db"));
    let files: Vec<_> = folder.files().into_iter().filter(|path| inside(path)).collect();
    assert!(!files.is_empty());
    for file in files {
        let mut bytes = std::fs::read(&file).unwrap();
        let length = bytes.len();
        for byte in bytes.iter_mut().skip(length / 4).take(length / 2) {
            *byte ^= 0x55;
        }
        std::fs::write(&file, bytes).unwrap();
    }
    let ended = start(&folder, &server, &[]).end();
    assert!(!ended.err.contains("panicked"), "{ended}");
    assert!(ended.code != Some(0), "a loss is no success: {ended}");
    ended.says(&["job/frontier"]);
    assert!(ended.err.contains("amage"), "{ended}");
}

/// A shop of authors and products; the authors take their time.
fn shop(is_open: &Arc<AtomicBool>) -> Server {
    let is_open = Arc::clone(is_open);
    Server::start(move |asked| match asked.path() {
        "/" => {
            let link = |n: u32| format!("<a href=/products/{n}>p</a><a href=/authors/{n}>a</a>");
            Answer::html(format!("<main>{}</main>", (0..40).map(link).collect::<String>()))
        }
        path if path.starts_with("/authors/") => {
            let page = "<h1 class=author-title>A</h1><time class=author-born-date datetime=1950-01-01></time>\
                        <span class=author-born-location>in X</span>";
            let wait = if is_open.load(Ordering::Relaxed) { 0 } else { 200 };
            Answer::html(page).after(Duration::from_millis(wait))
        }
        _ => Answer::html("<link rel=canonical href=/><title>x</title>").after(Duration::from_millis(20)),
    })
}

#[test]
fn requests_of_a_step_that_is_gone_are_set_aside_and_come_back_with_it() {
    let is_open = Arc::new(AtomicBool::new(false));
    let server = shop(&is_open);
    let folder = Folder::new();
    let url = format!("url={}", server.url("/"));
    let call = ["crawl", "bookshop", "-a", &url, "-a", "JOB_ID=7", "--jobdir", "job", "-s", "STATS_DUMP=false"];
    let authors = |items: &[serde_json::Value]| items.iter().filter(|item| item["kind"] == "author").count() as u64;
    kill_after(&server, 20, folder.start(&call));

    // The same spider, without its step for authors.
    let without = user_crate::start(&folder, &call).end().with_code(0);
    let set_aside = Books::of(&without).set_aside;
    assert!(set_aside > 20, "{without}");
    assert_eq!(Books::of(&without).left, 0, "{without}");
    without.says(&["Author"]);
    let done = authors(&items(&folder));
    assert_eq!(done + set_aside, 40, "{without}");

    let listed = folder.run(&["frontier", "list", "job", "--set-aside"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    let stat = folder.run(&["frontier", "stat", "job"]);
    assert_eq!(stat.code, Some(0), "{stat}");
    assert!(stat.out.contains("set aside") && stat.out.contains(&set_aside.to_string()), "{stat}");

    // The step is back; by themselves they stay aside.
    is_open.store(true, Ordering::Relaxed);
    let as_before = folder.run(&call);
    assert_eq!(as_before.code, Some(0), "{as_before}");
    assert_eq!(Books::of(&as_before).set_aside, set_aside, "{as_before}");
    assert_eq!(authors(&items(&folder)), done);

    let retried = folder.run(&["frontier", "retry-failed", "--set-aside", "job"]);
    assert_eq!(retried.code, Some(0), "{retried}");
    let last = folder.run(&call).with_code(0);
    assert_eq!((Books::of(&last).set_aside, Books::of(&last).left), (0, 0), "{last}");
    assert_eq!(authors(&items(&folder)), 40, "{last}");
    let urls: BTreeSet<String> = items(&folder).iter().map(|item| item["url"].to_string()).collect();
    assert_eq!(urls.len(), items(&folder).len(), "no item twice");
}

#[test]
fn a_failed_request_is_a_dead_letter_until_it_is_tried_again() {
    let broken = Arc::new(AtomicBool::new(true));
    let is_broken = Arc::clone(&broken);
    let server = Server::start(move |asked| match asked.path() {
        "/" => Answer::html("<a href=/a>a</a><a href=/b>b</a>"),
        "/b" if is_broken.load(Ordering::Relaxed) => Answer::status(500),
        _ => Answer::html("<title>x</title>"),
    });
    let folder = Folder::new();
    let more = ["-s", "RETRY_TIMES=1", "-s", "RETRY_BACKOFF=0.05"];
    let first = start(&folder, &server, &more).end().with_code(0);
    assert_eq!((Books::of(&first).failed, server.times("/b")), (1, 2), "{first}");
    broken.store(false, Ordering::Relaxed);
    let again = start(&folder, &server, &more).end();
    again.says(&["frontier retry-failed"]);
    assert_eq!((Books::of(&again).failed, server.times("/b")), (1, 2), "it stays where it is: {again}");

    let retried = folder.run(&["frontier", "retry-failed", "job"]);
    assert_eq!(retried.code, Some(0), "{retried}");
    let last = start(&folder, &server, &more).end().with_code(0);
    assert_eq!((Books::of(&last).failed, Books::of(&last).left, server.times("/b")), (0, 0, 3), "{last}");
    assert_eq!(server.times("/a"), 1, "nothing else was fetched again");
    assert_eq!(items(&folder).len(), 3);
}

#[test]
fn a_queue_beyond_its_memory_goes_to_disk_and_comes_back() {
    const LISTS: usize = 30;
    const EACH: usize = 100;
    let long = "x".repeat(900);
    let server = Server::start(move |asked| match asked.path() {
        "/" => Answer::html((0..LISTS).map(|n| format!("<a href=/l/{n}>{n}</a>")).collect::<String>()),
        path if path.starts_with("/l/") => {
            Answer::html((0..EACH).map(|n| format!("<a href=/p/{}/{n}/{long}>{n}</a>", &path[3..])).collect::<String>())
        }
        _ => Answer::html("<title>x</title>").after(Duration::from_millis(1)),
    });
    let folder = Folder::new();
    let url = format!("url={}", server.url("/"));
    let running = folder.start(&["crawl", "bench", "-a", &url, "-s", "FRONTIER_MAX_BYTES=1MiB"]);
    // Beside the spool.
    let spilled = || {
        let Ok(entries) = std::fs::read_dir(folder.file(".dragline")) else { return 0 };
        entries.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir() && entry.file_name() != "spool").count()
    };
    running.until("a directory for what has no room", || spilled() > 0);
    let ended = running.end().with_code(0);
    let urls: BTreeSet<String> = items(&folder).iter().map(|item| item["url"].to_string()).collect();
    let pages = 1 + LISTS + LISTS * EACH;
    assert_eq!((urls.len(), items(&folder).len()), (pages, pages), "{ended}");
    assert_eq!(server.asked().len(), pages + 1, "each page once");
    assert_eq!(spilled(), 0, "it is gone afterwards: {:?}", folder.files());
}
