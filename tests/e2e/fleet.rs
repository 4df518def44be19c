//! Many workers, one job: the frontier is at a Redis server, and workers come, go, and are killed. In the end it is as if one
//! had done it all. `LONG_TESTS_OF_DRAGLINE=1` makes the shop larger.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::books_of_a_job::items;
use super::bookshop::{asked_for, expected_items, looping_paths, right_items, times_asked};
use super::harness::{Ended, Folder, Running, Shop, long};
use super::killed::{ask, spools};
use super::redis::Redis;
use super::server::{Answer, Server};

/// Workers at a time.
const WORKERS: usize = 4;
/// Requests of one worker that are fetched and not yet settled, at most: its places of the host, and as many in callbacks.
const IN_FLIGHT: u64 = 16;

/// A fleet's job: where it is crawled and where its frontier is.
struct Job<'a> {
    folder: &'a Folder,
    redis: &'a str,
    spider: &'a str,
    url: &'a str,
    id: &'a str,
    more: &'a [&'a str],
}

impl Job<'_> {
    /// One more worker. Its requests come back soon where nobody finds its spool, and not before its successor can.
    fn worker(&self) -> Running {
        let (url, id) = (format!("url={}", self.url), format!("JOB_ID={}", self.id));
        let frontier = format!("FRONTIER={}", self.redis);
        let call = ["crawl", self.spider, "-a", &url, "-a", &id, "-s", &frontier, "-s", "FRONTIER_VISIBILITY=45"];
        let retries = ["-s", "RETRY_BACKOFF=0.1", "-s", "RETRY_BACKOFF_MAX=0.5", "-s", "PROGRESS=off"];
        self.folder.start(&[&call[..], &retries, self.more].concat())
    }

    fn workers(&self) -> Vec<Running> {
        (0..WORKERS).map(|_| self.worker()).collect()
    }
}

fn ends(workers: Vec<Running>, code: i32) -> Vec<Ended> {
    workers.into_iter().map(|worker| worker.end().with_code(code)).collect()
}

/// What the fleet's books say, the same at each of its workers that saw the end.
#[track_caller]
fn one_book(ended: &[Ended]) -> u64 {
    let rows: BTreeSet<&str> = ended.iter().map(|one| one.row("requests")).collect();
    assert_eq!(rows.len(), 1, "all workers tell the same books: {rows:?}");
    assert_eq!(ended[0].number("requests", "left"), 0);
    ended[0].number("requests", "taken")
}

/// Everything was fetched, and what was asked for more often than it had to be was in flight at one of so many kills.
fn fetched(shop: &Shop, truth: &Value, kills: u64) {
    let mut asked = asked_for(shop, &shop.json("__stats"));
    let looping = looping_paths(truth);
    asked.retain(|path, _| !looping.contains(path));
    // Each worker reads it for itself.
    asked.remove("/robots.txt");
    let mut expected = times_asked(truth);
    expected.remove("/robots.txt");
    let known: BTreeSet<&String> = expected.keys().collect();
    assert_eq!(asked.keys().collect::<BTreeSet<_>>(), known, "exactly the pages of the truth");
    let again: BTreeMap<&String, u64> = asked
        .iter()
        .filter_map(|(path, times)| times.checked_sub(expected[path]).filter(|again| *again > 0).map(|again| (path, again)))
        .collect();
    let repeats: u64 = again.values().sum();
    assert!(repeats <= kills * IN_FLIGHT, "{repeats} repeats after {kills} kills: {again:?}");
}

/// The items in the store are those of the truth, each once, whoever scraped and delivered them.
fn delivered(folder: &Folder, truth: &Value) {
    let mut items = items(folder);
    // When it was kept is each item's own.
    items.iter_mut().for_each(|item| drop(item.as_object_mut().unwrap().remove("_ts")));
    right_items(truth, &items, &expected_items(truth));
    assert!(spools(folder).is_empty(), "nothing is left in a spool: {:?}", spools(folder));
}

#[test]
fn workers_that_are_killed_and_replaced_crawl_the_truth_once() {
    let (folder, place) = (Folder::new(), Folder::new());
    let products = long(900, 4_000).to_string();
    let shop = Shop::start(&folder, &["--products", &products, "--latency", "40", "--fast"]);
    let (redis, truth) = (Redis::start(&place), shop.json("__truth"));
    let job = Job { folder: &folder, redis: &redis.url(), spider: "bookshop", url: &shop.url, id: "killed", more: &[] };
    let mut workers = job.workers();
    let mut kills: u64 = 0;
    let started = Instant::now();
    // As long as all run there is work; the last ones are left alone, so that there is an end.
    while kills < long(8, 60) {
        std::thread::sleep(Duration::from_secs(2).saturating_sub(Duration::from_millis(10)));
        let victim = workers.remove(0);
        victim.signal(Signal::KILL);
        if victim.end().code.is_some() {
            // It was through before the signal came.
            break;
        }
        kills += 1;
        workers.push(job.worker());
    }
    let ended = ends(workers, 0);
    assert!(kills >= 3, "the crawl was over in {:?}, after {kills} kills", started.elapsed());
    one_book(&ended);
    fetched(&shop, &truth, kills);
    // What the last ones that were killed had kept, if nobody has sent it yet.
    folder.run(&["deliver"]);
    delivered(&folder, &truth);
}

#[test]
fn the_delay_of_a_host_holds_over_all_workers_also_when_they_are_killed() {
    let (folder, place) = (Folder::new(), Folder::new());
    let redis = Redis::start(&place);
    let delay = Duration::from_millis(100);
    let pages = long(60, 600);
    let server = Server::start(move |asked| match asked.path() {
        "/robots.txt" => Answer::status(404),
        "/" => Answer::html((0..pages).map(|page| format!("<a href='/page-{page}'>x</a>")).collect::<String>()),
        _ => Answer::html("<p>a page</p>"),
    });
    let url = server.url("/");
    let more = ["-s", "DOWNLOAD_DELAY=0.1", "-s", "RANDOMIZE_DOWNLOAD_DELAY=false", "-s", "ROBOTSTXT_OBEY=false"];
    let job = Job { folder: &folder, redis: &redis.url(), spider: "bench", url: &url, id: "paced", more: &more };
    let lateness = Lateness::watch();
    let mut workers = job.workers();
    let kills = long(3, 20);
    for kill in 1..=kills {
        workers[0].until("some more pages", || server.asked().len() as u64 > kill * pages / (kills + 2));
        let victim = workers.remove(0);
        victim.signal(Signal::KILL);
        assert_eq!(victim.end().code, None);
        workers.push(job.worker());
    }
    let ended = ends(workers, 0);
    assert_eq!(one_book(&ended), pages + 1);
    let mut asked = server.asked();
    asked.sort_by_key(|asked| asked.at);
    let targets: BTreeSet<&String> = asked.iter().map(|asked| &asked.target).collect();
    assert_eq!(targets.len() as u64, pages + 1);
    assert!(asked.len() as u64 <= pages + 1 + 2 * kills, "with a delay hardly more than one request is in flight at a time");
    // However many of them: what one gap lacks because a request was noted late, its neighbour has too much.
    // It may be late twice: where it is sent, after the time was noted that the delay counts from, and where it is received.
    let tolerance = Duration::from_millis(10) + 2 * lateness.most();
    for (place, first) in asked.iter().enumerate() {
        for (gaps, later) in (1..).zip(&asked[place + 1..]) {
            let took = later.at - first.at;
            assert!(took + tolerance >= delay * gaps, "{gaps} gaps of the fleet took {took:?}, tolerance {tolerance:?}");
        }
    }
}

/// How late this machine is with what is to be done at a time: on a busy one a request waits before it is noted.
struct Lateness {
    late: Arc<Mutex<Duration>>,
    over: Arc<AtomicBool>,
}

impl Lateness {
    fn watch() -> Self {
        let watching = Self { late: Arc::default(), over: Arc::default() };
        let (late, over) = (watching.late.clone(), watching.over.clone());
        std::thread::spawn(move || {
            let pause = Duration::from_millis(1);
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(pause);
                let by = began.elapsed().saturating_sub(pause);
                let mut late = late.lock().unwrap();
                *late = by.max(*late);
            }
        });
        watching
    }

    /// The most it was late by; next to nothing on an idle machine.
    fn most(&self) -> Duration {
        *self.late.lock().unwrap()
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_server_that_is_killed_and_started_again_costs_nothing_but_time() {
    let (folder, place) = (Folder::new(), Folder::new());
    let shop = Shop::start(&folder, &["--products", &long(200, 2_000).to_string(), "--latency", "30", "--fast"]);
    let mut redis = Redis::start(&place);
    let truth = shop.json("__truth");
    let url = redis.url();
    let job = Job { folder: &folder, redis: &url, spider: "bookshop", url: &shop.url, id: "restarted", more: &[] };
    let workers = job.workers();
    let pages = |shop: &Shop| shop.json("__stats")["requests"].as_u64().unwrap();
    workers[0].until("some pages", || pages(&shop) > 30);
    redis.restart_after(Duration::from_millis(1_500));
    let ended = ends(workers, 0);
    assert!(ended.iter().any(|one| one.err.contains("the shared frontier cannot be reached")), "{}", ended[0]);
    assert!(ended.iter().any(|one| one.err.contains("the shared frontier is reached again")), "{}", ended[0]);
    one_book(&ended);
    fetched(&shop, &truth, 0);
    delivered(&folder, &truth);
}

#[test]
fn two_jobs_share_a_server_and_neither_touches_the_other() {
    let (folder, place) = (Folder::new(), Folder::new());
    let shop = Shop::start(&folder, &["--products", "40", "--fast"]);
    let redis = Redis::start(&place);
    let job = |id| Job { folder: &folder, redis: &redis.url(), spider: "bookshop", url: &shop.url, id, more: &[] }.workers();
    let (one, two) = (job("one"), job("two"));
    let (one, two) = (ends(one, 0), ends(two, 0));
    // Each worker may have asked for robots.txt or not, so the two need not be equal.
    assert!(one_book(&one) > 0 && one_book(&two) > 0);
    let of = |id: &str| -> Vec<String> {
        let records: Vec<String> = ask(&folder, "SELECT json_extract(record, '$.url') FROM items WHERE job_id = ?1", id);
        let urls: BTreeSet<String> = records.iter().cloned().collect();
        assert_eq!(urls.len(), records.len(), "each once");
        records.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    };
    assert!(!of("one").is_empty());
    assert_eq!(of("one"), of("two"));
}

#[test]
fn a_worker_that_is_told_to_leave_gives_back_what_it_has_and_the_others_finish() {
    let (folder, place) = (Folder::new(), Folder::new());
    let shop = Shop::start(&folder, &["--products", "150", "--latency", "30", "--fast"]);
    let (redis, truth) = (Redis::start(&place), shop.json("__truth"));
    let job = Job { folder: &folder, redis: &redis.url(), spider: "bookshop", url: &shop.url, id: "left", more: &[] };
    let mut workers = job.workers();
    let pages = |shop: &Shop| shop.json("__stats")["requests"].as_u64().unwrap();
    workers[0].until("some pages", || pages(&shop) > 30);
    let leaver = workers.remove(0);
    leaver.signal(Signal::TERM);
    let left = leaver.end().with_code(2);
    assert!(left.number("requests", "left") > 0, "others go on: {left}");
    one_book(&ends(workers, 0));
    fetched(&shop, &truth, 0);
    delivered(&folder, &truth);
}

#[test]
fn a_limit_that_one_worker_reaches_ends_the_job_for_all() {
    let (folder, place) = (Folder::new(), Folder::new());
    let shop = Shop::start(&folder, &["--products", "400", "--latency", "30", "--fast"]);
    let redis = Redis::start(&place);
    let more = ["-s", "CLOSESPIDER_ITEMCOUNT=5"];
    let job = Job { folder: &folder, redis: &redis.url(), spider: "bookshop", url: &shop.url, id: "limit", more: &more };
    for ended in ends(job.workers(), 0) {
        assert!(ended.err.contains("closespider_itemcount: bookshop, job limit"), "{ended}");
    }
    // Whoever comes when all are gone goes on from there.
    let job = Job { more: &[], ..job };
    ends(job.workers(), 0);
    delivered(&folder, &shop.json("__truth"));
}

#[test]
fn a_shared_frontier_asks_for_a_job_id_and_shows_no_password() {
    let folder = Folder::new();
    let said = folder.refused(&["crawl", "bookshop", "-s", "FRONTIER=redis://:canary@127.0.0.1:1/0"]);
    assert!(said.contains("JOB_ID is not set") && !said.contains("canary"), "{said}");
    let call =
        ["crawl", "bookshop", "-a", "JOB_ID=x", "-a", "url=http://127.0.0.1:1/", "-s", "FRONTIER=redis://:canary@127.0.0.1:1/0"];
    let ended = folder.run(&call);
    assert_eq!(ended.code, Some(3), "{ended}");
    assert!(ended.err.contains("127.0.0.1:1 cannot be reached") && !ended.err.contains("canary"), "{ended}");
    let table = folder.run(&["settings", "-s", "FRONTIER=redis://:canary@127.0.0.1:1/0"]);
    assert!(table.out.contains("redis://[redacted]@127.0.0.1:1/0") && !table.out.contains("canary"), "{table}");
}

#[test]
fn a_job_is_paused_resumed_and_stopped_for_all_from_outside() {
    let (folder, place) = (Folder::new(), Folder::new());
    let shop = Shop::start(&folder, &["--products", "300", "--latency", "30", "--fast"]);
    let redis = Redis::start(&place);
    let url = redis.url();
    let job = Job { folder: &folder, redis: &url, spider: "bookshop", url: &shop.url, id: "steered", more: &[] };
    let workers = job.workers();
    let pages = || shop.json("__stats")["requests"].as_u64().unwrap();
    let steer = |verb| {
        let ended = folder.run(&["frontier", verb, &url, "--job", "steered"]);
        assert_eq!(ended.code, Some(0), "{verb}: {ended}");
    };
    workers[0].until("some pages", || pages() > 30);
    steer("pause");
    // All have heard of it, and what was under way is done.
    let mut before = pages();
    workers[0].until("a pause", || {
        std::thread::sleep(Duration::from_secs(1));
        before == std::mem::replace(&mut before, pages())
    });
    workers.iter().for_each(|worker| worker.says("the job is paused"));
    steer("resume");
    workers[0].until("more pages", || pages() > before + 10);
    steer("stop");
    for ended in ends(workers, 2) {
        assert!(ended.err.contains("shutdown: bookshop, job steered"), "{ended}");
        assert!(ended.number("requests", "left") > 0, "{ended}");
    }
    ends(job.workers(), 0);
    delivered(&folder, &shop.json("__truth"));
}
