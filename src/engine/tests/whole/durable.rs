//! A store that outlives its process: a disk that refuses for a while or for good, and jobs that go on in their next run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::script::Do::{self, Flush, Sleep};
use super::script::{follow, item};
use super::shutdown::{states, stopped};
use super::stand::{Desk, Outcome, Stand};
use super::{MILLI, SECOND};
use crate::collector::Ends;
use crate::courier::MemorySink;
use crate::scheduler::store::Store as _;
use crate::scheduler::testing::Journal;
use crate::testkit::transport::Answer;

const PAGES: u64 = 24;

/// The whole of a stop, as the settings have it by default.
const WHOLE: Duration = Duration::from_secs(22);

fn url(n: u64) -> String {
    format!("http://a.test/{n}")
}

/// A tree of pages with an item each, which take a while.
fn tree() -> Stand {
    let mut stand = Stand::new().start([follow(&url(0))]).with(|s| s.concurrent_requests = 3);
    for n in 0..PAGES {
        let links = [2 * n + 1, 2 * n + 2].into_iter().filter(|n| *n < PAGES).map(|n| follow(&url(n)));
        let list: Vec<Do> = [item(&n.to_string()), Sleep(20 * MILLI)].into_iter().chain(links).collect();
        stand = stand.page(&url(n), list);
        stand.wire.get(&url(n), [Answer::html("ok").after(90 * MILLI)]);
    }
    stand.ends = Ends::Journaled;
    stand
}

/// The same job's next run, over the same store, record log and sink.
fn run_of(mut stand: Stand, store: &Journal, spool: &Path, sink: &MemorySink) -> Stand {
    stand.ends = Ends::Journaled;
    stand.store = Some(Box::new(store.clone()));
    stand.spool = Some(spool.to_owned());
    stand.sink = sink.clone();
    stand.log_id = 100 + sink.bodies().len() as u64;
    stand
}

fn all() -> Vec<String> {
    let mut all: Vec<_> = (0..PAGES).map(|n| n.to_string()).collect();
    all.sort();
    all
}

/// How often each URL was asked for in all runs.
fn asked(runs: &[Outcome]) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for outgoing in runs.iter().flat_map(|run| &run.asked) {
        *asked.entry(outgoing.url.to_string()).or_default() += 1;
    }
    asked
}

#[test]
fn a_disk_that_refuses_for_a_while_holds_the_crawl_and_loses_nothing() {
    let (store, dir) = (Journal::new(), TempDir::new().unwrap());
    let disk = store.clone();
    let done = run_of(tree(), &store, &dir.path().join("spool"), &MemorySink::new()).run_and(|_| async move {
        tokio::time::sleep(300 * MILLI).await;
        disk.refuse(true);
        tokio::time::sleep(20 * SECOND).await;
        disk.refuse(false);
    });
    done.assert_sound();
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("finished", 0));
    assert_eq!(done.ids(), all());
    assert_eq!(done.asked.len() as u64, PAGES);
    // What was in flight came to its end; nothing began.
    let late = done.times("GET").into_iter().filter(|at| (500 * MILLI..20 * SECOND).contains(at)).count();
    assert_eq!(late, 0, "{:?}", done.lines);
    assert!(done.took > 20 * SECOND && done.took < 24 * SECOND, "{:?}", done.took);
    assert_eq!(done.count("scheduler/blocked"), 1);
    assert_eq!(done.count("engine/stalls"), 0, "it was told, and is no riddle");
    assert_eq!(store.next_run().books(), done.ended.books);
}

#[test]
fn a_disk_that_refuses_for_good_ends_the_job_and_the_next_run_finishes_it() {
    let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
    let spool = dir.path().join("spool");
    let disk = store.clone();
    let stand = tree().with(|s| s.disk_wait = 20 * SECOND);
    let done = run_of(stand, &store, &spool, &sink).run_and(|_| async move {
        tokio::time::sleep(300 * MILLI).await;
        disk.refuse(true);
    });
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("disk_full", 3));
    let why = done.ended.note.clone().unwrap();
    assert!(why.contains("no space left") && why.contains("DISK_WAIT") && why.contains("JOBDIR"), "{why}");
    assert!(done.took > 20 * SECOND && done.took < 20 * SECOND + WHOLE, "{:?}", done.took);
    let next = run_of(tree(), &store.next_run(), &spool, &sink).run();
    assert_eq!((next.ended.reason.as_str(), next.ended.code), ("finished", 0));
    assert_eq!(next.ids(), all(), "each item once: what had ended is known from the record log");
    assert!(next.ended.books.balances() && next.ended.books.handled == PAGES);
}

#[test]
fn a_stop_while_the_disk_refuses_ends_in_time() {
    for press in [Desk::stop as fn(&Desk), |desk| {
        desk.stop();
        desk.kill();
    }] {
        let (store, dir) = (Journal::new(), TempDir::new().unwrap());
        let disk = store.clone();
        let stand = run_of(tree(), &store, &dir.path().join("spool"), &MemorySink::new());
        let (done, took) = stopped(stand, 400 * MILLI, move |desk| {
            disk.refuse(true);
            press(desk);
        });
        assert!(took <= WHOLE, "{took:?}");
        assert_eq!((done.ended.reason.as_str(), done.ended.code), ("shutdown", 2));
        assert!(store.next_run().books().balances());
    }
}

#[test]
fn a_disk_that_refuses_for_good_is_no_imbalance() {
    let (store, dir) = (Journal::new(), TempDir::new().unwrap());
    let disk = store.clone();
    // The second request is taken and not given out: no answer with the books comes after it.
    let stand = Stand::new().start([follow(&url(0))]).page(&url(0), [follow(&url(1)), Flush, Sleep(40 * SECOND)]);
    let stand = stand.with(|s| (s.disk_wait, s.download_delay) = (20 * SECOND, 300 * SECOND));
    let done = run_of(stand, &store, &dir.path().join("spool"), &MemorySink::new()).run_and(|_| async move {
        tokio::time::sleep(SECOND).await;
        disk.refuse(true);
    });
    assert_eq!(done.ended.imbalances, Vec::<String>::new());
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("disk_full", 3), "{:?}", done.ended.books);
    // The books as they were last told: the second request is on disk and in no answer.
    assert_eq!((done.ended.books.pending, store.next_run().books().pending), (1, 2));
}

#[test]
fn a_stop_at_any_moment_repeats_no_request_in_the_next_run() {
    for at in (0..14).map(|n| n * 67 * MILLI) {
        let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
        let spool = dir.path().join("spool");
        let first = run_of(tree(), &store, &spool, &sink);
        let (first, _) = stopped(first, at, Desk::stop);
        first.assert_sound();
        assert_eq!(store.next_run().books(), first.ended.books, "{at:?}");
        let next = run_of(tree(), &store.next_run(), &spool, &sink).run();
        assert_eq!((next.ended.reason.as_str(), next.ended.code), ("finished", 0), "{at:?}");
        assert_eq!(next.ids(), all(), "{at:?}");
        let runs = [first, next];
        assert!(asked(&runs).values().all(|times| *times == 1), "{at:?}: {:?}", asked(&runs));
        let [_, next] = runs;
        // The counters of the last run are those of the job.
        assert_eq!(next.count("item_scraped_count").unsigned_abs(), PAGES, "{at:?}");
        assert_eq!(next.count("response_received_count").unsigned_abs(), PAGES, "{at:?}");
        assert_eq!(next.count("downloader/request_count").unsigned_abs(), PAGES, "{at:?}");
        assert_eq!(next.count("engine/leases").unsigned_abs(), PAGES, "{at:?}");
        assert!(!next.segments_left, "{at:?}");
    }
}

#[test]
fn two_signals_repeat_only_what_was_in_flight() {
    for at in (1..12).map(|n| n * 71 * MILLI) {
        let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
        let spool = dir.path().join("spool");
        let (first, _) = stopped(run_of(tree(), &store, &spool, &sink), at, |desk| {
            desk.stop();
            desk.kill();
        });
        let left = store.next_run().books();
        assert!(left.balances(), "{at:?}");
        let next = run_of(tree(), &store.next_run(), &spool, &sink).run();
        assert_eq!(next.ids(), all(), "{at:?}: no item twice");
        let runs = [first, next];
        let twice = asked(&runs).values().filter(|times| **times > 1).count();
        // Three on the wire, and as many with their callbacks.
        assert!(twice <= 6 && asked(&runs).len() as u64 == PAGES, "{at:?}: {:?}", asked(&runs));
    }
}

#[test]
fn every_state_a_stop_finds_goes_on_in_the_next_run() {
    for (state, stand) in states() {
        let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
        let spool = dir.path().join("spool");
        let (first, _) = stopped(run_of(stand, &store, &spool, &sink), SECOND, Desk::stop);
        let next = store.next_run();
        assert_eq!(next.books(), first.ended.books, "{state}");
        assert!(next.books().balances(), "{state}");
    }
}

#[test]
fn start_goes_on_behind_the_last_request_that_was_taken() {
    let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
    let spool = dir.path().join("spool");
    let seeds = || {
        let mut list = Vec::new();
        for n in 0..PAGES {
            list.extend([follow(&url(n)), Flush, Sleep(50 * MILLI)]);
        }
        let mut stand = Stand::new().start(list);
        stand.script.other = vec![];
        stand
    };
    let (first, _) = stopped(run_of(seeds(), &store, &spool, &sink), 330 * MILLI, Desk::stop);
    let cursor = store.next_run().cursors().start;
    assert!(cursor > 3 && cursor < PAGES, "{cursor}");
    let next = run_of(seeds(), &store.next_run(), &spool, &sink).run();
    assert_eq!(next.count("dupefilter/filtered"), 0, "none was offered again");
    assert_eq!(next.ended.books.handled, PAGES);
    assert_eq!(asked(&[first, next]).values().sum::<usize>() as u64, PAGES);
}

#[test]
fn what_idle_makes_has_another_name_in_every_run() {
    let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
    let spool = dir.path().join("spool");
    let run = |store: &Journal, path: &str, stop: bool| {
        let stand = Stand::new().start([follow(&url(0))]);
        let list = vec![
            follow(&url(1)),
            super::script::make(&format!("http://a.test/{path}"), |r| {
                r.dont_filter();
            }),
        ];
        stand.script.idle.lock().unwrap().push_back(list);
        stand.script.idle.lock().unwrap().push_back(if stop { vec![Do::Stop("enough")] } else { vec![] });
        run_of(stand, store, &spool, &sink).run()
    };
    let first = run(&store, "once", true);
    assert_eq!((first.ended.reason.as_str(), first.asked.len()), ("enough", 3), "{:?}", first.lines);
    let store = store.next_run();
    assert_eq!(store.cursors().idle, 2);
    let next = run(&store, "again", false);
    assert_eq!(next.said("GET"), ["GET http://a.test/again"], "its first request is no repetition of the first run's");
    assert_eq!(next.ended.books.handled, 4);
}

#[test]
fn a_finished_job_begins_nothing_and_delivers_what_was_left() {
    let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
    let spool = dir.path().join("spool");
    let mut first = run_of(tree(), &store, &spool, &sink);
    first.sink_fault = Box::new(|_| {
        let (after, why) = (Some(3600 * SECOND), "closed".to_owned());
        Some(crate::apcloudy::Answer::Retry { after, why })
    });
    let first = first.run();
    assert_eq!((first.ended.reason.as_str(), first.ended.code, first.items.len()), ("finished", 4, 0));
    let next = run_of(tree(), &store.next_run(), &spool, &sink).run();
    assert_eq!((next.ended.reason.as_str(), next.ended.code), ("finished", 0));
    assert_eq!((next.asked.len(), next.said("start").len(), next.said("idle").len()), (0, 0, 0), "{:?}", next.lines);
    assert_eq!(next.ids(), all());
    assert_eq!(next.ended.books, first.ended.books);
}

#[test]
fn cookies_of_an_identity_are_sent_by_the_next_run() {
    let (store, dir, sink) = (Journal::new(), TempDir::new().unwrap(), MemorySink::new());
    let spool = dir.path().join("spool");
    let seeds = |answer: Answer| {
        let stand = Stand::new().start([follow(&url(0)), Flush, follow(&url(1))]).page(&url(0), [Do::Stop("enough")]);
        stand.wire.get(&url(0), [answer]);
        stand.with(|s| s.download_delay = SECOND)
    };
    let first = run_of(seeds(Answer::html("ok").header("set-cookie", "sid=canary")), &store, &spool, &sink).run();
    assert_eq!((first.ended.reason.as_str(), first.asked.len()), ("enough", 1), "{:?}", first.lines);
    let next = run_of(seeds(Answer::html("ok")), &store.next_run(), &spool, &sink).run();
    let cookies: Vec<_> =
        next.asked.iter().map(|sent| sent.headers.get("cookie").map(|c| c.to_str().unwrap().to_owned())).collect();
    assert_eq!(cookies, [Some("sid=canary".to_owned())]);
    assert!(next.times("GET")[0] > 500 * MILLI, "and the delay after the last request of the first run holds: {:?}", next.lines);
}
