//! Callbacks: marks and reports, panics, hangs, stalls, and what becomes of their lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::script::Do::{Bomb, Error, Flush, FlushWithin, Hang, Mark, Panic, Send, Sleep, Spin};
use super::script::{follow, item};
use super::stand::Stand;
use super::{MILLI, SECOND};
use crate::apcloudy::Answer as SinkAnswer;

const PAGE: &str = "http://a.test/page";

/// Reports are looked at four times a second and wait for others for a fifth of a second.
const LATE: Duration = Duration::from_millis(500);

#[test]
fn a_quick_callbacks_marks_ride_on_the_report_that_releases() {
    let done = Stand::new().start([follow(PAGE)]).page(PAGE, [Sleep(SECOND), Mark("captcha"), item("a")]).run();
    done.assert_whole();
    let [(at, report)] = &done.reports[..] else { panic!("{:?}", done.reports) };
    assert!(*at >= SECOND && *at < SECOND + LATE, "{at:?}");
    assert_eq!((report.markers.clone(), report.release, report.status), (vec!["captcha".to_owned()], true, Some(200)));
    assert_eq!(done.releases.len(), 0);
}

#[test]
fn a_slow_callbacks_report_goes_alone_after_report_hold_and_its_lease_when_it_ends() {
    let done = Stand::new().start([follow(PAGE)]).page(PAGE, [Sleep(5 * SECOND), Mark("late"), item("a")]).run();
    done.assert_whole();
    let [(at, report)] = &done.reports[..] else { panic!("{:?}", done.reports) };
    assert!(*at >= 2 * SECOND && *at < 2 * SECOND + LATE, "{at:?}");
    assert!(report.markers.is_empty() && !report.release);
    let released = done.times("release");
    assert!(released.len() == 1 && released[0] >= 5 * SECOND && released[0] < 5 * SECOND + 50 * MILLI, "{released:?}");
    assert_eq!(done.count("reporter/held_too_long"), 1);
    assert_eq!(done.ids(), ["a"]);
}

#[test]
fn a_lease_is_never_released_before_the_plane_has_its_report() {
    // The callback ends while its report still waits for others to go with it.
    for end in [2100, 2200, 2260, 2300, 2400, 2500] {
        let done =
            Stand::new().start([follow(PAGE)]).page(PAGE, [Sleep(end * MILLI)]).with(|s| s.report_flush = 10 * SECOND).run();
        done.assert_whole();
        assert_eq!(done.count("reporter/rejected"), 0, "{end}");
    }
}

#[test]
fn a_panic_in_a_callback_costs_only_its_own_effects() {
    let done = Stand::new()
        .start([follow(PAGE), follow("http://a.test/other")])
        .page(PAGE, [item("kept"), Flush, item("lost"), follow("http://a.test/never"), Panic])
        .page("http://a.test/other", [item("other")])
        .run();
    done.assert_whole();
    assert_eq!(done.ids(), ["kept", "other"]);
    assert_eq!(done.count("spider_exceptions/Panic"), 1);
    assert_eq!(done.count("engine/discarded_effects"), 2);
    assert_eq!((done.ended.books.handled, done.ended.books.failed), (1, 1));
    assert_eq!(done.count("engine/restarts/parser-0"), 0, "the parser lives on");
    assert!(done.said("signal error").iter().all(|line| line.contains("a scripted panic")), "{:?}", done.said("signal"));
    assert_eq!(done.said("signal error").len(), 1);
}

#[test]
fn a_flush_that_is_dropped_loses_nothing_and_goes_on() {
    let mut stand = Stand::new()
        .start([follow("http://a.test/first"), follow(PAGE)])
        .page("http://a.test/first", [item("first")])
        .page(PAGE, [Sleep(SECOND), item("a"), FlushWithin(10 * MILLI), item("b"), FlushWithin(10 * MILLI), item("c")])
        .with(|s| s.spool_max_bytes = 1);
    // The spool takes one group, and the sink nothing for some seconds.
    stand.sink_fault = Box::new(|call| {
        let fault = || SinkAnswer::Retry { after: Some(SECOND), why: "not yet".to_owned() };
        (call <= 4).then(fault)
    });
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.said("flush dropped").len(), 2);
    assert_eq!(done.ids(), ["a", "b", "c", "first"]);
    assert_eq!((done.ended.books.handled, done.ended.code), (2, 0), "{:?}", done.ended.imbalances);
}

#[test]
fn an_await_without_end_is_cut_off_at_callback_timeout() {
    let done = Stand::new()
        .start([follow(PAGE), follow("http://a.test/other")])
        .page(PAGE, [item("lost"), Hang])
        .page("http://a.test/other", [Sleep(50 * SECOND), Sleep(50 * SECOND), item("other")])
        .run();
    done.assert_whole();
    assert_eq!(done.ids(), ["other"]);
    assert_eq!(done.count("spider_exceptions/CallbackTimeout"), 1);
    let at = done.times("signal error");
    assert!(at[0] >= 60 * SECOND && at[0] < 61 * SECOND, "{at:?}");
}

#[test]
fn a_parser_that_dies_fails_one_callback_and_the_others_run_again_unless_they_committed() {
    // A drop that panics is outside the fence: it ends the parser's incarnation.
    let done = Stand::new()
        .start(["bomb", "sleeper", "committed", "late"].map(|name| follow(&format!("http://a.test/{name}"))))
        .page("http://a.test/bomb", [item("lost"), Bomb, Hang])
        .page("http://a.test/sleeper", [Sleep(30 * SECOND), Sleep(50 * SECOND), item("slept")])
        .page("http://a.test/committed", [item("kept"), Flush, Sleep(50 * SECOND), Sleep(50 * SECOND), item("lost")])
        .page("http://a.test/late", [follow("http://a.test/after")])
        .page("http://a.test/after", [item("after")])
        .with(|s| s.download_delay = 20 * SECOND)
        .run();
    done.assert_whole();
    assert_eq!(done.count("engine/restarts/parser-0"), 1, "{:?}", done.lines);
    assert_eq!(done.ids(), ["after", "kept", "slept"]);
    assert_eq!((done.ended.books.handled, done.ended.books.failed), (3, 2));
    assert_eq!(done.count("spider_exceptions/CallbackLost"), 1);
    assert_eq!(done.ended.code, 0);
}

#[test]
fn a_callback_that_holds_its_thread_is_abandoned_and_the_others_are_handled() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut stand = Stand::new()
        .start((0..20).map(|n| follow(&format!("http://a.test/{n}"))))
        .page("http://a.test/3", [item("lost"), Spin(stop.clone())])
        .with(|s| {
            s.parse_stall = SECOND;
            s.concurrent_requests_per_domain = 20;
            s.concurrent_requests = 20;
        });
    for n in (0..20).filter(|n| *n != 3) {
        stand = stand.page(&format!("http://a.test/{n}"), [item(&n.to_string())]);
    }
    stand.threads = true;
    let done = stand.run();
    stop.store(true, Ordering::SeqCst);
    done.assert_whole();
    assert_eq!(done.items.len(), 19);
    assert_eq!(done.count("spider_exceptions/CallbackStalled"), 1);
    assert_eq!((done.ended.books.handled, done.ended.books.failed), (19, 1));
    assert!(done.took < 20 * SECOND, "{:?}", done.took);
}

#[test]
fn a_start_whose_parser_is_replaced_goes_on_where_it_was() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut stand = Stand::new()
        .start([Send(2500, "http://a.test/".to_owned())])
        .page("http://a.test/3", [Spin(stop.clone())])
        .with(|s| s.parse_stall = SECOND);
    stand.threads = true;
    let done = stand.run();
    stop.store(true, Ordering::SeqCst);
    done.assert_whole();
    assert_eq!(done.asked.len(), 2500);
    assert_eq!(done.ended.books.enqueued, 2500);
    assert_eq!((done.ended.books.handled, done.ended.books.failed), (2499, 1));
    assert_eq!(done.count("dupefilter/filtered"), 0, "what was taken before is left out, not made again");
}

#[test]
fn a_start_that_fails_keeps_what_it_committed_and_ends_with_exit_3() {
    let done =
        Stand::new().start([follow(PAGE), Flush, follow("http://a.test/lost"), Error("no more")]).page(PAGE, [item("a")]).run();
    done.assert_sound();
    assert_eq!((done.ended.reason.as_str(), done.ended.code), ("start_failed", 3));
    assert!(done.ended.note.as_ref().is_some_and(|note| note.contains("no more")));
    assert_eq!(done.ids(), ["a"]);
    assert_eq!(done.ended.books.pending, 0);
    assert_eq!(done.said("GET"), [format!("GET {PAGE}")]);
}
