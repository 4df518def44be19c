//! What is written to the log, and how often.

use serde_json::json;

use super::*;
use crate::spinneret::testing::Logs;

#[tokio::test(start_paused = true)]
async fn b096_a_full_queue_is_told_at_once_and_then_every_ten_seconds() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size, options.max_queue_size) = (1, 3, 3));
    let long = Step::After(ms(9_000), Box::new(Step::Answer(json!({"accepted": 1}))));
    bench.script.next(Procedure::Report, long.clone()).next(Procedure::Report, long);
    bench.submit([0]);
    settle().await;
    bench.submit(1..=7);
    assert_eq!(logs.count("WARN", "dropped=1 total=1"), 1);
    tokio::time::sleep(ms(8_000)).await;
    bench.submit(8..=9);
    assert_eq!(logs.count("WARN", "no room"), 1);
    tokio::time::sleep(ms(2_000)).await;
    bench.submit(10..=14);
    assert_eq!(logs.count("WARN", "no room"), 2);
    assert_eq!(logs.count("WARN", "dropped=5 total=6"), 1);
    // What is not told yet is told at the end.
    bench.reporter.close(None).await;
    assert_eq!(logs.count("WARN", "dropped=2 total=8"), 1);
}

#[tokio::test(start_paused = true)]
async fn b095_the_first_rejected_report_is_a_warning_and_at_most_sixteen_are_logged() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|_| {});
    let rejected: Vec<_> =
        (0..40).map(|n| json!({"report_id": format!("r{n}"), "reason": "invalid_argument", "message": "no"})).collect();
    bench.script.next(Procedure::Report, Step::Answer(json!({"rejected": rejected})));
    bench.submit(0..40);
    assert!(bench.reporter.flush(None).await);
    assert_eq!((logs.count("WARN", "rejects a report"), logs.count("DEBUG", "rejects a report")), (1, 15));
    assert_eq!(logs.count("WARN", "report_id=\"r0\" reason=\"invalid_argument\" why=\"no\""), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_once_and_refusals_are_errors() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|_| {});
    for _ in 0..3 {
        bench.script.next(Procedure::Report, refuse(503, "unavailable", "", None));
    }
    bench.script.next(Procedure::Report, refuse(401, "unauthenticated", "token_expired", None));
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!((logs.count("WARN", "sent again"), logs.count("DEBUG", "sent again")), (1, 2));
    assert_eq!(logs.count("ERROR", "token_expired"), 1);
}

#[tokio::test(start_paused = true)]
async fn b098_a_stuck_call_and_what_is_dropped_at_the_end_are_warnings() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|options| options.batch_size = 1);
    bench.script.next(Procedure::Report, Step::Hang);
    bench.submit([1]);
    settle().await;
    bench.submit(2..=4);
    bench.reporter.close(Some(Duration::ZERO)).await;
    assert_eq!((logs.count("WARN", "dropped=3"), logs.count("WARN", "still under way")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn b100_a_new_start_is_a_warning_and_the_first_start_and_the_end_are_not() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|_| {});
    bench.submit([1]);
    settle().await;
    assert_eq!(logs.count("WARN", ""), 0);
    bench.reporter.shared().with(|state| state.crew.abort());
    settle().await;
    bench.submit([2]);
    assert_eq!(logs.count("WARN", "started again"), 1);
    bench.reporter.close(None).await;
    drop(bench);
    settle().await;
    assert_eq!(logs.count("WARN", ""), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_callback_is_a_warning() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|options| options.on_rejected = Some(Arc::new(|_| panic!("a callback that panics"))));
    let rejected = json!([{"report_id": "r1", "reason": "scope_missing", "message": ""}]);
    bench.script.next(Procedure::Report, Step::Answer(json!({"rejected": rejected})));
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(logs.count("WARN", "on_rejected panicked"), 1);
}

#[test]
fn reports_that_nobody_can_send_any_more_are_told() {
    let logs = Logs::of_target("spinneret.reporter");
    let bench = Bench::new(|_| {});
    bench.submit(1..=3);
    drop(bench);
    assert_eq!(logs.count("WARN", "queued=3"), 1);
}
