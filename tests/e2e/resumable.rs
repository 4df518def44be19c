//! A crawl of the demo shop that is stopped again and again and goes on in its `JOBDIR`, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::books_of_a_job::{items, requests};
use super::bookshop::{asked_for, expected_items, looping_paths, path_of, right_items, times_asked};
use super::harness::{Ended, Folder, Running, Shop, long};
use super::killed::spooled;

/// Requests in flight at once, pages that wait for their callback included.
pub(crate) const IN_FLIGHT: usize = 16;
/// Kinds of records in the record log.
const ITEM: u8 = 1;
const REQUEST: u8 = 2;

/// Numbers without a pattern, the same for the same seed.
pub(crate) struct Dice(u64);

/// How a run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `kill -9`
    Kill,
    /// SIGTERM
    Terminate,
    /// SIGINT and another one soon after.
    InterruptTwice,
}

pub(crate) struct Crawl {
    pub(crate) folder: Folder,
    shop: Shop,
    truth: Value,
    /// What had been kept when a run was stopped, and how often the pages had been asked for by then.
    stops: Vec<Stopped>,
}

struct Stopped {
    kept: BTreeSet<String>,
    asked: BTreeMap<String, u64>,
}

/// The requests of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) taken: u64,
    pub(crate) handled: u64,
    pub(crate) failed: u64,
    pub(crate) dropped: u64,
    pub(crate) set_aside: u64,
    pub(crate) left: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbours as seeds give sequences that have nothing in common.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub(crate) fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}

impl Books {
    #[track_caller]
    pub(crate) fn of(ended: &Ended) -> Self {
        let number = |word| ended.number("requests", word);
        let books = Self {
            taken: number("taken"),
            handled: number("handled"),
            failed: number("failed"),
            dropped: number("dropped"),
            set_aside: number("set aside"),
            left: number("left"),
        };
        let sum = books.handled + books.failed + books.dropped + books.set_aside + books.left;
        assert_eq!(books.taken, sum, "{ended}");
        books
    }
}

impl Stop {
    /// Stops a run; a run that has ended meanwhile is none the worse for it.
    fn at(self, running: &Running, dice: &mut Dice) {
        match self {
            Self::Kill => running.signal(Signal::KILL),
            Self::Terminate => running.signal(Signal::TERM),
            Self::InterruptTwice => {
                running.signal(Signal::INT);
                std::thread::sleep(dice.between(0, 60));
                running.signal(Signal::INT);
            }
        }
    }

    /// The exit code of a run that was stopped like this.
    const fn code(self) -> Option<i32> {
        if matches!(self, Self::Kill) { None } else { Some(2) }
    }

    /// Requests that one such stop may cause to be made again.
    const fn repeats(self) -> usize {
        if matches!(self, Self::Terminate) { 0 } else { IN_FLIGHT }
    }
}

impl Crawl {
    /// A shop in a process of its own, and nothing crawled yet.
    pub(crate) fn of(products: u32, seed: u64) -> Self {
        let folder = Folder::new();
        let (products, seed) = (products.to_string(), seed.to_string());
        let shop = Shop::start(&folder, &["--products", &products, "--seed", &seed, "--fast", "--latency", "15"]);
        let truth = shop.json("__truth");
        Self { folder, shop, truth, stops: Vec::new() }
    }

    pub(crate) fn pages(&self) -> usize {
        self.truth["pages"].as_array().unwrap().len()
    }

    /// How often the crawl was stopped so far.
    pub(crate) fn stops(&self) -> usize {
        self.stops.len()
    }

    /// Starts a run.
    pub(crate) fn start(&self) -> Running {
        let (url, most) = (format!("url={}", self.shop.url), format!("={IN_FLIGHT}"));
        let mut call = vec!["crawl", "bookshop", "-a", &url, "-a", "JOB_ID=again", "--jobdir", "job", "-o", "items.jsonl"];
        let bounds =
            ["CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "WINDOW_REQUESTS"].map(|name| format!("{name}{most}"));
        for pair in bounds.iter().map(String::as_str).chain(["RETRY_BACKOFF=0.1", "RETRY_BACKOFF_MAX=1", "STATS_DUMP=false"]) {
            call.extend(["-s", pair]);
        }
        self.folder.start(&call)
    }

    /// Starts runs and stops them at moments of the dice, until one ends by itself. Answers that one.
    pub(crate) fn until_through(&mut self, stop: Stop, dice: &mut Dice) -> Ended {
        loop {
            let running = self.start();
            if self.stops() < most_stops() {
                // Before that a signal ends a process that does not listen yet.
                running.until("it crawls or it is over", || running.err().contains('\n'));
                std::thread::sleep(dice.between(300, 2_000));
                stop.at(&running, dice);
            }
            let ended = running.end();
            if ended.code == Some(0) {
                return ended.with_code(0);
            }
            assert_eq!(ended.code, stop.code(), "{ended}");
            if ended.code.is_some() {
                let ended = ended.with_code(2);
                Books::of(&ended);
            }
            self.note(stop);
        }
    }

    /// Notes what there is between two runs.
    fn note(&mut self, stop: Stop) {
        let spool = self.folder.file("job/spool");
        let spooled = |kind| spooled(&spool, kind).into_iter().map(|text| serde_json::from_str::<Value>(&text).unwrap());
        let url = |record: &Value| path_of(record["url"].as_str().unwrap());
        // A page that is cut off in its callback leaves the record of its answer, but no item.
        let kept = if stop == Stop::InterruptTwice {
            items(&self.folder).iter().chain(&spooled(ITEM).collect::<Vec<_>>()).map(url).collect()
        } else {
            let stored = requests(&self.folder).into_iter().filter(|record| record.success).map(|record| path_of(&record.url));
            stored.chain(spooled(REQUEST).filter(|record| record["success"] == true).map(|record| url(&record))).collect()
        };
        self.stops.push(Stopped { kept, asked: self.asked() });
    }

    /// How often each page was asked for, by its canonical path.
    fn asked(&self) -> BTreeMap<String, u64> {
        asked_for(&self.shop, &self.shop.json("__stats"))
    }

    /// Checks everything that must hold when a crawl is through that was stopped like this.
    pub(crate) fn is_whole(&self, stop: Stop, last: &Ended) {
        let asked = self.asked();
        self.what_was_kept_was_not_fetched_again(&asked);
        let repeats = self.every_page_was_fetched(stop, &asked);
        self.items_are_the_truth(&repeats);
        self.each_page_has_one_record(stop, &repeats);
        self.books_are_those_of_all_runs(last);
        assert!(spooled(&self.folder.file("job/spool"), REQUEST).is_empty(), "everything is delivered");
    }

    fn what_was_kept_was_not_fetched_again(&self, asked: &BTreeMap<String, u64>) {
        for (number, stopped) in self.stops.iter().enumerate() {
            for path in stopped.kept.iter().filter(|path| *path != "/robots.txt") {
                assert_eq!(
                    asked.get(path),
                    stopped.asked.get(path),
                    "{path} was kept before stop {number} and asked for after it"
                );
            }
        }
    }

    /// The pages that were asked for more often than the shop makes anybody ask.
    fn every_page_was_fetched(&self, stop: Stop, asked: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let expected = times_asked(&self.truth);
        let looping = looping_paths(&self.truth);
        let redirects: BTreeSet<String> = self.truth["pages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|page| page["target"].is_string())
            .map(|page| path_of(page["url"].as_str().unwrap()))
            .collect();
        let missing: Vec<_> = expected.keys().filter(|path| !asked.contains_key(*path)).collect();
        assert!(missing.is_empty(), "{} of {} pages were never asked for: {missing:?}", missing.len(), expected.len());
        let unknown: Vec<_> = asked.keys().filter(|path| !expected.contains_key(*path) && !looping.contains(*path)).collect();
        assert!(unknown.is_empty(), "asked for without need: {unknown:?}");
        let mut repeats = BTreeMap::new();
        for (path, times) in expected.iter().filter(|(path, _)| *path != "/robots.txt") {
            let found = asked[path];
            assert!(found >= *times, "{path}: {found} times, at least {times} are needed");
            if found > *times {
                repeats.insert(path.clone(), found - times);
            }
        }
        // One request in flight may have asked for two pages: a redirect and its target.
        let in_flight: u64 = repeats.iter().filter(|(path, _)| !redirects.contains(*path)).map(|(_, times)| times).sum();
        let most = (self.stops() * stop.repeats()) as u64;
        assert!(in_flight <= most, "{in_flight} pages were asked for again, {most} can have been in flight: {repeats:?}");
        assert!(most > 0 || repeats.is_empty(), "nothing was in flight: {repeats:?}");
        let robots = asked["/robots.txt"];
        assert!(robots <= self.stops() as u64 + 1, "robots.txt was asked for {robots} times in {} runs", self.stops() + 1);
        repeats
    }

    /// The store has each item once; so has the feed, but those of pages that were asked for again.
    fn items_are_the_truth(&self, repeats: &BTreeMap<String, u64>) {
        let expected = expected_items(&self.truth);
        let stored = items(&self.folder);
        right_items(&self.truth, &stored.iter().map(without_time).collect::<Vec<_>>(), &expected);
        let (mut once, mut times) = (Vec::new(), BTreeMap::<String, u64>::new());
        for item in self.folder.items("items.jsonl") {
            let times = times.entry(path_of(item["url"].as_str().unwrap())).or_default();
            *times += 1;
            if *times == 1 {
                once.push(item);
            } else {
                assert!(once.contains(&item), "another version of an item: {item}");
            }
        }
        right_items(&self.truth, &once, &expected);
        for (path, times) in times.into_iter().filter(|(_, times)| *times > 1) {
            let most = repeats.get(&path).copied().unwrap_or(0);
            assert!(times - 1 <= most, "{path} was asked for again {most} times, its item is {times} times in the feed");
        }
    }

    /// But those that were answered once more after they had been cut off in their callback.
    fn each_page_has_one_record(&self, stop: Stop, repeats: &BTreeMap<String, u64>) {
        let mut records = BTreeMap::<String, u64>::new();
        for record in requests(&self.folder).into_iter().filter(|record| record.success) {
            *records.entry(path_of(&record.url)).or_default() += 1;
        }
        for page in self.truth["pages"].as_array().unwrap().iter().filter(|page| page["status"] == 200) {
            let path = path_of(page["url"].as_str().unwrap());
            let most = 1 + if stop == Stop::InterruptTwice { repeats.get(&path).copied().unwrap_or(0) } else { 0 };
            let found = records.remove(&path).unwrap_or(0);
            assert!((1..=most).contains(&found), "{path} has {found} records of an answer, 1 to {most} are right");
        }
        records.remove("/robots.txt");
        assert!(records.is_empty(), "records of pages that nobody answered: {records:?}");
    }

    fn books_are_those_of_all_runs(&self, last: &Ended) {
        let books = Books::of(last);
        let pages = self.truth["pages"].as_array().unwrap();
        let count = |of: fn(&Value) -> bool| pages.iter().filter(|page| of(page)).count() as u64;
        let answered = count(|page| page["status"] == 200);
        let failed = count(|page| matches!(page["status"].as_u64(), Some(404 | 500)));
        let loops = count(|page| page["kind"] == "redirect_loop") / 2;
        let robots = books.handled.checked_sub(answered);
        assert!(
            robots.is_some_and(|robots| (1..=self.stops() as u64 + 1).contains(&robots)),
            "{answered} pages are answered: {last}"
        );
        assert_eq!((books.set_aside, books.left), (0, 0), "{last}");
        assert!((failed..=failed + loops * 2).contains(&books.failed), "{failed} pages and {loops} loops fail: {last}");
    }
}

/// After so many stops the next run is left alone.
fn most_stops() -> usize {
    if long(0, 1) == 1 { 60 } else { 12 }
}

fn without_time(item: &Value) -> Value {
    let mut item = item.clone();
    assert!(item.as_object_mut().unwrap().remove("_ts").is_some_and(|time| time.is_u64()), "the store adds when: {item}");
    item
}
