//! Which sink the settings choose, and the making of its handles: one for the job, one for what earlier runs left.
//!
//! Choosing opens and makes nothing.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StartError;
use crate::apcloudy::{Client, ClientConfig, Endpoint};
use crate::courier::{HttpWebhook, JobStore, Webhook};
use crate::settings::{Secret, Settings};

/// What the embedded sink's place begins with.
pub(super) const EMBEDDED: &str = "embedded ";

/// Where batches of a job with these settings go, as people are shown it: the kind of sink and its address, without a
/// secret.
pub(crate) fn place(settings: &Settings) -> String {
    match settings.apcloudy_url.as_deref().map(Endpoint::of) {
        Some(Ok(endpoint)) => format!("apcloudy {endpoint}"),
        // An address that cannot be used ends the start of the job with a message of its own.
        Some(Err(_)) => "apcloudy".to_owned(),
        None => format!("{EMBEDDED}{}", store_path(settings).display()),
    }
}

/// The embedded sink's file.
pub(crate) fn store_path(settings: &Settings) -> PathBuf {
    settings.data_dir.join("jobs.db")
}

/// What kind of sink a place is: `apcloudy` or `embedded`.
pub(crate) fn kind(place: &str) -> &str {
    place.split(' ').next().unwrap_or_default()
}

/// What to do to deliver to the kind of sink a place is.
pub(crate) fn way_to(place: &str) -> &'static str {
    if kind(place) == kind(EMBEDDED) { "leave APCLOUDY_URL out" } else { "set APCLOUDY_URL and its keys" }
}

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
    /// The sink of these settings: APCloudy if `APCLOUDY_URL` is set, else the job store below `DATA_DIR`.
    ///
    /// # Errors
    /// When the settings do not make a sink.
    pub(crate) fn of(settings: &Settings) -> Result<Self, StartError> {
        match &settings.apcloudy_url {
            Some(url) => Self::apcloudy(url, settings),
            None => Ok(Self::embedded(settings)),
        }
    }

    fn apcloudy(url: &str, settings: &Settings) -> Result<Self, StartError> {
        let key = |key: &Option<Secret>| key.as_ref().map_or_else(|| String::new().into(), Secret::to_secret_string);
        let config = ClientConfig {
            ca_file: settings.apcloudy_ca_file.clone(),
            ..ClientConfig::new(url, key(&settings.apcloudy_api_key), key(&settings.apcloudy_secret_key)).with_environment_roots()
        };
        let make = move || match Client::new(config.clone()) {
            Ok(client) => Ok(Box::new(HttpWebhook::new(client)) as Box<dyn Webhook>),
            Err(error) => Err(StartError::Usage(error.to_string())),
        };
        // Sends nothing; what cannot be used is named before anything is begun.
        let place = make()?.place();
        Ok(Self { make: Arc::new(make), place, store: None })
    }

    fn embedded(settings: &Settings) -> Self {
        let store = store_path(settings);
        // A card is read from other directories too.
        let path = std::path::absolute(&store).unwrap_or_else(|_| store.clone());
        let place = format!("{EMBEDDED}{}", path.display());
        let make = move || match JobStore::open(&path) {
            Ok(store) => Ok(Box::new(store) as Box<dyn Webhook>),
            Err(error) => Err(StartError::Usage(error.to_string())),
        };
        Self { make: Arc::new(make), place, store: Some(store) }
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
        assert_eq!(place(&Settings::default()), "embedded .dragline/jobs.db");
    }

    #[test]
    fn with_a_url_there_is_no_job_store() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings {
            data_dir: dir.path().join("data"),
            apcloudy_url: Some("https://apcloudy.example/run/".to_owned()),
            apcloudy_api_key: Some(Secret::from("pk_canary")),
            apcloudy_secret_key: Some(Secret::from("sk_canary")),
            ..Settings::default()
        };
        let sink = Sink::of(&settings).unwrap();
        assert_eq!((sink.place(), sink.store()), ("apcloudy https://apcloudy.example/run", None));
        assert_eq!(place(&settings), sink.place());
        assert_eq!(sink.open().unwrap().place(), sink.place());
        assert!(!settings.data_dir.exists());
        assert!(!format!("{sink:?}").contains("canary"));
        let ca = Settings { apcloudy_ca_file: Some(dir.path().join("no.pem")), ..settings };
        let error = Sink::of(&ca).unwrap_err().to_string();
        assert!(error.contains("no.pem") && error.contains("APCLOUDY_CA_FILE"), "{error}");
    }
}
