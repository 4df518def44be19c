//! Tests of a whole draft.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io;

use http::StatusCode;
use jiff::ToSpan as _;
use proptest::option;
use proptest::prelude::*;
use reqwest::ResponseBuilderExt as _;

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_789_547_400_000 + millis).unwrap()
}

fn build(draft: ReportDraft) -> Report {
    draft.build("lse_1", "/acquired?x=1").unwrap()
}

fn refusal(draft: ReportDraft) -> String {
    let error = draft.build("lse_1", "/acquired").unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)) && error.http_status() == 0, "{error}");
    error.to_string()
}

fn response(status: u16, url: &str, headers: &[(&str, &str)], body: &'static str) -> reqwest::Response {
    let mut response = http::Response::builder().status(status).url(url.parse().unwrap());
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body).unwrap().into()
}

#[test]
fn every_field_that_is_said_is_in_the_report() {
    let draft = ReportDraft::new()
        .report_id("id-1")
        .uri("https://h/a?secret=1")
        .method(http::Method::POST)
        .http_status(503)
        .business_code("E1")
        .error_kind(ErrorKind::Timeout)
        .marker("captcha_page")
        .markers(["empty_list", "login_redirect"])
        .outcome_hint("captcha")
        .latency(Duration::from_micros(1_500))
        .response_bytes(12)
        .started_at(at(0))
        .finished_at(at(900))
        .release();
    let shown = format!("{draft:?}");
    assert!(shown.contains("/a") && !["secret", "E1", "captcha_page"].iter().any(|hidden| shown.contains(hidden)), "{shown}");
    let report = build(draft);
    let expected = Report {
        report_id: "id-1".to_owned(),
        lease_id: "lse_1".to_owned(),
        uri: "/a".to_owned(),
        method: "POST".to_owned(),
        http_status: 503,
        business_code: "E1".to_owned(),
        error_kind: "timeout".to_owned(),
        markers: ["captcha_page", "empty_list", "login_redirect"].map(str::to_owned).to_vec(),
        outcome_hint: "captcha".to_owned(),
        latency_ms: 2,
        response_bytes: 12,
        started_at: at(0),
        finished_at: at(900),
        release: true,
    };
    assert_eq!(report, expected);
}

#[test]
fn a_report_has_an_id_of_its_own_that_is_made_once() {
    let draft = ReportDraft::status(200);
    let (first, second) = (build(draft.clone()), build(draft));
    assert_ne!(first.report_id, second.report_id);
    let id: Uuid = first.report_id.parse().unwrap();
    assert_eq!((first.report_id.len(), id.get_version_num()), (36, 4));
}

#[test]
fn b075_a_report_of_a_lease_without_a_uri_needs_one() {
    let error = ReportDraft::status(200).build("lse_1", "").unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)) && error.to_string().contains("needs a uri"), "{error}");
    assert!(ReportDraft::status(200).uri("").build("lse_1", "/acquired").is_err(), "an empty one was said");
    assert_eq!(ReportDraft::status(200).uri("/x?y").build("lse_1", "").unwrap().uri, "/x");
    assert_eq!(ReportDraft::status(200).build("lse_1", "https://h/acquired?x=1").unwrap().uri, "/acquired");
}

#[test]
fn b076_the_uri_of_a_report_is_a_path() {
    assert_eq!(build(ReportDraft::status(200)).uri, "/acquired");
    assert_eq!(build(ReportDraft::status(200).uri("https://h/x/y?q=1#f")).uri, "/x/y");
    assert_eq!(build(ReportDraft::status(200).uri("x".repeat(5001))).uri.len(), 2048);
}

#[test]
fn b077_a_business_code_is_a_text_or_a_number() {
    assert_eq!(build(ReportDraft::status(200).business_code(0)).business_code, "0");
    assert_eq!(build(ReportDraft::status(200).business_code(10001)).business_code, "10001");
    assert_eq!(build(ReportDraft::status(200).business_code("A-1".to_owned())).business_code, "A-1");
}

#[test]
fn b078_times_follow_from_what_is_said() {
    let report = build(ReportDraft::status(200).latency(Duration::from_millis(250)).finished_at(at(0)));
    assert_eq!((report.latency_ms, report.started_at), (250, at(-250)));

    let report = build(ReportDraft::status(200).started_at(at(0)).finished_at(at(1500)));
    assert_eq!(report.latency_ms, 1500);

    let before = Timestamp::now();
    let report = build(ReportDraft::status(200));
    assert_eq!((report.started_at, report.latency_ms), (report.finished_at, 0));
    assert!((before..=Timestamp::now()).contains(&report.finished_at));

    let report = build(ReportDraft::status(200).latency(Duration::from_secs(9)).started_at(at(0)).finished_at(at(1500)));
    assert_eq!((report.latency_ms, report.started_at), (9000, at(0)), "what was said is kept although it disagrees");

    for (micros, rounded) in [(1_499, 1), (1_500, 2), (499, 0)] {
        let finished = at(0) + micros.microseconds();
        assert_eq!(build(ReportDraft::status(200).started_at(at(0)).finished_at(finished)).latency_ms, rounded);
    }
}

#[tokio::test(start_paused = true)]
async fn b078_a_stopwatch_gives_all_three_times() {
    let stopwatch = Stopwatch::start();
    tokio::time::sleep(Duration::from_millis(1234)).await;
    let draft = ReportDraft::status(200).timed(stopwatch);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let report = build(draft.clone());
    assert_eq!(report.latency_ms, 1234, "what comes after the body does not count");
    assert_eq!(report.finished_at.duration_since(report.started_at), SignedDuration::from_millis(1234));
    assert!(report.finished_at <= Timestamp::now());

    let report = build(draft.finished_at(at(0)).latency(Duration::from_millis(7)));
    assert_eq!((report.started_at, report.finished_at, report.latency_ms), (at(-1234), at(0), 7));

    let earlier = std::time::Instant::now().checked_sub(Duration::from_millis(50)).unwrap();
    assert!(Stopwatch::from(earlier).elapsed() >= Duration::from_millis(50));
}

#[test]
fn a_clock_that_was_set_back_spoils_no_report() {
    let ahead = Timestamp::now() + 2.hours();
    let report = build(ReportDraft::status(200).started_at(ahead));
    assert_eq!((report.started_at, report.finished_at, report.latency_ms), (ahead, ahead, 0));
    let report = build(ReportDraft::status(200).started_at(ahead).timed(Stopwatch::start()));
    assert_eq!(report.finished_at, ahead);

    // From before the calendar of most computers to now: more milliseconds than the wire has room for.
    let report = build(ReportDraft::status(200).started_at(Timestamp::UNIX_EPOCH));
    assert_eq!(report.latency_ms, i32::MAX);

    assert!(refusal(ReportDraft::status(200).started_at(at(1)).finished_at(at(0))).contains("finished_at"));
    assert!(refusal(ReportDraft::status(200).latency(Duration::MAX)).contains("latency"));
    assert!(refusal(ReportDraft::status(200).latency(Duration::from_millis(2_147_483_648))).contains("2147483648"));
    let report = build(ReportDraft::status(200).latency(Duration::from_millis(2_147_483_647)));
    assert_eq!(report.latency_ms, i32::MAX);
}

#[test]
fn b079_a_response_gives_status_path_and_length() {
    let headers = [("content-length", "21")];
    let report = build(ReportDraft::response(&response(200, "https://h/final/p?sig=1", &headers, "")).method("GET"));
    assert_eq!((report.http_status, report.uri.as_str(), report.method.as_str()), (200, "/final/p", "GET"));
    assert_eq!((report.response_bytes, report.error_kind.as_str()), (21, ""));

    let read = ReportDraft::response(&response(200, "https://h", &headers, "")).response_bytes(5);
    assert_eq!((build(read.clone()).response_bytes, build(read).uri), (5, "/".to_owned()), "the body as it was read");
    for (length, bytes) in [("", 0), ("+5", 0), ("5, 5", 0), ("0x5", 0), (" 7 ", 7), ("99999999999999999999", 0)] {
        let told = response(200, "http://h/", &[("content-length", length)], "");
        assert_eq!(build(ReportDraft::from(&told)).response_bytes, bytes, "{length:?}");
    }
    assert_eq!(build(ReportDraft::response(&response(200, "http://h/", &[], "body"))).response_bytes, 0);
}

#[test]
fn b079_407_is_the_proxys() {
    let told = response(407, "http://h/p", &[], "");
    for draft in [
        ReportDraft::response(&told),
        ReportDraft::status(407),
        ReportDraft::from(407),
        ReportDraft::from(StatusCode::PROXY_AUTHENTICATION_REQUIRED),
        ReportDraft::head(StatusCode::PROXY_AUTHENTICATION_REQUIRED, &http::HeaderMap::new()),
    ] {
        let report = build(draft.clone());
        assert_eq!((report.http_status, report.error_kind.as_str()), (407, "proxy_auth"));
        assert_eq!(build(draft.clone().error_kind(ErrorKind::Other)).error_kind, "other", "what is said wins");
        assert_eq!(build(draft.without_error_kind()).error_kind, "");
    }
    assert_eq!(build(ReportDraft::new().http_status(407)).error_kind, "");
}

#[test]
fn b080_a_bad_status_is_a_response() {
    for (status, kind) in [(407, "proxy_auth"), (500, ""), (404, "")] {
        let error = response(status, "http://h/p?sig=1", &[], "").error_for_status().unwrap_err();
        let report = build(ReportDraft::from(&error));
        assert_eq!((report.http_status, report.error_kind.as_str(), report.uri.as_str()), (i32::from(status), kind, "/p"));

        let wrapped = io::Error::other(io::Error::other(error));
        let report = build(ReportDraft::error(&wrapped));
        assert_eq!((report.http_status, report.error_kind.as_str(), report.uri.as_str()), (i32::from(status), kind, "/p"));
    }
}

#[test]
fn b080_a_failure_has_a_kind_and_no_status() {
    let report = build(ReportDraft::error(&io::Error::from(io::ErrorKind::TimedOut)).uri("/given?x").method("GET"));
    assert_eq!((report.http_status, report.error_kind.as_str()), (0, "timeout"));
    assert_eq!((report.uri.as_str(), report.method.as_str()), ("/given", "GET"));

    let report = build(ReportDraft::error(&io::Error::from(io::ErrorKind::ConnectionReset)));
    assert_eq!((report.error_kind.as_str(), report.uri.as_str()), ("conn_reset", "/acquired"));
    assert_eq!(build(ReportDraft::from(ErrorKind::Dns)).error_kind, "dns");
}

#[tokio::test]
async fn b080_a_refused_connection_is_reported_with_its_path() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let error = client.get(format!("http://{gone}/p/q?sig=1")).send().await.unwrap_err();
    let report = build(ReportDraft::from(&error).method("GET"));
    assert_eq!((report.http_status, report.error_kind.as_str()), (0, "conn_refused"));
    assert_eq!((report.uri.as_str(), report.method.as_str()), ("/p/q", "GET"));
}

#[tokio::test]
async fn b080_a_read_timeout_is_reported_under_the_uri_that_is_given() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = reqwest::Client::builder().no_proxy().read_timeout(Duration::from_millis(50)).build().unwrap();
    let error = client.get(format!("http://{}/p", silent.local_addr().unwrap())).send().await.unwrap_err();
    let report = build(ReportDraft::error(&error).uri("/given?x=1"));
    assert_eq!((report.http_status, report.error_kind.as_str(), report.uri.as_str()), (0, "timeout", "/given"));
}

#[test]
fn a_field_out_of_bounds_is_named() {
    let long = |length: usize| "x".repeat(length);
    let draft = || ReportDraft::status(200);
    for (draft, field) in [
        (draft().report_id(""), "report_id"),
        (draft().report_id(long(65)), "report_id"),
        (draft().report_id("a b"), "report_id"),
        (draft().report_id("é"), "report_id"),
        (draft().method(long(17)), "method"),
        (draft().http_status(1000), "http_status"),
        (draft().business_code(long(65)), "business_code"),
        (draft().marker(""), "marker"),
        (draft().marker(long(65)), "marker"),
        (draft().markers(vec!["m"; 33]), "marker"),
        (draft().outcome_hint(long(33)), "outcome_hint"),
    ] {
        let text = refusal(draft);
        assert!(text.contains(field), "{field}: {text}");
    }
    assert!(draft().build("", "/").unwrap_err().to_string().contains("lease_id"));
    assert!(draft().build(&long(129), "/").unwrap_err().to_string().contains("lease_id"));

    let most = draft()
        .report_id("Az9_.:-".repeat(9))
        .method("é".repeat(16))
        .http_status(999)
        .business_code(long(64))
        .markers(vec!["é".repeat(64); 32])
        .outcome_hint(long(32))
        .response_bytes(u64::MAX);
    assert_eq!(most.build(&long(128), "/").unwrap().response_bytes, i64::MAX);
}

proptest! {
    #[test]
    fn any_uri_gives_a_path_or_an_error(uri in ".{0,80}", acquired in ".{0,80}", is_said in any::<bool>()) {
        let draft = if is_said { ReportDraft::status(200).uri(&uri) } else { ReportDraft::status(200) };
        match draft.build("lse_1", &acquired) {
            Ok(report) => {
                prop_assert!((1..=2048).contains(&report.uri.chars().count()));
                prop_assert!(!report.uri.contains(['?', '#']));
            }
            Err(error) => {
                let used = if is_said { &uri } else { &acquired };
                prop_assert!(used.is_empty() && error.to_string().contains("uri"), "{}", error);
            }
        }
    }

    #[test]
    fn any_times_are_in_order_or_an_error(
        started in option::of(any_time()),
        finished in option::of(any_time()),
        latency in option::of((any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos))),
        elapsed in option::of(any::<Duration>()),
        at in any_time(),
    ) {
        let mut draft = ReportDraft::status(200);
        (draft.started_at, draft.finished_at, draft.latency) = (started, finished, latency);
        draft.reading = elapsed.map(|elapsed| stopwatch::Reading { at, elapsed });
        match draft.build("lse_1", "/") {
            Ok(report) => {
                prop_assert!(report.started_at <= report.finished_at && report.latency_ms >= 0);
                prop_assert!(started.is_none_or(|started| started == report.started_at));
                prop_assert!(finished.is_none_or(|finished| finished == report.finished_at));
            }
            Err(error) => {
                let is_reversed = started.zip(finished).is_some_and(|(started, finished)| started > finished);
                let is_long = latency.is_some_and(|latency| rounded_ms(latency).is_none());
                prop_assert!(is_reversed || is_long, "{}", error);
            }
        }
    }
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    let whole = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
    prop_oneof![whole, 1_700_000_000_i64..1_800_000_000].prop_map(|second| Timestamp::from_second(second).unwrap())
}
