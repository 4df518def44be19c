//! One run of a spider: puts actors, backends and threads together and waits for the end.

mod assemble;
mod counters;
pub(crate) mod deliver;
#[cfg(feature = "redis")]
mod fleet;
mod frontier;
pub(crate) mod jobdir;
pub(crate) mod leftovers;
mod memory;
pub(crate) mod plane;
pub(crate) mod rejected;
pub(crate) mod sink;
pub(crate) mod spec;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use assemble::FINISHED;
#[cfg(test)]
pub(crate) use assemble::close;
pub(crate) use assemble::{Backends, Entry, Job, Keeping, Running, Threads, assemble};
pub(crate) use spec::{JobSpec, Logs, Printed, Progress, Report, StartError, StdoutSource, StopSwitch};

use crate::actor::{Arbiter, Inbox, Place, Plan, Policy, before_park, supervise};
use crate::apcloudy::JobId;
use crate::api::context::Context;
use crate::api::extension::Extension;
use crate::api::stats::{Stats, utc_now};
use crate::app::choose;
use crate::broker::Net;
use crate::collector::log::LogError;
use crate::collector::{CollectorConfig, Outlets, Seeds, spool_dir};
use crate::config::{ConfigCenter, FollowedFile, Following, Parts as ConfigParts};
use crate::courier::JobStore;
use crate::downloader::{DownloaderConfig, Markers, Names, ReqwestTransport};
use crate::engine::message::{Control, Ended, StopReason};
use crate::parser::stage::{Listeners, Stage};
use crate::reach::Reach;
use crate::scheduler::Frontier;
use crate::settings::Settings;
use deliver::Background;
use jobdir::{JobCard, OpenCard};
use sink::Sink;
pub(crate) use sink::{place, store_path};

/// How long the last leases may take to come back after the engine has ended.
const LAST_RELEASES: Duration = Duration::from_secs(1);
/// How long what is still on its way to the control plane may take after that.
const LAST_CALLS: Duration = Duration::from_millis(500);
/// How long a thread may take to end.
const LAST_THREADS: Duration = Duration::from_millis(500);

/// Runs a job to its end. Must be called within [`crate::actor::run_system`].
///
/// # Errors
/// When the job cannot start.
pub(crate) async fn run(mut spec: JobSpec) -> Result<Report, StartError> {
    let started = Instant::now();
    let settings = spec.settings.clone();
    // Taken as near as possible to when the layers were read: a change from here on is noticed.
    let config_stamp = spec.layers.as_ref().and_then(|l| crate::config::stamp(l.settings_file()?));
    let Logs { ring, level: live_level, stats } = spec.logs;
    if let Some(memory) = memory::Memory::now() {
        stats.max("memusage/startup", memory.resident);
        stats.max("memusage/max", memory.peak);
    }
    let spider =
        (spec.spider.build)(&spec.arguments).map_err(|e| StartError::Usage(format!("spider {}: {e}", spec.spider.name)))?;

    let pipelines =
        choose(&spec.components.pipelines, &settings.item_pipelines, "ITEM_PIPELINES", &settings).map_err(StartError::Usage)?;
    let extensions =
        choose(&spec.components.extensions, &settings.extensions, "EXTENSIONS", &settings).map_err(StartError::Usage)?;
    let middlewares = choose(&spec.components.middlewares, &settings.downloader_middlewares, "DOWNLOADER_MIDDLEWARES", &settings)
        .map_err(StartError::Usage)?;
    let rules = plane::rules(&settings)?;
    Markers::compile(&settings.markers).map_err(|e| StartError::Usage(e.to_string()))?;
    let plane::Opened { plane, remote, .. } = plane::open(&settings)?;
    let reach = Reach::of(settings.allow_private_addresses);
    let names = Names::from_settings(&settings).reaching(reach.clone());
    let transport = ReqwestTransport::new(DownloaderConfig::from_settings(&settings).client, names)
        .map_err(|e| StartError::Io(e.to_string()))?;

    let job_text = spec.job_id.to_string();
    if let Some(dir) = &settings.jobdir {
        let claimed = jobdir::claim(dir, &spec.job_id, spec.spider.name).map_err(|e| StartError::Usage(e.to_string()))?;
        if claimed != spec.job_id {
            tracing::info!(job_id = claimed.to_json(), "JOB_ID is sent as in the first run of this JOBDIR, number or text");
            spec.job_id = claimed;
        }
        if !settings.frontier.is_shared()
            && let Some(report) = finished_before(dir, &settings, &spec.job_id, spec.spider.name, &stats)?
        {
            return Ok(report);
        }
    }
    std::fs::create_dir_all(&settings.data_dir).map_err(|e| {
        StartError::Usage(format!(
            "{}: cannot be made: {e}; set DATA_DIR to a directory that can be written",
            settings.data_dir.display()
        ))
    })?;
    let sink = Sink::of(&settings)?;
    let webhook = sink.open()?;

    let seeds = Seeds::draw().map_err(|e| StartError::Io(format!("the system has no random numbers: {e}")))?;
    let mut feeds = Vec::new();
    for (target, options) in spec.feeds {
        let feed = crate::export::open(&target, options, || (spec.stdout.0)()).map_err(|e| StartError::Usage(e.to_string()))?;
        feeds.push((target.uri(), feed));
    }
    if let Some(line) = crate::app::ignored(&spec.components, &settings) {
        tracing::info!("{line}");
    }
    if let Some(dir) = &settings.jobdir
        && let Some(line) = leftovers::turned(dir, sink.place()).map_err(StartError::Usage)?
    {
        tracing::warn!("{line}");
    }
    let earlier = leftovers::below(&settings.data_dir, None);
    let (own_spool, _) = spool_dir(&settings, &job_text, seeds.instance);
    let card = JobCard::new(spec.job_id.clone(), spec.spider.name)
        .for_run(sink.place(), leftovers::next_log_index(&earlier, &spec.job_id));
    let indexes = OpenCard::new(settings.jobdir.as_deref().unwrap_or(&own_spool), card);
    let outlets = Outlets { feeds, ring, stats: stats.clone(), indexes: Some(Box::new(indexes)) };
    let delivery = crate::collector::open(&settings, &spec.job_id, outlets, webhook, seeds).map_err(|e| match e {
        // What the caller can mend: another directory, or the other run's end.
        LogError::Locked { .. } | LogError::OtherJob { .. } | LogError::NewerFormat { .. } => StartError::Usage(e.to_string()),
        LogError::Io { .. } => StartError::Usage(format!("{e}; mend that, or set DATA_DIR (or JOBDIR) to another directory")),
        other => StartError::Io(other.to_string()),
    })?;
    let spool = delivery.spool.clone();
    #[cfg(feature = "redis")]
    let frontier = match fleet::Fleet::of(&settings, &spec.job_id, spec.spider.name)? {
        Some(fleet) => {
            let joined = fleet.join(fleet::worker_name(&settings, seeds.instance)?, seeds.instance, &delivery.ends)?;
            fleet.bury(&earlier, seeds.log_id);
            joined
        }
        None => Keeping::Alone(frontier::open(&settings, &delivery.ends)?),
    };
    #[cfg(not(feature = "redis"))]
    let frontier = Keeping::Alone(frontier::open(&settings, &delivery.ends)?);
    // They are settled there now, or were before: their segments may go.
    let ends: Vec<_> = delivery.ends.iter().map(|end| end.request).collect();
    delivery.collector.lock().unwrap_or_else(PoisonError::into_inner).settle(&ends);
    // Only now is the job ours: the spool of another process that runs it would have been refused.
    if let Some(path) = sink.store() {
        let store = JobStore::open(path).map_err(|e| StartError::Io(e.to_string()))?;
        store.job_started(&spec.job_id, spec.spider.name, &utc_now()).map_err(|e| StartError::Io(e.to_string()))?;
        // A store that cannot be tidied is still good for this job.
        match store.prune(settings.jobs_keep) {
            Ok(pruned) if pruned.is_empty() => {}
            Ok(pruned) => tracing::info!(jobs = pruned.len(), "finished jobs beyond JOBS_KEEP were deleted from the job store"),
            Err(error) => tracing::warn!(%error, "old jobs cannot be deleted from the job store (JOBS_KEEP)"),
        }
    }
    let earlier = leftovers::name(earlier, sink.place());

    let entry = Entry::new();
    let stopper = entry.controls();
    let context = Context::new(spec.spider.name, &job_text, spec.arguments, settings.clone(), stats.clone(), move |reason| {
        // A job that is over already cannot be stopped.
        stopper.tell(Control::Stop(StopReason::Spider(reason)));
    });
    let pool = Pool::start(Plan::current(), settings.frontier.is_shared())?;
    let items = plane::watched(&settings);
    let feed = match plane::follow(&plane, &items, &pool.net()).await {
        Ok(feed) => feed,
        Err(error) => {
            pool.end().await;
            return Err(error);
        }
    };
    let following = spec.layers.map(|layers| {
        let log = crate::cli::logging::current();
        let path = layers.settings_file().filter(|_| settings.settings_watch).map(std::path::Path::to_path_buf);
        Following::begin(ConfigParts {
            file: path.map(|path| FollowedFile { path, seen: config_stamp, poll: settings.settings_poll }),
            layers,
            settings: settings.clone(),
            feed,
            items,
            context: context.clone(),
            engine: entry.controls(),
            on_change: Arc::new(move |settings| {
                log.set_level(settings.log_level);
                live_level.set(settings.log_level);
            }),
            stats: stats.clone(),
        })
    });
    // Items of CONFIG_WATCH count from the first request on.
    let settings = following.as_ref().map_or(settings, Following::settings);
    let printed: Box<dyn Extension> = Box::new(spec.printed);
    let stage = Stage {
        pipelines: pipelines.into_iter().map(|(_, name, pipeline)| (name, pipeline)).collect(),
        listeners: Listeners {
            spider: spider.clone(),
            extensions: extensions.into_iter().map(|(_, _, extension)| extension).chain([printed]).collect(),
            context: context.clone(),
        },
    };
    let job = Job {
        spider,
        settings: settings.clone(),
        context,
        stage,
        middlewares: middlewares.into_iter().map(|(order, _, installed)| installed.at(order)).collect(),
        rules,
        stats: stats.clone(),
        progress: spec.progress,
        seed: seeds.jitter,
    };
    let backends = Backends { plane: plane.clone(), transport: Arc::new(transport), reach, frontier, delivery };
    let earlier =
        Background::start(earlier, sink.make(), CollectorConfig::from_settings(&settings), pool.delivery.place(), stats.clone());
    let shares = pool.plan.hub_shares_network;
    let Running { engine, broker, ended, releasing, unparsed, stop_actors, frontier } =
        assemble(entry, job, backends, pool.threads());
    if shares {
        // One processor for all: before the hub waits for the network it lets a parser that has pages go on, so
        // that what arrives meanwhile is handled together and not by a switch of threads for each page.
        before_park(move || {
            if unparsed() > 0 {
                std::thread::yield_now();
            }
        });
    }

    let center = following.map(|following| {
        let make = move |_| ConfigCenter::new(following.clone());
        supervise(Place::Here, &Inbox::new("config", 1), Policy::default(), make, |_| {})
    });
    let switches = plane.is_remote().then(|| pool.net().spawn(plane::watch_switches(plane.clone(), broker)));

    let stop = spec.stop.clone();
    let pressed = tokio::task::spawn_local(press(spec.stop, engine.clone()));
    let ended = ended.await;
    pressed.abort();
    let Ok(ended) = ended else {
        stop_actors();
        return Err(StartError::Engine);
    };
    let last = Instant::now() + LAST_RELEASES;
    while (releasing.count() > 0 || plane.ledger().is_some_and(|l| l.open > 0)) && Instant::now() < last {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Whoever wants the job to stop, or has a sink that takes nothing, does not wait for what others left.
    let in_order = matches!(ended.code, 0 | 3) && ended.delivery.undelivered_records == 0;
    let limit = if in_order { settings.close_timeout / 2 } else { Duration::ZERO };
    // A press that ended the job has been answered: only a further one is impatient.
    let answered = stop.times();
    earlier.end(limit, stop.pressed(answered)).await;
    stop_actors();
    if let Some(center) = center {
        center.stop();
    }
    if let Some(switches) = switches {
        switches.abort();
    }
    if let Some(remote) = remote {
        remote.close(LAST_CALLS).await;
    }
    pool.end().await;
    let mut ended = *ended;
    if let Some(frontier) = frontier.filter(|_| settings.jobdir.is_some()) {
        close_frontier(&frontier, &mut ended);
    }
    let ledger = plane.ledger();
    if let Some(ledger) = ledger.filter(|l| !l.balances() || l.open > 0) {
        ended.imbalances.push(format!(
            "{} leases acquired, but {} released + {} expired + {} open",
            ledger.acquired, ledger.released, ledger.expired, ledger.open
        ));
        ended.code = ended.code.max(5);
    }
    if let Some(path) = sink.store()
        && let Ok(store) = JobStore::open(path)
        && let Err(error) = store.job_finished(&spec.job_id, &utc_now(), &ended.reason)
    {
        tracing::warn!(%error, "the job store does not know that the job has ended");
    }
    if let Some(dir) = settings.jobdir.as_ref().filter(|_| !settings.frontier.is_shared())
        && ended.reason == FINISHED
        && ended.delivery.undelivered_records == 0
        && matches!(ended.code, 0 | 3)
        && let Err(error) = jobdir::note_finished(dir)
    {
        tracing::warn!(%error, "the next run with this JOBDIR will have to find out itself that the job is finished");
    }
    Ok(Report {
        was_finished: false,
        resumes: match (settings.frontier.is_shared(), &settings.jobdir) {
            (true, _) => Some("FRONTIER and JOB_ID"),
            (false, Some(_)) => Some("JOBDIR"),
            (false, None) => None,
        },
        plane: ledger,
        identities: plane.identities(),
        place: place(&settings),
        spool: spool.exists().then_some(spool).filter(|_| ended.delivery.undelivered_records > 0),
        job_id: job_text,
        spider: spec.spider.name.to_owned(),
        took: started.elapsed(),
        ended,
    })
}

/// The report of a job that an earlier run with the same `JOBDIR` came to the end of; `None`: there is something to do.
fn finished_before(
    dir: &Path,
    settings: &Settings,
    job_id: &JobId,
    spider: &str,
    stats: &Stats,
) -> Result<Option<Report>, StartError> {
    let card = jobdir::read(dir).map_err(|e| StartError::Usage(e.to_string()))?;
    if !card.is_some_and(|card| card.finished) {
        return Ok(None);
    }
    let Some(mut store) = frontier::finished(dir, settings)? else { return Ok(None) };
    let books = store.books();
    store.close().map_err(|e| StartError::Disk(e.to_string()))?;
    tracing::info!(jobdir = %dir.display(), "an earlier run finished the job: nothing is left to do");
    let ended = Ended { reason: FINISHED.to_owned(), books, stats: stats.snapshot(), ..Ended::default() };
    Ok(Some(Report {
        ended,
        plane: None,
        identities: Vec::new(),
        place: place(settings),
        spool: None,
        job_id: job_id.to_string(),
        spider: spider.to_owned(),
        took: Duration::ZERO,
        was_finished: true,
        resumes: Some("JOBDIR"),
    }))
}

/// Saves what is left to save. A store that refuses is no loss of requests.
fn close_frontier(frontier: &Mutex<Frontier>, ended: &mut Ended) {
    if let Err(error) = assemble::close(frontier, ended) {
        tracing::error!(%error, "the frontier could not be closed: the next run repeats what was not kept");
        ended.note.get_or_insert_with(|| format!("the frontier could not be closed: {error}"));
        ended.code = ended.code.max(3);
    }
}

async fn press(stop: Arc<StopSwitch>, engine: crate::actor::Controls<Control>) {
    let seen = stop.pressed(0).await;
    engine.tell(Control::Stop(StopReason::Signal));
    if seen < 2 {
        stop.pressed(1).await;
    }
    engine.tell(Control::Kill);
}

/// The threads of a run, by the processors this process may use.
struct Pool {
    plan: Plan,
    delivery: Arbiter,
    /// Waits for the server of a shared frontier.
    frontier: Option<Arbiter>,
    parsers: Vec<Arbiter>,
    spares: Arc<Mutex<Vec<Arbiter>>>,
    net: Option<tokio::runtime::Runtime>,
}

impl Pool {
    fn start(plan: Plan, shares_frontier: bool) -> Result<Self, StartError> {
        let thread = |name: &str| Arbiter::start(name).map_err(|e| StartError::Io(format!("no thread can be started: {e}")));
        let net = if plan.hub_shares_network {
            None
        } else {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(plan.network_workers)
                .thread_name("net")
                .enable_all()
                .build();
            Some(runtime.map_err(|e| StartError::Io(format!("no network thread can be started: {e}")))?)
        };
        let parsers = (0..plan.parse_threads).map(|n| thread(&format!("parse-{n}"))).collect::<Result<_, _>>()?;
        let frontier = shares_frontier.then(|| thread("frontier")).transpose()?;
        Ok(Self { plan, delivery: thread("delivery")?, frontier, parsers, spares: Arc::default(), net })
    }

    /// Where sockets live.
    fn net(&self) -> tokio::runtime::Handle {
        self.net.as_ref().map_or_else(tokio::runtime::Handle::current, |r| r.handle().clone())
    }

    fn threads(&self) -> Threads {
        let net = self.net();
        let spares = self.spares.clone();
        Threads {
            scheduler: self.frontier.as_ref().map_or(Place::Here, Arbiter::place),
            collector: if self.plan.delivery_on_hub { Place::Here } else { self.delivery.place() },
            courier: self.delivery.place(),
            parsers: self.parsers.iter().map(Arbiter::place).collect(),
            calls: Net::Runtime(net.clone()),
            net,
            spare: Arc::new(move || {
                let arbiter = Arbiter::start("parse-spare").ok()?;
                let place = arbiter.place();
                spares.lock().unwrap_or_else(PoisonError::into_inner).push(arbiter);
                Some(place)
            }),
        }
    }

    /// Ends the threads; one that is stuck is left to itself.
    async fn end(self) {
        let spares = std::mem::take(&mut *self.spares.lock().unwrap_or_else(PoisonError::into_inner));
        let all = self.parsers.into_iter().chain(spares).chain([self.delivery]).chain(self.frontier);
        futures_util::future::join_all(all.map(|arbiter| arbiter.join(LAST_THREADS))).await;
        if let Some(net) = self.net {
            net.shutdown_background();
        }
    }
}
