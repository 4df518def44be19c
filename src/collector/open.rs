//! Opening a job's delivery: the spool, what an earlier run left in it, and the states of collector and courier.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::config::{CollectorConfig, Tidy, spool_dir};
use super::feeds::FeedSet;
use super::log::{LogError, LogOptions, RecordLog, Recovered};
use super::logring::LogRing;
use super::message::End;
use super::numbers::{IndexStore, Numbers};
use super::state::{CollectorState, Parts};
use crate::apcloudy::JobId;
use crate::api::stats::Stats;
use crate::courier::{CourierOptions, CourierState, Webhook};
use crate::export::Feed;
use crate::scheduler::job::{RequestId, outcome};
use crate::settings::Settings;

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
    /// Where the job keeps the next index of its log records; `None`: every run begins at 0.
    pub indexes: Option<Box<dyn IndexStore>>,
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
    /// Entries of an earlier run that damaged or missing segments took with them, as far as known.
    pub lost: u64,
}

/// How far a delivery is that takes nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Something is on its way.
    Going,
    /// Everything is settled.
    Through,
    /// The sink takes nothing any more; the text says why.
    Stopped(String),
}

impl CollectorState {
    /// How far it is, for whoever only waits for what the spool held at the opening.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.outbox.stopped() {
            _ if !self.outbox.is_idle() => Standing::Going,
            Some(why) => Standing::Stopped(why.to_owned()),
            None => Standing::Through,
        }
    }
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
    open_at(CollectorConfig::from_settings(settings), &spool, tidy, job, outlets, sink, seeds)
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
    // Not before the lock is ours: another run of the job may have used indexes until just now.
    let numbers = Numbers::open(outlets.indexes)?;
    outlets.ring.start_at(numbers.first());
    let ends = recovered.ends.iter().map(|(_, end)| End {
        request: RequestId(end.request),
        attempt: end.attempt,
        outcome: outcome::outcome(end.outcome),
    });
    let ends = ends.collect();
    let lost = recovered.lost;
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
        numbers,
    })?;
    Ok(Delivery {
        collector: Arc::new(Mutex::new(collector)),
        courier: Arc::new(Mutex::new(courier)),
        ends,
        spool: spool.to_owned(),
        lost,
    })
}

/// Says what was found in the spool.
fn tell(spool: &Path, recovered: &Recovered) {
    let spool = spool.display();
    if !recovered.cuts.is_empty() || recovered.uncut.is_some() {
        let batches = recovered.cuts.len() + usize::from(recovered.uncut.is_some());
        tracing::info!(%spool, batches, "an earlier run left records: they are delivered first");
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
