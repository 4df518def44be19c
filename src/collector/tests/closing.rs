use std::sync::Mutex;

use super::*;
use crate::actor::run_local;
use crate::collector::batch::Batch;
use crate::collector::leftovers;
use crate::courier::Pending;
use crate::export::{FeedError, FeedSummary, ItemText};

/// Refuses every body that holds a word.
struct Poisoned(MemorySink);

impl Webhook for Poisoned {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        if batch.body.contains("poison") {
            return Box::pin(std::future::ready(Answer::Split { why: "unknown field".into() }));
        }
        self.0.deliver(batch)
    }

    fn place(&self) -> String {
        "picky".to_owned()
    }
}

fn poison(ticket: u64) -> Arc<Group> {
    let mut group = Arc::into_inner(page(ticket)).unwrap();
    group.items = vec![format!(r#"{{"n": {ticket}, "poison": true}}"#)];
    Arc::new(group)
}

#[test]
fn a_poison_record_costs_only_itself() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Setup::new(Poisoned(sink.clone())).start(&dir.path().join("spool"));
        rig.orders([1, 2]);
        rig.link.offer(Order::Group(poison(3))).unwrap();
        rig.orders([4, 5, 6]);
        let closed = rig.close().await;
        assert_eq!(sorted(items(&sink.bodies())), [1, 2, 4, 5, 6]);
        assert_eq!(list(&sink.bodies(), "requests").len(), 6);
        let expected = Closed { items: 6, delivered: 5, rejected: 1, undelivered_records: 1, ..Closed::default() };
        assert_eq!(closed, expected);
        let files: Vec<_> = std::fs::read_dir(rig.dir.join("rejected")).unwrap().collect();
        assert_eq!(files.len(), 1);
        let path = files[0].as_ref().unwrap().path();
        assert_eq!(path.extension().unwrap(), "json");
        let form: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((items(&[form["body"].to_string()]), &form["answer"]), (vec![3], &Value::from("unknown field")));
        assert_eq!(rig.stats.count("courier/rejected"), 1);
    });
}

#[test]
fn a_batch_of_poison_alone_is_rejected_as_a_whole() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut setup = Setup::new(Poisoned(sink.clone()));
        setup.config.limits.size = 1;
        let mut rig = setup.start(&dir.path().join("spool"));
        rig.link.offer(Order::Group(poison(1))).unwrap();
        rig.order(2);
        let closed = rig.close().await;
        assert_eq!((closed.delivered, closed.rejected, closed.spooled), (1, 1, 0));
        assert_eq!(items(&sink.bodies()), [2]);
    });
}

#[test]
fn a_fatal_answer_leaves_everything_in_the_spool_for_the_next_run() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.fail(1, Answer::Fatal { why: "401".into() });
        let mut rig = Rig::start(&dir, &sink);
        rig.orders(1..=12);
        rig.wait(SECOND).await;
        let closed = rig.close().await;
        assert_eq!((closed.items, closed.delivered, closed.spooled, closed.undelivered_records), (12, 0, 12, 25));
        assert_eq!(sink.calls(), 1, "a fatal answer is asked for once");
        let mut next = Rig::start(&dir, &sink);
        assert_eq!(next.ends.len(), 12, "not settled, so reported again");
        next.orders([20]);
        next.wait(SECOND).await;
        let closed = next.close().await;
        assert_eq!(items(&sink.bodies()), (1..=12).chain([20]).collect::<Vec<_>>());
        assert_eq!((closed.items, closed.delivered, closed.recovered, closed.undelivered_records), (1, 1, 12, 0));
    });
}

#[test]
fn a_full_spool_with_a_fatal_sink_gives_up() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.fail(1, Answer::Fatal { why: "401".into() });
        let mut setup = Setup::new(sink);
        setup.config.spool_max_bytes = 1000;
        let mut rig = setup.start(&dir.path().join("spool"));
        rig.orders(1..=40);
        rig.wait(50 * SECOND).await;
        assert_eq!(rig.blocked(), 1);
        assert!(!rig.facts.iter().any(|fact| matches!(fact, Fact::GaveUp(_))));
        rig.wait(20 * SECOND).await;
        assert!(rig.facts.iter().any(|fact| matches!(fact, Fact::GaveUp(why) if why.contains("401"))));
    });
}

#[test]
fn a_close_is_bounded_whatever_the_sink_does() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.fail(100_000, Answer::Retry { after: Some(300 * SECOND), why: "503".into() });
        let mut rig = Rig::start(&dir, &sink);
        rig.orders(1..=60);
        rig.wait(SECOND).await;
        let begun = tokio::time::Instant::now();
        let closed = rig.close().await;
        assert!(begun.elapsed() <= 7 * SECOND, "{:?}", begun.elapsed());
        assert_eq!((closed.items, closed.delivered, closed.spooled), (60, 0, 60));
        // Asked again, it answers again.
        rig.facts.clear();
        assert_eq!(rig.close().await, closed);
    });
}

#[test]
fn orders_that_wait_behind_the_close_are_written_before_the_last_batch() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut setup = Setup::new(sink.clone());
        setup.bound = 300;
        setup.config.limits.size = 1000;
        let mut rig = setup.start(&dir.path().join("spool"));
        rig.orders(1..=300);
        let closed = rig.close().await;
        assert_eq!((closed.items, closed.delivered), (300, 300));
        assert_eq!(sink.bodies().len(), 1);
        assert!(sink.bodies()[0].contains("finish_reason"));
    });
}

#[test]
fn an_empty_spool_of_its_own_is_removed_and_another_is_named() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let mut settings = crate::settings::Settings { data_dir: dir.path().to_owned(), ..Default::default() };
        let spools = dir.path().join("spool");
        for (n, fail) in [(1, false), (2, true), (3, false)] {
            let sink = MemorySink::new();
            if fail {
                sink.fail(1, Answer::Fatal { why: "401".into() });
            }
            let mut setup = Setup::new(sink);
            setup.tidy = Tidy::Remove;
            setup.config.ends = Ends::Skipped;
            let mut rig = setup.start(&spools.join(format!("job-{n}")));
            rig.order(1);
            rig.run().await;
            rig.close().await;
            assert_eq!(rig.dir.exists(), fail);
        }
        settings.jobdir = Some(dir.path().join("jobdir"));
        let outlets = || Outlets { feeds: Vec::new(), ring: Arc::new(LogRing::new(1)), stats: Stats::new(), indexes: None };
        let seeds = Seeds::draw().unwrap();
        let job = JobId::from("next");
        let opened = crate::collector::open(&settings, &job, outlets(), Box::new(MemorySink::new()), seeds).unwrap();
        assert_eq!(leftovers::spools_below(dir.path()).unwrap(), [spools.join("job-2")]);
        assert_eq!(opened.spool, dir.path().join("jobdir/spool"));
        // A spool that a living process has can be told from one that was left.
        settings.jobdir = None;
        let other = crate::collector::open(&settings, &job, outlets(), Box::new(MemorySink::new()), seeds).unwrap();
        other.collector.lock().unwrap().gather(page(1), crate::actor::Slot::empty());
        let tap = Tap::<crate::courier::message::Order>::new("courier", 1);
        other.collector.lock().unwrap().turn(tokio::time::Instant::now(), 0, &tap.link());
        assert!(leftovers::is_in_use(&other.spool));
        assert!(!leftovers::is_in_use(&spools.join("job-2")));
        assert_eq!(leftovers::spools_below(dir.path()).unwrap().len(), 2);
    });
}

#[test]
fn feeds_hold_what_was_kept_without_the_time() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let (lines, array) = (dir.path().join("items.jsonl"), dir.path().join("items.json"));
        let mut rig = Setup::new(MemorySink::new()).feed(&lines).feed(&array).start(&dir.path().join("spool"));
        rig.orders([1, 2, 2, 3]);
        rig.run().await;
        assert_eq!(rig.kept(), [1, 2, 2, 3]);
        let expected = "{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}\n";
        assert_eq!(std::fs::read_to_string(&lines).unwrap(), expected, "flushed before it is kept");
        let closed = rig.close().await;
        assert_eq!(std::fs::read_to_string(&lines).unwrap(), expected);
        let array: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&array).unwrap()).unwrap();
        assert_eq!(array.len(), 3);
        assert_eq!(closed.feeds.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [3, 3]);
        assert!(closed.feed_errors.is_empty());
    });
}

#[derive(Debug)]
struct Scripted {
    written: Arc<Mutex<Vec<String>>>,
    panics: u32,
    refuses: &'static str,
}

impl Feed for Scripted {
    fn write(&mut self, items: &[ItemText]) -> Result<(), FeedError> {
        if self.panics > 0 {
            self.panics -= 1;
            panic!("a feed with a bug");
        }
        if !self.refuses.is_empty() && items.iter().any(|item| item.as_str().contains(self.refuses)) {
            return Err(FeedError::Item { path: "x".into(), reason: "refused".into() });
        }
        self.written.lock().unwrap().extend(items.iter().map(|item| item.as_str().to_owned()));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<FeedSummary, FeedError> {
        Err(FeedError::Item { path: "x".into(), reason: "at the close".into() })
    }
}

fn scripted(panics: u32, refuses: &'static str) -> (Arc<Mutex<Vec<String>>>, Box<dyn Feed>) {
    let written = Arc::default();
    (Arc::clone(&written), Box::new(Scripted { written, panics, refuses }))
}

#[test]
fn a_feed_that_panics_once_gets_every_item_once() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let lines = dir.path().join("a.jsonl");
        let mut setup = Setup::new(sink.clone()).feed(&lines);
        let (written, feed) = scripted(1, "");
        setup.feeds.push(("buggy".into(), feed));
        let mut rig = setup.start(&dir.path().join("spool"));
        rig.orders(1..=5);
        rig.wait(SECOND).await;
        assert_eq!(rig.kept(), [1, 2, 3, 4, 5]);
        assert_eq!(rig.collector.epoch().0, 2);
        let closed = rig.close().await;
        assert_eq!(written.lock().unwrap().len(), 5);
        assert_eq!(std::fs::read_to_string(&lines).unwrap().lines().count(), 5);
        assert_eq!(items(&sink.bodies()), [1, 2, 3, 4, 5]);
        assert_eq!(closed.delivered, 5);
    });
}

#[test]
fn a_feed_that_cannot_be_written_is_told_and_costs_the_sink_nothing() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut setup = Setup::new(sink.clone());
        let (buggy, feed) = scripted(99, "");
        setup.feeds.push(("buggy".into(), feed));
        let (picky, feed) = scripted(0, "3");
        setup.feeds.push(("picky".into(), feed));
        let mut rig = setup.start(&dir.path().join("spool"));
        rig.orders(1..=5);
        rig.wait(5 * SECOND).await;
        let closed = rig.close().await;
        assert_eq!(items(&sink.bodies()), [1, 2, 3, 4, 5]);
        assert!(buggy.lock().unwrap().is_empty());
        assert_eq!(picky.lock().unwrap().len(), 4);
        assert_eq!(closed.feed_errors.len(), 2, "{:?}", closed.feed_errors);
        assert!(closed.feed_errors[0].starts_with("buggy: 5 items are missing"), "{:?}", closed.feed_errors);
        assert!(closed.feed_errors[1].starts_with("picky: 1 items are missing"), "{:?}", closed.feed_errors);
    });
}
