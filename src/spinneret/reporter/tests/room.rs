//! The bound of the queue: who is dropped, who waits.

use serde_json::json;

use super::*;

/// A reporter with room for three reports, whose first call hangs with report 0.
async fn full() -> Bench {
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size, options.max_queue_size) = (1, 3, 3));
    bench.script.next(Procedure::Report, Step::After(ms(1_000), Box::new(Step::Answer(json!({"accepted": 1})))));
    bench.submit([0]);
    settle().await;
    assert_eq!(bench.batches(), [ids([0])]);
    bench
}

#[tokio::test(start_paused = true)]
async fn b096_the_oldest_reports_are_dropped_when_there_is_no_room() {
    let bench = full().await;
    bench.submit(1..=7);
    let stats = bench.reporter.stats();
    assert_eq!((stats.submitted, stats.dropped, stats.queued, stats.in_flight), (8, 4, 3, 1));
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids([0]), ids(5..=7)]);
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_comes_back_to_a_full_queue_is_dropped_first() {
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size, options.max_queue_size) = (1, 3, 3));
    let failure = refuse(503, "unavailable", "", None);
    bench.script.next(Procedure::Report, Step::After(ms(100), Box::new(failure)));
    bench.submit([0]);
    settle().await;
    bench.submit(1..=2);
    bench.submit([3]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids([0]), ids(1..=3)]);
    assert_eq!(bench.reporter.stats().dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn ordinary_reports_are_dropped_before_those_the_server_waits_for() {
    let bench = full().await;
    bench.reporter.submit(releasing(1)).unwrap();
    bench.reporter.submit_as(sample(2), Standing::Probe).unwrap();
    bench.submit(3..=5);
    assert_eq!(bench.reporter.stats().dropped, 2);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids([0]), ids([1, 2, 5])]);
    assert_eq!(bench.released().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_dropped_releasing_report_is_given_back_by_a_call() {
    let bench = full().await;
    bench.reporter.submit(releasing(1)).unwrap();
    bench.reporter.submit_as(sample(2), Standing::Probe).unwrap();
    for n in 3..=5 {
        bench.reporter.submit(releasing(n)).unwrap();
    }
    settle().await;
    assert_eq!(bench.released(), ["lse_1"]);
    assert_eq!(bench.reporter.stats().dropped, 2);
    // A report without a claim is the one to do without.
    bench.submit([6]);
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches(), [ids([0]), ids(3..=5)]);
    assert_eq!(bench.released(), ["lse_1"]);
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_gets_it_in_turn_and_keeps_it() {
    let bench = full().await;
    bench.submit(1..=3);
    let mut waiting = Vec::new();
    for n in 10..14 {
        let reporter = bench.reporter.clone();
        waiting.push(tokio::spawn(async move { reporter.submit_wait(sample(n)).await }));
        settle().await;
    }
    assert_eq!(bench.reporter.stats().submitted, 4);
    tokio::time::sleep(ms(1_000)).await;
    for one in waiting {
        one.await.unwrap().unwrap();
    }
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches().concat(), ids([0, 1, 2, 3, 10, 11, 12, 13]));
    assert_eq!(bench.reporter.stats().dropped, 0);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_waited_for_its_room_is_never_dropped_for_others() {
    let bench = Bench::new(|options| (options.batch_size, options.max_batch_size, options.max_queue_size) = (1, 3, 3));
    let failure = Step::After(ms(100), Box::new(refuse(503, "unavailable", "", None)));
    bench.script.next(Procedure::Report, failure);
    bench.reporter.submit_wait(sample(1)).await.unwrap();
    settle().await;
    bench.reporter.submit_wait(sample(2)).await.unwrap();
    bench.submit(3..=9);
    bench.reporter.submit(releasing(10)).unwrap();
    bench.reporter.submit(releasing(11)).unwrap();
    // The failed batch comes back and takes the room it had.
    assert!(bench.reporter.flush(None).await);
    settle().await;
    assert_eq!(bench.batches(), [ids([1]), ids([1, 2, 11])]);
    assert_eq!(bench.released(), ["lse_10"]);
    bench.check_sum();
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_takes_the_report_along_and_leaves_the_line_in_order() {
    let bench = full().await;
    bench.submit(1..=3);
    let given_up = tokio::time::timeout(ms(100), bench.reporter.submit_wait(sample(10))).await;
    assert!(given_up.is_err());
    bench.reporter.submit_wait(sample(11)).await.unwrap();
    assert!(bench.reporter.flush(None).await);
    assert_eq!(bench.batches().concat(), ids([0, 1, 2, 3, 11]));
    assert_eq!(bench.reporter.stats().submitted, 5);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_wait_for_room() {
    let bench = full().await;
    bench.submit(1..=3);
    let waiting: Vec<_> = (10..13)
        .map(|n| {
            let reporter = bench.reporter.clone();
            tokio::spawn(async move { reporter.submit_wait(sample(n)).await })
        })
        .collect();
    settle().await;
    let begin = Instant::now();
    let closing = bench.reporter.close(None);
    tokio::join!(closing, async {
        for one in waiting {
            assert!(matches!(one.await.unwrap(), Err(Error::ReporterClosed(_))));
        }
        assert_eq!(begin.elapsed(), ms(0));
    });
    assert_eq!(bench.batches().concat(), ids(0..=3));
    assert!(matches!(bench.reporter.submit_wait(sample(20)).await, Err(Error::ReporterClosed(_))));
}
