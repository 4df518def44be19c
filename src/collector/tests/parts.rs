//! Batches taken apart, a sink that hangs, and one that takes nothing any more, with the record log behind it.

use std::sync::Mutex;

use super::*;
use crate::actor::run_local;
use crate::collector::batch::Batch;
use crate::collector::log::BatchId;
use crate::courier::Pending;

/// Refuses every body that holds a word, and hangs after so many calls.
struct Stopping {
    inner: MemorySink,
    left: usize,
    /// What it took, in order.
    taken: Arc<Mutex<Vec<BatchId>>>,
    /// What it refused.
    refused: Arc<Mutex<Vec<BatchId>>>,
}

impl Stopping {
    fn new(inner: &MemorySink, left: usize) -> Self {
        Self { inner: inner.clone(), left, taken: Arc::default(), refused: Arc::default() }
    }
}

impl Webhook for Stopping {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        let Some(left) = self.left.checked_sub(1) else { return Box::pin(std::future::pending()) };
        self.left = left;
        if batch.body.contains("poison") {
            self.refused.lock().unwrap().push(batch.id);
            return Box::pin(std::future::ready(Answer::Split { why: "422: unknown field".into() }));
        }
        self.taken.lock().unwrap().push(batch.id);
        self.inner.deliver(batch)
    }

    fn place(&self) -> String {
        "stopping".to_owned()
    }
}

/// Five pages, the third with a record that is refused: one batch of ten records.
fn five_pages(rig: &Rig) {
    for ticket in 1..=5 {
        let mut group = Arc::into_inner(page(ticket)).unwrap();
        if ticket == 3 {
            group.items = vec![r#"{"n": 3, "poison": true}"#.to_owned()];
        }
        rig.link.offer(Order::Group(Arc::new(group))).unwrap();
    }
}

/// The calls the batch of [`five_pages`] needs.
const CALLS: usize = 7;

fn aside(spool: &Path) -> Vec<String> {
    let files = std::fs::read_dir(spool.join("rejected")).into_iter().flatten();
    let mut texts: Vec<_> = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    texts.sort();
    texts
}

fn assert_all_but_the_third(sink: &MemorySink, spool: &Path, told: &str) {
    let bodies = sink.bodies();
    assert_eq!(sorted(items(&bodies)), [1, 2, 4, 5], "{told}");
    assert_eq!(list(&bodies, "requests").len(), 5, "{told}");
    let aside = aside(spool);
    assert_eq!(aside.len(), 1, "{told}");
    assert!(aside[0].contains("\"items\": [{\"n\": 3, \"poison\": true"), "{told}: {}", aside[0]);
}

#[test]
fn a_split_goes_on_after_a_kill_at_any_call_and_sends_nothing_twice() {
    let mut whole = Vec::new();
    for calls in (1..=CALLS).rev() {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let first = Stopping::new(&sink, calls);
            let (taken, refused) = (Arc::clone(&first.taken), Arc::clone(&first.refused));
            let mut rig = Setup::new(first).start(&dir.path().join("spool"));
            five_pages(&rig);
            rig.wait(5 * SECOND).await;
            let spool = rig.dir.clone();
            rig.kill().await;
            let next = Stopping { taken: Arc::clone(&taken), refused: Arc::clone(&refused), ..Stopping::new(&sink, 1000) };
            let mut rig = Setup::new(next).start(&spool);
            rig.wait(5 * SECOND).await;
            let closed = rig.close().await;
            assert_all_but_the_third(&sink, &spool, &format!("after {calls} calls"));
            assert_eq!(closed.undelivered_records, u64::from(calls < CALLS), "{calls}");
            let mut once = taken.lock().unwrap().clone();
            // The closing stats of the second run are no part of it.
            once.pop();
            if whole.is_empty() {
                whole.clone_from(&once);
                assert_eq!(once.len() + refused.lock().unwrap().len(), CALLS);
            }
            assert_eq!(once, whole, "the same parts with the same ids, each taken once, after {calls} calls");
        });
    }
}

#[test]
fn a_split_whose_outcomes_were_not_journaled_doubles_nothing() {
    // The collector dies at its n-th step and takes nothing in any more; the courier goes on.
    for n in 1..=70 {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let mut setup = Setup::new(Stopping::new(&sink, 1000));
            setup.policy = Policy::FATAL;
            let mut steps = 0;
            setup.fault = Some(Box::new(move |step| {
                steps += 1;
                assert!(steps != n, "scripted panic at {step:?}");
            }));
            let mut rig = setup.start(&dir.path().join("spool"));
            five_pages(&rig);
            rig.wait(5 * SECOND).await;
            let spool = rig.dir.clone();
            rig.kill().await;
            let mut rig = Setup::new(Stopping::new(&sink, 1000)).start(&spool);
            if rig.ends.is_empty() {
                // It died before anything was kept.
                five_pages(&rig);
            }
            rig.wait(5 * SECOND).await;
            rig.close().await;
            assert_all_but_the_third(&sink, &spool, &format!("step {n}"));
        });
    }
}

#[test]
fn a_close_in_the_middle_of_a_split_counts_what_is_where() {
    for (calls, delivered, rejected) in [(1, 0, 0), (2, 0, 0), (5, 2, 0), (6, 2, 1), (7, 4, 1)] {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let mut rig = Setup::new(Stopping::new(&sink, calls)).start(&dir.path().join("spool"));
            five_pages(&rig);
            rig.wait(5 * SECOND).await;
            let closed = rig.close().await;
            assert_eq!(items(&sink.bodies()).len() as u64, delivered, "after {calls} calls");
            assert_eq!((closed.items, closed.delivered, closed.rejected), (5, delivered, rejected), "after {calls} calls");
            assert_eq!(closed.spooled, 5 - delivered - rejected);
            let records = sink.bodies().into_iter().map(|body| body.matches("\"n\":").count() + body.matches("http").count());
            // The closing stats are in the spool.
            assert_eq!(closed.undelivered_records, 11 - records.sum::<usize>() as u64, "after {calls} calls");
        });
    }
}

#[test]
fn while_a_call_hangs_everything_else_goes_on_and_the_close_ends_it() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.block();
        let mut rig = Setup { bound: 1000, ..Setup::new(sink.clone()) }.start(&dir.path().join("spool"));
        for round in 0..20 {
            rig.orders(round * 10 + 1..=round * 10 + 10);
            rig.run().await;
            assert_eq!(rig.kept().len() as u64, round * 10 + 10, "kept at once");
            rig.wait(30 * SECOND).await;
        }
        assert_eq!((sink.calls(), sink.under_way()), (1, 1), "one call at a time, however long it takes");
        let begun = tokio::time::Instant::now();
        let closed = rig.close().await;
        assert!(begun.elapsed() <= 7 * SECOND, "{:?}", begun.elapsed());
        assert_eq!((closed.items, closed.delivered, closed.spooled), (200, 0, 200));
        assert_eq!(sink.under_way(), 0, "the call is dropped");
        sink.release();
        let mut next = Rig::start(&dir, &sink);
        next.wait(5 * SECOND).await;
        let closed = next.close().await;
        assert_eq!((closed.recovered, closed.undelivered_records), (200, 0));
        assert_eq!(items(&sink.bodies()), (1..=200).collect::<Vec<_>>());
    });
}

#[test]
fn a_sink_that_comes_back_goes_on_where_it_hung() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.block();
        let mut rig = Rig::start(&dir, &sink);
        rig.orders(1..=30);
        rig.wait(100 * SECOND).await;
        assert_eq!(sink.ids().len(), 0);
        sink.release();
        rig.wait(SECOND).await;
        assert_eq!(items(&sink.bodies()), (1..=30).collect::<Vec<_>>());
        assert!(rig.stats.count("courier/waiting_ms_max") >= 90_000);
        assert_eq!(rig.close().await.undelivered_records, 0);
    });
}

#[test]
fn a_fatal_answer_stops_the_job_where_the_settings_say_so() {
    for (on_fatal, told) in [(OnFatal::Spool, 0), (OnFatal::Stop, 1)] {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            sink.fail(1, Answer::Fatal { why: "401".into() });
            let mut setup = Setup::new(sink);
            setup.config.on_fatal = on_fatal;
            let mut rig = setup.start(&dir.path().join("spool"));
            rig.orders(1..=30);
            rig.wait(20 * SECOND).await;
            let stopped = rig.facts.iter().filter(|fact| matches!(fact, Fact::DeliveryStopped(why) if why.contains("401")));
            assert_eq!(stopped.count(), told);
            assert_eq!(rig.kept().len(), 30, "the crawl goes on until it is stopped");
            assert_eq!(rig.close().await.spooled, 30);
        });
    }
}
