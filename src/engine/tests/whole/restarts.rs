//! Restarts: a leaf panics, its successor goes on, nothing is lost and nothing is done twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::fakes::{Judged, Most, Weighed};
use super::script::{follow, item};
use super::stand::{Calls, Stand};
use super::{MILLI, SECOND};
use crate::export::{Feed, FeedError, FeedSummary, ItemText};
use crate::scheduler::MemoryStore;
use crate::testkit::transport::Answer;

/// Forty pages with an item each.
fn forty() -> Stand {
    let mut stand = Stand::new().start((0..40).map(|n| follow(&format!("http://a.test/{n}"))));
    for n in 0..40 {
        stand = stand.page(&format!("http://a.test/{n}"), [item(&format!("{n:02}"))]);
    }
    stand
}

fn all() -> Vec<String> {
    (0..40).map(|n| format!("{n:02}")).collect()
}

#[test]
fn a_broker_that_panics_asks_again_for_every_ticket_that_waits() {
    for calls in [Calls::WithTheirActor, Calls::Elsewhere] {
        for at in [1, 5, 20, 39] {
            let mut asks = 0;
            let mut stand = forty().judge(move |_, _| {
                asks += 1;
                if asks == at { Judged::Panic } else { Judged::GrantAfter(300 * MILLI) }
            });
            stand.calls = calls;
            let done = stand.run();
            done.assert_whole();
            assert_eq!(done.ids(), all(), "ask {at}");
            assert_eq!(done.asked.len(), 40);
            assert_eq!(done.count("engine/restarts/broker"), 1, "ask {at}");
            assert!(done.count("engine/reissued") >= 1);
        }
    }
}

#[test]
fn grants_that_come_after_their_broker_died_are_given_back() {
    let mut asks = 0;
    let mut stand = forty().judge(move |_, _| {
        asks += 1;
        match asks {
            1..6 => Judged::GrantAfter(2 * SECOND),
            6 => Judged::Panic,
            _ => Judged::Grant,
        }
    });
    stand.calls = Calls::Elsewhere;
    for n in 0..40 {
        stand.wire.get(&format!("http://a.test/{n}"), [Answer::html("ok").after(SECOND)]);
    }
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.ids(), all());
    assert_eq!(done.count("engine/restarts/broker"), 1);
    // The late ones ended without a request, and so did those of asks that were queued and ordered again.
    assert!(done.releases.len() >= 5, "{:?}", done.releases);
    assert_eq!(done.granted.len(), done.asked.len() + done.releases.len());
}

#[test]
fn downloads_outlive_a_downloader_that_panics() {
    let mut stand = forty();
    stand.tidy_panics = true;
    for n in 0..40 {
        stand.wire.get(&format!("http://a.test/{n}"), [Answer::html("ok").after(3 * SECOND)]);
    }
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.count("engine/restarts/downloader"), 1);
    assert_eq!(done.ids(), all());
    assert_eq!(done.asked.len(), 40, "no download was made twice");
}

#[test]
fn a_reporter_that_panics_hands_every_report_over_once() {
    let mut stand = forty();
    stand.report_panics = true;
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.count("engine/restarts/reporter"), 1);
    assert_eq!(done.ids(), all());
}

#[test]
fn a_sink_that_panics_once_gets_every_record_once() {
    for at in 1..4 {
        let mut stand = forty().with(|s| s.apcloudy_batch_size = 10);
        stand.sink_fault = Box::new(move |call| {
            assert!(call != at, "a scripted panic of the sink");
            None
        });
        let done = stand.run();
        done.assert_whole();
        assert_eq!((done.count("courier/failures/panic"), done.count("engine/restarts/courier")), (1, 0), "call {at}");
        assert_eq!(done.ids(), all(), "call {at}");
        assert_eq!(done.records.len(), 40, "call {at}");
    }
}

/// Panics at every write.
#[derive(Debug)]
pub(super) struct Brittle;

impl Feed for Brittle {
    fn write(&mut self, _: &[ItemText]) -> Result<(), FeedError> {
        panic!("a scripted panic of the feed")
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<FeedSummary, FeedError> {
        unreachable!("a feed that keeps panicking is not closed")
    }
}

#[test]
fn a_feed_that_panics_costs_the_sink_nothing() {
    let mut stand = forty();
    stand.feeds.push(("brittle".to_owned(), Box::new(Brittle)));
    let done = stand.run();
    done.assert_sound();
    assert!(done.count("engine/restarts/collector") >= 1);
    assert!(done.count("engine/reissued") >= 1);
    assert_eq!(done.ids(), all());
    assert_eq!(done.records.len(), 40);
    assert_eq!(done.ended.code, 4, "a feed is missing items: {:?}", done.ended.delivery);
    assert!(!done.ended.delivery.feed_errors.is_empty());
}

#[test]
fn a_frontier_that_panics_ends_the_job_with_exit_70_and_gives_the_leases_back() {
    let most = Arc::new(Most::default());
    let mut stand = forty().with(|s| s.concurrent_requests = 4);
    for n in 0..40 {
        stand.wire.get(&format!("http://a.test/{n}"), [Answer::html("ok").after(SECOND)]);
    }
    stand.store = Some(Box::new(Weighed { inner: MemoryStore::new(1 << 20), most: most.clone() }));
    let done = stand.run_and(|_| async move {
        tokio::time::sleep(2500 * MILLI).await;
        most.broken.store(true, Ordering::SeqCst);
    });
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("internal_error", 70));
    assert!(done.ledger.balances() && done.ledger.open == 0, "{:?}", done.ledger);
    assert!(done.took < 30 * SECOND, "{:?}", done.took);
    assert!(!done.ids().is_empty());
}
