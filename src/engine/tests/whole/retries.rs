//! Retries: how often, when, in which place of the queue, under which lease, with which records.

use std::time::Duration;

use super::script::{follow, make};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND};
use crate::api::failure::FailureKind;
use crate::api::middleware::{Attempting, BeforeSend, Installed, Middleware};
use crate::downloader::transport::{BodyFlags, Outgoing, Reply};
use crate::testkit::transport::Answer;

const PAGE: &str = "http://a.test/page";

/// Answers everything itself, with a status that is retried.
struct Busy;

impl Middleware for Busy {
    async fn before_send(&self, _: &mut Outgoing, _: Attempting<'_>) -> BeforeSend {
        BeforeSend::Answer(Box::new(Reply {
            status: http::StatusCode::SERVICE_UNAVAILABLE,
            version: http::Version::HTTP_11,
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::new(),
            wire_bytes: 0,
            flags: BodyFlags::default(),
        }))
    }
}

#[test]
fn the_answer_of_a_middleware_is_retried_no_oftener_than_that_of_a_site() {
    let mut stand = Stand::new().start([follow(PAGE)]);
    stand.middlewares = vec![Installed::new("busy", 500, Busy)];
    let done = stand.run();
    done.assert_whole();
    assert_eq!((done.asked.len(), done.count("retry/count"), done.count("retry/max_reached")), (0, 2, 1));
    assert_eq!(done.ended.books.failed, 1);
}

fn dead(times: u32, own: Option<u32>, answer: Answer) -> Outcome {
    let start = make(PAGE, |request| {
        if let Some(own) = own {
            request.retries(own);
        }
    });
    Stand::new().start([start]).answers(PAGE, [answer]).with(|s| s.retry_times = times).run()
}

#[test]
fn a_request_is_attempted_once_more_than_retry_times_allows() {
    for (times, own, attempts) in [(2, None, 3), (0, None, 1), (1, None, 2), (2, Some(5), 6), (2, Some(0), 1)] {
        let done = dead(times, own, Answer::fault(FailureKind::Lost));
        done.assert_whole();
        assert_eq!(done.asked.len(), attempts, "{times} {own:?}");
        assert_eq!(done.said("failed"), [format!("failed lost - {PAGE} x{attempts}")]);
        assert_eq!(done.records_of(PAGE).len(), attempts, "a record for each failed attempt");
        assert_eq!(done.granted.len(), attempts, "a lease for each attempt");
        assert_eq!(done.count("retry/count"), i64::try_from(attempts).unwrap() - 1);
        assert_eq!(done.count("retry/max_reached"), 1);
        assert_eq!(done.ended.code, 3, "nothing could be reached");
    }
}

#[test]
fn a_status_is_retried_and_the_last_answer_goes_to_failed_with_one_record() {
    let done = dead(2, None, Answer::new(503, "later"));
    done.assert_whole();
    assert_eq!(done.asked.len(), 3);
    assert_eq!(done.said("failed"), [format!("failed http_status 503 {PAGE} x3")]);
    assert_eq!(done.records_of(PAGE), [(503, None)], "an answer leaves a record when the request ends with it");
    assert!(done.reports.iter().all(|(_, r)| r.status == Some(503) && r.error.is_none() && r.release));
    assert_eq!(done.count("retry/reason_count/503 Service Unavailable"), 2);
    assert_eq!(done.ended.code, 0, "the site answered");
}

#[test]
fn what_another_attempt_cannot_cure_is_not_repeated() {
    for answer in [Answer::new(404, ""), Answer::fault(FailureKind::TooLarge), Answer::fault(FailureKind::Decode)] {
        let done = dead(2, None, answer);
        done.assert_whole();
        assert_eq!(done.asked.len(), 1);
        assert_eq!(done.count("retry/count"), 0);
    }
}

#[test]
fn the_back_off_doubles_and_stays_below_its_bound() {
    let done = Stand::new()
        .start([follow(PAGE)])
        .answers(PAGE, [Answer::fault(FailureKind::Refused)])
        .with(|s| {
            s.retry_times = 8;
            s.retry_backoff = SECOND;
            s.retry_backoff_max = 20 * SECOND;
        })
        .run();
    done.assert_whole();
    let times = done.times("GET");
    assert_eq!(times.len(), 9);
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (n, gap) in gaps.iter().enumerate() {
        let bound = SECOND * 2_u32.pow(u32::try_from(n).unwrap());
        assert!(*gap <= bound.min(20 * SECOND) + 5 * MILLI, "gap {n}: {gap:?}");
    }
    assert!(gaps.iter().sum::<Duration>() > 5 * SECOND, "the waits are drawn, not skipped: {gaps:?}");
}

#[test]
fn a_retry_after_is_waited_for_to_the_millisecond() {
    let busy = || Answer::new(503, "").header("retry-after", "7");
    let done = Stand::new()
        .start([follow(PAGE), follow("http://a.test/other")])
        .answers(PAGE, [busy(), busy(), Answer::html("ok")])
        .run();
    done.assert_whole();
    let times = done.times(&format!("GET {PAGE}"));
    assert_eq!(times.iter().map(Duration::as_millis).collect::<Vec<_>>(), [0, 7000, 14_000]);
    assert_eq!(done.times("GET http://a.test/other"), [Duration::ZERO], "it was under way already");
    let asked: Vec<_> = done.reports.iter().filter(|(_, r)| r.path == "/page").map(|(_, r)| r.retry_after).collect();
    assert_eq!(asked, [Some(7 * SECOND), Some(7 * SECOND), None]);
}

#[test]
fn a_retry_goes_behind_what_is_queued_by_its_priority() {
    let rest = ["http://a.test/b", "http://a.test/c", "http://a.test/d"];
    let run = |adjust| {
        Stand::new()
            .start([PAGE].iter().chain(&rest).map(|url| follow(url)))
            .answers(PAGE, [Answer::fault(FailureKind::Lost), Answer::html("ok")])
            .with(|s| {
                s.concurrent_requests = 1;
                s.retry_priority_adjust = adjust;
            })
            .run()
    };
    let place = |done: &Outcome| done.said("GET").iter().rposition(|line| line.ends_with("/page"));
    let (behind, before) = (run(-1), run(1));
    behind.assert_whole();
    before.assert_whole();
    assert_eq!(place(&behind), Some(4));
    assert!(place(&before) < Some(4), "{:?}", before.said("GET"));
}

#[test]
fn a_timeout_is_an_attempt_with_its_time_and_its_class() {
    let done = Stand::new().start([follow(PAGE)]).answers(PAGE, [Answer::hang(), Answer::html("ok")]).run();
    done.assert_whole();
    assert_eq!(done.times("GET").iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 180]);
    let (_, first) = &done.reports[0];
    assert_eq!((first.status, first.error, first.latency), (None, Some(crate::plane::ErrorKind::Timeout), 180 * SECOND));
    assert_eq!(done.records_of(PAGE), [(0, Some("DownloadTimeoutError: scripted timeout")), (200, None)]);
}

#[test]
fn a_lease_that_cannot_be_renewed_ends_its_attempt_as_a_timeout_and_is_repeated_under_another() {
    let slow = || Answer::html("at last").after(400 * SECOND);
    for (answers, failed) in [(vec![slow(), Answer::html("ok")], false), (vec![slow()], true)] {
        let mut stand = Stand::new().start([follow(PAGE)]).answers(PAGE, answers).with(|s| s.download_timeout = 600 * SECOND);
        stand.renew_fails = true;
        let done = stand.run();
        done.assert_whole();
        let attempts = if failed { 3 } else { 2 };
        assert_eq!((done.asked.len(), done.granted.len()), (attempts, attempts));
        let (at, first) = &done.reports[0];
        assert_eq!((first.error, first.release), (Some(crate::plane::ErrorKind::Timeout), true));
        assert!(*at >= 225 * SECOND && *at < 226 * SECOND, "{at:?}");
        assert!(done.times("GET")[1] >= *at + 800 * MILLI);
        let (status, error) = done.records_of(PAGE)[0];
        assert!(status == 0 && error.unwrap().contains("could not be renewed"), "{error:?}");
        assert_eq!(done.records_of(PAGE).len(), attempts);
        let told = format!("failed lease_lost - {PAGE} x3");
        assert_eq!(done.said("failed"), if failed { vec![told.as_str()] } else { vec![] });
    }
}

#[test]
fn a_download_that_outlives_its_lease_keeps_it_alive() {
    let done = Stand::new()
        .start([follow(PAGE)])
        .answers(PAGE, [Answer::html("at last").after(400 * SECOND)])
        .with(|s| s.download_timeout = 600 * SECOND)
        .run();
    done.assert_whole();
    assert_eq!((done.granted.len(), done.ledger.expired), (1, 0));
    assert!(done.count("lease/renewed") >= 1);
}

#[test]
fn a_crawl_that_cannot_send_anything_gives_up() {
    let done = Stand::new().start([follow("mailto:shop@a.test")]).run();
    done.assert_whole();
    assert_eq!((done.ended.books.failed, done.asked.len()), (1, 0));
    assert_eq!((done.ended.code, done.ended.note.as_deref()), (3, Some("no page could be fetched")));
}
