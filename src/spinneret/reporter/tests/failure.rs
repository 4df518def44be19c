//! What becomes of batches that fail, and of reports the server rejects.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::json;

use super::*;
use crate::spinneret::error_kind::ErrorKind;
use crate::spinneret::messages::RejectedReport;
use crate::spinneret::transport::{Attempt, Fault, Phase, Reply, Transport};

const RESET: Step = Step::Fault(ErrorKind::ConnReset, Phase::Ambiguous);

#[tokio::test(start_paused = true)]
async fn b090_what_may_succeed_later_is_sent_again_as_it_was() {
    let bench = Bench::new(|_| {});
    bench
        .script
        .next(Procedure::Report, RESET)
        .next(Procedure::Report, refuse(500, "internal", "internal", None))
        .next(Procedure::Report, refuse(429, "resource_exhausted", "rate_limited", Some(3_000)));
    bench.submit(1..=3);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), vec![ids(1..=3); 4]);
    let stats = bench.reporter.stats();
    assert_eq!((stats.failed_sends, stats.dropped, stats.sent, stats.accepted), (3, 0, 3, 3));
    let times = bench.times();
    let waits: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((ms(250)..=ms(502)).contains(&waits[0]), "{waits:?}");
    assert!((ms(500)..=ms(1002)).contains(&waits[1]), "{waits:?}");
    assert!((ms(3_000)..=ms(3_002)).contains(&waits[2]), "{waits:?}");
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn a_success_begins_the_waits_anew() {
    let bench = Bench::new(|_| {});
    for _ in 0..3 {
        bench.script.next(Procedure::Report, RESET);
    }
    bench.script.next(Procedure::Report, Step::Answer(json!({"accepted": 1}))).next(Procedure::Report, RESET);
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    bench.submit([2]);
    assert!(bench.reporter.flush(None).await);
    let times = bench.times();
    assert!(times[5] - times[4] <= ms(502), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn b091_a_batch_that_is_refused_for_good_is_dropped_and_the_next_one_is_not() {
    for step in [
        refuse(400, "invalid_argument", "invalid_argument", None),
        refuse(403, "permission_denied", "scope_missing", None),
        refuse(401, "unauthenticated", "token_revoked", None),
        refuse(404, "not_found", "", None),
        refuse(418, "mystery", "", None),
    ] {
        let bench = Bench::new(|options| options.batch_size = 2);
        bench.script.next(Procedure::Report, step.clone());
        bench.submit(1..=2);
        settle().await;
        bench.submit(3..=4);
        settle().await;
        assert_eq!(bench.batches(), [ids(1..=2), ids(3..=4)], "{step:?}");
        let stats = bench.reporter.stats();
        assert_eq!((stats.dropped, stats.failed_sends, stats.sent), (2, 1, 2), "{step:?}");
        bench.check_sum();
    }
}

/// Panics in its first call.
#[derive(Debug)]
struct Panicking(Arc<Script>, AtomicUsize);

impl Transport for Panicking {
    fn send(&self, attempt: Attempt) -> BoxFuture<'_, Result<Reply, Fault>> {
        assert!(self.1.fetch_add(1, Ordering::Relaxed) > 0, "a transport that panics");
        self.0.send(attempt)
    }
}

/// The unexpected exception of the contract is a panic here.
#[tokio::test(start_paused = true)]
async fn b091_a_batch_whose_call_panics_is_dropped_and_the_next_one_is_not() {
    let script = Script::new();
    let transport = Arc::new(Panicking(Arc::clone(&script), AtomicUsize::new(0)));
    let wire = Arc::new(Wire::new(transport, Timeouts::default(), RetryPolicy::default()));
    let reporter = Reporter::new(Arc::clone(&wire), Releaser::new(wire), ReporterOptions::default());
    reporter.submit(sample(1)).unwrap();
    assert!(reporter.flush(None).await);
    reporter.submit(sample(2)).unwrap();
    assert!(reporter.flush(None).await);
    assert_eq!(ids_of(&script.reports()), ids([2]));
    assert_eq!((reporter.stats().dropped, reporter.stats().failed_sends, reporter.stats().sent), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn b092_a_report_is_not_sent_again_to_an_open_circuit_or_a_paused_site() {
    for reason in ["circuit_open", "site_paused"] {
        let bench = Bench::new(|_| {});
        bench.script.next(Procedure::Report, refuse(503, "unavailable", reason, Some(100)));
        bench.submit([1]);
        assert!(bench.reporter.flush(None).await);
        assert_eq!(bench.batches().len(), 1, "{reason}");
        assert_eq!(bench.reporter.stats().dropped, 1, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn b093_a_hint_is_followed_up_to_thirty_seconds() {
    for (hint, waited) in [(20_000, ms(20_000)), (30_000, ms(30_000)), (31_000, ms(30_000)), (600_000, ms(30_000))] {
        let bench = Bench::new(|_| {});
        bench.script.next(Procedure::Report, refuse(503, "unavailable", "internal", Some(hint)));
        bench.submit([1]);
        assert!(bench.reporter.flush(None).await);
        let wait = bench.times()[1];
        assert!((waited..waited + ms(3)).contains(&wait), "{hint}: {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn neither_reports_nor_a_flush_shorten_the_wait_after_a_failure() {
    let bench = Bench::new(|options| options.batch_size = 2);
    bench.script.next(Procedure::Report, refuse(503, "unavailable", "", Some(10_000)));
    bench.submit(1..=2);
    settle().await;
    bench.submit(3..=9);
    bench.reporter.submit(releasing(10)).unwrap();
    assert!(!bench.reporter.flush(Some(ms(9_000))).await);
    assert_eq!(bench.batches().len(), 1);
    assert!(bench.reporter.flush(Some(ms(1_100))).await);
    assert_eq!(bench.batches(), [ids(1..=2), ids(1..=10)]);
}

#[tokio::test(start_paused = true)]
async fn b094_a_batch_that_comes_back_keeps_its_place() {
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size) = (3, 4));
    bench.script.next(Procedure::Report, Step::After(ms(50), Box::new(RESET)));
    bench.submit(1..=3);
    settle().await;
    bench.reporter.submit_as(sample(4), Standing::Probe).unwrap();
    bench.submit(5..=6);
    bench.reporter.submit(releasing(7)).unwrap();
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids(1..=3), ids(1..=4), ids(5..=7)]);
}

#[tokio::test(start_paused = true)]
async fn b095_rejected_reports_are_counted_and_told_once_and_a_panic_is_borne() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let bench = Bench::new(|options| {
        options.on_rejected = Some(Arc::new(move |report: &RejectedReport| {
            sink.lock().unwrap().push(report.report_id.clone());
            assert_ne!(report.report_id, "r1", "a callback that panics");
        }));
    });
    let rejected = |n: usize| json!({"report_id": format!("r{n}"), "reason": "invalid_argument", "message": "no"});
    let answer = json!({"accepted": 1, "duplicated": 1, "rejected": [rejected(1), rejected(2)]});
    bench.script.next(Procedure::Report, Step::Answer(answer));
    bench.submit(1..=4);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(*told.lock().unwrap(), ["r1", "r2"]);
    let stats = bench.reporter.stats();
    assert_eq!((stats.sent, stats.accepted, stats.duplicated, stats.rejected, stats.dropped), (4, 1, 1, 2, 0));
    bench.submit([5]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids(1..=4), ids([5])]);
    assert_eq!(told.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn b099_a_flush_inside_the_callback_answers_at_once() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let reporter: Arc<Mutex<Option<Reporter>>> = Arc::default();
    let (sink, handle, calls) = (Arc::clone(&answers), Arc::clone(&reporter), AtomicUsize::new(0));
    let bench = Bench::new(|options| {
        options.on_rejected = Some(Arc::new(move |_: &RejectedReport| {
            let reporter = handle.lock().unwrap().clone().unwrap();
            let say = |answer: bool| sink.lock().unwrap().push(answer);
            say(futures_util::FutureExt::now_or_never(reporter.flush(None)).unwrap());
            if calls.fetch_add(1, Ordering::Relaxed) == 0 {
                reporter.submit(sample(9)).unwrap();
                say(futures_util::FutureExt::now_or_never(reporter.flush(None)).unwrap());
            }
        }));
    });
    *reporter.lock().unwrap() = Some(bench.reporter.clone());
    let answer = json!({"accepted": 0, "rejected": [{"report_id": "r1", "reason": "lease_unknown", "message": ""}]});
    bench.script.next(Procedure::Report, Step::Answer(answer));
    bench.submit([1]);
    assert!(tokio::time::timeout(ms(1_000), bench.reporter.flush(None)).await.unwrap());
    assert_eq!(*answers.lock().unwrap(), [true, false]);
    *reporter.lock().unwrap() = None;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_room_or_closing_inside_the_callback_does_not_wait_either() {
    let reporter: Arc<Mutex<Option<Reporter>>> = Arc::default();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let (handle, sink) = (Arc::clone(&reporter), Arc::clone(&answers));
    let bench = Bench::new(|options| {
        (options.batch_size, options.max_batch_size, options.max_queue_size) = (1, 1, 1);
        options.on_rejected = Some(Arc::new(move |_: &RejectedReport| {
            let reporter = handle.lock().unwrap().take().unwrap();
            let wait = |n: usize| futures_util::FutureExt::now_or_never(reporter.submit_wait(sample(n)));
            let mut seen = vec![wait(7).map(|taken| taken.is_ok()), wait(8).map(|taken| taken.is_ok())];
            seen.push(futures_util::FutureExt::now_or_never(reporter.close(None)).map(|()| true));
            seen.push(wait(9).map(|taken| taken.is_ok()));
            *sink.lock().unwrap() = seen;
        }));
    });
    *reporter.lock().unwrap() = Some(bench.reporter.clone());
    let answer = json!({"rejected": [{"report_id": "r1", "reason": "lease_unknown", "message": ""}]});
    bench.script.next(Procedure::Report, Step::Answer(answer));
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(*answers.lock().unwrap(), [Some(true), Some(true), Some(true), Some(false)]);
    assert!(bench.reporter.is_closed());
    bench.reporter.close(None).await;
    assert_eq!(bench.batches(), [ids([1]), ids([8])]);
    assert_eq!(bench.reporter.stats().dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn b191_an_answer_that_cannot_be_read_is_a_reason_to_send_again() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::Bare { status: 200, body: "<html>welcome</html>" });
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids([1]), ids([1])]);
    let stats = bench.reporter.stats();
    assert_eq!((stats.failed_sends, stats.sent, stats.dropped), (1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_arrived_an_hour_ago_is_not_sent_again() {
    let bench = Bench::new(|_| {});
    bench.script.always(Procedure::Report, RESET);
    bench.reporter.submit(releasing(1)).unwrap();
    bench.submit([2]);
    tokio::time::sleep(Duration::from_secs(1_800)).await;
    bench.submit([3]);
    tokio::time::sleep(Duration::from_secs(1_799)).await;
    assert_eq!(bench.reporter.stats().dropped, 0);
    assert_eq!(bench.released().len(), 0);
    tokio::time::sleep(Duration::from_secs(32)).await;
    let stats = bench.reporter.stats();
    assert_eq!((stats.dropped, stats.queued + stats.in_flight, stats.sent), (2, 1, 0));
    assert_eq!(bench.released(), ["lse_1"]);
    bench.script.always(Procedure::Report, Step::Answer(json!({"accepted": 1})));
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches().last().unwrap(), &ids([3]));
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_have_arrived_is_sent_again_whenever() {
    let bench = Bench::new(|_| {});
    bench.script.always(Procedure::Report, Step::Fault(ErrorKind::ConnRefused, Phase::Unsent));
    bench.submit([1]);
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    bench.script.always(Procedure::Report, Step::Answer(json!({"accepted": 1})));
    assert!(bench.reporter.flush(None).await);
    assert_eq!((bench.reporter.stats().dropped, bench.reporter.stats().sent), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn leases_of_refused_reports_are_given_back_unless_that_is_refused_too() {
    for (step, expected) in [
        (refuse(400, "invalid_argument", "", None), vec!["lse_1", "lse_3"]),
        (refuse(403, "permission_denied", "scope_missing", None), vec!["lse_1", "lse_3"]),
        (refuse(503, "unavailable", "site_paused", None), vec!["lse_1", "lse_3"]),
        (refuse(403, "permission_denied", "ip_not_allowed", None), vec![]),
        (refuse(401, "unauthenticated", "token_invalid", None), vec![]),
    ] {
        let bench = Bench::new(|_| {});
        bench.script.next(Procedure::Report, step.clone());
        bench.reporter.submit(releasing(1)).unwrap();
        bench.submit([2]);
        bench.reporter.submit(releasing(3)).unwrap();
        assert!(bench.reporter.flush(None).await);
        settle().await;
        assert_eq!(bench.released(), expected, "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_client_gets_no_further_call() {
    let bench = Bench::new(|_| {});
    bench.wire.close();
    bench.reporter.submit(releasing(1)).unwrap();
    assert!(bench.reporter.flush(None).await);
    settle().await;
    assert_eq!(bench.script.seen().len(), 0);
    assert_eq!(bench.reporter.stats().dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_more_than_it_was_sent_is_believed_for_as_many() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let bench = Bench::new(|options| {
        options.on_rejected = Some(Arc::new(move |_: &RejectedReport| {
            count.fetch_add(1, Ordering::SeqCst);
        }));
    });
    let rejected = vec![json!({"report_id": "r1", "reason": "invalid_argument", "message": ""}); 1_000];
    bench.script.next(Procedure::Report, Step::Answer(json!({"rejected": rejected})));
    bench.submit(1..=2);
    assert!(bench.reporter.flush(None).await);
    assert_eq!((bench.reporter.stats().rejected, told.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_rejected_report_is_given_back_unless_it_is_gone() {
    let bench = Bench::new(|_| {});
    let rejected = |n: usize, reason: &str| json!({"report_id": format!("r{n}"), "reason": reason, "message": "no"});
    let all = [rejected(1, "invalid_argument"), rejected(2, "lease_unknown"), rejected(3, "invalid_argument")];
    bench.script.next(Procedure::Report, Step::Answer(json!({"accepted": 0, "rejected": all})));
    bench.reporter.submit(releasing(1)).unwrap();
    bench.reporter.submit(releasing(2)).unwrap();
    bench.submit([3]);
    assert!(bench.reporter.flush(None).await);
    settle().await;
    assert_eq!(bench.released(), ["lse_1"]);
}
