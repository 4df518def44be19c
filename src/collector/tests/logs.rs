use std::cell::Cell;

use tokio::time::Instant;
use tracing::subscriber::set_default;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::actor::run_local;
use crate::apcloudy::{LogLevel, LogRecord};
use crate::collector::batch::Batch;
use crate::collector::layer::{LiveLevel, LogLayer};
use crate::courier::Pending;

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The paused clock, as a layer reads it.
fn clock() -> Duration {
    let began = BEGAN.get().unwrap_or_else(Instant::now);
    BEGAN.set(Some(began));
    Duration::from_secs(NOW) + began.elapsed()
}

fn record(message: &str) -> LogRecord {
    LogRecord::new(Duration::from_secs(NOW), LogLevel::Info, "shop".into(), message.into())
}

fn messages(bodies: &[String]) -> Vec<String> {
    list(bodies, "logs").iter().map(|log| log["message"].as_str().unwrap().to_owned()).collect()
}

/// Refuses every body with a line of the delivery's own, and keeps the others.
struct Touchy(MemorySink);

impl Webhook for Touchy {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        if batch.body.contains(r#""logger": "dragline.courier"#) {
            tracing::warn!(target: "dragline::courier", "refused once more");
            return Box::pin(std::future::ready(Answer::Reject { why: "no such logger".into() }));
        }
        self.0.deliver(batch)
    }

    fn place(&self) -> String {
        "touchy".to_owned()
    }
}

#[test]
fn dropped_log_records_are_said_once() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Rig::start(&dir, &sink);
        let level = Arc::new(LiveLevel::new(LogLevel::Info));
        let layer = LogLayer::with_clock(rig.ring.clone(), level, rig.stats.clone(), clock);
        // With one dispatcher alone, tracing asks the thread that first meets a callsite, and caches its answer for all.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let _installed = set_default(tracing_subscriber::registry().with(layer));
        for _ in 0..2 {
            for n in 0..105 {
                rig.ring.push(record(&format!("line {n}")));
            }
            rig.wait(20 * SECOND).await;
        }
        let said = messages(&sink.bodies()).iter().filter(|line| line.contains("collector/log_dropped counts it")).count();
        assert_eq!((rig.stats.count("collector/log_dropped"), said), (10, 1));
    });
}

#[test]
fn a_sink_that_refuses_the_delivery_s_own_lines_starts_no_endless_stream() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut setup = Setup::new(Touchy(sink.clone()));
        // Everything is sent at once: without a limit each refusal would be the next one's cause.
        setup.config.limits.size = 1;
        let mut rig = setup.start(&dir.path().join("spool"));
        let level = Arc::new(LiveLevel::new(LogLevel::Info));
        let layer = LogLayer::with_clock(rig.ring.clone(), level, rig.stats.clone(), clock);
        // With one dispatcher alone, tracing asks the thread that first meets a callsite, and caches its answer for all.
        let _second = tracing::Dispatch::new(tracing_subscriber::registry());
        let _installed = set_default(tracing_subscriber::registry().with(layer));
        tracing::warn!(target: "dragline::courier", "the first one");
        rig.wait(60 * SECOND).await;
        let in_a_minute = rig.stats.count("courier/rejected");
        assert!((20..=20 + 60 / 5 + 1).contains(&in_a_minute), "{in_a_minute}");
        rig.wait(600 * SECOND).await;
        let in_all = rig.stats.count("courier/rejected");
        assert!(in_all <= 20 + 660 / 5 + 1, "{in_all}");
        let dropped = rig.stats.count("collector/log_own_dropped");
        assert!(dropped > 0, "each refusal says two lines");

        tracing::info!(target: "shop", "something else");
        rig.order(1);
        let begun = Instant::now();
        let closed = rig.close().await;
        assert!(begun.elapsed() <= SECOND / 2, "the end does not wait for its own lines: {:?}", begun.elapsed());
        assert_eq!((closed.delivered, closed.rejected, closed.spooled), (1, 0, 0));
        assert_eq!(closed.undelivered_records, u64::try_from(rig.stats.count("courier/rejected")).unwrap());
        assert_eq!(items(&sink.bodies()), [1]);
        assert_eq!(messages(&sink.bodies()), ["something else"]);
        assert!(sink.bodies().last().unwrap().contains("finish_reason"));
    });
}

#[test]
fn the_job_s_last_two_lines_are_in_the_batch_of_the_stats() {
    for lines in 0..=21 {
        run_local(async move {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let mut rig = Rig::start(&dir, &sink);
            rig.run().await;
            (0..lines).for_each(|n| rig.ring.push(record(&n.to_string())));
            rig.ring.push(record("Dumping stats: {}"));
            rig.ring.push(record("Spider closed (finished)"));
            rig.close().await;
            let bodies = sink.bodies();
            let (last, before) = bodies.split_last().unwrap();
            let last = messages(std::slice::from_ref(last));
            assert!(
                last.ends_with(&["Dumping stats: {}".to_owned(), "Spider closed (finished)".to_owned()]),
                "{lines}: {last:?}"
            );
            assert!(before.iter().all(|body| !body.contains("finish_reason")));
            assert!(list(&bodies, "logs").iter().map(|log| log["index"].as_u64().unwrap()).eq(0..lines + 2), "{lines}");
            assert_eq!(rig.stats.count("collector/records/stats"), 1);
        });
    }
}

#[test]
fn what_is_said_while_the_last_batch_is_under_way_is_delivered_too() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.fail(1, Answer::Retry { after: Some(2 * SECOND), why: "503".into() });
        let mut rig = Rig::start(&dir, &sink);
        rig.ring.push(record("in time"));
        let ring = rig.ring.clone();
        let begun = Instant::now();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(SECOND).await;
            ring.push(record("late"));
            ring.push_own(record("of its own"), Duration::from_secs(NOW));
        });
        let closed = rig.close().await;
        assert!(begun.elapsed() < 4 * SECOND);
        assert_eq!(messages(&sink.bodies()), ["in time", "late"]);
        assert_eq!((closed.undelivered_records, rig.ring.own_dropped()), (0, 1));
        assert_eq!(sink.bodies().iter().filter(|body| body.contains("finish_reason")).count(), 1, "the stats go once");
    });
}
