//! Workers that are gone: aborted tasks, ended runtimes, threads without one.

use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::*;

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A reporter with a queued report whose worker's runtime has ended.
fn stranded() -> Bench {
    let runtime = two_threads();
    let bench = runtime.block_on(async {
        let bench = Bench::new(|options| options.flush_interval = Duration::from_secs(60));
        bench.submit(1..=2);
        tokio::time::sleep(ms(20)).await;
        bench
    });
    drop(runtime);
    assert_eq!((bench.reporter.stats().queued, bench.batches().len()), (2, 0));
    bench
}

#[test]
fn b100_a_flush_on_another_runtime_delivers_what_a_gone_worker_left() {
    let bench = stranded();
    assert!(one_thread().block_on(bench.reporter.flush(Some(Duration::from_secs(10)))));
    assert_eq!(bench.batches(), [ids(1..=2)]);
    assert_eq!(bench.reporter.stats().sent, 2);
}

#[test]
fn b100_closing_on_another_runtime_delivers_what_a_gone_worker_left() {
    let bench = stranded();
    one_thread().block_on(bench.reporter.close(None));
    assert_eq!(bench.batches(), [ids(1..=2)]);
    assert_eq!((bench.reporter.stats().sent, bench.reporter.stats().dropped), (2, 0));
}

#[test]
fn b100_a_report_on_another_runtime_starts_a_worker_for_all() {
    let bench = stranded();
    one_thread().block_on(async {
        bench.reporter.submit(releasing(3)).unwrap();
        for _ in 0..500 {
            if bench.reporter.stats().sent == 3 {
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
    });
    assert_eq!(bench.batches(), [ids(1..=3)]);
}

#[test]
fn b100_a_batch_that_was_under_way_when_its_runtime_ended_is_sent_again() {
    let runtime = two_threads();
    let bench = runtime.block_on(async {
        let bench = Bench::new(|options| options.batch_size = 2);
        bench.script.next(Procedure::Report, Step::Hang);
        bench.submit(1..=2);
        while bench.batches().is_empty() {
            tokio::time::sleep(ms(5)).await;
        }
        bench
    });
    assert_eq!(bench.reporter.stats().in_flight, 2);
    drop(runtime);
    assert_eq!((bench.reporter.stats().in_flight, bench.reporter.stats().queued), (0, 2));
    bench.check_sum();
    assert!(one_thread().block_on(bench.reporter.flush(Some(Duration::from_secs(10)))));
    assert_eq!(bench.batches(), [ids(1..=2), ids(1..=2)]);
}

#[tokio::test(start_paused = true)]
async fn b100_an_aborted_task_is_replaced_by_the_next_call() {
    let bench = Bench::new(|options| options.batch_size = 2);
    bench.script.next(Procedure::Report, Step::Hang);
    bench.submit(1..=2);
    settle().await;
    bench.reporter.shared().with(|state| state.crew.abort());
    settle().await;
    assert_eq!((bench.reporter.stats().in_flight, bench.reporter.stats().queued), (0, 2));
    bench.submit([3]);
    settle().await;
    assert_eq!(bench.batches(), [ids(1..=2), ids(1..=3)]);
    assert_eq!((bench.reporter.stats().dropped, bench.reporter.stats().sent), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn b100_who_waits_for_a_flush_sees_the_worker_go_and_starts_another() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::Hang);
    bench.submit([1]);
    let flushing = bench.reporter.flush(Some(ms(1_000)));
    let (is_settled, ()) = tokio::join!(flushing, async {
        settle().await;
        bench.reporter.shared().with(|state| state.crew.abort());
    });
    assert!(is_settled);
    assert_eq!(bench.batches(), [ids([1]), ids([1])]);
}

#[tokio::test(start_paused = true)]
async fn b100_closing_survives_the_end_of_its_worker() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::Hang);
    bench.submit([1]);
    let begin = Instant::now();
    tokio::join!(bench.reporter.close(None), async {
        settle().await;
        bench.reporter.shared().with(|state| state.crew.abort());
    });
    assert!(begin.elapsed() < ms(10), "{:?}", begin.elapsed());
    assert_eq!(bench.reporter.stats().sent, 1);
}

#[test]
fn a_plain_thread_only_queues_until_a_runtime_is_seen() {
    let bench = Bench::new(|_| {});
    bench.reporter.submit(releasing(1)).unwrap();
    bench.submit([2]);
    std::thread::sleep(ms(20));
    assert_eq!(bench.reporter.stats().queued, 2);
    assert!(!bench.reporter.shared().with(|state| state.crew.is_manned()));
    assert!(one_thread().block_on(bench.reporter.flush(Some(Duration::from_secs(10)))));
    assert_eq!(bench.batches(), [ids(1..=2)]);
}

#[test]
fn a_plain_thread_uses_the_runtime_the_reporter_was_made_in() {
    let runtime = two_threads();
    let bench = runtime.block_on(async { Bench::new(|_| {}) });
    let reporter = bench.reporter.clone();
    std::thread::spawn(move || reporter.submit(releasing(1)).unwrap()).join().unwrap();
    for _ in 0..500 {
        if bench.reporter.stats().sent == 1 {
            break;
        }
        std::thread::sleep(ms(10));
    }
    assert_eq!(bench.batches(), [ids([1])]);
}

#[test]
fn a_plain_thread_keeps_queueing_when_the_only_runtime_is_gone() {
    let bench = stranded();
    bench.submit(3..=5);
    bench.submit([6]);
    assert_eq!(bench.reporter.stats().queued, 6);
    bench.check_sum();
    assert!(one_thread().block_on(bench.reporter.flush(Some(Duration::from_secs(10)))));
    assert_eq!(bench.batches(), [ids(1..=6)]);
}

/// Polled by an executor that is not tokio, nothing may panic or hang.
#[test]
fn outside_of_a_runtime_the_state_is_answered_at_once() {
    let bench = Bench::new(|_| {});
    assert!(futures_util::FutureExt::now_or_never(bench.reporter.flush(None)).unwrap());
    bench.submit([1]);
    assert!(!futures_util::FutureExt::now_or_never(bench.reporter.flush(Some(ms(50)))).unwrap());
    futures_util::FutureExt::now_or_never(bench.reporter.close(Some(Duration::ZERO))).unwrap();
    assert!(bench.reporter.is_closed());
    assert_eq!(bench.reporter.stats().dropped, 1);
}

#[test]
fn many_threads_submit_and_everything_arrives_once() {
    let runtime = two_threads();
    let bench = runtime.block_on(async { Bench::new(|options| options.max_queue_size = 100_000) });
    let answer = Step::After(ms(2), Box::new(Step::Answer(json!({"accepted": 1}))));
    bench.script.always(Procedure::Report, answer);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let reporter = &bench.reporter;
            scope.spawn(move || (0..2_000).for_each(|n| reporter.submit(sample(thread * 2_000 + n)).unwrap()));
        }
    });
    assert!(runtime.block_on(bench.reporter.flush(Some(Duration::from_secs(30)))));
    let mut arrived = bench.batches().concat();
    arrived.sort();
    let mut expected = ids(0..8_000);
    expected.sort();
    assert_eq!(arrived, expected);
    bench.check_sum();
}
