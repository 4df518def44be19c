//! What is written to the log, and how often.

use std::io;
use std::sync::Mutex;

use serde_json::json;
use tracing::subscriber::DefaultGuard;

use super::*;

#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// The log of this thread. The second dispatcher keeps call sites from being switched off by other tests.
    fn listen() -> (Self, DefaultGuard, tracing::Dispatch) {
        let lines = Self::default();
        let sink = lines.clone();
        let make = move || sink.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false).with_writer(make).finish();
        let second = tracing::Dispatch::new(tracing_subscriber::registry());
        (lines, tracing::subscriber::set_default(log), second)
    }

    /// The lines of this level with this text.
    fn count(&self, level: &str, text: &str) -> usize {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let ours = log.lines().filter(|line| line.contains("spinneret.reporter"));
        ours.filter(|line| line.contains(&format!(" {level} ")) && line.contains(text)).count()
    }
}

#[tokio::test(start_paused = true)]
async fn b096_a_full_queue_is_told_at_once_and_then_every_ten_seconds() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size, options.max_queue_size) = (1, 3, 3));
    let long = Step::After(ms(9_000), Box::new(Step::Answer(json!({"accepted": 1}))));
    bench.script.next(Procedure::Report, long.clone()).next(Procedure::Report, long);
    bench.submit([0]);
    settle().await;
    bench.submit(1..=7);
    assert_eq!(lines.count("WARN", "dropped=1 total=1"), 1);
    tokio::time::sleep(ms(8_000)).await;
    bench.submit(8..=9);
    assert_eq!(lines.count("WARN", "no room"), 1);
    tokio::time::sleep(ms(2_000)).await;
    bench.submit(10..=14);
    assert_eq!(lines.count("WARN", "no room"), 2);
    assert_eq!(lines.count("WARN", "dropped=5 total=6"), 1);
    // What is not told yet is told at the end.
    bench.reporter.close(None).await;
    assert_eq!(lines.count("WARN", "dropped=2 total=8"), 1);
}

#[tokio::test(start_paused = true)]
async fn b095_the_first_rejected_report_is_a_warning_and_at_most_sixteen_are_logged() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|_| {});
    let rejected: Vec<_> =
        (0..40).map(|n| json!({"report_id": format!("r{n}"), "reason": "invalid_argument", "message": "no"})).collect();
    bench.script.next(Procedure::Report, Step::Answer(json!({"rejected": rejected})));
    bench.submit(0..40);
    assert!(bench.reporter.flush(None).await);
    assert_eq!((lines.count("WARN", "rejects a report"), lines.count("DEBUG", "rejects a report")), (1, 15));
    assert_eq!(lines.count("WARN", "report_id=\"r0\" reason=\"invalid_argument\" why=\"no\""), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_once_and_refusals_are_errors() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|_| {});
    for _ in 0..3 {
        bench.script.next(Procedure::Report, refuse(503, "unavailable", "", None));
    }
    bench.script.next(Procedure::Report, refuse(401, "unauthenticated", "token_expired", None));
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!((lines.count("WARN", "sent again"), lines.count("DEBUG", "sent again")), (1, 2));
    assert_eq!(lines.count("ERROR", "token_expired"), 1);
}

#[tokio::test(start_paused = true)]
async fn b098_a_stuck_call_and_what_is_dropped_at_the_end_are_warnings() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|options| options.batch_size = 1);
    bench.script.next(Procedure::Report, Step::Hang);
    bench.submit([1]);
    settle().await;
    bench.submit(2..=4);
    bench.reporter.close(Some(Duration::ZERO)).await;
    assert_eq!((lines.count("WARN", "dropped=3"), lines.count("WARN", "still under way")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn b100_a_new_start_is_a_warning_and_the_first_start_and_the_end_are_not() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|_| {});
    bench.submit([1]);
    settle().await;
    assert_eq!(lines.count("WARN", ""), 0);
    bench.reporter.shared().with(|state| state.crew.abort());
    settle().await;
    bench.submit([2]);
    assert_eq!(lines.count("WARN", "started again"), 1);
    bench.reporter.close(None).await;
    drop(bench);
    settle().await;
    assert_eq!(lines.count("WARN", ""), 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_callback_is_a_warning() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|options| options.on_rejected = Some(Arc::new(|_| panic!("a callback that panics"))));
    let rejected = json!([{"report_id": "r1", "reason": "scope_missing", "message": ""}]);
    bench.script.next(Procedure::Report, Step::Answer(json!({"rejected": rejected})));
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(lines.count("WARN", "on_rejected panicked"), 1);
}

#[test]
fn reports_that_nobody_can_send_any_more_are_told() {
    let (lines, _guard, _second) = Lines::listen();
    let bench = Bench::new(|_| {});
    bench.submit(1..=3);
    drop(bench);
    assert_eq!(lines.count("WARN", "queued=3"), 1);
}
