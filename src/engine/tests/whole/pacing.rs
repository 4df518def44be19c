//! Pacing by what hosts answer: Retry-After, the throttle, retries, over a whole engine on paused time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::fakes::Judged;
use super::script::follow;
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND};
use crate::settings::SlotLimits;
use crate::testkit::transport::{Answer, ScriptedTransport};

fn busy(status: u16, wait: &str) -> Answer {
    Answer::new(status, "").header("retry-after", wait)
}

fn gaps(times: &[Duration]) -> Vec<Duration> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn case_t01_retry_after() {
    let urls = ["sec", "date", "huge", "junk", "neg"].map(|path| format!("http://a.test/{path}"));
    let date = (jiff::Timestamp::now() + Duration::from_secs(3)).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let answers = [busy(429, "2"), busy(503, &date), busy(429, "86400"), busy(429, "soon"), busy(503, "-5")];
    let mut stand = Stand::new()
        .start(urls.iter().map(|url| follow(url)).chain([follow("http://a.test/late"), follow("http://b.test/")]))
        .with(|s| {
            s.retry_times = 2;
            s.retry_after_max = 5 * SECOND;
            s.concurrent_requests_per_domain = 5;
        });
    for (url, answer) in urls.iter().zip(answers) {
        stand = stand.answers(url, [answer, Answer::html("ok")]);
    }
    let done = stand.run();
    done.assert_whole();
    let twice: BTreeMap<&str, Duration> =
        urls.iter().map(|url| (url.as_str(), gaps(&done.times(&format!("GET {url}")))[0])).collect();
    assert_eq!(done.count("retry/count"), 5);
    // The whole host waits for the longest of them, cut to RETRY_AFTER_MAX; who asked for no time waits with it.
    for (url, gap) in twice {
        assert_eq!(gap, 5 * SECOND, "{url}");
    }
    assert_eq!(done.times("GET http://a.test/late"), [5 * SECOND], "also what was not under way");
    assert_eq!(done.times("GET http://b.test/"), [Duration::ZERO], "no other host does");
    assert!(done.count("retry/host_paused") >= 1);
}

#[test]
fn case_t01_each_way_of_asking_by_itself() {
    for (answer, least, most) in [
        (busy(429, "2"), 2_000, 2_000),
        (busy(503, "0"), 0, 1_000),
        (busy(429, "soon"), 0, 1_000),
        (busy(503, "-5"), 0, 1_000),
        (busy(404, "3"), 0, 0),
    ] {
        let done = Stand::new()
            .start([follow("http://a.test/")])
            .answers("http://a.test/", [answer, Answer::html("ok")])
            .with(|s| s.retry_backoff = SECOND)
            .run();
        for gap in gaps(&done.times("GET")) {
            assert!(gap >= least * MILLI && gap <= most * MILLI, "{gap:?} of {least}");
        }
    }
}

#[test]
fn a_host_that_asked_for_a_pause_is_left_alone_by_who_waited_for_a_lease_too() {
    // The second lease comes when the first answer has asked for a pause.
    let mut asks = 0;
    let done = Stand::new()
        .start([follow("http://a.test/1"), follow("http://a.test/2")])
        .answers("http://a.test/1", [busy(404, "4")])
        .judge(move |_, _| {
            asks += 1;
            if asks == 2 { Judged::GrantAfter(SECOND) } else { Judged::Grant }
        })
        .run();
    done.assert_whole();
    assert_eq!(done.times("GET http://a.test/2"), [4 * SECOND]);
    assert_eq!(done.granted.len(), 3, "the lease was given back meanwhile");
}

#[test]
fn case_t02_retry_count_off_by_one() {
    let url = "http://a.test/";
    let done = Stand::new().start([follow(url)]).answers(url, [Answer::new(500, "")]).with(|s| s.retry_times = 2).run();
    done.assert_whole();
    assert_eq!(done.asked.len(), 3, "one attempt and two retries");
    assert_eq!(done.said("failed").len(), 1);
    assert_eq!(done.said("page").len(), 0);
    for (key, count) in [
        ("retry/count", 2),
        ("retry/max_reached", 1),
        ("retry/reason_count/500 Internal Server Error", 2),
        ("downloader/response_status_count/500", 3),
        ("httperror/response_ignored_count", 1),
    ] {
        assert_eq!(done.count(key), count, "{key}");
    }
}

/// When a site was asked, and what it answered.
type Log = Vec<(Instant, u16)>;

/// A site that answers 429 in five milliseconds when it was asked less than 600 ms before, else 200; and what it answered.
fn impatient() -> (ScriptedTransport, Arc<Mutex<Log>>) {
    let log: Arc<Mutex<Log>> = Arc::default();
    let seen = log.clone();
    let wire = ScriptedTransport::with_default(move |_| {
        let (now, mut seen) = (Instant::now(), seen.lock().unwrap());
        let is_early = seen.last().is_some_and(|(last, _)| now - *last < 600 * MILLI);
        let status = if is_early { 429 } else { 200 };
        seen.push((now, status));
        Answer::new(status, "").after(5 * MILLI)
    });
    (wire, log)
}

fn throttled(pages: usize, randomize: bool) -> (Outcome, Log) {
    let (wire, log) = impatient();
    let mut stand = Stand::new().start((0..pages).map(|n| follow(&format!("http://a.test/{n}")))).with(|s| {
        s.autothrottle_enabled = true;
        s.autothrottle_start_delay = 200 * MILLI;
        s.autothrottle_max_delay = 2 * SECOND;
        s.randomize_download_delay = randomize;
        s.retry_times = 10;
    });
    stand.wire = wire;
    let done = stand.run();
    done.assert_whole();
    let log = log.lock().unwrap().clone();
    (done, log)
}

#[test]
fn case_p02_throttle_and_429() {
    for randomize in [false, true] {
        for pages in [20, 200] {
            let (done, log) = throttled(pages, randomize);
            assert_eq!(log.iter().filter(|(_, status)| *status == 200).count(), pages, "all pages are done");
            let half = &log[log.len() / 2..];
            let refused = half.iter().filter(|(_, status)| *status == 429).count();
            assert!(refused * 5 <= half.len(), "{refused} of {} were refused in the last half", half.len());
            assert!(done.count("autothrottle/raised") >= 1);
            if !randomize {
                // The gap after a refusal is never shorter than the one before it.
                for three in log.windows(3).filter(|three| three[1].1 != 200) {
                    let (before, after) = (three[1].0 - three[0].0, three[2].0 - three[1].0);
                    assert!(after + MILLI >= before, "{before:?}, then {after:?}");
                }
            }
        }
    }
}

#[test]
fn a_host_that_is_named_without_a_throttle_is_paced_by_its_delay_alone() {
    let limits = SlotLimits { delay: Some(300 * MILLI), throttle: Some(false), ..SlotLimits::default() };
    let urls = (0..4).map(|n| follow(&format!("http://a.test/{n}")));
    let done = Stand::new()
        .start(urls)
        .with(|s| {
            s.autothrottle_enabled = true;
            s.download_slots = [("a.test".to_owned(), limits)].into();
        })
        .run();
    done.assert_whole();
    assert_eq!(gaps(&done.times("GET")), [300 * MILLI; 3]);
}

#[test]
fn with_leases_asked_for_ahead_a_named_host_has_only_its_places_on_the_wire() {
    let limits = SlotLimits { concurrency: Some(2), ..SlotLimits::default() };
    let mut stand = Stand::new().start((0..30).map(|n| follow(&format!("http://a.test/{n}")))).with(|s| {
        s.download_slots = [("a.test".to_owned(), limits)].into();
    });
    for n in 0..30 {
        stand = stand.answers(&format!("http://a.test/{n}"), [Answer::html("ok").after(50 * MILLI)]);
    }
    stand.is_remote = true;
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.most_at_once, 2);
}
