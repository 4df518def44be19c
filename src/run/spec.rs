//! What one run of a spider needs to know, and what it tells while it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::apcloudy::JobId;
use crate::api::args::Arguments;
use crate::api::context::Context;
use crate::api::extension::Extension;
use crate::api::signal::Signal;
use crate::api::stats::{Stats, utc_now};
use crate::app::{Components, SpiderEntry};
use crate::collector::layer::{LiveLevel, LogLayer};
use crate::collector::logring::LogRing;
use crate::export::{FeedOptions, Target};
use crate::plane::{IdentityUse, PlaneLedger};
use crate::settings::{Layers, LogLevel, Settings};

/// Log records that may wait for the collector.
const LOG_RING: usize = 10_000;

/// One job.
#[derive(Debug)]
pub(crate) struct JobSpec {
    /// The spider.
    pub spider: SpiderEntry,
    /// Its arguments, `JOB_ID` taken out.
    pub arguments: Arguments,
    /// The settings in effect.
    pub settings: Arc<Settings>,
    /// Where they came from, for a reload of the settings file; `None`: nothing is watched.
    pub layers: Option<Layers>,
    /// Pipelines, middlewares and extensions by name.
    pub components: Components,
    /// Feeds.
    pub feeds: Vec<(Target, FeedOptions)>,
    /// The job's id.
    pub job_id: JobId,
    /// Its log records and counters, begun before its first line was said.
    pub logs: Logs,
    /// What the run tells while it goes.
    pub progress: Arc<Progress>,
    /// Asks the run to stop: once gently, twice at once.
    pub stop: Arc<StopSwitch>,
    /// Spider prints go here instead of standard output (feeds to `-` use the real one).
    pub stdout: StdoutSource,
    /// Waits until what was printed is logged.
    pub printed: Printed,
}

/// Waits until what the spider has printed so far is logged. As the last listener it keeps the order at the end: what
/// others print when they hear of it comes before the last lines of the log.
pub(crate) struct Printed(pub Box<dyn Fn() + Send + Sync>);

impl Extension for Printed {
    fn signal(&self, signal: &Signal<'_>, _: &Context) {
        if matches!(signal, Signal::SpiderClosed { .. }) {
            (self.0)();
        }
    }
}

impl std::fmt::Debug for Printed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Printed")
    }
}

/// Log records and counters of a job. They exist before anything else of it, so that its first line is a record too.
#[derive(Debug)]
pub(crate) struct Logs {
    /// Where records wait for the collector.
    pub ring: Arc<LogRing>,
    /// `LOG_LEVEL` while it runs.
    pub level: Arc<LiveLevel>,
    /// The job's counters.
    pub stats: Stats,
}

impl Logs {
    /// Begins a job's log and its time.
    pub(crate) fn begin(level: LogLevel) -> Self {
        let stats = Stats::new();
        stats.set("start_time", utc_now());
        Self { ring: Arc::new(LogRing::new(LOG_RING)), level: Arc::new(LiveLevel::new(level)), stats }
    }

    /// The layer that collects; whoever attaches it lets it go when the job is over.
    pub(crate) fn layer(&self) -> LogLayer {
        LogLayer::new(self.ring.clone(), self.level.clone(), self.stats.clone())
    }
}

/// Opens the real standard output for a feed.
pub(crate) struct StdoutSource(pub Box<dyn Fn() -> std::io::Result<Box<dyn std::io::Write + Send>> + Send + Sync>);

impl std::fmt::Debug for StdoutSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StdoutSource")
    }
}

/// Numbers for the progress line; written by the engine, read by whoever shows them.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Responses received, retries and hops not counted.
    pub pages: AtomicU64,
    /// Items kept.
    pub items: AtomicU64,
    /// Requests queued.
    pub queued: AtomicU64,
    /// Requests on the wire.
    pub in_flight: AtomicU64,
    /// Leases held.
    pub leases: AtomicU64,
    /// Requests failed and callbacks failed.
    pub errors: AtomicU64,
}

/// Counts requests to stop.
#[derive(Debug, Default)]
pub(crate) struct StopSwitch {
    pressed: AtomicU64,
    changed: tokio::sync::Notify,
}

impl StopSwitch {
    /// Asks once more.
    pub(crate) fn press(&self) {
        self.pressed.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// How often it was pressed.
    pub(crate) fn times(&self) -> u64 {
        self.pressed.load(Ordering::Acquire)
    }

    /// Waits until it was pressed more than `seen` times; answers how often.
    pub(crate) async fn pressed(&self, seen: u64) -> u64 {
        loop {
            let changed = self.changed.notified();
            let now = self.pressed.load(Ordering::Acquire);
            if now > seen {
                return now;
            }
            changed.await;
        }
    }
}

/// How a run ended, for the summary and the exit code.
#[derive(Debug)]
pub(crate) struct Report {
    /// The engine's account.
    pub ended: crate::engine::message::Ended,
    /// The control plane's count of leases, where it can be known.
    pub plane: Option<PlaneLedger>,
    /// How much each identity was used, where it can be known; most used first.
    pub identities: Vec<IdentityUse>,
    /// Where batches went: `embedded .dragline/jobs.db`, `apcloudy https://host/path`.
    pub place: String,
    /// The spool directory, if anything was left in it.
    pub spool: Option<std::path::PathBuf>,
    /// The job's id as text.
    pub job_id: String,
    /// The spider.
    pub spider: String,
    /// How long it took.
    pub took: std::time::Duration,
    /// An earlier run of the same `JOBDIR` had finished the job, and this one did nothing.
    pub was_finished: bool,
    /// What a next run has to be given to go on where this one ended, if it can.
    pub resumes: Option<&'static str>,
}

impl Report {
    /// The job store's file, if batches went there.
    pub(crate) fn job_store(&self) -> Option<&str> {
        self.place.strip_prefix(super::sink::EMBEDDED)
    }
}

/// A job that could not start: exit code 64 for what the user can mend in the call, 3 for a control plane that refuses
/// and a disk that does, 70 otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StartError {
    /// Arguments, settings or components that do not fit.
    #[error("{0}")]
    Usage(String),
    /// A directory, file or database that cannot be used.
    #[error("{0}")]
    Io(String),
    /// The control plane refuses this node, or is not there.
    #[error("{0}")]
    Plane(String),
    /// The frontier cannot be read or written now.
    #[error("{0}")]
    Disk(String),
    /// The engine itself failed: a bug of ours.
    #[error("the engine ended without a word; this is a bug in dragline, the log has its panic")]
    Engine,
}
