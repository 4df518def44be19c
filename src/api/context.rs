//! What a callback, pipeline or extension can know of its job: settings, config items, arguments, stats; and how to stop it.

use std::fmt;
use std::sync::{Arc, RwLock};

use super::args::Arguments;
use super::config::{ConfigValue, Configs};
use super::stats::Stats;
use crate::settings::Settings;

/// The job's surroundings. Cloning shares them.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    spider: String,
    job_id: String,
    arguments: Arguments,
    settings: RwLock<Arc<Settings>>,
    configs: Configs,
    stats: Stats,
    stop: Box<dyn Fn(String) + Send + Sync>,
}

impl Context {
    pub(crate) fn new(
        spider: &str,
        job_id: &str,
        arguments: Arguments,
        settings: Arc<Settings>,
        stats: Stats,
        stop: impl Fn(String) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            spider: spider.to_owned(),
            job_id: job_id.to_owned(),
            arguments,
            configs: Configs::of(&settings.config_watch),
            settings: RwLock::new(settings),
            stats,
            stop: Box::new(stop),
        }))
    }

    /// The spider's name.
    #[must_use]
    pub fn spider(&self) -> &str {
        &self.0.spider
    }

    /// The job's id as text.
    #[must_use]
    pub fn job_id(&self) -> &str {
        &self.0.job_id
    }

    /// The spider's arguments, as given.
    #[must_use]
    pub fn arguments(&self) -> &Arguments {
        &self.0.arguments
    }

    /// The settings in effect now; live ones change when the settings file or an item of `CONFIG_WATCH` does.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        // A poisoned lock only means that another thread panicked while it read: the value is whole.
        self.0.settings.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The config item of this group and key, as it is now; cheap, so ask again for each use.
    ///
    /// `None` as long as the control plane has no such item, or none that could be used; and for an item that `CONFIG_WATCH` does
    /// not name, which the log says once. [`Signal::ConfigChanged`](super::Signal::ConfigChanged) tells of new versions.
    #[must_use]
    pub fn config(&self, group: &str, key: &str) -> Option<ConfigValue> {
        self.0.configs.get(group, key)
    }

    /// The job's stats; what is counted here is sent with them.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.0.stats
    }

    /// Ends the job after what is in flight, with this finish reason.
    pub fn stop(&self, reason: impl Into<String>) {
        (self.0.stop)(reason.into());
    }

    pub(crate) fn configs(&self) -> &Configs {
        &self.0.configs
    }

    pub(crate) fn replace_settings(&self, settings: Arc<Settings>) {
        *self.0.settings.write().unwrap_or_else(std::sync::PoisonError::into_inner) = settings;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("spider", &self.0.spider).field("job_id", &self.0.job_id).finish_non_exhaustive()
    }
}
