//! Calls against a scripted server, on the paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod schedule;

use std::io;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::spinneret::messages::{
    AcquireBatchRequest, AcquireRequest, GetConfigRequest, ReleaseRequest, RenewRequest, WatchConfigRequest, WatchItem,
};
use crate::spinneret::testing::{Script, Step};

const MS: Duration = Duration::from_millis(1);

fn wire(script: &Arc<Script>) -> Wire {
    Wire::new(Arc::clone(script) as Arc<dyn Transport>, Timeouts::default(), RetryPolicy::default())
}

fn acquire() -> AcquireRequest {
    AcquireRequest::new("shop", "web").uri("/search")
}

fn release() -> ReleaseRequest {
    ReleaseRequest { lease_id: "lse_1".to_owned() }
}

fn config() -> GetConfigRequest {
    GetConfigRequest { namespace: String::new(), group: "g".to_owned(), key: "k".to_owned() }
}

const fn refuse(status: u16, code: &'static str, reason: &'static str, hint: Option<u64>) -> Step {
    Step::Refuse { status, code, reason, hint }
}

/// The waits between the attempts so far.
fn waits(script: &Script) -> Vec<Duration> {
    let seen = script.seen();
    seen.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

/// Waits are drawn from their range, and the clock counts whole milliseconds.
fn is_within(wait: Duration, low: u64, high: u64) -> bool {
    (MS * u32::try_from(low).unwrap()..=MS * u32::try_from(high + 2).unwrap()).contains(&wait)
}

#[tokio::test(start_paused = true)]
async fn b012_a_wait_for_a_lease_makes_the_limit_of_the_answer_longer() {
    let script = Script::new();
    wire(&script).call(&acquire().wait(1_500 * MS)).await.unwrap();
    wire(&script).call(&AcquireBatchRequest { each: acquire().wait(5_000 * MS), count: 3 }).await.unwrap();
    wire(&script).call(&release()).await.unwrap();
    let limits: Vec<Duration> = script.seen().iter().map(|seen| seen.read_timeout).collect();
    assert_eq!(limits, [11_500 * MS, 15_000 * MS, 10_000 * MS]);
    assert_eq!(Timeouts::default().connect, 3_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn b013_a_long_poll_has_a_limit_of_its_own() {
    for (timeout_ms, limit) in [(0, 35_000), (1_000, 6_000), (20_000, 25_000), (60_000, 65_000)] {
        let script = Script::new();
        let items = vec![WatchItem { group: "g".to_owned(), key: "k".to_owned(), version: 3 }];
        wire(&script).call(&WatchConfigRequest { namespace: String::new(), items, timeout_ms }).await.unwrap();
        let seen = &script.seen()[0];
        assert_eq!(seen.read_timeout, MS * limit, "{timeout_ms}");
        assert_eq!(seen.body.get("timeout_ms").map_or(0, |sent| sent.as_i64().unwrap()), i64::from(timeout_ms));
    }
}

#[tokio::test(start_paused = true)]
async fn b038_what_a_caller_must_decide_is_asked_once() {
    for (status, code, reason) in [
        (429, "resource_exhausted", "no_identity_available"),
        (503, "unavailable", "circuit_open"),
        (503, "unavailable", "site_paused"),
        (401, "unauthenticated", "token_invalid"),
        (403, "permission_denied", "scope_missing"),
        (400, "invalid_argument", "site_unknown"),
    ] {
        let script = Script::new();
        script.always(Procedure::Acquire, refuse(status, code, reason, Some(50)));
        let error = wire(&script).call(&acquire()).await.unwrap_err();
        assert_eq!((error.http_status(), error.reason(), error.code().as_str()), (status, reason, code));
        assert_eq!(script.seen().len(), 1, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn b039_an_acquire_of_which_nothing_was_sent_is_made_again() {
    let script = Script::new();
    script
        .next(Procedure::Acquire, Step::Fault(ErrorKind::ConnRefused, Phase::Unsent))
        .next(Procedure::Acquire, Step::Fault(ErrorKind::Timeout, Phase::Unsent));
    let answer = wire(&script).call(&acquire()).await.unwrap();
    assert_eq!((answer.lease.lease_id.as_str(), script.seen().len()), ("lse_1", 3));
    let waits = waits(&script);
    assert!(is_within(waits[0], 50, 100) && is_within(waits[1], 100, 200), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn b040_an_acquire_without_an_answer_is_not_made_again() {
    let script = Script::new();
    script.always(Procedure::Acquire, Step::Hang).always(Procedure::AcquireBatch, Step::Hang);
    let error = wire(&script).call(&acquire()).await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error}");
    assert_eq!((error.error_kind(), error.reason(), error.http_status()), (Some(ErrorKind::Timeout), "transport", 0));
    wire(&script).call(&AcquireBatchRequest { each: acquire(), count: 2 }).await.unwrap_err();
    assert_eq!(script.seen().len(), 2);
}

/// Fails with a cause.
#[derive(Debug)]
struct Broken;

impl Transport for Broken {
    fn send(&self, _: Attempt) -> futures_util::future::BoxFuture<'_, Result<Reply, Fault>> {
        let source: Arc<dyn std::error::Error + Send + Sync> = Arc::new(io::Error::other("the cause"));
        let fault =
            Fault { kind: ErrorKind::Timeout, phase: Phase::Ambiguous, message: "words".to_owned(), source: Some(source) };
        Box::pin(async { Err(fault) })
    }
}

#[tokio::test(start_paused = true)]
async fn b040_the_cause_of_a_failure_is_kept() {
    let wire = Wire::new(Arc::new(Broken), Timeouts::default(), RetryPolicy::default());
    let error = wire.call(&acquire()).await.unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the cause");
    assert!(error.to_string().contains("LeaseService/Acquire: words"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn b041_a_server_that_rebuilds_is_asked_again() {
    let script = Script::new();
    script.next(Procedure::Acquire, refuse(503, "unavailable", "rebuilding", Some(1)));
    wire(&script).call(&acquire()).await.unwrap();
    assert_eq!(script.seen().len(), 2);
    assert!(is_within(waits(&script)[0], 50, 100), "a hint that is shorter than the wait changes nothing");
}

#[tokio::test(start_paused = true)]
async fn b042_overloaded_is_retried_after_its_hint() {
    for reason in ["overloaded", "internal", ""] {
        let script = Script::new();
        script.next(Procedure::Acquire, refuse(503, "unavailable", reason, Some(150)));
        wire(&script).call(&acquire()).await.unwrap();
        assert_eq!(script.seen().len(), 2);
        assert!(is_within(waits(&script)[0], 150, 150), "{reason}: {:?}", waits(&script));
    }
}

#[tokio::test(start_paused = true)]
async fn b043_a_page_of_something_in_between_ends_an_acquire() {
    for status in [429, 502, 503, 504] {
        let script = Script::new();
        script.always(Procedure::Acquire, Step::Bare { status, body: "<html>busy</html>" });
        let error = wire(&script).call(&acquire()).await.unwrap_err();
        assert_eq!((error.http_status(), script.seen().len()), (status, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn b044_a_release_that_is_reset_is_made_three_times() {
    let script = Script::new();
    script.always(Procedure::Release, Step::Fault(ErrorKind::ConnReset, Phase::Ambiguous));
    let error = wire(&script).call(&release()).await.unwrap_err();
    assert_eq!((error.error_kind(), script.seen().len()), (Some(ErrorKind::ConnReset), 3));
}

#[tokio::test(start_paused = true)]
async fn b045_a_reading_call_is_made_again_after_a_page_of_something_in_between() {
    for status in [429, 502, 503, 504] {
        let script = Script::new();
        script
            .next(Procedure::GetConfig, Step::Bare { status, body: "" })
            .next(Procedure::GetConfig, Step::Answer(json!({"item": {"group": "g", "key": "k"}})));
        assert_eq!(wire(&script).call(&config()).await.unwrap().item.key, "k");
        assert_eq!(script.seen().len(), 2);
    }
    for status in [400, 401, 403, 404, 418, 500] {
        let script = Script::new();
        script.always(Procedure::GetConfig, Step::Bare { status, body: "" });
        wire(&script).call(&config()).await.unwrap_err();
        assert_eq!(script.seen().len(), 1, "{status}");
    }
}

fn renew() -> RenewRequest {
    RenewRequest { lease_id: "lse_1".to_owned(), extend_ms: 0 }
}

#[tokio::test(start_paused = true)]
async fn b046_a_hint_is_waited_for_up_to_its_limit() {
    for (hint, attempts) in [(60_000, 1), (5_001, 1), (5_000, 3)] {
        let script = Script::new();
        script.always(Procedure::Renew, refuse(503, "unavailable", "overloaded", Some(hint)));
        let begin = Instant::now();
        let error = wire(&script).call(&renew()).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_millis(hint)));
        assert_eq!(script.seen().len(), attempts, "{hint}");
        let waited = if attempts > 1 { 10_000 * MS } else { Duration::ZERO };
        assert_eq!(begin.elapsed(), waited, "{hint}");
    }
}

#[tokio::test(start_paused = true)]
async fn b192_a_hint_that_is_longer_than_the_wait_is_the_wait() {
    let script = Script::new();
    script.next(Procedure::Renew, refuse(503, "unavailable", "internal", Some(1_500)));
    wire(&script).call(&renew()).await.unwrap();
    assert_eq!(waits(&script), [1_500 * MS]);
}

#[tokio::test(start_paused = true)]
async fn b182_a_hint_of_ten_minutes_is_given_to_the_caller_at_once() {
    let script = Script::new();
    script.always(Procedure::Renew, refuse(503, "unavailable", "overloaded", Some(600_000)));
    let begin = Instant::now();
    let error = wire(&script).call(&renew()).await.unwrap_err();
    assert_eq!((error.retry_after(), script.seen().len()), (Some(600_000 * MS), 1));
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn b047_without_retries_and_after_a_proxys_refusal_there_is_one_attempt() {
    let script = Script::new();
    script.always(Procedure::Release, Step::Fault(ErrorKind::ConnRefused, Phase::Unsent));
    wire(&script).call_once(&release()).await.unwrap_err();
    let never = Wire::new(Arc::clone(&script) as Arc<dyn Transport>, Timeouts::default(), RetryPolicy::NO_RETRY);
    never.call(&release()).await.unwrap_err();
    assert_eq!(script.seen().len(), 2);
    script.always(Procedure::Release, Step::Fault(ErrorKind::ProxyAuth, Phase::Permanent));
    let error = wire(&script).call(&release()).await.unwrap_err();
    assert_eq!((error.error_kind(), script.seen().len()), (Some(ErrorKind::ProxyAuth), 3));
}

#[tokio::test(start_paused = true)]
async fn b049_other_codes_are_not_made_again() {
    for (status, code) in [
        (500, "internal"),
        (429, "resource_exhausted"),
        (504, "deadline_exceeded"),
        (409, "aborted"),
        (500, "unknown"),
        (500, "data_loss"),
        (501, "unimplemented"),
        (499, "canceled"),
        (503, "mystery"),
    ] {
        let script = Script::new();
        script.always(Procedure::Release, refuse(status, code, "", None));
        let error = wire(&script).call(&release()).await.unwrap_err();
        assert_eq!((error.code().as_str(), script.seen().len()), (code, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn b191_an_answer_that_cannot_be_read_ends_a_call_at_once() {
    for body in ["not json", "[1]", r#"{"released":"perhaps"}"#] {
        let script = Script::new();
        script.always(Procedure::Release, Step::Bare { status: 200, body });
        let error = wire(&script).call(&release()).await.unwrap_err();
        assert_eq!((error.reason(), error.code().as_str()), ("invalid_response", "internal"), "{body}");
        assert_eq!(script.seen().len(), 1, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn b181_each_kind_of_failure_takes_one_of_the_attempts() {
    let script = Script::new();
    script.always(Procedure::AcquireBatch, Step::Hang);
    wire(&script).call(&AcquireBatchRequest { each: acquire(), count: 2 }).await.unwrap_err();
    assert_eq!(script.bodies(Procedure::AcquireBatch).len(), 1);
    script
        .next(Procedure::Release, refuse(503, "unavailable", "rebuilding", Some(1)))
        .next(Procedure::Release, Step::Fault(ErrorKind::ConnReset, Phase::Ambiguous));
    assert!(wire(&script).call(&release()).await.unwrap().released);
    assert_eq!(script.bodies(Procedure::Release).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn b027_a_call_the_server_does_not_have_is_unimplemented() {
    let script = Script::new();
    script.always(Procedure::GetConfig, Step::Bare { status: 404, body: "404 page not found" });
    let error = wire(&script).call(&config()).await.unwrap_err();
    assert!(matches!(error, Error::Unimplemented(_)), "{error:?}");
    assert_eq!(error.http_status(), 404);
}

/// The version that is sent is tested where headers are; this is what a server says that wants another one.
#[tokio::test(start_paused = true)]
async fn b028_a_server_that_wants_another_protocol_version_is_not_asked_again() {
    let script = Script::new();
    script.always(Procedure::GetConfig, refuse(400, "invalid_argument", "", None));
    let error = wire(&script).call(&config()).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error:?}");
    assert_eq!((error.http_status(), script.seen().len()), (400, 1));
}

#[tokio::test(start_paused = true)]
async fn b051_after_the_end_no_call_is_made_and_those_under_way_end_at_once() {
    let script = Script::new();
    script.always(Procedure::Acquire, Step::Hang).always(Procedure::Renew, refuse(503, "unavailable", "", Some(5_000)));
    let wire = wire(&script);
    let begin = Instant::now();
    let (acquire, renew) = (acquire(), renew());
    let (sending, waiting, ()) = tokio::join!(wire.call(&acquire), wire.call_once(&renew), async {
        sleep(MS * 7).await;
        wire.close();
        wire.close();
    });
    assert_eq!((sending.unwrap_err().reason(), waiting.unwrap_err().reason()), ("client_closed", ""));
    assert_eq!(begin.elapsed(), MS * 7);
    for error in [wire.call(&acquire).await.unwrap_err(), wire.call_once(&acquire).await.unwrap_err()] {
        assert!(matches!(error, Error::ClientClosed(_)), "{error:?}");
        assert_eq!((error.code().as_str(), error.reason()), ("failed_precondition", "client_closed"));
    }
    assert_eq!(script.seen().len(), 2);
    assert!(script.is_closed());
}

#[tokio::test(start_paused = true)]
async fn b051_a_wait_for_the_next_attempt_ends_too() {
    let script = Script::new();
    script.always(Procedure::Renew, refuse(503, "unavailable", "", Some(5_000)));
    let (wire, renew, begin) = (wire(&script), renew(), Instant::now());
    let (waiting, ()) = tokio::join!(wire.call(&renew), async {
        sleep(MS * 7).await;
        wire.close();
    });
    assert_eq!((waiting.unwrap_err().reason(), begin.elapsed()), ("client_closed", MS * 7));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_cut_off_at_the_deadline() {
    let script = Script::new();
    script.always(Procedure::Release, Step::Hang);
    let (wire, begin) = (wire(&script).with_deadline(Some(2_500 * MS)), Instant::now());
    let error = wire.call(&release()).await.unwrap_err();
    assert_eq!((error.error_kind(), begin.elapsed()), (Some(ErrorKind::Timeout), 2_500 * MS));
    assert!(error.message().ends_with("within the deadline of 2.5 s for all attempts of a call"), "{error}");
    assert_eq!(script.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_pass_the_deadline_is_not_begun() {
    let script = Script::new();
    script.always(Procedure::Renew, refuse(503, "unavailable", "overloaded", Some(1_000)));
    let (wire, begin) = (wire(&script).with_deadline(Some(1_500 * MS)), Instant::now());
    let error = wire.call(&renew()).await.unwrap_err();
    assert_eq!((error.reason(), script.seen().len(), begin.elapsed()), ("overloaded", 2, 1_000 * MS));
}

#[tokio::test(start_paused = true)]
async fn what_runs_in_the_background_has_no_deadline() {
    let script = Script::new();
    script.always(Procedure::Release, Step::After(4_000 * MS, Box::new(Step::Answer(json!({"released": true})))));
    let wire = wire(&script).with_deadline(Some(MS));
    assert!(wire.call_once(&release()).await.unwrap().released);
}

#[test]
fn a_call_outside_of_a_runtime_is_an_error_and_no_panic() {
    let script = Script::new();
    let wire = wire(&script);
    let request = release();
    let mut call = Box::pin(wire.call(&request));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = call.as_mut().poll(&mut context) else { panic!("no error") };
    assert!(error.message().contains("outside of a tokio runtime"), "{error}");
    assert!(script.seen().is_empty());
}

#[test]
fn b050_limits_that_make_no_sense_are_errors() {
    // Neither a negative number nor a negative time can be written in the fields: what comes as plain numbers is checked.
    for (retries, seconds, name) in [
        (-1, 5.0, "max_retries"),
        (i64::from(u32::MAX) + 1, 5.0, "max_retries"),
        (2, -0.1, "max_retry_after"),
        (2, f64::NAN, "max_retry_after"),
        (2, f64::INFINITY, "max_retry_after"),
    ] {
        let error = RetryPolicy::from_numbers(retries, seconds).unwrap_err();
        assert!(matches!(error, Error::Configuration(_)) && error.message().starts_with(name), "{error}");
    }
    assert_eq!(RetryPolicy::from_numbers(2, 5.0).unwrap(), RetryPolicy::default());
    let none = RetryPolicy::from_numbers(0, 0.0).unwrap();
    assert_eq!((none.max_retries, none.max_retry_after), (0, Duration::ZERO));
}
