//! What is sent when, and in which order.

use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn b086_a_full_batch_is_sent_at_once_in_order() {
    let bench = Bench::new(|options| options.batch_size = 5);
    let begin = Instant::now();
    bench.submit(1..=5);
    settle().await;
    assert_eq!(bench.batches(), [ids(1..=5)]);
    assert_eq!(begin.elapsed(), ms(1));
    assert_eq!(bench.reporter.stats().accepted, 5);
}

#[tokio::test(start_paused = true)]
async fn b086_four_of_five_wait_for_the_interval() {
    let bench = Bench::new(|options| options.batch_size = 5);
    bench.submit(1..=4);
    tokio::time::sleep(ms(199)).await;
    assert_eq!(bench.batches().len(), 0);
    tokio::time::sleep(ms(2)).await;
    assert_eq!(bench.batches(), [ids(1..=4)]);
}

#[tokio::test(start_paused = true)]
async fn b086_a_single_report_is_sent_after_the_interval() {
    let bench = Bench::new(|_| {});
    let begin = Instant::now();
    bench.submit([1]);
    tokio::time::sleep(ms(199)).await;
    assert_eq!(bench.batches().len(), 0);
    // A later report does not put the first one off.
    bench.submit([2]);
    tokio::time::sleep(ms(10)).await;
    assert_eq!(bench.batches(), [ids(1..=2)]);
    let at = bench.script.seen()[0].at - begin;
    assert!((ms(200)..ms(202)).contains(&at), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn b087_what_is_more_than_a_batch_is_cut() {
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size) = (3, 3));
    bench.submit(1..=7);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids(1..=3), ids(4..=6), ids([7])]);
    assert_eq!(bench.reporter.stats().sent, 7);
}

#[tokio::test(start_paused = true)]
async fn one_call_is_under_way_at_a_time_and_what_comes_meanwhile_is_gathered() {
    let bench = Bench::new(|options| options.batch_size = 2);
    bench.script.next(Procedure::Report, Step::After(ms(500), Box::new(Step::Answer(json!({"accepted": 2})))));
    bench.submit(1..=2);
    settle().await;
    for n in 3..=9 {
        bench.submit([n]);
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(bench.batches(), [ids(1..=2)]);
    assert_eq!((bench.reporter.stats().in_flight, bench.reporter.stats().queued), (2, 7));
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids(1..=2), ids(3..=9)]);
    assert_eq!(bench.times(), [ms(0), ms(500)]);
}

#[tokio::test(start_paused = true)]
async fn a_releasing_report_is_sent_at_once_with_what_is_queued() {
    let bench = Bench::new(|_| {});
    let begin = Instant::now();
    bench.submit(1..=2);
    settle().await;
    bench.reporter.submit(releasing(3)).unwrap();
    settle().await;
    assert_eq!(bench.batches(), [ids(1..=3)]);
    assert!(begin.elapsed() < ms(5));
}

#[tokio::test(start_paused = true)]
async fn a_releasing_report_waits_for_the_call_under_way() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::After(ms(100), Box::new(Step::Answer(json!({"accepted": 1})))));
    bench.reporter.submit(releasing(1)).unwrap();
    settle().await;
    bench.reporter.submit(releasing(2)).unwrap();
    bench.submit([3]);
    tokio::time::sleep(ms(50)).await;
    assert_eq!(bench.batches(), [ids([1])]);
    tokio::time::sleep(ms(60)).await;
    assert_eq!(bench.batches(), [ids([1]), ids(2..=3)]);
}

#[tokio::test(start_paused = true)]
async fn a_probes_report_waits_like_any_other() {
    let bench = Bench::new(|_| {});
    bench.reporter.submit_as(sample(1), Standing::Probe).unwrap();
    tokio::time::sleep(ms(100)).await;
    assert_eq!(bench.batches().len(), 0);
    tokio::time::sleep(ms(110)).await;
    assert_eq!(bench.batches().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_never_larger_than_the_server_reads() {
    let bench = Bench::new(|_| {});
    let large = |n: usize| Report { uri: "\u{1}".repeat(2048), markers: vec!["\u{1}".repeat(64); 32], ..sample(n) };
    for n in 0..500 {
        bench.reporter.submit(large(n)).unwrap();
    }
    assert!(bench.reporter.flush(None).await);
    let bodies = bench.script.bodies(Procedure::Report);
    let sizes: Vec<usize> = bodies.iter().map(|body| body.to_string().len()).collect();
    assert!(sizes.iter().all(|size| *size <= 8 * 1024 * 1024), "{sizes:?}");
    assert!(sizes.iter().sum::<usize>() > 8 * 1024 * 1024, "{sizes:?}");
    assert_eq!(sizes.len(), 2);
    assert_eq!(bench.batches().concat(), ids(0..500));
}

#[tokio::test(start_paused = true)]
async fn b088_a_flush_without_reports_is_true_at_once() {
    let bench = Bench::new(|_| {});
    let begin = Instant::now();
    assert!(bench.reporter.flush(None).await);
    assert!(bench.reporter.flush(Some(Duration::ZERO)).await);
    assert_eq!((begin.elapsed(), bench.script.seen().len()), (ms(0), 0));
}

#[tokio::test(start_paused = true)]
async fn a_flush_sends_at_once_and_waits_for_the_answer() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::After(ms(70), Box::new(Step::Answer(json!({"accepted": 1})))));
    bench.submit([1]);
    let begin = Instant::now();
    assert!(bench.reporter.flush(Some(ms(1000))).await);
    assert_eq!(begin.elapsed(), ms(70));
    assert_eq!(bench.reporter.stats().sent, 1);
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_although_others_go_on_submitting() {
    let bench = Bench::new(|_| {});
    bench.script.always(Procedure::Report, Step::After(ms(20), Box::new(Step::Answer(json!({"accepted": 1})))));
    let others = bench.reporter.clone();
    let crowd = tokio::spawn(async move {
        for n in 100.. {
            others.submit(sample(n)).unwrap();
            tokio::time::sleep(ms(3)).await;
        }
    });
    tokio::time::sleep(ms(500)).await;
    let begin = Instant::now();
    assert!(bench.reporter.flush(Some(ms(5000))).await);
    assert!(begin.elapsed() < ms(100), "{:?}", begin.elapsed());
    crowd.abort();
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_is_given_up_leaves_the_interval_as_it_was() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::After(ms(400), Box::new(Step::Answer(json!({"accepted": 1})))));
    bench.submit([1]);
    assert!(!bench.reporter.flush(Some(ms(10))).await);
    tokio::time::sleep(ms(400)).await;
    bench.submit([2]);
    tokio::time::sleep(ms(150)).await;
    assert_eq!(bench.batches(), [ids([1])]);
}

#[tokio::test(start_paused = true)]
async fn b101_a_call_is_made_once_and_again_by_the_reporter_only() {
    let bench = Bench::new(|_| {});
    bench.script.next(Procedure::Report, Step::Bare { status: 503, body: "<html>busy</html>" });
    bench.submit([1]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids([1]), ids([1])]);
    assert!(bench.times()[1] >= ms(250), "{:?}", bench.times());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_before_the_first_report() {
    let bench = Bench::new(|_| {});
    tokio::time::sleep(ms(1_000)).await;
    assert!(!bench.reporter.shared().with(|state| state.crew.is_manned()));
    bench.submit([1]);
    assert!(bench.reporter.shared().with(|state| state.crew.is_manned()));
}

/// The load the reporter must bear is 100,000 reports/s; a busy machine and an unoptimised build are allowed for.
#[tokio::test]
async fn submitting_takes_microseconds_even_when_reports_are_dropped() {
    let bench = Bench::new(|_| {});
    let report = sample(1);
    let begin = std::time::Instant::now();
    for _ in 0..100_000 {
        bench.reporter.submit(report.clone()).unwrap();
    }
    let took = begin.elapsed();
    println!("100,000 reports in {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(bench.reporter.stats().submitted, 100_000);
    bench.check_sum();
}
