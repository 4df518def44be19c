//! The two actors together, with a scripted engine and sinks that follow a script, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod closing;
mod cost;
mod crash;
mod keeping;
mod logs;
mod overload;
mod parts;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::batch::BatchLimits;
use super::config::{CollectorConfig, Ends, Tidy};
use super::logring::LogRing;
use super::message::{Closed, Control, End, Fact, Group, Order};
use super::open::{Delivery, Outlets, Seeds, open_at};
use super::state::{CollectorState, Step};
use super::{COURIER_BOUND, Collector};
use crate::actor::{Inbox, Link, Place, Policy, Supervised, Tap, supervise};
use crate::apcloudy::{Answer, JobId};
use crate::api::stats::Stats;
use crate::courier::{Courier, MemorySink, Webhook};
use crate::engine::message::Fact as EngineFact;
use crate::engine::ticket::Tag;
use crate::export::{Feed, FeedOptions, Target};
use crate::scheduler::job::{Outcome, RequestId};
use crate::settings::OnFatal;

const SECOND: Duration = Duration::from_secs(1);
const NOW: u64 = 1_700_000_000;

fn config() -> CollectorConfig {
    CollectorConfig {
        limits: BatchLimits { size: 10, max_bytes: 1 << 20, flush_after: 10 * SECOND },
        sync_every: SECOND / 10,
        segment_bytes: 1 << 20,
        spool_max_bytes: 1 << 20,
        disk_wait: 60 * SECOND,
        close_within: 6 * SECOND,
        on_fatal: OnFatal::Spool,
        ends: Ends::Journaled,
        remembered: 1000,
        clock: || NOW,
    }
}

/// A running collector and courier, and the engine's side of them.
struct Rig {
    dir: PathBuf,
    engine: Tap<EngineFact>,
    link: Link<Order>,
    inbox: Inbox<Collector>,
    collector: Supervised<Collector>,
    courier: Supervised<Courier>,
    state: Arc<std::sync::Mutex<CollectorState>>,
    ends: Vec<End>,
    ring: Arc<LogRing>,
    stats: Stats,
    facts: Vec<Fact>,
}

struct Setup {
    config: CollectorConfig,
    tidy: Tidy,
    bound: usize,
    policy: Policy,
    feeds: Vec<(String, Box<dyn Feed>)>,
    sink: Box<dyn Webhook>,
    fault: Option<Box<dyn FnMut(Step) + Send>>,
}

impl Setup {
    fn new(sink: impl Webhook + 'static) -> Self {
        let policy = Policy { max_restarts: 50, ..Policy::default() };
        Self { config: config(), tidy: Tidy::Keep, bound: 64, policy, feeds: Vec::new(), sink: Box::new(sink), fault: None }
    }

    fn feed(mut self, path: &Path) -> Self {
        let target = Target::parse(path.to_str().unwrap()).unwrap();
        let feed = crate::export::open(&target, FeedOptions::default(), || unreachable!("a file")).unwrap();
        self.feeds.push((path.display().to_string(), feed));
        self
    }

    fn start(self, dir: &Path) -> Rig {
        let ring = Arc::new(LogRing::new(100));
        let stats = Stats::new();
        let outlets = Outlets { feeds: self.feeds, ring: Arc::clone(&ring), stats: stats.clone(), indexes: None };
        // A log id of its own for each open: it counts only when the directory is empty.
        let seeds = Seeds { instance: 1, log_id: 77, jitter: 3 };
        let delivery = open_at(self.config, dir, self.tidy, &JobId::from(7), outlets, self.sink, seeds).unwrap();
        let Delivery { collector: state, courier: courier_state, ends, .. } = delivery;
        state.lock().unwrap().fault = self.fault;
        let engine = Tap::new("engine", 10);
        let inbox = Inbox::<Collector>::new("collector", self.bound);
        let courier_inbox = Inbox::<Courier>::new("courier", COURIER_BOUND);
        let controls = inbox.controls();
        let courier = supervise(
            Place::Here,
            &courier_inbox,
            Policy::default(),
            move |_| Courier::new(Arc::clone(&courier_state), controls.clone()),
            |_| {},
        );
        let (facts, parcels, courier_controls) = (engine.facts(), courier_inbox.link(), courier_inbox.controls());
        let shared = Arc::clone(&state);
        let collector = supervise(
            Place::Here,
            &inbox,
            self.policy,
            move |_| Collector::new(Arc::clone(&shared), facts.clone(), parcels.clone(), courier_controls.clone()),
            |_| {},
        );
        Rig {
            dir: dir.to_owned(),
            engine,
            link: inbox.link(),
            inbox,
            collector,
            courier,
            state,
            ends,
            ring,
            stats,
            facts: Vec::new(),
        }
    }
}

impl Rig {
    fn start(dir: &TempDir, sink: &MemorySink) -> Self {
        Setup::new(sink.clone()).start(&dir.path().join("spool"))
    }

    fn order(&self, ticket: u64) {
        self.link.offer(Order::Group(page(ticket))).expect("the link has room");
    }

    fn orders(&self, tickets: impl IntoIterator<Item = u64>) {
        tickets.into_iter().for_each(|ticket| self.order(ticket));
    }

    /// Lets everything run that can run without time passing.
    async fn run(&mut self) {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        self.look();
    }

    async fn wait(&mut self, time: Duration) {
        tokio::time::sleep(time).await;
        self.run().await;
    }

    fn look(&mut self) {
        self.facts.extend(self.engine.take_all().into_iter().map(|fact| match fact {
            EngineFact::Collector(fact) => fact,
            other => panic!("{other:?}"),
        }));
    }

    /// The tickets kept so far, in order.
    fn kept(&self) -> Vec<u64> {
        let groups = self.facts.iter().filter_map(|fact| match fact {
            Fact::Kept(groups) => Some(groups),
            _ => None,
        });
        groups.flatten().map(|(tag, _)| tag.ticket).collect()
    }

    fn blocked(&self) -> usize {
        self.facts.iter().filter(|fact| matches!(fact, Fact::Blocked { .. })).count()
    }

    fn unblocked(&self) -> usize {
        self.facts.iter().filter(|fact| matches!(fact, Fact::Unblocked)).count()
    }

    /// Closes with stats and waits for the answer.
    async fn close(&mut self) -> Closed {
        let stats: Map<_, _> = [("finish_reason".to_owned(), Value::from("finished"))].into_iter().collect();
        self.inbox.controls().tell(Control::Close(stats));
        for _ in 0..60 {
            self.wait(SECOND / 4).await;
            if let Some(Fact::Closed(closed)) = self.facts.iter().find(|fact| matches!(fact, Fact::Closed(_))) {
                return closed.clone();
            }
        }
        panic!("the collector does not close: {:?}", self.state);
    }

    /// As a kill of the process: nothing in memory is written any more.
    async fn kill(mut self) -> Vec<u64> {
        self.run().await;
        self.courier.stop();
        self.collector.stop();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).log = None;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.kept()
    }
}

/// What a usual page gives: an item, a request record and its end.
fn page(ticket: u64) -> Arc<Group> {
    Arc::new(Group {
        tag: Tag { ticket, epoch: 1 },
        part: 0,
        items: vec![format!(r#"{{"n": {ticket}}}"#)],
        records: vec![format!(r#"{{"url": "http://h/{ticket}"}}"#)],
        end: Some(End { request: RequestId(u128::from(ticket)), attempt: 1, outcome: Outcome::Handled }),
    })
}

/// The numbers of all items of some bodies, in order.
fn items(bodies: &[String]) -> Vec<u64> {
    list(bodies, "items").iter().map(|item| item["n"].as_u64().unwrap()).collect()
}

fn list(bodies: &[String], name: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for body in bodies {
        let body: Value = serde_json::from_str(body).unwrap();
        all.extend(body["data"][name].as_array().unwrap().iter().cloned());
    }
    all
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}
