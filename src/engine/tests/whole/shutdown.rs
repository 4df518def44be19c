//! Stopping: in every state a request can be in, within its limits, with the books right.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::fakes::Judged;
use super::script::Do::{self, Flush, Hang, Panic, Send, Sleep, Stop};
use super::script::{follow, item};
use super::stand::{Desk, Outcome, Stand};
use super::{MILLI, SECOND, identities, rule};
use crate::apcloudy::Answer as SinkAnswer;
use crate::settings::OnFatal;
use crate::testkit::transport::Answer;

/// `GRACE` and `CLOSE_TIMEOUT` as they are by default.
const WHOLE: Duration = Duration::from_secs(22);
/// A second signal leaves this much.
const AT_ONCE: Duration = Duration::from_secs(3);

const PAGES: u64 = 12;

fn pages() -> Vec<Do> {
    (0..PAGES).map(|n| follow(&format!("http://a.test/{n}"))).collect()
}

fn every_page(mut stand: Stand, list: &[Do]) -> Stand {
    for n in 0..PAGES {
        stand = stand.page(&format!("http://a.test/{n}"), list.to_vec());
    }
    stand
}

fn every_answer(stand: Stand, answer: &Answer) -> Stand {
    for n in 0..PAGES {
        stand.wire.get(&format!("http://a.test/{n}"), [answer.clone()]);
    }
    stand
}

fn refreshing(stand: Stand) -> Stand {
    for n in 0..PAGES {
        let page = format!("<meta http-equiv=refresh content='90;url=/far{n}'>");
        stand.wire.get(&format!("http://a.test/{n}"), [Answer::html(page)]);
    }
    stand
}

/// A stand whose requests are all in one state after a second, by the state's name.
pub(super) fn states() -> Vec<(&'static str, Stand)> {
    let base = || Stand::new().start(pages());
    let small = |s: &mut crate::settings::Settings| {
        s.frontier_max_bytes = 40 * 1024;
        s.callback_max_effects = 40;
    };
    // One that is not in a commit, or the job would end as stuck.
    let in_flush = every_page(base().with(small), &[item("kept"), Send(100_000, String::new())]).page("http://a.test/0", [Hang]);
    vec![
        ("leasing", base().judge(|_, _| Judged::GrantAfter(3600 * SECOND))),
        ("pacing", every_answer(base(), &Answer::redirect(302, "/far")).with(|s| s.download_delay = 300 * SECOND)),
        ("waiting for a refresh", refreshing(base())),
        ("waiting for a delay", base().with(|s| s.download_delay = 300 * SECOND)),
        ("fetching", every_answer(base(), &Answer::hang())),
        ("retrying", every_answer(base(), &Answer::new(503, "").header("retry-after", "200"))),
        ("parsing", every_page(base(), &[item("lost"), Hang])),
        ("suspended in flush", in_flush),
        ("committing", committing(base().with(|s| s.spool_max_bytes = 1))),
        ("seeds suspended", Stand::new().start([Send(5000, "http://a.test/".to_owned())]).with(|s| s.download_delay = SECOND)),
        ("seeds hanging", Stand::new().start([follow("http://a.test/0"), Flush, Hang])),
    ]
}

/// The spool takes one group, and the sink nothing for the first five seconds.
fn committing(stand: Stand) -> Stand {
    let mut stand = every_page(stand, &[item("a")]);
    stand.sink_fault = Box::new(|call| {
        let after = Some(SECOND);
        (call <= 5).then(|| SinkAnswer::Retry { after, why: "not yet".to_owned() })
    });
    stand
}

pub(super) fn stopped(stand: Stand, at: Duration, press: impl Fn(&Desk) + 'static) -> (Outcome, Duration) {
    let done = stand.run_and(move |desk| async move {
        tokio::time::sleep(at).await;
        press(&desk);
    });
    let took = done.took - at.min(done.took);
    (done, took)
}

#[test]
fn a_stop_in_any_state_ends_in_time_with_the_books_right() {
    for (state, stand) in states() {
        let (done, took) = stopped(stand, SECOND, Desk::stop);
        println!("{state}: {took:?} {:?}", done.ended.books);
        done.assert_sound();
        assert!(took <= WHOLE, "{state}: {took:?}");
        assert_eq!((done.ended.reason.as_str(), done.ended.code), ("shutdown", 2), "{state}");
        assert!(done.ended.books.pending > 0 || state == "seeds hanging", "{state}: {:?}", done.ended.books);
        assert_eq!(done.said("signal closed"), ["signal closed shutdown"], "{state}");
        assert_eq!(done.said("idle").len(), 0, "{state}");
    }
}

#[test]
fn a_second_signal_ends_at_once_in_any_state() {
    for (state, stand) in states() {
        let (done, took) = stopped(stand, SECOND, |desk| {
            desk.stop();
            desk.kill();
        });
        println!("{state}: {took:?} {:?}", done.ended.books);
        done.assert_sound();
        assert!(took <= AT_ONCE + 100 * MILLI, "{state}: {took:?}");
        let spooled = done.ended.delivery.undelivered_records > 0;
        assert_eq!(done.ended.code, if spooled { 4 } else { 2 }, "{state}");
    }
}

#[test]
fn a_stop_at_any_moment_of_a_crawl_leaves_what_was_in_flight_pending() {
    for at in (0..40).map(|n| n * 53 * MILLI) {
        let stand = every_page(
            every_answer(Stand::new().start(pages()), &Answer::html("ok").after(90 * MILLI)),
            &[item("a"), Sleep(110 * MILLI), Flush, item("b")],
        )
        .with(|s| s.concurrent_requests = 2);
        let (done, took) = stopped(stand, at, Desk::stop);
        done.assert_sound();
        // Two thirds of a second is all that a request takes: nothing has to be cut off.
        assert!(took < SECOND, "{at:?}: {took:?}");
        let books = done.ended.books;
        assert_eq!(books.handled + books.pending, books.enqueued, "{at:?}");
        assert_eq!(done.items.len() as u64, 2 * books.handled, "{at:?}");
        if done.ended.reason == "shutdown" {
            assert_eq!(done.ended.code, 2);
        }
    }
}

#[test]
fn downloads_get_their_grace_and_then_are_cancelled_and_reported() {
    let stand = Stand::new()
        .start([follow("http://a.test/quick"), follow("http://a.test/slow")])
        .answers("http://a.test/quick", [Answer::html("ok").after(8 * SECOND)])
        .answers("http://a.test/slow", [Answer::html("ok").after(60 * SECOND)])
        .page("http://a.test/quick", [item("in time"), follow("http://a.test/child")]);
    let (done, took) = stopped(stand, SECOND, Desk::stop);
    done.assert_sound();
    assert!(took >= 10 * SECOND && took < 12 * SECOND, "{took:?}");
    assert_eq!(done.ids(), ["in time"]);
    assert_eq!((done.ended.books.handled, done.ended.books.pending), (1, 2), "the child waits for the next run");
    let cut: Vec<_> = done.reports.iter().filter(|(_, r)| r.path == "/slow").map(|(_, r)| (r.error, r.release)).collect();
    assert_eq!(cut, [(Some(crate::plane::ErrorKind::Other), true)]);
    let record = done.records_of("http://a.test/slow");
    assert_eq!(record, [(0, Some("DownloadCancelledError: the job stopped the request"))], "it was made");
}

#[test]
fn a_sink_that_takes_nothing_does_not_hold_the_end() {
    let slow = Answer::html("ok").after(400 * MILLI);
    let mut stand =
        every_page(every_answer(Stand::new().start(pages()), &slow), &[item("a")]).with(|s| s.concurrent_requests = 1);
    let dir = tempfile::TempDir::new().unwrap();
    stand.spool = Some(dir.path().join("spool"));
    let (done, took) = stopped(stand, SECOND, |desk| {
        desk.sink_open.store(false, Ordering::SeqCst);
        desk.stop();
    });
    assert!(took <= WHOLE, "{took:?}");
    assert_eq!(done.ended.imbalances, Vec::<String>::new());
    let delivery = &done.ended.delivery;
    assert_eq!(delivery.items, delivery.delivered + delivery.spooled);
    assert!(delivery.spooled > 0 && done.spool_left);
    assert_eq!(done.ended.code, 4, "records are left in the spool");
}

#[test]
fn a_second_signal_hurries_a_delivery_under_way() {
    let mut stand = every_page(Stand::new().start(pages()), &[item("a")]).with(|s| s.apcloudy_batch_size = 1_000);
    let dir = tempfile::TempDir::new().unwrap();
    stand.spool = Some(dir.path().join("spool"));
    let done = stand.run_and(|desk| async move {
        desk.sink_open.store(false, Ordering::SeqCst);
        tokio::time::sleep(SECOND).await;
        desk.stop();
        // Nothing is in flight any more: only the sink is waited for.
        tokio::time::sleep(SECOND).await;
        desk.kill();
    });
    assert!(done.took > 2 * SECOND && done.took <= 2 * SECOND + AT_ONCE + 100 * MILLI, "{:?}", done.took);
    let delivery = &done.ended.delivery;
    assert_eq!((delivery.items, delivery.spooled, done.ended.code), (PAGES, PAGES, 4));
    assert_eq!(done.ended.imbalances, Vec::<String>::new());
}

#[test]
fn limits_of_the_settings_end_a_job_by_their_name() {
    let base =
        || every_page(every_answer(Stand::new().start(pages()), &Answer::html("ok").after(SECOND)), &[item("a"), item("b")]);
    let one = |s: &mut crate::settings::Settings| s.concurrent_requests = 1;
    let table: Vec<(Stand, &str)> = vec![
        (base().with(one).with(|s| s.closespider_itemcount = 5), "closespider_itemcount"),
        (base().with(one).with(|s| s.closespider_pagecount = 3), "closespider_pagecount"),
        (every_page(base(), &[Panic]).with(one).with(|s| s.closespider_errorcount = 2), "closespider_errorcount"),
        (base().with(one).with(|s| s.closespider_timeout = 4 * SECOND), "closespider_timeout"),
    ];
    for (stand, reason) in table {
        let done = stand.run();
        done.assert_sound();
        assert_eq!((done.ended.reason.as_str(), done.ended.code), (reason, 0));
        let books = done.ended.books;
        assert!(books.pending > 0 && books.handled + books.failed >= 2, "{reason}: {books:?}");
        assert!(done.took < 7 * SECOND, "{reason}: {:?}", done.took);
    }
}

#[test]
fn a_spider_can_stop_its_job_with_a_reason_of_its_own() {
    let stand = every_answer(Stand::new().start(pages()), &Answer::html("ok").after(SECOND))
        .page("http://a.test/0", [item("last"), Stop("price_found")])
        .with(|s| s.concurrent_requests = 1);
    let done = stand.run();
    done.assert_sound();
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("price_found", 0));
    assert_eq!(done.ids(), ["last"]);
    assert_eq!(done.ended.stats["finish_reason"], "price_found");
}

#[test]
fn a_job_can_be_stopped_while_it_ends() {
    let most: Arc<std::sync::Mutex<Vec<Duration>>> = Arc::default();
    for at in [0, 1, 2, 5, 10, 11, 12] {
        let (done, took) = stopped(Stand::new().start([follow("http://a.test/")]), at * MILLI, |desk| {
            desk.stop();
            desk.stop();
            desk.kill();
        });
        done.assert_sound();
        most.lock().unwrap().push(took);
        assert!(took <= AT_ONCE + 100 * MILLI);
    }
}

#[test]
fn a_sink_that_hangs_holds_nothing_but_its_own_batch() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut stand = every_page(Stand::new().start(pages()), &[item("a")]).with(|s| s.apcloudy_batch_size = 2);
    stand.spool = Some(dir.path().join("spool"));
    stand.sink.block();
    let done = stand.run();
    assert_eq!(done.ended.imbalances, Vec::<String>::new());
    assert_eq!((done.ended.reason.as_str(), done.ended.books.handled), ("finished", PAGES));
    assert!(done.took <= WHOLE, "{:?}", done.took);
    let delivery = &done.ended.delivery;
    assert_eq!((delivery.items, delivery.spooled, done.ended.code), (PAGES, PAGES, 4));
    assert!(done.spool_left);
}

#[test]
fn a_sink_that_hangs_for_a_while_gets_everything() {
    let stand = every_page(Stand::new().start(pages()), &[item("a")]).with(|s| {
        s.download_delay = SECOND;
        s.apcloudy_batch_size = 2;
    });
    stand.sink.block();
    let sink = stand.sink.clone();
    let done = stand.run_and(|_| async move {
        tokio::time::sleep(5 * SECOND).await;
        assert_eq!((sink.calls(), sink.under_way()), (1, 1));
        sink.release();
    });
    done.assert_whole();
    assert_eq!(done.items.len() as u64, PAGES);
}

#[test]
fn a_sink_that_refuses_everything_leaves_the_crawl_alone_or_stops_it_with_a_reason_of_its_own() {
    for (on_fatal, reason) in [(OnFatal::Spool, "finished"), (OnFatal::Stop, "delivery_refused")] {
        let dir = tempfile::TempDir::new().unwrap();
        let mut stand = every_page(Stand::new().start(pages()), &[item("a")]).with(|s| {
            s.download_delay = SECOND;
            s.apcloudy_batch_size = 2;
        });
        stand.spool = Some(dir.path().join("spool"));
        stand.on_fatal = on_fatal;
        stand.sink_fault = Box::new(|_| Some(SinkAnswer::Fatal { why: "401: unknown key".to_owned() }));
        let done = stand.run();
        assert_eq!(done.ended.imbalances, Vec::<String>::new());
        assert_eq!((done.ended.reason.as_str(), done.ended.code), (reason, 4));
        assert_eq!(done.ended.stats["finish_reason"], reason);
        let books = done.ended.books;
        assert!(books.balances());
        assert_eq!(books.handled == PAGES, on_fatal == OnFatal::Spool, "{books:?}");
        assert_eq!(done.ended.note.is_some_and(|note| note.contains("401")), on_fatal == OnFatal::Stop);
        assert_eq!(done.ended.delivery.spooled, done.ended.delivery.items);
        assert!(done.spool_left);
    }
}

#[test]
fn a_plane_that_never_answers_again_holds_no_stop_up() {
    for (is_remote, second, limit) in [
        (true, None, WHOLE + SECOND),
        (false, None, WHOLE + SECOND),
        (true, Some(5 * SECOND), AT_ONCE + SECOND),
        (false, Some(5 * SECOND), AT_ONCE + SECOND),
    ] {
        let mut stand = every_answer(Stand::new().start(pages()), &Answer::html("ok").after(300 * MILLI))
            .with(|s| s.concurrent_requests_per_domain = 2)
            .page("http://a.test/1", [Sleep(900 * MILLI)]);
        stand.is_remote = is_remote;
        stand.leases = vec![rule("a.test", "shop")];
        stand.identities = Some(identities("shop", 20));
        stand.hangs_from = Some(SECOND);
        let done = stand.run_and(move |desk| async move {
            tokio::time::sleep(2 * SECOND).await;
            desk.stop();
            if let Some(later) = second {
                tokio::time::sleep(later).await;
                desk.kill();
            }
        });
        let since = done.took - 2 * SECOND - second.unwrap_or_default();
        assert!(since <= limit, "{is_remote} {second:?}: {since:?}");
        assert!(done.ended.books.balances() && done.ended.leases.balances(), "{:?}", done.ended);
        assert!(done.ended.books.pending > 0);
    }
}
