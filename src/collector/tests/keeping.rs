use super::*;
use crate::actor::{Refused, run_local};
use crate::apcloudy::{LogLevel, LogRecord};
use crate::collector::log::{LogOptions, RecordLog};
use crate::export::{FeedError, FeedSummary, ItemText};

fn down() -> Answer {
    Answer::Retry { after: None, why: "503".into() }
}

/// What another process would find in the spool after a kill now.
fn records_on_disk(spool: &Path) -> (usize, usize) {
    let copy = TempDir::new().unwrap();
    for file in std::fs::read_dir(spool).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
    }
    let (mut log, recovered) = RecordLog::open(copy.path(), &JobId::from(7), LogOptions::new(1)).unwrap();
    let records =
        recovered.uncut.map_or(0, |range| log.read(range).unwrap().filter(|e| e.as_ref().unwrap().1.record().is_some()).count());
    (records, recovered.ends.len())
}

#[test]
fn a_group_is_kept_once_it_survives_a_kill() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let mut rig = Setup {
            config: CollectorConfig { limits: BatchLimits { size: 1000, ..config().limits }, ..config() },
            ..Setup::new(MemorySink::new())
        }
        .start(&dir.path().join("spool"));
        // The second turn is not synced yet: a kill is survived without.
        for turn in [1..=10, 11..=20] {
            rig.orders(turn);
            rig.run().await;
        }
        assert_eq!(rig.kept(), (1..=20).collect::<Vec<_>>());
        assert_eq!(rig.facts.len(), 2, "one post for a whole turn");
        assert_eq!(records_on_disk(&rig.dir), (40, 20));
        assert_eq!(rig.stats.count("collector/groups"), 20);
        assert_eq!(rig.stats.count("collector/records/item"), 20);
        assert_eq!(rig.stats.count("collector/kept_turn_max"), 10);
    });
}

/// A feed that looks into the spool before it takes its items: how many of them were there already.
#[derive(Debug)]
struct Witness {
    spool: PathBuf,
    late: Arc<std::sync::Mutex<Vec<String>>>,
    calls: usize,
}

impl Feed for Witness {
    fn write(&mut self, items: &[ItemText]) -> Result<(), FeedError> {
        self.calls += 1;
        let segments = std::fs::read_dir(&self.spool).unwrap().map(|entry| entry.unwrap().path());
        let bytes: Vec<u8> = segments.flat_map(|path| std::fs::read(path).unwrap()).collect();
        for item in items {
            // In the spool it has a time behind its fields.
            let text = item.as_str().trim_end_matches('}');
            if memchr::memmem::find(&bytes, format!("{text},").as_bytes()).is_some() {
                self.late.lock().unwrap().push(text.to_owned());
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<FeedSummary, FeedError> {
        assert!(self.calls > 3, "one turn fills several segments");
        Ok(FeedSummary { uri: "witness".to_owned(), items: 0, bytes: 0 })
    }
}

#[test]
fn no_item_is_in_the_log_on_disk_before_it_is_in_the_feeds() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let spool = dir.path().join("spool");
        let late = Arc::default();
        let witness = Witness { spool: spool.clone(), late: Arc::clone(&late), calls: 0 };
        let mut setup = Setup { config: CollectorConfig { segment_bytes: 500, ..config() }, ..Setup::new(MemorySink::new()) };
        setup.feeds.push(("witness".to_owned(), Box::new(witness)));
        let mut rig = setup.start(&spool);
        rig.orders(1..=40);
        rig.run().await;
        assert_eq!(rig.kept().len(), 40);
        assert_eq!(*late.lock().unwrap(), [""; 0], "a kill would have left these out of the feed");
        assert_eq!(rig.close().await.items, 40);
    });
}

#[test]
fn a_group_without_records_is_kept_too() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let mut rig = Rig::start(&dir, &MemorySink::new());
        let empty = Group { tag: Tag { ticket: 1, epoch: 1 }, part: 0, items: vec![], records: vec![], end: None };
        rig.link.offer(Order::Group(Arc::new(empty))).unwrap();
        rig.run().await;
        assert_eq!(rig.kept(), [1]);
    });
}

#[test]
fn a_group_ordered_twice_is_written_once_and_kept_twice() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Rig::start(&dir, &sink);
        rig.orders([1, 1, 2]);
        rig.run().await;
        rig.orders([1]);
        rig.run().await;
        assert_eq!(rig.kept(), [1, 1, 2, 1]);
        let closed = rig.close().await;
        assert_eq!(items(&sink.bodies()), [1, 2]);
        assert_eq!((closed.items, closed.delivered), (2, 2));
    });
}

#[test]
fn batches_are_cut_by_size_by_age_and_at_the_close_and_arrive_in_order() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Rig::start(&dir, &sink);
        rig.orders(1..=12);
        rig.wait(SECOND).await;
        assert_eq!(items(&sink.bodies()), (1..=10).collect::<Vec<_>>(), "two full batches");
        assert_eq!(sink.ids().len(), 2);
        rig.wait(8 * SECOND).await;
        assert_eq!(sink.ids().len(), 2);
        rig.wait(2 * SECOND).await;
        assert_eq!(items(&sink.bodies()), (1..=12).collect::<Vec<_>>(), "ten seconds old");
        rig.orders([13]);
        rig.run().await;
        let closed = rig.close().await;
        let bodies = sink.bodies();
        assert_eq!(items(&bodies), (1..=13).collect::<Vec<_>>());
        assert_eq!(bodies.len(), 4);
        assert!(bodies[3].ends_with(r#""stats": {"finish_reason": "finished"}}}"#), "{}", bodies[3]);
        assert!(bodies[0].contains(r#"{"n": 1, "_ts": 1700000000}"#), "{}", bodies[0]);
        let expected = Closed { items: 13, delivered: 13, ..Closed::default() };
        assert_eq!(closed, expected);
        assert_eq!(rig.stats.count("courier/batches"), 4);
        assert_eq!(rig.stats.count("courier/delivered"), 27);
    });
}

#[test]
fn a_sink_that_is_down_sees_the_same_batch_again_and_in_order() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.fail(5, down());
        let mut rig = Rig::start(&dir, &sink);
        rig.orders(1..=15);
        rig.wait(120 * SECOND).await;
        assert_eq!(sink.calls(), 5 + 3);
        assert_eq!(items(&sink.bodies()), (1..=15).collect::<Vec<_>>());
        assert_eq!(rig.stats.count("courier/retries"), 5);
        sink.lose_answers(1);
        rig.orders(16..=20);
        rig.wait(60 * SECOND).await;
        assert_eq!(sink.calls(), 10);
        assert_eq!(items(&sink.bodies()), (1..=20).collect::<Vec<_>>(), "the repeat was known by its id");
    });
}

#[test]
fn a_slow_sink_blocks_at_the_bound_and_nothing_grows() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        sink.fail(1000, down());
        let mut rig = Setup {
            config: CollectorConfig { spool_max_bytes: 4000, segment_bytes: 2000, ..config() },
            bound: 8,
            ..Setup::new(sink.clone())
        }
        .start(&dir.path().join("spool"));
        let mut taken = 0_u64;
        for _ in 0..300 {
            match rig.link.offer(Order::Group(page(taken + 1))) {
                Ok(()) => taken += 1,
                Err(refused) => assert!(matches!(refused, Refused::Full(_))),
            }
            rig.run().await;
        }
        assert_eq!((rig.blocked(), rig.unblocked()), (1, 0));
        assert_eq!(rig.link.free(), 0, "what waits keeps its slot");
        assert_eq!(rig.kept().len() as u64, taken - 8);
        {
            let state = rig.state.lock().unwrap();
            assert_eq!(state.waiting.len(), 8);
            assert!(state.log.as_ref().unwrap().held_bytes() <= 4000);
        }
        assert_eq!(rig.stats.count("collector/blocked_count"), 1);
        // The sink is back: what was scripted is spent by its own retries.
        rig.wait(40_000 * SECOND).await;
        assert_eq!((rig.blocked(), rig.unblocked()), (1, 1));
        assert_eq!(rig.kept().len() as u64, taken);
        let closed = rig.close().await;
        assert_eq!(items(&sink.bodies()), (1..=taken).collect::<Vec<_>>());
        assert_eq!((closed.items, closed.delivered, closed.undelivered_records), (taken, taken, 0));
    });
}

#[test]
fn bodies_that_are_not_kept_are_read_from_the_log() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Setup {
            config: CollectorConfig { limits: BatchLimits { max_bytes: 600, ..config().limits }, ..config() },
            ..Setup::new(sink.clone())
        }
        .start(&dir.path().join("spool"));
        let large = Group { items: vec![format!(r#"{{"n": 2, "text": "{}"}}"#, "x".repeat(900))], ..group(2) };
        rig.order(1);
        rig.link.offer(Order::Group(Arc::new(large))).unwrap();
        rig.order(3);
        rig.wait(20 * SECOND).await;
        assert_eq!(items(&sink.bodies()), [1, 2, 3]);
    });
}

fn group(ticket: u64) -> Group {
    Arc::into_inner(page(ticket)).unwrap()
}

#[test]
fn a_partial_batch_does_not_lock_up_a_full_spool() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let limits = BatchLimits { size: 100_000, max_bytes: 1 << 30, flush_after: 86_400 * SECOND };
        let mut rig = Setup {
            config: CollectorConfig { limits, spool_max_bytes: 4000, segment_bytes: 500, ..config() },
            ..Setup::new(sink.clone())
        }
        .start(&dir.path().join("spool"));
        rig.orders(1..=60);
        rig.wait(10 * SECOND).await;
        assert_eq!(rig.kept().len(), 60);
        assert!(rig.unblocked() >= 1 && rig.unblocked() == rig.blocked());
        rig.close().await;
        assert_eq!(items(&sink.bodies()), (1..=60).collect::<Vec<_>>());
    });
}

#[test]
fn log_records_ride_along_and_a_full_ring_is_counted() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Rig::start(&dir, &sink);
        for n in 0..105 {
            rig.ring.push(LogRecord::new(SECOND, LogLevel::Info, "x".into(), format!("line {n}")));
        }
        rig.wait(SECOND).await;
        assert_eq!(list(&sink.bodies(), "logs").len(), 100);
        rig.ring.push(LogRecord::new(SECOND, LogLevel::Info, "x".into(), "last".into()));
        rig.close().await;
        let logs = list(&sink.bodies(), "logs");
        assert!(logs.iter().enumerate().all(|(n, log)| log["index"] == n));
        assert_eq!(logs.last().unwrap()["message"], "last");
        assert_eq!(rig.stats.count("collector/log_dropped"), 5);
        assert_eq!(rig.stats.count("collector/records/log"), 101);
    });
}

#[test]
fn settled_and_delivered_segments_are_removed() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let mut rig = Setup { config: CollectorConfig { segment_bytes: 1000, ..config() }, ..Setup::new(MemorySink::new()) }
            .start(&dir.path().join("spool"));
        let segments = |rig: &Rig| std::fs::read_dir(&rig.dir).unwrap().count() - 1;
        for round in 0..10 {
            rig.orders(round * 10 + 1..=round * 10 + 10);
            rig.wait(SECOND).await;
        }
        assert!(segments(&rig) > 5, "delivered but not settled");
        rig.inbox.controls().tell(Control::Settled((1..=100).map(RequestId).collect()));
        rig.order(101);
        rig.wait(SECOND).await;
        assert!(segments(&rig) <= 2, "{} segments", segments(&rig));
    });
}

#[test]
fn a_disk_that_refuses_blocks_is_tried_again_and_loses_nothing() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let sink = MemorySink::new();
        let mut rig = Setup {
            config: CollectorConfig { segment_bytes: 200, disk_wait: 30 * SECOND, ..config() },
            bound: 4,
            ..Setup::new(sink.clone())
        }
        .start(&dir.path().join("spool"));
        rig.orders(1..=2);
        rig.wait(SECOND).await;
        // The next segment has no directory to be created in.
        let away = dir.path().join("away");
        std::fs::rename(&rig.dir, &away).unwrap();
        rig.orders(3..=6);
        rig.wait(5 * SECOND).await;
        assert!(rig.kept().len() < 6);
        assert_eq!((rig.blocked(), rig.unblocked()), (1, 0));
        assert!(rig.link.free() < 4);
        rig.wait(30 * SECOND).await;
        assert!(rig.facts.iter().any(|fact| matches!(fact, Fact::GaveUp(why) if why.contains("DISK_WAIT"))), "{:?}", rig.facts);
        std::fs::rename(&away, &rig.dir).unwrap();
        rig.wait(2 * SECOND).await;
        assert_eq!(rig.unblocked(), 1);
        assert_eq!(rig.kept(), [1, 2, 3, 4, 5, 6]);
        rig.close().await;
        assert_eq!(items(&sink.bodies()), [1, 2, 3, 4, 5, 6]);
    });
}
