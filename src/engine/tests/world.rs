//! A world of scripted leaves round the hub: the real frontier, everyone else played by dice. Answers come in
//! any order, leaves die, the job is stopped at any time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use proptest::test_runner::TestRng;
use rand_core_lite::Dice;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::api::args::Arguments;
use crate::api::context::Context;
use crate::api::failure::{FailureKind, Fault};
use crate::api::stats::Stats;
use crate::broker::message::{Control as BrokerControl, Leased, Order as BrokerOrder, Refused, RenewFailed};
use crate::collector::message::{
    Closed, Control as CollectorControl, End, Fact as CollectorFact, Group, Order as CollectorOrder,
};
use crate::downloader::message::{Attempt, Control as DownloaderControl, Fetched, Order as DownloaderOrder, Sent, Verdict};
use crate::downloader::transport::{BodyFlags, Reply};
use crate::engine::act::{Act, ParserCommand};
use crate::engine::hub::{CloseAfter, Hub, HubConfig};
use crate::engine::message::{Control, Ended, Fact, StopReason};
use crate::engine::ticket::Tag;
use crate::engine::window::Bytes as Window;
use crate::parser::message::{CallbackFault, Order as ParserOrder};
use crate::plane::{About, Ask, Credential, Grant, IdentityKey, LeaseId, Refusal, RefusalKind, Rejected, Report};
use crate::reporter::message::{Fact as ReporterFact, Order as ReporterOrder};
use crate::scheduler::job::{Books, Job, JobKind, RequestId};
use crate::scheduler::message::Pacing;
use crate::scheduler::store::Cursors;
use crate::scheduler::{Clock, Frontier, MemoryStore, SchedulerConfig};
use crate::settings::{RequestRecords, Settings};

mod callbacks;
mod leaves;

/// Small dice: enough randomness for a world, the same for the same seed.
pub(super) mod rand_core_lite {
    use proptest::prelude::Rng as _;
    use proptest::test_runner::TestRng;

    pub(in crate::engine::tests) struct Dice(pub TestRng);

    impl Dice {
        pub(in crate::engine::tests) fn below(&mut self, n: usize) -> usize {
            usize::try_from(self.0.next_u32()).unwrap_or(0) % n.max(1)
        }

        pub(in crate::engine::tests) fn chance(&mut self, percent: usize) -> bool {
            self.below(100) < percent
        }
    }
}

/// How unkind the world is, in percent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mood {
    pub refuse: usize,
    pub fail: usize,
    pub retry: usize,
    pub redirect: usize,
    pub callback_fails: usize,
    pub parts: usize,
    pub pages: u64,
    pub robots: bool,
    pub records: RequestRecords,
    /// How many children keep the lease of their page.
    pub keep: usize,
    /// Whether a lease reaches over both hosts.
    pub wide: bool,
    /// Whether leases are asked for ahead.
    pub remote: bool,
    /// `ACQUIRE_PENDING_PER_SITE`.
    pub pending: usize,
    /// `CONCURRENT_REQUESTS_PER_DOMAIN`.
    pub per_slot: usize,
    /// How many renewals fail, reports are rejected, and leases are short.
    pub trouble: usize,
}

const TEMPORARY: [RefusalKind; 7] = [
    RefusalKind::NoIdentity,
    RefusalKind::NoProxy,
    RefusalKind::RateLimited,
    RefusalKind::CircuitOpen,
    RefusalKind::SitePaused,
    RefusalKind::Overloaded,
    RefusalKind::Unreachable,
];

/// A callback that is under way.
#[derive(Debug)]
enum Callback {
    Fresh,
    /// Waits for its commit.
    Committing(oneshot::Receiver<Result<(), String>>),
}

#[derive(Debug)]
enum Pending {
    Acquire(Tag),
    Fetch(Tag, Arc<Job>),
    Parse(Tag, Option<Arc<Job>>, Callback),
    Keep(Arc<Group>),
    Handed,
    Renew(LeaseId, Tag),
    Farewell,
    Close,
}

pub(super) struct World {
    pub hub: Hub,
    pub frontier: Frontier,
    pub now: Instant,
    dice: Dice,
    mood: Mood,
    pending: Vec<Pending>,
    timers: BTreeMap<(Instant, u64), u32>,
    next_timer: u64,
    next_tick: Instant,
    pub held: Arc<Mutex<BTreeSet<u64>>>,
    /// Leases whose last report the plane does not have yet.
    ending: Arc<Mutex<BTreeSet<u64>>>,
    pub double_releases: Arc<Mutex<u64>>,
    /// Leases of reports the plane does not have yet.
    unhanded: Arc<Mutex<Vec<u64>>>,
    /// These reports, oldest first, each with its number in the order of all.
    reported: Vec<(u64, Report)>,
    ordered: u64,
    pub early_releases: Arc<Mutex<u64>>,
    leases: u64,
    pub granted: u64,
    pub sent: u64,
    /// Attempts without an answer, and answers with which a request came to its end.
    pub last_or_failed: u64,
    /// Request records of every group that was ordered.
    pub records: BTreeMap<(Tag, u32), usize>,
    pub reports: BTreeMap<u64, u64>,
    pub kept: BTreeSet<(Tag, u32)>,
    pub items_kept: u64,
    pub ends: Vec<End>,
    /// Requests that failed before anything was sent for their present URL.
    pub unfetched: BTreeSet<RequestId>,
    pub made: u64,
    start: VecDeque<u64>,
    pub ended: Option<Box<Ended>>,
    pub max_open: usize,
    /// The most fetches at once of one host.
    pub max_of_host: usize,
    abandoned: bool,
    /// Uses of leases by children of the pages that got them.
    pub keeping: u64,
    renewing: BTreeSet<LeaseId>,
    /// Fetches whose sending the scheduler waits for.
    wants_sent: BTreeSet<Tag>,
    is_paced: bool,
    /// Pages that went out without a delay when there was one.
    pub unpaced: u64,
}

impl World {
    pub(super) fn new(mood: Mood, rng: TestRng, concurrent: usize) -> Self {
        let now = Instant::now();
        let stats = Stats::new();
        let held: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
        let double_releases: Arc<Mutex<u64>> = Arc::default();
        let (open, twice) = (held.clone(), double_releases.clone());
        let ending: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
        let ends = ending.clone();
        let (unhanded, early_releases): (Arc<Mutex<Vec<u64>>>, Arc<Mutex<u64>>) = Default::default();
        let (waiting, early) = (unhanded.clone(), early_releases.clone());
        let settings = Settings { concurrent_requests_per_domain: mood.per_slot, ..Settings::default() };
        let context = Context::new("world", "1", Arguments::new(), Arc::new(settings), stats.clone(), |_| {});
        let config = HubConfig {
            concurrent,
            window_requests: concurrent * 2 + 4,
            report_queue: 1000,
            report_hold: Duration::from_secs(2),
            seeds_wait_at: 10,
            acquire_pending: mood.pending,
            is_remote: mood.remote,
            lease_give_up: Duration::from_secs(1800),
            grace: Duration::from_secs(10),
            close_timeout: Duration::from_secs(12),
            stall_warn: Duration::from_secs(30),
            parse_stall: Duration::from_secs(30),
            callback_timeout: Duration::from_secs(60),
            close_after: CloseAfter::default(),
            cursors: Cursors::default(),
            is_finished: false,
            is_shared: false,
            may_differ: Box::new(|_| false),
            stays: Box::new(move |job, to| mood.wide || job.url().origin() == to.origin()),
            ask: Box::new(|job| {
                (job.url().host_str() != Some("c.test")).then(|| Ask {
                    site: "site".into(),
                    client: "web".into(),
                    group: "".into(),
                    path: job.url().path().into(),
                    session_key: None,
                    anonymous: false,
                    rule: None,
                })
            }),
            releaser: Arc::new(move |lease: LeaseId| {
                let id = lease.0.parse::<u64>().unwrap();
                *twice.lock().unwrap() += u64::from(ends.lock().unwrap().contains(&id));
                *early.lock().unwrap() += u64::from(waiting.lock().unwrap().contains(&id));
                if !open.lock().unwrap().remove(&id) {
                    *twice.lock().unwrap() += 1;
                }
            }),
            context,
            robots_again: Duration::from_secs(600),
            request_records: mood.records,
            stats_dump: true,
            memory_peak: || None,
        };
        let hub = Hub::new(config, Window::new(1 << 20), now);
        let frontier = Frontier::new(
            SchedulerConfig {
                allowed_domains: Vec::new(),
                depth_limit: 0,
                url_length_limit: 0,
                reach: crate::reach::Reach::of(crate::settings::PrivateAddresses::Allow),
                pacing: Pacing { per_slot: mood.per_slot, delay: Duration::ZERO, jitter: 0.0 },
                robots_agent: mood.robots.then(|| "dragline".to_owned()),
                seeds_stop_at: usize::MAX,
                max_bytes: usize::MAX,
                returns_offsite: false,
                disk_wait: Duration::from_secs(60),
                seed: 1,
            },
            Box::new(MemoryStore::new(usize::MAX)),
            stats,
            Clock::start(now),
            now,
        );
        let mut world = Self {
            hub,
            frontier,
            now,
            dice: Dice(rng),
            mood,
            pending: Vec::new(),
            timers: BTreeMap::new(),
            next_timer: 0,
            next_tick: now + Duration::from_millis(250),
            held,
            ending,
            double_releases,
            unhanded,
            reported: Vec::new(),
            ordered: 0,
            early_releases,
            leases: 0,
            granted: 0,
            sent: 0,
            last_or_failed: 0,
            records: BTreeMap::new(),
            reports: BTreeMap::new(),
            kept: BTreeSet::new(),
            items_kept: 0,
            ends: Vec::new(),
            unfetched: BTreeSet::new(),
            made: 0,
            start: (0..5).collect(),
            ended: None,
            max_open: 0,
            max_of_host: 0,
            abandoned: false,
            keeping: 0,
            renewing: BTreeSet::new(),
            wants_sent: BTreeSet::new(),
            is_paced: false,
            unpaced: 0,
        };
        world.hub.begin(now);
        world.turn();
        world
    }

    /// Lets one thing happen; false when the job is over.
    pub(super) fn step(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if self.pending.is_empty() || self.dice.chance(5) {
            self.pass_time();
        } else {
            let index = self.dice.below(self.pending.len());
            let next = self.pending.swap_remove(index);
            self.answer(next);
        }
        self.turn();
        self.ended.is_none()
    }

    pub(super) fn control(&mut self, control: Control) {
        self.hub.control(control, self.now);
        self.turn();
    }

    /// The broker dies with what it had; the hub asks again, and the late answers of its tasks are stale.
    pub(super) fn broker_dies(&mut self) {
        self.hub.lost_by_broker(self.now);
        self.turn();
    }

    /// The collector dies with what it had in hand: written or not, it did not say so.
    pub(super) fn collector_dies(&mut self) {
        let mut lost = Vec::new();
        self.pending.retain_mut(|p| match p {
            Pending::Keep(group) => {
                lost.push(group.clone());
                false
            }
            _ => true,
        });
        for group in lost {
            if self.dice.chance(50) {
                self.write(&group);
            }
        }
        self.hub.lost_by_collector(self.now);
        self.turn();
    }

    /// A parser dies with every callback it had begun.
    pub(super) fn parser_dies(&mut self) {
        let mut lost = Vec::new();
        self.pending.retain(|p| match p {
            Pending::Parse(tag, Some(_), _) => {
                lost.push(*tag);
                false
            }
            _ => true,
        });
        let (last, others) = lost.split_first().map_or((None, &[][..]), |(last, others)| (Some(*last), others));
        self.hub.lost_by_parser(last, &CallbackFault::Stalled, others, self.now);
        self.turn();
    }

    /// Settings change while everything is under way.
    pub(super) fn settings(&mut self, concurrent: usize, delay: Duration) {
        let settings = Settings {
            concurrent_requests: concurrent,
            concurrent_requests_per_domain: self.mood.per_slot,
            download_delay: delay,
            ..Settings::default()
        };
        self.is_paced = !delay.is_zero();
        self.control(Control::Settings(Arc::new(settings)));
    }

    pub(super) fn books(&self) -> Books {
        self.frontier.books()
    }

    fn pass_time(&mut self) {
        let wake = self.frontier.turn(self.now);
        self.tell(wake.facts);
        let timer = self.timers.keys().next().map(|(at, _)| *at);
        let next = [Some(self.next_tick), wake.wake, timer].into_iter().flatten().min().unwrap_or(self.next_tick);
        self.now = self.now.max(next);
        if self.now >= self.next_tick {
            self.hub.control(Control::Tick, self.now);
            self.next_tick = self.now + Duration::from_millis(250);
        }
        while let Some(((at, id), serial)) = self.timers.iter().next().map(|(k, v)| (*k, *v)) {
            if at > self.now {
                break;
            }
            self.timers.remove(&(at, id));
            self.hub.control(Control::StepOver(serial), self.now);
        }
    }

    fn turn(&mut self) {
        for _ in 0..10_000 {
            self.hub.turn_end(self.now);
            let acts = self.hub.take_acts();
            if acts.is_empty() {
                let turn = self.frontier.turn(self.now);
                if turn.facts.is_empty() {
                    return;
                }
                self.tell(turn.facts);
                continue;
            }
            for act in acts {
                self.act(act);
            }
        }
        panic!("the hub spins: {:?}", self.hub);
    }

    fn tell(&mut self, facts: Vec<Fact>) {
        for fact in facts {
            self.hub.fact(fact, self.now);
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Scheduler(order) => self.frontier.order(order, self.now),
            Act::SchedulerControl(control) => self.frontier.control(control, self.now),
            Act::Broker(BrokerOrder::Acquire { tag, .. }) => self.pending.push(Pending::Acquire(tag)),
            Act::BrokerControl(BrokerControl::Renew { lease, tag, .. }) => {
                if self.dice.chance(self.mood.trouble) && self.renewing.insert(lease.clone()) {
                    self.pending.push(Pending::Renew(lease, tag));
                }
            }
            Act::BrokerControl(BrokerControl::Renewed(lease)) => {
                self.renewing.remove(&lease);
                self.pending.retain(|p| !matches!(p, Pending::Renew(l, _) if *l == lease));
            }
            Act::BrokerControl(_) | Act::ReporterControl(_) => {}
            Act::Downloader(DownloaderOrder::Fetch { tag, job, wants_sent, .. }) => {
                self.unpaced += u64::from(self.is_paced && !wants_sent && job.kind != JobKind::Robots);
                if wants_sent {
                    self.wants_sent.insert(tag);
                }
                self.pending.push(Pending::Fetch(tag, job));
            }
            Act::DownloaderControl(DownloaderControl::CancelAll) => {
                let fetches: Vec<_> = self.pending.extract_if(.., |p| matches!(p, Pending::Fetch(..))).collect();
                for fetch in fetches {
                    if let Pending::Fetch(tag, _) = fetch {
                        self.cancelled(tag);
                    }
                }
            }
            Act::DownloaderControl(DownloaderControl::Cancel(tag)) => {
                let before = self.pending.len();
                self.pending.retain(|p| !matches!(p, Pending::Fetch(t, _) if *t == tag));
                if self.pending.len() < before {
                    self.last_or_failed += 1;
                    self.cancelled(tag);
                }
            }
            Act::DownloaderControl(_) => {}
            Act::Parser(_, order) => match order {
                ParserOrder::Failed { tag, job, attempt: None, .. } => {
                    self.unfetched.insert(job.id);
                    self.pending.push(Pending::Parse(tag, Some(job), Callback::Fresh));
                }
                ParserOrder::Page { tag, job, .. } | ParserOrder::Failed { tag, job, .. } => {
                    self.pending.push(Pending::Parse(tag, Some(job), Callback::Fresh));
                }
                ParserOrder::Start { tag, .. } | ParserOrder::Idle { tag, .. } => {
                    self.pending.push(Pending::Parse(tag, None, Callback::Fresh));
                }
                ParserOrder::Signal(_) => {}
            },
            Act::Parsers(ParserCommand::Abandon) => self.abandoned = true,
            Act::Parsers(ParserCommand::Closed { .. }) => self.pending.push(Pending::Farewell),
            Act::Reporter(ReporterOrder::Report(report)) => {
                let lease = report.lease.0.parse::<u64>().unwrap();
                *self.reports.entry(lease).or_default() += 1;
                let is_held = self.held.lock().unwrap().contains(&lease);
                if !is_held || (report.release && !self.ending.lock().unwrap().insert(lease)) {
                    *self.double_releases.lock().unwrap() += 1;
                }
                self.unhanded.lock().unwrap().push(lease);
                self.ordered += 1;
                self.reported.push((self.ordered, report));
                self.pending.push(Pending::Handed);
            }
            Act::Collector(CollectorOrder::Group(group)) => {
                self.records.insert((group.tag, group.part), group.records.len());
                self.pending.push(Pending::Keep(group));
            }
            Act::CollectorControl(CollectorControl::Close(_)) => self.pending.push(Pending::Close),
            Act::CollectorControl(_) => {}
            Act::Resume(done, result) => drop(done.send(result)),
            Act::StepOver(serial, after) => {
                self.next_timer += 1;
                self.timers.insert((self.now + after, self.next_timer), serial);
            }
            Act::Done(ended) => self.ended = Some(ended),
        }
        let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
        for pending in &self.pending {
            if let Pending::Fetch(_, job) = pending {
                *hosts.entry(job.url().host_str().unwrap()).or_default() += 1;
            }
        }
        self.max_open = self.max_open.max(hosts.values().sum());
        self.max_of_host = self.max_of_host.max(hosts.values().copied().max().unwrap_or(0));
    }

    fn answer(&mut self, pending: Pending) {
        match pending {
            Pending::Acquire(tag) => self.lease(tag),
            Pending::Fetch(tag, job) => self.fetch(tag, &job),
            Pending::Parse(tag, job, callback) => self.callback(tag, job, callback),
            Pending::Keep(group) => {
                self.write(&group);
                self.hub.fact(Fact::Collector(CollectorFact::Kept(vec![(group.tag, group.part)])), self.now);
            }
            Pending::Handed => self.taken(),
            Pending::Renew(lease, tag) => {
                self.renewing.remove(&lease);
                let failed = RenewFailed { tag, lease, why: "over".into() };
                self.hub.fact(Fact::RenewFailed(failed), self.now);
            }
            Pending::Farewell => self.hub.fact(Fact::Farewell, self.now),
            Pending::Close => {
                let closed = Closed { items: self.items_kept, delivered: self.items_kept, ..Closed::default() };
                self.hub.fact(Fact::Collector(CollectorFact::Closed(closed)), self.now);
            }
        }
    }

    fn write(&mut self, group: &Group) {
        if self.kept.insert((group.tag, group.part)) {
            self.items_kept += group.items.len() as u64;
            self.ends.extend(group.end);
        }
    }

    /// The plane takes a report, the oldest of any lease, or rejects it.
    fn taken(&mut self) {
        let Some(any) = self.reported.get(self.dice.below(self.reported.len())) else { return };
        let lease = any.1.lease.clone();
        let first = self.reported.iter().position(|(_, report)| report.lease == lease).unwrap();
        let (_, report) = self.reported.remove(first);
        let lease = report.lease.0.parse::<u64>().unwrap();
        self.unhanded.lock().unwrap().remove(first);
        if report.release {
            self.ending.lock().unwrap().remove(&lease);
        }
        let ends = report.release.then_some(report.lease);
        let fact = if self.dice.chance(self.mood.trouble / 4) {
            let is_unknown_lease = self.dice.chance(50);
            if is_unknown_lease && ends.is_some() {
                self.held.lock().unwrap().remove(&lease);
            }
            ReporterFact::Rejected { rejected: Rejected { id: report.id, is_unknown_lease, reason: "no".into() }, ends }
        } else {
            if ends.is_some() {
                self.held.lock().unwrap().remove(&lease);
            }
            ReporterFact::Handed { reports: 1, ends: u64::from(ends.is_some()) }
        };
        let through = self.reported.first().map_or(self.ordered, |(place, _)| place - 1);
        self.hub.fact(Fact::Reporter(ReporterFact::Through(through)), self.now);
        self.hub.fact(Fact::Reporter(fact), self.now);
    }

    pub(super) fn stop(&mut self) {
        self.control(Control::Stop(StopReason::Signal));
    }
}
