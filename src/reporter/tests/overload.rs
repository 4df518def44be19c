//! Case W02: more reports than fit while the plane takes none.

use super::*;
use crate::actor::{Drained, Link};

const CASE: &str = include_str!("../../../tests/data/cases/W02-control-message-in-a-full-mailbox.json");

const BLOCKED: Duration = Duration::from_secs(2);

/// Sends reports, each as soon as there is a place, until none is taken any more; gives how many were taken.
async fn produce(link: Link<Order>, reports: u64) -> u64 {
    for id in 1..=reports {
        if let Err(given_back) = link.send(Order::Report(report(id, false))).await {
            let Order::Report(report) = given_back.0;
            assert_eq!(report.id, id, "the very report comes back");
            return id - 1;
        }
        assert!(link.depth() <= link.bound());
    }
    reports
}

#[test]
fn case_w02_a_full_reporter_flushes_goes_on_and_stops_without_a_loss() {
    let case: serde_json::Value = serde_json::from_str(CASE).unwrap();
    let expect = &case["expect"];
    let bound = expect["max_queue_len"].as_u64().unwrap();
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend((0..2).map(|_| Act::After(BLOCKED, Ok(Taken::default()))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, usize::try_from(bound).unwrap());
        let (link, controls) = (stage.reporter.inbox().link(), stage.reporter.inbox().controls());
        let producer = tokio::task::spawn_local(produce(link.clone(), 1_000));
        let start = Instant::now();
        while link.free() > 0 || stage.parts.backlog.len() < link.bound() {
            tokio::task::yield_now().await;
        }
        assert!(plane.calls().is_empty(), "none ends a lease, so they wait for others");
        assert!(controls.tell(Control::Flush));
        while plane.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!((start.elapsed(), link.free()), (Duration::ZERO, 0), "the flush needs no place and no time");
        assert_eq!(stage.handed().await, bound);
        assert_eq!(start.elapsed(), BLOCKED);
        while plane.calls().len() < 2 {
            sleep(millis(10)).await;
        }
        assert!(!producer.is_finished(), "it still receives, and producers still wait");

        let stop = Instant::now();
        assert!(controls.tell(Control::HandOver));
        let within = millis(expect["stop_honoured_within_ms"].as_u64().unwrap());
        let Drained { lost, .. } = stage.reporter.drain(within).await;
        assert!(stop.elapsed() <= within);
        assert_eq!(serde_json::Value::from(lost), expect["items_lost"]);
        let taken = producer.await.unwrap();
        assert!(taken >= 2 * bound && taken < 1_000, "{taken}");
        let count = |name: &str| u64::try_from(stage.parts.stats.count(name)).unwrap();
        assert_eq!((count("reporter/reports"), count("reporter/queue_max")), (taken, bound));
        assert!(stage.parts.backlog.is_empty());
        stage.reporter.stop();
        sleep(millis(1)).await;
        assert!(stage.reporter.has_ended());
    });
}
