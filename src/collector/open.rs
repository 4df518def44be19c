//! Opening a job's delivery: the spool, what an earlier run left in it, and the states of collector and courier.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::config::{CollectorConfig, Tidy, spool_dir, spools};
use super::feeds::FeedSet;
use super::log::{LogError, LogOptions, RecordLog, Recovered};
use super::logring::LogRing;
use super::message::End;
use super::outcome;
use super::state::{CollectorState, Parts};
use crate::apcloudy::JobId;
use crate::api::stats::Stats;
use crate::courier::{CourierOptions, CourierState, Webhook, rejected};
use crate::export::Feed;
use crate::scheduler::job::RequestId;
use crate::settings::Settings;

/// Leftovers that get a log line of their own.
const NAMED: usize = 5;

/// Random numbers of a run, drawn by whoever starts it.
#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    /// Tells the spool of this run from those of other runs.
    pub instance: u64,
    /// The number of a new record log.
    pub log_id: u64,
    /// Start of the courier's jitter.
    pub jitter: u64,
}

impl Seeds {
    /// Draws from the system.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self { instance: getrandom::u64()?, log_id: getrandom::u64()?, jitter: getrandom::u64()? })
    }
}

/// What a job delivers with.
#[derive(Debug)]
pub struct Outlets {
    /// Feeds with their names; all get the same items.
    pub feeds: Vec<(String, Box<dyn Feed>)>,
    /// Where log records come from.
    pub ring: Arc<LogRing>,
    /// The job's counters.
    pub stats: Stats,
}

/// A job's delivery, ready for its two actors. The states outlive the actors' incarnations.
#[derive(Debug)]
pub struct Delivery {
    /// For [`Collector::new`](super::Collector::new).
    pub collector: Arc<Mutex<CollectorState>>,
    /// For [`Courier::new`](crate::courier::Courier::new).
    pub courier: Arc<Mutex<CourierState>>,
    /// Ends of an earlier run that the frontier must settle; they are not fetched again.
    pub ends: Vec<End>,
    /// Where the spool lies.
    pub spool: PathBuf,
    /// Spools that other runs left behind.
    pub leftovers: Vec<PathBuf>,
}

/// Opens the delivery of a job where the settings say. Reads and writes files: call it before the crawl begins.
///
/// # Errors
/// [`LogError`] when the spool cannot be used.
pub fn open(
    settings: &Settings,
    job: &JobId,
    outlets: Outlets,
    sink: Box<dyn Webhook>,
    seeds: Seeds,
) -> Result<Delivery, LogError> {
    let (spool, tidy) = spool_dir(settings, &job.to_string(), seeds.instance);
    let leftovers = leftovers(&settings.data_dir, &spool);
    for left in leftovers.iter().take(NAMED) {
        tracing::warn!(spool = %left.display(), "an earlier run left records that were not delivered; they stay there");
    }
    if let Some(more) = leftovers.len().checked_sub(NAMED).filter(|more| *more > 0) {
        tracing::warn!(more, "there are more spools of earlier runs");
    }
    let mut delivery = open_at(CollectorConfig::from_settings(settings), &spool, tidy, job, outlets, sink, seeds)?;
    delivery.leftovers = leftovers;
    Ok(delivery)
}

/// Opens the delivery of a job in a given directory.
///
/// # Errors
/// [`LogError`] when the spool cannot be used.
pub fn open_at(
    config: CollectorConfig,
    spool: &Path,
    tidy: Tidy,
    job: &JobId,
    outlets: Outlets,
    sink: Box<dyn Webhook>,
    seeds: Seeds,
) -> Result<Delivery, LogError> {
    let options = LogOptions { segment_bytes: config.segment_bytes, log_id: seeds.log_id };
    let (log, recovered) = RecordLog::open(spool, job, options)?;
    tell(spool, &recovered);
    let ends = recovered.ends.iter().map(|(_, end)| End {
        request: RequestId(end.request),
        attempt: end.attempt,
        outcome: outcome::outcome(end.outcome),
    });
    let ends = ends.collect();
    let courier = CourierOptions { spool: spool.to_owned(), on_fatal: config.on_fatal, seed: seeds.jitter };
    let courier = CourierState::new(sink, courier, outlets.stats.clone());
    let collector = CollectorState::new(Parts {
        config,
        job: job.clone(),
        spool: spool.to_owned(),
        tidy,
        log,
        recovered,
        feeds: FeedSet::new(outlets.feeds),
        ring: outlets.ring,
        stats: outlets.stats,
    })?;
    Ok(Delivery {
        collector: Arc::new(Mutex::new(collector)),
        courier: Arc::new(Mutex::new(courier)),
        ends,
        spool: spool.to_owned(),
        leftovers: Vec::new(),
    })
}

/// Says what was found in the spool.
fn tell(spool: &Path, recovered: &Recovered) {
    let spool = spool.display();
    if !recovered.cuts.is_empty() || recovered.uncut.is_some() || !recovered.ends.is_empty() {
        tracing::info!(
            %spool,
            batches = recovered.cuts.len(),
            open = recovered.uncut.is_some(),
            ends = recovered.ends.len(),
            "an earlier run left records: they are delivered first"
        );
    }
    if let Some(torn) = &recovered.torn {
        tracing::warn!(%spool, bytes = torn.bytes, "an unfinished write of an earlier run was cut off");
    }
    for damage in &recovered.damaged {
        tracing::error!(
            file = %damage.file.display(), offset = damage.offset, bytes = damage.bytes, lost = damage.lost,
            copy = %damage.set_aside.display(),
            "a part of the record log does not read: the rest of the file is used, a copy of it was set aside"
        );
    }
    for missing in &recovered.missing {
        tracing::error!(
            %spool, after = missing.after, up_to = missing.up_to, lost = missing.up_to - missing.after,
            "a part of the record log is missing"
        );
    }
}

/// Spools below `DATA_DIR` that hold something and that no running process has.
fn leftovers(data_dir: &Path, own: &Path) -> Vec<PathBuf> {
    let Ok(dirs) = fs::read_dir(spools(data_dir)) else { return Vec::new() };
    let mut found: Vec<_> =
        dirs.filter_map(|dir| Some(dir.ok()?.path())).filter(|dir| dir != own && holds_records(dir) && !is_in_use(dir)).collect();
    found.sort();
    found
}

fn holds_records(dir: &Path) -> bool {
    let Ok(files) = fs::read_dir(dir) else { return false };
    files.flatten().any(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name == rejected::DIRECTORY || (name.starts_with("seg-") && (name.ends_with(".log") || name.ends_with(".damaged")))
    })
}

fn is_in_use(dir: &Path) -> bool {
    fs::File::open(dir.join("lock")).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}
