//! Puts the actors of a job together: inboxes first, then workers, then the engine that orders them about.
//!
//! Backends and threads come from outside, so that a test runs the whole engine on one thread with fakes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::actor::{Controls, Died, Inbox, Link, Place, Policy, Supervised, supervise};
use crate::api::context::Context;
use crate::api::middleware::Installed;
use crate::api::spider::DynSpider;
use crate::api::stats::Stats;
use crate::broker::rules::Rules;
use crate::broker::{self, LeaseBroker, Net, Releasing};
use crate::collector::{COURIER_BOUND, Collector, Delivery};
use crate::courier::Courier;
use crate::downloader::authorize::BySpider;
use crate::downloader::chain::ChainParts;
use crate::downloader::running::Downloads;
use crate::downloader::transport::Transport;
use crate::downloader::{COOKIES, Downloader, DownloaderConfig, Jars};
use crate::engine::hub::{CloseAfter, Hub, HubConfig};
use crate::engine::message::{Control, Ended};
use crate::engine::window::Bytes;
use crate::engine::{Engine, ParserPeer, Peers, watch_room};
use crate::parser::pulse::Pulse;
use crate::parser::stage::Stage;
use crate::parser::{Parser, ParserConfig};
use crate::plane::ControlPlane;
use crate::reach::Reach;
use crate::reporter::{self, Backlog, Reporter};
use crate::run::Progress;
use crate::run::counters::{self, COUNTERS};
use crate::scheduler::message::Pacing;
use crate::scheduler::store::{Cursors, Store, StoreError};
use crate::scheduler::{Clock, Frontier, Queue, Scheduler, SchedulerConfig};
use crate::settings::{RequestRecords, Settings};

/// Orders the scheduler may have waiting: several for each ticket of any window, so that it is never the brake.
const SCHEDULER_BOUND: usize = 4096;
/// Asks the broker may have under way: `ACQUIRE_PENDING_PER_SITE` of several sites, so that one without an identity does
/// not hold up the others.
const BROKER_BOUND: usize = 1024;
/// Callbacks queued or suspended in one parser.
const PARSER_BOUND: usize = 64;
/// Groups waiting for the collector.
const COLLECTOR_BOUND: usize = 1024;
/// How long an origin whose robots.txt was not readable is left alone.
const ROBOTS_AGAIN: Duration = Duration::from_secs(600);

/// The state that says that the job is finished.
pub(crate) const FINISHED: &str = "finished";

/// What the outside world is played by.
pub(crate) struct Backends {
    pub plane: Arc<dyn ControlPlane>,
    pub transport: Arc<dyn Transport>,
    /// Shared with the transport.
    pub reach: Reach,
    pub frontier: Keeping,
    pub delivery: Delivery,
}

/// Makes this worker's side of a shared frontier.
pub(crate) type MakeQueue = Box<dyn FnOnce(SchedulerConfig, Stats, Instant) -> Arc<Mutex<dyn Queue>>>;

/// Where the queue is kept.
pub(crate) enum Keeping {
    /// In a store of this process, recovered.
    Alone(Box<dyn Store>),
    /// At a server, for all workers of the job.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "the only server is Redis"))]
    Shared(MakeQueue),
}

/// Where actors live.
pub(crate) struct Threads {
    /// Of the scheduler: a shared frontier waits for a network, and needs a thread of its own.
    pub scheduler: Place,
    pub collector: Place,
    pub courier: Place,
    pub parsers: Vec<Place>,
    /// Runs network futures.
    pub net: Handle,
    /// Where calls to the control plane run that are not answered at once.
    pub calls: Net,
    /// Makes a place for the successor of a stuck parser.
    pub spare: Arc<dyn Fn() -> Option<Place> + Send + Sync>,
}

/// What is the job's own.
pub(crate) struct Job {
    pub spider: Arc<dyn DynSpider>,
    pub settings: Arc<Settings>,
    pub context: Context,
    pub stage: Stage,
    pub middlewares: Vec<Installed>,
    pub rules: Rules,
    pub stats: Stats,
    pub progress: Arc<Progress>,
    pub seed: u64,
}

/// Where earlier runs have come to.
struct Resumed {
    cursors: Cursors,
    is_finished: bool,
    is_shared: bool,
}

/// The parts that exist before the context: whoever stops the job needs the engine's inbox.
pub(crate) struct Entry {
    inbox: Inbox<Engine>,
}

/// A job under way.
pub(crate) struct Running {
    pub engine: Controls<Control>,
    pub broker: Controls<broker::message::Control>,
    pub ended: oneshot::Receiver<Box<Ended>>,
    pub releasing: Releasing,
    /// Orders that no parser has begun.
    pub unparsed: Box<dyn Fn() -> usize>,
    /// Ends every actor; what they had to say is said.
    pub stop_actors: Box<dyn Fn()>,
    /// To be closed when no actor uses it any more; none of a fleet, whose worker has left by then.
    pub frontier: Option<Arc<Mutex<Frontier>>>,
}

impl Entry {
    pub(crate) fn new() -> Self {
        Self { inbox: Inbox::new("engine", 1) }
    }

    pub(crate) fn controls(&self) -> Controls<Control> {
        self.inbox.controls()
    }
}

/// Starts every actor at its place; the engine, scheduler, broker, reporter and downloader live here.
pub(crate) fn assemble(entry: Entry, job: Job, backends: Backends, threads: Threads) -> Running {
    let Job { spider, settings, context, stage, middlewares, rules, stats, progress, seed } = job;
    let Backends { plane, transport, reach, frontier, delivery } = backends;
    let now = Instant::now();
    let facts = entry.inbox.facts();
    let engine = entry.controls();
    let mut stoppers: Vec<Box<dyn Fn()>> = Vec::new();
    let died = || {
        let engine = engine.clone();
        move |died: Died| {
            // An engine that is gone has no more orders to reissue.
            engine.tell(Control::Died(died));
        }
    };

    let config = scheduler_config(&settings, spider.as_ref(), reach, seed);
    let (queue, own, jars, resumed) = match frontier {
        Keeping::Alone(store) => {
            let (own, jars, resumed) = alone(store, config, &stats, now);
            let queue: Arc<Mutex<dyn Queue>> = own.clone();
            (queue, Some(own), jars, resumed)
        }
        Keeping::Shared(make) => {
            let resumed = Resumed { cursors: Cursors::default(), is_finished: false, is_shared: true };
            (make(config, stats.clone(), now), None, Arc::new(Jars::new(&stats)), resumed)
        }
    };
    let scheduler = Inbox::new("scheduler", SCHEDULER_BOUND);
    let make = {
        let facts = facts.clone();
        move |_| Scheduler::new(queue.clone(), facts.clone())
    };
    hold(&mut stoppers, supervise(threads.scheduler, &scheduler, Policy::FATAL, make, died()));

    let releasing = Releasing::default();
    let broker = Inbox::new("broker", settings.acquire_pending_per_site.max(BROKER_BOUND));
    let is_remote = plane.is_remote();
    let parts = broker::Parts {
        plane: plane.clone(),
        engine: facts.clone(),
        net: threads.calls.clone(),
        stats: stats.clone(),
        releasing: releasing.clone(),
        keeping: broker::Keeping::default(),
        // 0 waits for ever.
        unavailable_timeout: Some(settings.spinneret_unavailable_timeout).filter(|limit| !limit.is_zero()),
        seed,
    };
    hold(&mut stoppers, supervise(Place::Here, &broker, Policy::default(), move |_| LeaseBroker::new(parts.clone()), died()));

    let reporter = Inbox::new("reporter", settings.report_queue.max(1));
    let parts = reporter::Parts {
        plane,
        engine: facts.clone(),
        net: threads.calls,
        stats: stats.clone(),
        backlog: Backlog::default(),
        batch: settings.report_batch,
        flush: settings.report_flush,
        seed,
    };
    hold(&mut stoppers, supervise(Place::Here, &reporter, Policy::default(), move |_| Reporter::new(parts.clone()), died()));

    let downloads = Downloads::new(
        ChainParts {
            config: DownloaderConfig::from_settings(&settings),
            transport,
            stats: stats.clone(),
            jars,
            middlewares,
            authorizer: Some(Arc::new(BySpider(spider))),
            seed,
        },
        threads.net,
        facts.clone(),
    );
    let downloader = Inbox::new("downloader", settings.window_limit().max(1024));
    hold(
        &mut stoppers,
        supervise(Place::Here, &downloader, Policy::default(), move |_| Downloader::new(downloads.clone()), died()),
    );

    let collector = Inbox::new("collector", COLLECTOR_BOUND);
    let courier = Inbox::new("courier", COURIER_BOUND);
    let state = delivery.courier.clone();
    let answers = collector.controls();
    hold(
        &mut stoppers,
        supervise(threads.courier, &courier, Policy::default(), move |_| Courier::new(state.clone(), answers.clone()), died()),
    );
    let state = delivery.collector.clone();
    let (link, controls, to_engine) = (courier.link(), courier.controls(), facts.clone());
    let make = move |_| Collector::new(state.clone(), to_engine.clone(), link.clone(), controls.clone());
    hold(&mut stoppers, supervise(threads.collector, &collector, Policy::default(), make, died()));

    let parsers = threads.parsers.into_iter().zip(PARSER_NAMES).map(|(place, name)| {
        let inbox = Inbox::new(name, PARSER_BOUND);
        let pulse = Arc::new(Pulse::new());
        let config = ParserConfig {
            max_effects: settings.callback_max_effects,
            depth_priority: settings.depth_priority,
            callback_timeout: settings.callback_timeout,
            html: settings.page_options(),
        };
        let make = {
            let (stage, facts, pulse) = (stage.clone(), facts.clone(), pulse.clone());
            move |_| Parser::new(stage.clone(), config, facts.clone(), pulse.clone())
        };
        let supervised = supervise(place, &inbox, Policy::default(), make, died());
        let (spare, replaced) = (threads.spare.clone(), supervised.clone());
        hold(&mut stoppers, supervised);
        ParserPeer {
            link: inbox.link(),
            controls: inbox.controls(),
            pulse,
            replace: Box::new(move || spare().is_some_and(|place| replaced.replace(place))),
        }
    });
    let peers = Peers {
        parsers: parsers.collect(),
        scheduler: (scheduler.link(), scheduler.controls()),
        broker: (broker.link(), broker.controls()),
        downloader: (downloader.link(), downloader.controls()),
        reporter: (reporter.link(), reporter.controls()),
        collector: (collector.link(), collector.controls()),
    };
    watch_room(&peers, &engine);
    let links: Vec<_> = peers.parsers.iter().map(|p| p.link.clone()).collect();

    let releaser = {
        let broker = broker.controls();
        Arc::new(move |lease| {
            // A broker that has ended for good ends the job; its leases expire at the plane.
            broker.tell(broker::message::Control::Release(lease));
        })
    };
    let hub = Hub::new(
        hub_config(&settings, context, &Arc::new(rules), releaser, resumed, is_remote),
        Bytes::new(size(settings.window_bytes)),
        now,
    );
    let (done, ended) = oneshot::channel();
    let engine_worker = Mutex::new(Some(Engine::new(hub, peers, settings.parse_stall, progress, done)));
    // The engine is fatal: it is made once, and a panic in it ends the job.
    #[allow(clippy::expect_used, reason = "Policy::FATAL never asks for a second one")]
    let make = move |_| engine_worker.lock().unwrap_or_else(PoisonError::into_inner).take().expect("the engine is made once");
    hold(&mut stoppers, supervise(Place::Here, &entry.inbox, Policy::FATAL, make, died()));
    Running {
        unparsed: Box::new(move || links.iter().map(Link::depth).sum()),
        engine,
        broker: broker.controls(),
        ended,
        releasing,
        stop_actors: Box::new(move || stoppers.iter().for_each(|stop| stop())),
        frontier: own,
    }
}

/// Saves what is left to save, once no actor uses the frontier any more.
///
/// # Errors
/// When the store refuses: what it has not kept is done again by the next run.
pub(crate) fn close(frontier: &Mutex<Frontier>, ended: &Ended) -> Result<(), StoreError> {
    let finished = (ended.reason == FINISHED).then(|| (FINISHED, b"1".to_vec()));
    frontier.lock().unwrap_or_else(PoisonError::into_inner).close(finished)
}

/// Whether an earlier run came to the end of the job, and nothing was queued since.
pub(crate) fn is_finished(store: &dyn Store) -> bool {
    // What cannot be read leads to another look at what is left, which is nothing.
    store.books().pending == 0 && store.saved(FINISHED).is_ok_and(|state| state.is_some())
}

/// Goes on from the counters and cookies that earlier runs left; those that cannot be read begin anew.
fn kept(store: &dyn Store, stats: &Stats) -> Jars {
    let state = |name| {
        store.saved(name).unwrap_or_else(|error| {
            tracing::error!(%error, name, "what earlier runs kept cannot be read");
            None
        })
    };
    if let Some(Err(error)) = state(COUNTERS).map(|saved| counters::restore(stats, &saved)) {
        tracing::error!(%error, "counting begins anew");
    }
    match state(COOKIES).map(|saved| Jars::restore(stats, &saved)) {
        Some(Ok(jars)) => jars,
        Some(Err(error)) => {
            tracing::error!(%error, "every identity begins without cookies");
            Jars::new(stats)
        }
        None => Jars::new(stats),
    }
}

/// The frontier of a process of its own, with what it keeps for others.
fn alone(
    store: Box<dyn Store>,
    config: SchedulerConfig,
    stats: &Stats,
    now: Instant,
) -> (Arc<Mutex<Frontier>>, Arc<Jars>, Resumed) {
    let jars = Arc::new(kept(store.as_ref(), stats));
    let is_finished = is_finished(store.as_ref());
    let mut frontier = Frontier::new(config, store, stats.clone(), Clock::start(now), now);
    frontier.keep(COUNTERS, counters::take(stats.clone()), now);
    frontier.keep(COOKIES, Jars::take(jars.clone(), stats.clone()), now);
    let cursors = frontier.cursors();
    (Arc::new(Mutex::new(frontier)), jars, Resumed { cursors, is_finished, is_shared: false })
}

fn hold<W: crate::actor::Worker>(stoppers: &mut Vec<Box<dyn Fn()>>, supervised: Supervised<W>) {
    stoppers.push(Box::new(move || supervised.stop()));
}

fn scheduler_config(settings: &Settings, spider: &dyn DynSpider, reach: Reach, seed: u64) -> SchedulerConfig {
    let mut allowed_domains = settings.allowed_domains.clone();
    allowed_domains.extend(spider.allowed_domains());
    SchedulerConfig {
        allowed_domains,
        depth_limit: settings.depth_limit,
        url_length_limit: settings.urllength_limit,
        reach,
        pacing: Pacing {
            per_slot: settings.concurrent_requests_per_domain,
            delay: settings.download_delay,
            jitter: if settings.randomize_download_delay { settings.download_delay_jitter } else { 0.0 },
        },
        robots_agent: settings
            .robotstxt_obey
            .then(|| settings.robotstxt_user_agent.clone().unwrap_or_else(|| settings.user_agent.clone())),
        // Seeds stop first, so that the links of pages still find room.
        seeds_stop_at: size(settings.frontier_max_bytes) / 5 * 4,
        max_bytes: size(settings.frontier_max_bytes),
        disk_wait: settings.disk_wait,
        returns_offsite: settings.apcloudy_request_records == RequestRecords::All,
        seed,
    }
}

fn hub_config(
    settings: &Settings,
    context: Context,
    rules: &Arc<Rules>,
    releaser: crate::engine::ticket::Releaser,
    resumed: Resumed,
    is_remote: bool,
) -> HubConfig {
    HubConfig {
        concurrent: settings.concurrent_requests,
        window_requests: settings.window_limit(),
        report_queue: settings.report_queue,
        report_hold: settings.report_hold,
        seeds_wait_at: (settings.concurrent_requests as u64).saturating_mul(4).max(1000),
        acquire_pending: settings.acquire_pending_per_site,
        is_remote,
        lease_give_up: settings.lease_give_up,
        grace: settings.grace,
        close_timeout: settings.close_timeout,
        stall_warn: settings.stall_warn,
        parse_stall: settings.parse_stall,
        callback_timeout: settings.callback_timeout,
        close_after: CloseAfter::of(settings),
        cursors: resumed.cursors,
        is_finished: resumed.is_finished,
        is_shared: resumed.is_shared,
        ask: {
            let rules = rules.clone();
            Box::new(move |job| rules.ask(&job.request))
        },
        may_differ: {
            let rules = rules.clone();
            Box::new(move |job| rules.may_differ(&job.request))
        },
        stays: {
            let rules = rules.clone();
            Box::new(move |job, to| rules.stays(&job.request, to))
        },
        releaser,
        context,
        robots_again: ROBOTS_AGAIN,
        request_records: settings.apcloudy_request_records,
        stats_dump: settings.stats_dump,
        memory_peak: super::memory::Memory::most,
    }
}

pub(crate) fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Names of parsers, by which the engine knows them; more threads than names are not started.
const PARSER_NAMES: [&str; 64] = [
    "parser-0",
    "parser-1",
    "parser-2",
    "parser-3",
    "parser-4",
    "parser-5",
    "parser-6",
    "parser-7",
    "parser-8",
    "parser-9",
    "parser-10",
    "parser-11",
    "parser-12",
    "parser-13",
    "parser-14",
    "parser-15",
    "parser-16",
    "parser-17",
    "parser-18",
    "parser-19",
    "parser-20",
    "parser-21",
    "parser-22",
    "parser-23",
    "parser-24",
    "parser-25",
    "parser-26",
    "parser-27",
    "parser-28",
    "parser-29",
    "parser-30",
    "parser-31",
    "parser-32",
    "parser-33",
    "parser-34",
    "parser-35",
    "parser-36",
    "parser-37",
    "parser-38",
    "parser-39",
    "parser-40",
    "parser-41",
    "parser-42",
    "parser-43",
    "parser-44",
    "parser-45",
    "parser-46",
    "parser-47",
    "parser-48",
    "parser-49",
    "parser-50",
    "parser-51",
    "parser-52",
    "parser-53",
    "parser-54",
    "parser-55",
    "parser-56",
    "parser-57",
    "parser-58",
    "parser-59",
    "parser-60",
    "parser-61",
    "parser-62",
    "parser-63",
];
