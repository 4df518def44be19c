use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::actor::run_local;
use crate::collector::batch::Batch;
use crate::collector::log::BatchId;
use crate::courier::{JobStore, Pending};

/// Panics at the n-th of all steps, and at every further n-th up to `times`.
fn fault(n: usize, times: usize) -> Option<Box<dyn FnMut(Step) + Send>> {
    let (mut steps, mut left) = (0, times);
    Some(Box::new(move |step| {
        steps += 1;
        if steps % n == 0 && left > 0 {
            left -= 1;
            panic!("scripted panic at {step:?}");
        }
    }))
}

#[test]
fn a_panic_at_any_step_loses_nothing_and_doubles_nothing() {
    for n in 1..=40 {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let lines = dir.path().join("items.jsonl");
            let mut setup = Setup::new(sink.clone()).feed(&lines);
            setup.fault = fault(n, 3);
            let mut rig = setup.start(&dir.path().join("spool"));
            for round in 0..4 {
                rig.orders(round * 6 + 1..=round * 6 + 6);
                // The engine may hear of a panic before it hears of what was kept, and orders again.
                tokio::time::sleep(SECOND).await;
                if rig.collector.epoch().0 > 1 {
                    rig.orders(round * 6 + 1..=round * 6 + 6);
                }
                rig.wait(SECOND).await;
            }
            // What the engine does after a panic: it orders again what it has not heard of.
            for _ in 0..3 {
                let kept: HashSet<_> = rig.kept().into_iter().collect();
                rig.orders((1..=24).filter(|ticket| !kept.contains(ticket)));
                rig.wait(20 * SECOND).await;
            }
            let closed = rig.close().await;
            let all: Vec<_> = (1..=24).collect();
            let mut kept = sorted(rig.kept());
            kept.dedup();
            assert_eq!(kept, all, "step {n}");
            assert_eq!(sorted(items(&sink.bodies())), all, "step {n}");
            assert_eq!(list(&sink.bodies(), "requests").len(), 24, "step {n}");
            assert_eq!(std::fs::read_to_string(&lines).unwrap().lines().count(), 24, "step {n}");
            assert_eq!((closed.items, closed.delivered, closed.undelivered_records), (24, 24, 0), "step {n}");
        });
    }
}

#[test]
fn a_kill_at_any_step_loses_nothing_that_was_kept() {
    for n in 1..=60 {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let mut setup = Setup::new(sink.clone());
            setup.policy = Policy::FATAL;
            setup.fault = fault(n, 1);
            let mut rig = setup.start(&dir.path().join("spool"));
            let mut ordered = 0;
            for round in 0..6 {
                for ticket in round * 4 + 1..=round * 4 + 4 {
                    if rig.link.offer(Order::Group(page(ticket))).is_ok() {
                        ordered = ticket;
                    }
                }
                // Some turns are synced, some are not.
                rig.wait(if round % 2 == 0 { SECOND / 4 } else { SECOND / 50 }).await;
            }
            let kept = rig.kill().await;
            let before = sink.ids();
            let mut next = Rig::start(&dir, &sink);
            let ends: HashSet<_> = next.ends.iter().map(|end| end.request.0 as u64).collect();
            assert!(kept.iter().all(|ticket| ends.contains(ticket)), "step {n}: {kept:?} {ends:?}");
            assert!(next.ends.iter().all(|end| end.outcome == Outcome::Handled && end.attempt == 1));
            next.wait(SECOND).await;
            let closed = next.close().await;
            let found = items(&sink.bodies());
            let once: HashSet<_> = found.iter().copied().collect();
            assert_eq!(once.len(), found.len(), "step {n}: {found:?}");
            assert!(kept.iter().all(|ticket| once.contains(ticket)), "step {n}: {kept:?} {found:?}");
            assert!(found.iter().all(|ticket| *ticket <= ordered));
            assert_eq!(list(&sink.bodies(), "requests").len(), found.len(), "groups are whole");
            assert_eq!(closed.undelivered_records, 0);
            assert!(sink.ids().starts_with(&before));
        });
    }
}

type Calls = Arc<Mutex<Vec<BatchId>>>;

/// Notes every call, then asks another sink.
struct Noting<S>(S, Calls);

impl<S: Webhook> Webhook for Noting<S> {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        self.1.lock().unwrap().push(batch.id);
        self.0.deliver(batch)
    }

    fn place(&self) -> String {
        self.0.place()
    }
}

#[test]
fn a_batch_whose_delivery_was_not_noted_goes_out_again_and_the_job_store_knows_it() {
    run_local(async {
        let dir = TempDir::new().unwrap();
        let calls = Calls::default();
        let store = || Noting(JobStore::open(&dir.path().join("jobs.db")).unwrap(), Arc::clone(&calls));
        let mut setup = Setup::new(store());
        setup.policy = Policy::FATAL;
        // The settle of the first batch begins a turn; that turn dies before anything of it is written.
        let delivered = Arc::clone(&calls);
        setup.fault = Some(Box::new(move |step| {
            assert!(step != Step::Begin || delivered.lock().unwrap().is_empty(), "scripted kill");
        }));
        let rig = setup.start(&dir.path().join("spool"));
        rig.orders(1..=7);
        tokio::time::sleep(SECOND).await;
        assert_eq!(rig.kill().await.len(), 7);
        assert_eq!(calls.lock().unwrap().len(), 1);
        let mut next = Setup::new(store()).start(&dir.path().join("spool"));
        let closed = next.close().await;
        let ids = calls.lock().unwrap().clone();
        assert_eq!(ids[0], ids[1]);
        assert_eq!((closed.recovered, closed.items, closed.undelivered_records), (7, 0, 0));
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        assert_eq!(store.summary(&JobId::from(7), 1).unwrap().items, 7);
        assert!(store.stats_text("7").unwrap().is_some());
    });
}

/// Panics at the n-th call, at once or later.
struct Shaky(MemorySink, Arc<AtomicUsize>, usize, bool);

impl Webhook for Shaky {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        if self.1.fetch_add(1, Ordering::Relaxed) != self.2 {
            return self.0.deliver(batch);
        }
        assert!(self.3, "a sink with a bug");
        Box::pin(async {
            tokio::time::sleep(SECOND).await;
            panic!("a sink with another bug")
        })
    }

    fn place(&self) -> String {
        "shaky".to_owned()
    }
}

#[test]
fn a_sink_that_panics_loses_no_batch_and_keeps_the_order() {
    for later in [false, true] {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let mut rig = Setup::new(Shaky(sink.clone(), Arc::default(), 1, later)).start(&dir.path().join("spool"));
            rig.orders(1..=20);
            rig.wait(20 * SECOND).await;
            assert_eq!(rig.courier.epoch().0, 1, "a panic of the sink does not reach the courier");
            assert_eq!(rig.stats.count("courier/failures/panic"), 1);
            assert_eq!(items(&sink.bodies()), (1..=20).collect::<Vec<_>>());
        });
    }
}

#[derive(Debug, Clone)]
enum Deed {
    Pages(u64),
    Wait(u64),
    Down(usize),
    LoseAnswer,
    Settle,
    Kill,
    Poisonous,
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        5 => (1..12_u64).prop_map(Deed::Pages),
        3 => (1..3000_u64).prop_map(Deed::Wait),
        1 => (1..4_usize).prop_map(Deed::Down),
        1 => Just(Deed::LoseAnswer),
        1 => Just(Deed::Settle),
        1 => Just(Deed::Kill),
        1 => Just(Deed::Poisonous),
    ]
}

struct Picky(MemorySink);

impl Webhook for Picky {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        if batch.body.contains("poison") {
            return Box::pin(std::future::ready(Answer::Reject { why: "no".into() }));
        }
        self.0.deliver(batch)
    }

    fn place(&self) -> String {
        "picky".to_owned()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_each_kept_record_arrives_once(
        deeds in prop::collection::vec(any_deed(), 1..25),
        size in 1..15_u64,
        panic_at in 3..60_usize,
    ) {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let sink = MemorySink::new();
            let start = |fault| {
                let mut setup = Setup::new(Picky(sink.clone()));
                setup.config.limits.size = size;
                setup.config.segment_bytes = 1500;
                setup.bound = 1000;
                setup.fault = fault;
                setup.start(&dir.path().join("spool"))
            };
            let mut rig = start(fault(panic_at, 2));
            let (mut next, mut kept, mut bad) = (1, HashSet::new(), HashSet::new());
            let mut ordered = HashSet::new();
            for deed in deeds {
                match deed {
                    Deed::Pages(n) => {
                        rig.orders(next..next + n);
                        ordered.extend(next..next + n);
                        next += n;
                    }
                    Deed::Poisonous => {
                        let mut group = Arc::into_inner(page(next)).unwrap();
                        group.items = vec![format!(r#"{{"n": {next}, "poison": 1}}"#)];
                        rig.link.offer(Order::Group(Arc::new(group))).unwrap();
                        ordered.insert(next);
                        bad.insert(next);
                        next += 1;
                    }
                    Deed::Wait(ms) => rig.wait(Duration::from_millis(ms)).await,
                    Deed::Down(n) => sink.fail(n, Answer::Retry { after: None, why: "503".into() }),
                    Deed::LoseAnswer => sink.lose_answers(1),
                    Deed::Settle => {
                        let settled = rig.kept().into_iter().map(|ticket| RequestId(u128::from(ticket))).collect();
                        rig.inbox.controls().tell(Control::Settled(settled));
                    }
                    Deed::Kill => {
                        // What was not kept is lost with the process: the frontier would fetch it again.
                        kept.extend(rig.kill().await);
                        rig = start(None);
                        let whole = rig.ends.iter().map(|end| end.request.0 as u64);
                        kept.extend(whole);
                        ordered.retain(|ticket| kept.contains(ticket));
                    }
                }
            }
            rig.wait(200 * SECOND).await;
            kept.extend(rig.kept());
            let closed = rig.close().await;
            kept.extend(rig.kept());
            assert_eq!(kept, ordered);
            let found = items(&sink.bodies());
            let good: Vec<_> = sorted(kept.iter().copied().filter(|ticket| !bad.contains(ticket)).collect());
            assert_eq!(sorted(found), good);
            assert_eq!(closed.items, closed.delivered + closed.rejected);
            assert_eq!(closed.spooled, 0);
        });
    }
}
