//! The end of a reporter: what is still sent, what is dropped, how long it takes.

use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn b088_nothing_is_taken_after_closing_and_closing_again_does_nothing() {
    let bench = Bench::new(|_| {});
    bench.submit([1]);
    assert!(!bench.reporter.is_closed());
    bench.reporter.close(None).await;
    assert!(bench.reporter.is_closed());
    let error = bench.reporter.submit(sample(2)).unwrap_err();
    assert!(matches!(error, Error::ReporterClosed(_)));
    assert_eq!(error.reason(), "reporter_closed");
    let begin = Instant::now();
    bench.reporter.close(None).await;
    bench.reporter.close(Some(Duration::ZERO)).await;
    assert!(bench.reporter.flush(None).await);
    assert_eq!(begin.elapsed(), ms(0));
    assert_eq!(bench.batches(), [ids([1])]);
    assert_eq!(bench.reporter.stats().submitted, 1);
}

#[tokio::test(start_paused = true)]
async fn b089_a_flush_gives_up_at_its_limit_and_closing_drops_the_rest() {
    let bench = Bench::new(|_| {});
    bench.script.always(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.submit([1]);
    let begin = Instant::now();
    assert!(!bench.reporter.flush(Some(ms(300))).await);
    assert_eq!(begin.elapsed(), ms(300));
    bench.reporter.close(Some(ms(50))).await;
    assert!(begin.elapsed() <= ms(352), "{:?}", begin.elapsed());
    let stats = bench.reporter.stats();
    assert_eq!((stats.dropped, stats.queued, stats.sent), (1, 0, 0));
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn b097_closing_delivers_what_is_queued_batch_after_batch() {
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size) = (3, 3));
    bench.script.always(Procedure::Report, Step::After(ms(10), Box::new(Step::Answer(json!({"accepted": 3})))));
    bench.submit(1..=7);
    let begin = Instant::now();
    bench.reporter.close(None).await;
    assert_eq!(bench.batches(), [ids(1..=3), ids(4..=6), ids([7])]);
    assert!(begin.elapsed() < ms(35), "{:?}", begin.elapsed());
    assert_eq!(bench.reporter.stats().sent, 7);
}

#[tokio::test(start_paused = true)]
async fn b097_closing_during_a_wait_after_a_failure_does_not_wait_for_its_end() {
    let bench = Bench::new(|options| (options.backoff_initial, options.backoff_max) = (ms(10_000), ms(10_000)));
    bench.script.always(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.reporter.submit(releasing(1)).unwrap();
    bench.submit([2]);
    settle().await;
    assert_eq!(bench.batches().len(), 1);
    let begin = Instant::now();
    bench.reporter.close(Some(ms(200))).await;
    assert!(begin.elapsed() <= ms(202), "{:?}", begin.elapsed());
    // It is tried once more at once; then its wait is cut to the time that is left.
    assert_eq!(bench.batches().len(), 2);
    assert_eq!((bench.reporter.stats().dropped, bench.reporter.stats().queued), (2, 0));
    settle().await;
    assert_eq!(bench.released(), ["lse_1"]);
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn b097_closing_tries_again_while_there_is_time() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.script.next(Procedure::Report, refuse(500, "internal", "", Some(1_000)));
    bench.submit(1..=2);
    let begin = Instant::now();
    bench.reporter.close(None).await;
    assert_eq!(bench.batches(), vec![ids(1..=2); 3]);
    assert!((ms(1_250)..ms(1_510)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    assert_eq!((bench.reporter.stats().sent, bench.reporter.stats().dropped), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn b098_closing_with_no_time_drops_what_is_queued_and_breaks_off_a_stuck_call() {
    let bench = Bench::new(|options| options.batch_size = 1);
    bench.script.next(Procedure::Report, Step::Hang);
    bench.submit([1]);
    settle().await;
    bench.submit(2..=4);
    let begin = Instant::now();
    bench.reporter.close(Some(Duration::ZERO)).await;
    assert!((ms(500)..=ms(601)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    let stats = bench.reporter.stats();
    assert_eq!((stats.dropped, stats.queued, stats.in_flight), (3, 1, 0), "the interrupted batch counts as queued");
    bench.check_sum();
    // Nothing goes on behind the back of the caller, and closing again changes nothing.
    tokio::time::sleep(Duration::from_secs(60)).await;
    bench.reporter.close(None).await;
    assert!(!bench.reporter.flush(None).await);
    assert_eq!((bench.batches().len(), bench.reporter.stats()), (1, stats));
}

#[tokio::test(start_paused = true)]
async fn b098_closing_with_no_time_and_no_call_ends_at_once() {
    let bench = Bench::new(|_| {});
    bench.submit(1..=4);
    let begin = Instant::now();
    bench.reporter.close(Some(Duration::ZERO)).await;
    assert_eq!(begin.elapsed(), ms(0));
    assert_eq!((bench.reporter.stats().dropped, bench.batches().len()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_may_outlast_the_end_by_half_a_second() {
    let bench = Bench::new(|options| options.batch_size = 1);
    bench.script.next(Procedure::Report, Step::After(ms(600), Box::new(Step::Answer(json!({"accepted": 1})))));
    bench.submit([1]);
    settle().await;
    bench.submit([2]);
    let begin = Instant::now();
    bench.reporter.close(Some(ms(200))).await;
    assert_eq!(begin.elapsed(), ms(599));
    assert_eq!((bench.reporter.stats().sent, bench.reporter.stats().dropped), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn everybody_who_closes_waits_for_the_same_end_and_the_nearest_limit_counts() {
    let bench = Bench::new(|_| {});
    bench.script.always(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.submit([1]);
    let begin = Instant::now();
    let timed = |limit: u64, delay: u64| {
        let reporter = bench.reporter.clone();
        async move {
            tokio::time::sleep(ms(delay)).await;
            reporter.close(Some(ms(limit))).await;
            begin.elapsed()
        }
    };
    let (first, second, third) = tokio::join!(timed(5_000, 0), timed(400, 100), timed(5_000, 50));
    assert!((ms(500)..ms(503)).contains(&first), "{first:?}");
    assert!(second.abs_diff(first) < ms(2) && third.abs_diff(first) < ms(2), "{first:?} {second:?} {third:?}");
    assert_eq!(bench.reporter.stats().dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn closing_that_is_given_up_goes_on_without_its_caller() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.submit([1]);
    assert!(tokio::time::timeout(ms(10), bench.reporter.close(None)).await.is_err());
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(bench.batches(), [ids([1]), ids([1])]);
    assert_eq!(bench.reporter.stats().sent, 1);
}

#[tokio::test(start_paused = true)]
async fn without_handles_the_worker_sends_what_is_queued_and_ends() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.submit([1]);
    let shared = Arc::downgrade(bench.reporter.shared());
    let Bench { script, reporter, .. } = bench;
    drop(reporter);
    tokio::time::sleep(ms(600)).await;
    assert_eq!(ids_of(&script.reports()), ids([1, 1]));
    assert!(shared.upgrade().is_none(), "the worker is gone");
}

#[tokio::test(start_paused = true)]
async fn without_handles_the_worker_gives_up_at_the_end_of_its_time() {
    let bench = Bench::new(|_| {});
    bench.script.always(Procedure::Report, refuse(503, "unavailable", "", None));
    bench.submit([1]);
    let shared = Arc::downgrade(bench.reporter.shared());
    drop(bench.reporter);
    tokio::time::sleep(ms(4_990)).await;
    assert!(shared.upgrade().is_some());
    tokio::time::sleep(ms(20)).await;
    assert!(shared.upgrade().is_none(), "the worker is gone");
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_ends_with_the_last_handle() {
    let bench = Bench::new(|_| {});
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    let shared = Arc::downgrade(bench.reporter.shared());
    let clone = bench.reporter.clone();
    drop(bench.reporter);
    settle().await;
    assert!(shared.upgrade().is_some());
    drop(clone);
    settle().await;
    assert!(shared.upgrade().is_none());
}

/// The callback may hold a handle of the reporter that holds the callback.
#[tokio::test(start_paused = true)]
async fn closing_lets_the_callback_go() {
    for reports in [0, 1] {
        let slot: Arc<std::sync::Mutex<Option<Reporter>>> = Arc::default();
        let held = Arc::clone(&slot);
        let bench = Bench::new(|options| {
            options.on_rejected = Some(Arc::new(move |_| assert!(held.lock().unwrap().is_some())));
        });
        *slot.lock().unwrap() = Some(bench.reporter.clone());
        bench.submit(0..reports);
        bench.reporter.close(None).await;
        settle().await;
        assert_eq!(Arc::strong_count(&slot), 1, "{reports}");
    }
}
