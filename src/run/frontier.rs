//! The frontier of a run: in the `JOBDIR` where there is one, else in memory.

use std::collections::HashMap;
use std::path::Path;

use super::{StartError, assemble, jobdir};
use crate::cli::text::grouped;
use crate::collector::message::End;
use crate::scheduler::MemoryStore;
use crate::scheduler::job::{Outcome, RequestId};
use crate::scheduler::store::Store;
use crate::settings::Settings;

/// Opens it. `ends` are of requests that ended in earlier runs, whether those could settle them or not.
///
/// # Errors
/// When a `JOBDIR` has a frontier that cannot be used.
pub(crate) fn open(settings: &Settings, ends: &[End]) -> Result<Box<dyn Store>, StartError> {
    let Some(dir) = &settings.jobdir else {
        return Ok(Box::new(MemoryStore::new(assemble::size(settings.frontier_max_bytes))));
    };
    let store = on_disk(dir, settings, ends)?;
    tell(dir, store.as_ref());
    Ok(store)
}

/// Opens that of a `JOBDIR` whose job is said to be finished, if there is indeed nothing left to do.
///
/// # Errors
/// When it cannot be used.
pub(crate) fn finished(dir: &Path, settings: &Settings) -> Result<Option<Box<dyn Store>>, StartError> {
    let store = on_disk(dir, settings, &[])?;
    Ok(assemble::is_finished(store.as_ref()).then_some(store))
}

fn on_disk(dir: &Path, settings: &Settings, ends: &[End]) -> Result<Box<dyn Store>, StartError> {
    let _path = jobdir::frontier(dir).map_err(|e| StartError::Usage(e.to_string()))?;
    let _ended: HashMap<RequestId, Outcome> = ends.iter().map(|end| (end.request, end.outcome)).collect();
    Ok(Box::new(MemoryStore::new(assemble::size(settings.frontier_max_bytes))))
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
