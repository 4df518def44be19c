//! Which sink the settings choose, and the making of its handles: one for the job, one for what earlier runs left.
//!
//! Choosing opens and makes nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StartError;
use crate::courier::{JobStore, Webhook};
use crate::settings::Settings;

/// Makes handles of a sink.
pub(crate) type MakeSink = Arc<dyn Fn() -> Result<Box<dyn Webhook>, StartError> + Send + Sync>;

/// A sink that was chosen.
#[derive(Clone)]
pub(crate) struct Sink {
    make: MakeSink,
    place: String,
    store: Option<PathBuf>,
}

impl Sink {
    /// The sink of these settings: the job store below `DATA_DIR`.
    ///
    /// # Errors
    /// When the settings do not make a sink.
    pub(crate) fn of(settings: &Settings) -> Result<Self, StartError> {
        let store = settings.data_dir.join("jobs.db");
        // A card is read from other directories too.
        let path = std::path::absolute(&store).unwrap_or_else(|_| store.clone());
        let place = format!("embedded {}", path.display());
        let make = move || match JobStore::open(&path) {
            Ok(store) => Ok(Box::new(store) as Box<dyn Webhook>),
            Err(error) => Err(StartError::Usage(error.to_string())),
        };
        Ok(Self { make: Arc::new(make), place, store: Some(store) })
    }

    /// A new handle, with connections of its own.
    ///
    /// # Errors
    /// When the sink cannot be used.
    pub(crate) fn open(&self) -> Result<Box<dyn Webhook>, StartError> {
        (self.make)()
    }

    /// How to make further handles.
    pub(crate) fn make(&self) -> MakeSink {
        Arc::clone(&self.make)
    }

    /// Where batches go, as the cards of spools say it. No secret.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The job store, if that is the sink.
    pub(crate) fn store(&self) -> Option<&Path> {
        self.store.as_deref()
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_place_is_the_one_its_handles_name_and_choosing_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { data_dir: dir.path().join("data"), ..Settings::default() };
        let sink = Sink::of(&settings).unwrap();
        assert!(!settings.data_dir.exists());
        assert_eq!(sink.open().unwrap().place(), sink.place());
        assert_eq!(sink.store().unwrap(), settings.data_dir.join("jobs.db"));
        let relative = Sink::of(&Settings::default()).unwrap();
        assert!(relative.place().starts_with("embedded /"), "{}", relative.place());
        assert_eq!(relative.store().unwrap(), Path::new(".dragline/jobs.db"), "as people are shown it");
    }
}
