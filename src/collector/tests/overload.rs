//! Case W02: more than fits, from all sides, while the sink takes nothing.

use super::*;
use crate::actor::run_local;
use crate::apcloudy::{LogLevel, LogRecord};

const CASE: &str = include_str!("../../../tests/data/cases/W02-control-message-in-a-full-mailbox.json");

const ITEMS: u64 = 1000;
const LOGS: usize = 1000;
const BLOCKED: Duration = Duration::from_secs(2);

/// When the close is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    WhileFull,
    Afterwards,
}

/// Sends all items, each as soon as there is a place; tells how often there was none and the longest queue it saw.
async fn produce(link: Link<Order>) -> (u64, usize) {
    let (mut waited, mut longest) = (0, 0);
    for ticket in 1..=ITEMS {
        waited += u64::from(link.free() == 0);
        link.send(Order::Group(page(ticket))).await.expect("a collector that is not closed takes orders");
        longest = longest.max(link.depth());
    }
    (waited, longest)
}

async fn overload(stop: Stop, expect: &Value) {
    let bound = usize::try_from(expect["max_queue_len"].as_u64().unwrap()).unwrap();
    let dir = TempDir::new().unwrap();
    let sink = MemorySink::new();
    sink.block();
    let config = CollectorConfig { spool_max_bytes: 20_000, segment_bytes: 2000, ..config() };
    let mut rig = Setup { config, bound, ..Setup::new(sink.clone()) }.start(&dir.path().join("spool"));
    let release = tokio::task::spawn_local({
        let sink = sink.clone();
        async move {
            tokio::time::sleep(BLOCKED).await;
            sink.release();
        }
    });
    let producer = tokio::task::spawn_local(produce(rig.link.clone()));
    rig.wait(SECOND).await;
    for n in 0..LOGS {
        rig.ring.push(LogRecord::new(Duration::from_secs(NOW), LogLevel::Debug, "shop".into(), format!("line {n}")));
    }
    rig.run().await;
    assert!(!producer.is_finished(), "producers wait");
    assert_eq!((rig.blocked(), rig.link.free()), (1, 0));
    assert!(rig.link.depth() + rig.state.lock().unwrap().waiting.len() <= bound);

    // A command is heard although no order is.
    let kept: Vec<_> = rig.kept().into_iter().map(|ticket| RequestId(u128::from(ticket))).collect();
    assert_eq!(rig.state.lock().unwrap().ends.len(), kept.len());
    assert!(rig.inbox.controls().tell(Control::Settled(kept)));
    rig.run().await;
    assert_eq!(rig.state.lock().unwrap().ends.len(), 0);
    assert_eq!(rig.link.free(), 0);

    let mut sent = ITEMS;
    if stop == Stop::Afterwards {
        for _ in 0..60 {
            rig.wait(SECOND).await;
            if producer.is_finished() {
                break;
            }
        }
        assert!(producer.is_finished(), "the sink is back");
        sent += 1;
        rig.order(sent);
        rig.run().await;
        assert_eq!(rig.kept().last(), Some(&sent), "it still receives");
    }
    let begun = tokio::time::Instant::now();
    let closed = rig.close().await;
    let limit = Duration::from_millis(expect["stop_honoured_within_ms"].as_u64().unwrap());
    assert!(begun.elapsed() <= limit, "{:?}", begun.elapsed());
    release.await.unwrap();
    let (waited, longest) = producer.await.unwrap();
    assert!(waited > 0);
    assert!(longest <= bound, "{longest} orders were queued");

    let lost = sent - items(&sink.bodies()).len() as u64;
    assert_eq!(Value::from(lost), expect["items_lost"]);
    assert_eq!(sorted(items(&sink.bodies())), (1..=sent).collect::<Vec<_>>());
    assert_eq!((closed.items, closed.delivered, closed.undelivered_records), (sent, sent, 0));
    let logs = list(&sink.bodies(), "logs").len();
    assert_eq!(logs, 100, "what the ring holds");
    assert_eq!(rig.stats.count("collector/log_dropped"), i64::try_from(LOGS - logs).unwrap());
}

#[test]
fn case_w02_a_full_collector_hears_its_commands_and_loses_log_records_alone() {
    let case: Value = serde_json::from_str(CASE).unwrap();
    for stop in [Stop::WhileFull, Stop::Afterwards] {
        run_local(overload(stop, &case["expect"]));
    }
}
