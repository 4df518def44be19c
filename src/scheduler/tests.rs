//! The actor, its engine played by the test, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::job::{RequestId, SlotKey};
use super::message::{Due, Hold, Pacing, Ready, RobotsAnswer, Scope, Verdict};
use super::store::Store;
use super::testing::{Fault, Fragile, config, job};
use super::*;
use crate::actor::{Controls, Inbox, Link, Place, Policy, Supervised, Tap, run_local, supervise};
use crate::api::stats::Stats;
use crate::engine::ticket::Tag;
use crate::web::robots::Robots;

const MS: Duration = Duration::from_millis(1);

struct Played {
    orders: Link<Order>,
    controls: Controls<Control>,
    engine: Tap<Fact>,
    frontier: Arc<Mutex<Frontier>>,
    _actor: Supervised<Scheduler>,
}

impl Played {
    fn start(config: SchedulerConfig, store: impl Store + 'static) -> Self {
        let now = Instant::now();
        let frontier = Frontier::new(config, Box::new(store), Stats::new(), Clock::start(now), now);
        let frontier = Arc::new(Mutex::new(frontier));
        let engine = Tap::new("engine", 64);
        let inbox = Inbox::new("scheduler", 64);
        let (shared, facts) = (Arc::clone(&frontier), engine.facts());
        let shared: Arc<Mutex<dyn Queue>> = shared;
        let make = move |_| Scheduler::new(Arc::clone(&shared), facts.clone());
        let actor = supervise(Place::Here, &inbox, Policy::default(), make, |_| {});
        Self { orders: inbox.link(), controls: inbox.controls(), engine, frontier, _actor: actor }
    }

    fn paced(delay: Duration, per_slot: usize) -> Self {
        let pacing = Pacing { per_slot, delay, jitter: 0.0, ..Pacing::default() };
        Self::start(SchedulerConfig { pacing, ..config() }, MemoryStore::new(usize::MAX))
    }

    async fn order(&self, order: Order) {
        self.orders.send(order).await.unwrap();
    }

    async fn offer(&self, urls: &[&str]) {
        let jobs = urls.iter().zip(0..).map(|(url, n)| job(n, url)).collect();
        self.order(Order::Offer { offer: 1, jobs, seeds: false }).await;
        assert!(matches!(self.fact().await, Fact::Accepted(_)));
    }

    async fn fact(&self) -> Fact {
        timeout(Duration::from_secs(3_600), self.engine.next()).await.expect("a fact within the hour").0
    }

    async fn ready(&self) -> Ready {
        match self.fact().await {
            Fact::Ready(ready) => ready,
            other => panic!("{other:?}"),
        }
    }

    async fn pull(&self, credits: usize) -> Ready {
        let upto = self.frontier.lock().unwrap().handed() + credits as u64;
        self.order(Order::Pull { seq: 1, upto }).await;
        self.ready().await
    }

    /// The next job, whose credit stands already.
    async fn due(&self) -> Due {
        let mut ready = self.ready().await;
        assert_eq!(ready.jobs.len(), 1);
        ready.jobs.remove(0)
    }

    async fn sent(&self, due: &Due) {
        self.order(Order::Sent { id: RequestId(0), slot: due.slot.clone(), at: Instant::now() }).await;
    }

    async fn freed(&self, due: &Due) {
        self.order(Order::Freed { id: RequestId(0), slot: due.slot.clone(), unsent: false }).await;
    }

    async fn quiet_for(&self, time: Duration) {
        sleep(time).await;
        assert!(self.engine.take().is_none(), "nothing was to be told");
    }
}

#[test]
fn gaps_are_the_delay_exactly_counted_from_the_sending() {
    run_local(async {
        let played = Played::paced(500 * MS, 8);
        played.offer(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]).await;
        assert_eq!(played.pull(8).await.jobs.len(), 1);
        played.quiet_for(10_000 * MS).await; // waiting for its lease
        let slot = SlotKey("a.test".into());
        played.order(Order::Sent { id: RequestId(0), slot: slot.clone(), at: Instant::now() }).await;
        let mut last = Instant::now();
        for _ in 0..2 {
            let due = played.due().await;
            assert_eq!(last.elapsed(), 500 * MS);
            sleep(70 * MS).await; // on the way to the wire
            played.sent(&due).await;
            last = Instant::now();
        }
        played.quiet_for(5_000 * MS).await;
    });
}

#[test]
fn a_slot_has_no_more_out_than_its_limit_and_goes_on_when_one_is_back() {
    run_local(async {
        let played = Played::paced(Duration::ZERO, 2);
        played.offer(&["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/4"]).await;
        let ready = played.pull(8).await;
        let paths: Vec<&str> = ready.jobs.iter().map(|due| due.job.url().path()).collect();
        assert_eq!(paths, ["/1", "/4", "/2"]);
        played.quiet_for(5_000 * MS).await;
        played.freed(&ready.jobs[0]).await;
        assert_eq!(played.due().await.job.url().path(), "/3");
    });
}

#[test]
fn a_gate_holds_its_slot_until_its_end_and_no_other() {
    run_local(async {
        let played = Played::paced(Duration::ZERO, 8);
        let slot = SlotKey("a.test".into());
        let began = Instant::now();
        played.controls.tell(Control::Gate { scope: Scope::Slot(slot), until: began + 3_000 * MS, hold: Hold::Run });
        played.offer(&["http://a.test/1", "http://b.test/2"]).await;
        let ready = played.pull(8).await;
        assert_eq!(ready.jobs[0].job.url().path(), "/2");
        assert_eq!((ready.jobs.len(), ready.next_due), (1, Some(began + 3_000 * MS)));
        assert_eq!(played.due().await.job.url().path(), "/1");
        assert_eq!(began.elapsed(), 3_000 * MS);
    });
}

#[test]
fn pages_wait_for_robots_and_new_pacing_counts_at_once() {
    run_local(async {
        let obeying = SchedulerConfig { robots_agent: Some("dragline".into()), ..config() };
        let played = Played::start(obeying, MemoryStore::new(usize::MAX));
        played.offer(&["http://a.test/no/1", "http://a.test/2", "http://a.test/3"]).await;
        assert_eq!(played.pull(8).await.jobs[0].job.url().path(), "/robots.txt");
        played.quiet_for(60_000 * MS).await;
        played.controls.tell(Control::Pacing(Pacing { per_slot: 8, delay: 200 * MS, jitter: 0.0, ..Pacing::default() }));
        let rules = RobotsAnswer::Rules(Arc::new(Robots::parse(b"User-agent: *\nDisallow: /no\n")));
        played.controls.tell(Control::Robots { origin: "http://a.test".into(), rules });
        let ready = played.ready().await;
        let got: Vec<(&str, &Verdict)> = ready.jobs.iter().map(|due| (due.job.url().path(), &due.verdict)).collect();
        assert_eq!(got, [("/no/1", &Verdict::Forbidden), ("/2", &Verdict::Go)]);
        let began = Instant::now();
        played.sent(&ready.jobs[1]).await;
        assert_eq!(played.due().await.job.url().path(), "/3");
        assert_eq!(began.elapsed(), 200 * MS);
    });
}

#[test]
fn a_hop_waits_for_its_delay_and_goes_before_the_queue() {
    run_local(async {
        let played = Played::paced(300 * MS, 8);
        played.offer(&["http://a.test/1", "http://a.test/2"]).await;
        let first = played.pull(8).await.jobs.remove(0);
        played.sent(&first).await;
        let began = Instant::now();
        let tag = Tag { ticket: 5, epoch: 2 };
        played.order(Order::Hop { tag, job: Box::new(job(9, "http://a.test/hop")) }).await;
        let Fact::Paced(paced) = played.fact().await else { panic!() };
        assert_eq!((paced.tag, paced.verdict, began.elapsed()), (tag, Verdict::Go, 300 * MS));
        played.order(Order::Sent { id: RequestId(0), slot: paced.slot, at: Instant::now() }).await;
        assert_eq!(played.due().await.job.url().path(), "/2");
        assert_eq!(began.elapsed(), 600 * MS);
    });
}

#[test]
fn a_request_put_back_waits_out_its_delay() {
    run_local(async {
        let played = Played::paced(Duration::ZERO, 8);
        played.offer(&["http://a.test/1"]).await;
        let mut due = played.pull(8).await.jobs.remove(0);
        played.freed(&due).await;
        due.job.attempts = 1;
        let began = Instant::now();
        played.order(Order::PutBack { job: due.job, delay: 1_500 * MS }).await;
        let again = played.due().await;
        assert_eq!((again.job.attempts, began.elapsed()), (1, 1_500 * MS));
    });
}

#[test]
fn after_stop_a_pull_is_answered_without_jobs() {
    run_local(async {
        let played = Played::paced(Duration::ZERO, 8);
        played.offer(&["http://a.test/1"]).await;
        played.controls.tell(Control::Stop);
        let ready = played.pull(8).await;
        assert_eq!((ready.jobs.len(), ready.books.pending, ready.after_offer), (0, 1, 1));
        played.quiet_for(60_000 * MS).await;
    });
}

#[test]
fn a_restart_of_the_actor_loses_no_job_no_place_and_no_credit() {
    run_local(async {
        let pacing = Pacing { per_slot: 2, delay: Duration::ZERO, jitter: 0.0, ..Pacing::default() };
        let (store, panics) = Fragile::new(Fault::Panic);
        let played = Played::start(SchedulerConfig { pacing, ..config() }, store);
        played.offer(&["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/4"]).await;
        let first = played.pull(1).await.jobs.remove(0);
        // The second of the turn's pulls panics: what the first one gave is in no answer yet.
        panics.store(2, Ordering::SeqCst);
        let ready = played.pull(8).await;
        assert_eq!(panics.load(Ordering::SeqCst), 0, "it did panic");
        let mut paths: Vec<&str> = ready.jobs.iter().map(|due| due.job.url().path()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/2", "/4"], "the place of the first one is still taken");
        played.freed(&first).await;
        assert_eq!(played.due().await.job.url().path(), "/3", "on the credit given before the panic");
        let books = played.frontier.lock().unwrap_or_else(PoisonError::into_inner).books();
        assert!(books.balances());
        assert_eq!(books.pending, 4);
    });
}
