//! A crawl that is stopped at random moments, again and again, and goes on each time in its `JOBDIR`: in the end it is as if
//! it had never been stopped. `LONG_TESTS_OF_DRAGLINE=1` repeats that often.
//!
//! A failure names the seed of its moments; `SEED_OF_STOPS=N` runs that one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dragline::testkit::ScriptedWebhook;
use rustix::process::Signal;
use serde_json::Value;

use super::apcloudy::{SECRET, start as start_with_sink};
use super::books_of_a_job::items;
use super::harness::{DRAGLINE, Ended, Folder, Running, long};
use super::resumable::{Books, Crawl, Dice, IN_FLIGHT, Stop};
use super::server::{Answer, Server};
use super::user_crate::start;

/// Crawls at once: while one waits for a `Retry-After`, another one works.
const AT_ONCE: usize = 3;

/// Products of a shop of 3,000 pages.
const PRODUCTS: u32 = 2_290;

/// The seeds to run: as many as there are to be, or the one that is asked for.
fn seeds(short: u64, in_long: u64) -> Vec<u64> {
    match std::env::var("SEED_OF_STOPS") {
        Ok(seed) => vec![seed.parse().expect("SEED_OF_STOPS is a number")],
        Err(_) => (1..=long(short, in_long)).collect(),
    }
}

/// Says which seed failed, on the way out of a panic.
struct Named(&'static str, u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} failed with SEED_OF_STOPS={}", self.0, self.1);
        }
    }
}

/// Runs one crawl for each seed, a few at once.
fn for_each_seed(name: &'static str, seeds: &[u64], run: impl Fn(u64) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(seeds.len()) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _named = Named(name, *seed);
                    run(*seed);
                }
            });
        }
    });
}

/// Crawls the shop of a seed and stops it over and over; checks everything.
fn stopped_over_and_over(stop: Stop, seed: u64) {
    let mut crawl = Crawl::of(PRODUCTS, seed);
    assert!(crawl.pages() >= 3_000, "{} pages", crawl.pages());
    let last = crawl.until_through(stop, &mut Dice::new(seed));
    assert!(crawl.stops() >= 2, "a crawl that is stopped {} times proves little", crawl.stops());
    crawl.is_whole(stop, &last);
}

#[test]
fn a_crawl_that_is_killed_over_and_over_loses_and_doubles_nothing() {
    for_each_seed("killed", &seeds(3, 50), |seed| stopped_over_and_over(Stop::Kill, seed));
}

#[test]
fn a_crawl_that_is_terminated_over_and_over_asks_for_nothing_again() {
    for_each_seed("terminated", &seeds(1, 20), |seed| stopped_over_and_over(Stop::Terminate, seed));
}

#[test]
fn a_crawl_that_is_interrupted_twice_over_and_over_asks_again_for_what_was_in_flight_only() {
    for_each_seed("interrupted", &seeds(1, 20), |seed| stopped_over_and_over(Stop::InterruptTwice, seed));
}

/// Starts runs and kills them after a while, until one ends by itself.
fn until_through(mut kill_after: impl FnMut() -> Duration, most: usize, start: impl Fn() -> Running) -> (usize, Ended) {
    for kills in 0.. {
        let running = start();
        if kills < most {
            running.until("it crawls or it is over", || running.err().contains('\n'));
            std::thread::sleep(kill_after());
            running.signal(Signal::KILL);
        }
        let ended = running.end();
        if ended.code.is_some() {
            return (kills, ended.with_code(0));
        }
    }
    unreachable!("most is a number")
}

/// How often each path was asked for.
fn times(server: &Server) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for asked in server.asked() {
        *times.entry(asked.target).or_default() += 1;
    }
    times
}

fn paths(items: &[Value]) -> Vec<String> {
    let path = |item: &Value| url::Url::parse(item["url"].as_str().unwrap()).unwrap().path().to_owned();
    items.iter().map(path).collect()
}

/// Checks that the items are the pages `/p/0` to `/p/{pages - 1}`, each once.
#[track_caller]
fn each_page_once(items: &[Value], pages: usize) {
    let found: Vec<String> = paths(items).into_iter().filter(|path| path.starts_with("/p/")).collect();
    let known: BTreeSet<&String> = found.iter().collect();
    let missing: Vec<usize> = (0..pages).filter(|n| !known.contains(&format!("/p/{n}"))).collect();
    assert!(missing.is_empty(), "{} pages have no item: {missing:?}", missing.len());
    assert_eq!(found.len(), pages, "an item is there twice");
}

#[test]
fn a_page_that_is_only_found_by_a_redirect_is_not_lost_when_a_kill_falls_between_the_two() {
    const PAGES: usize = 400;
    let server = Server::start(|asked| match asked.path() {
        "/" => Answer::html((0..PAGES).map(|n| format!("<a href=/r/{n}>{n}</a>")).collect::<String>()),
        path if path.starts_with("/r/") => Answer::moved(path.replace("/r/", "/p/")),
        // The way back is no new page.
        _ => Answer::html("<a href=/>x</a>").after(Duration::from_millis(60)),
    });
    let folder = Folder::new();
    let url = format!("url={}", server.url("/"));
    let mut dice = Dice::new(7);
    let (kills, last) = until_through(
        || dice.between(250, 700),
        12,
        || folder.start(&["crawl", "bench", "-a", &url, "--jobdir", "job", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=16"]),
    );
    assert!(kills >= 2, "killed {kills} times");
    each_page_once(&items(&folder), PAGES);
    assert_eq!(Books::of(&last).left, 0, "{last}");
}

#[test]
fn start_goes_on_where_a_kill_cut_it_off() {
    const PAGES: usize = 3_000;
    let server = Server::start(|_| Answer::html("<title>x</title>").after(Duration::from_millis(5)));
    let folder = Folder::new();
    let (base, count) = (format!("base={}", server.url("/p/")), format!("count={PAGES}"));
    let mut call = vec!["crawl", "seeds", "-a", &base, "-a", &count, "--jobdir", "job", "-o", "items.jsonl"];
    let bounds =
        ["CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "WINDOW_REQUESTS"].map(|of| format!("{of}={IN_FLIGHT}"));
    for pair in bounds.iter().map(String::as_str).chain(["ROBOTSTXT_OBEY=false"]) {
        call.extend(["-s", pair]);
    }
    let mut dice = Dice::new(11);
    let (kills, last) = until_through(|| dice.between(100, 500), 12, || start(&folder, &call));
    assert!(kills >= 2, "killed {kills} times");
    each_page_once(&items(&folder), PAGES);
    let again: usize = times(&server).values().map(|times| times - 1).sum();
    assert!(again <= kills * IN_FLIGHT, "{again} pages were asked for again after {kills} kills");
    let books = Books::of(&last);
    assert_eq!((books.taken, books.handled), (PAGES as u64, PAGES as u64), "{last}");
}

#[test]
fn a_webhook_gets_every_record_of_a_job_that_is_killed_and_repeats_have_the_same_id() {
    const PAGES: usize = 800;
    let server = Server::start(|asked| match asked.path() {
        "/" => Answer::html((0..PAGES).map(|n| format!("<a href=/p/{n}>{n}</a>")).collect::<String>()),
        _ => Answer::html("<title>x</title>").after(Duration::from_millis(20)),
    });
    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    let folder = Folder::new();
    let url = format!("url={}", server.url("/"));
    let call = ["crawl", "bench", "-a", &url, "-a", "JOB_ID=9", "--jobdir", "job", "-s", "APCLOUDY_BATCH_SIZE=20"];
    let mut dice = Dice::new(5);
    let start = || start_with_sink(&folder, Path::new(DRAGLINE), &webhook.url(), &call);
    let (kills, _) = until_through(|| dice.between(250, 900), 8, start);
    assert!(kills >= 1, "killed {kills} times");
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for request in webhook.requests() {
        let known = bodies.entry(request.key().unwrap().to_owned()).or_insert_with(|| request.body.to_vec());
        assert_eq!(*known, request.body, "one id, one body");
    }
    let texts = bodies.values().map(|body| serde_json::from_slice::<Value>(body).unwrap());
    let items: Vec<Value> = texts.flat_map(|body| body["data"]["items"].as_array().unwrap().clone()).collect();
    each_page_once(&items, PAGES);
}
