//! The frontier of a run: in the `JOBDIR` where there is one, else in memory.

use std::collections::HashMap;
use std::path::Path;

use super::{StartError, assemble, jobdir};
use crate::cli::text::grouped;
use crate::collector::message::End;
use crate::scheduler::MemoryStore;
use crate::scheduler::disk::{DiskError, DiskOptions, DiskStore};
use crate::scheduler::job::{Outcome, RequestId};
use crate::scheduler::store::Store;
use crate::settings::Settings;

/// Opens it. `ends` are of requests that ended in earlier runs, whether those could settle them or not: here they are
/// settled, and that is kept.
///
/// # Errors
/// When a `JOBDIR` has a frontier that cannot be used.
pub(crate) fn open(settings: &Settings, ends: &[End]) -> Result<Box<dyn Store>, StartError> {
    let Some(dir) = &settings.jobdir else {
        return Ok(Box::new(MemoryStore::spilling(assemble::size(settings.frontier_max_bytes), &settings.data_dir)));
    };
    let mut store = on_disk(dir, settings, ends)?;
    store.commit().map_err(|error| StartError::Disk(error.to_string()))?;
    tell(dir, &store);
    Ok(Box::new(store))
}

/// Opens that of a `JOBDIR` whose job is said to be finished, if there is indeed nothing left to do.
///
/// # Errors
/// When it cannot be used.
pub(crate) fn finished(dir: &Path, settings: &Settings) -> Result<Option<Box<dyn Store>>, StartError> {
    let store = on_disk(dir, settings, &[])?;
    Ok(assemble::is_finished(&store).then(|| Box::new(store) as Box<dyn Store>))
}

fn on_disk(dir: &Path, settings: &Settings, ends: &[End]) -> Result<DiskStore, StartError> {
    let path = jobdir::frontier(dir).map_err(|e| StartError::Usage(e.to_string()))?;
    let ended: HashMap<RequestId, Outcome> = ends.iter().map(|end| (end.request, end.outcome)).collect();
    let options = DiskOptions { sync: settings.frontier_sync_ms, ..DiskOptions::default() };
    let (store, opened) = DiskStore::open(&path, options, &ended).map_err(refused)?;
    if let Some(repaired) = &opened.repaired {
        tracing::error!(frontier = %path.display(), "the frontier was damaged: {repaired}");
    }
    if opened.returned + opened.settled_from_log > 0 {
        tracing::info!(
            "{} requests were in flight when the last run ended and are queued again; {} more had ended, which is noted now",
            grouped(opened.returned),
            grouped(opened.settled_from_log)
        );
    }
    Ok(store)
}

/// What the caller can mend by another call is a usage error; what the disk has to mend is not.
fn refused(error: DiskError) -> StartError {
    match error {
        DiskError::Foreign { .. } | DiskError::Newer { .. } | DiskError::Locked { .. } | DiskError::Damaged { .. } => {
            StartError::Usage(error.to_string())
        }
        other => StartError::Disk(other.to_string()),
    }
}

/// Says where the job stands.
fn tell(dir: &Path, store: &dyn Store) {
    let (books, cursors) = (store.books(), store.cursors());
    let jobdir = dir.display();
    if books.enqueued == 0 && cursors.start == 0 {
        tracing::info!(%jobdir, "the job begins; another run with the same JOBDIR goes on where this one ends");
        return;
    }
    let (queued, done) = (books.pending, books.enqueued.saturating_sub(books.pending));
    tracing::info!(
        %jobdir,
        "resumed: {} queued, {} done, start at {}",
        grouped(queued),
        grouped(done),
        grouped(cursors.start)
    );
}
