//! The config center: watches the settings file and hands changed live settings to the engine.
//!
//! A reload replaces the settings file's own layer and nothing above it. A file that cannot be read or has
//! errors changes nothing; keys that need a restart are named in a warning.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::actor::{Controls, Cx, Slot, Worker};
use crate::api::stats::Stats;
use crate::engine::message::Control as EngineControl;
use crate::settings::{Layers, Settings, changes};

/// What the center works with.
#[derive(Clone)]
pub(crate) struct Parts {
    /// The layers the settings in effect came from.
    pub layers: Layers,
    /// The settings file.
    pub path: PathBuf,
    /// Its stamp when the layers read it.
    pub seen: Option<Stamp>,
    /// The settings in effect.
    pub settings: Arc<Settings>,
    /// `SETTINGS_POLL`.
    pub poll: Duration,
    /// Takes changed settings.
    pub engine: Controls<EngineControl>,
    /// Takes a changed `LOG_LEVEL`.
    pub on_change: Arc<dyn Fn(&Settings) + Send + Sync>,
    pub stats: Stats,
}

/// The actor.
pub(crate) struct ConfigCenter {
    parts: Parts,
    seen: Option<Stamp>,
    /// What was warned of already, so that a broken file is named once.
    complained: Option<String>,
}

/// What tells one state of a file from another without reading it: when it was changed, and its length.
pub(crate) type Stamp = (SystemTime, u64);

/// Its own timer.
#[derive(Debug)]
pub(crate) struct Look;

/// The center takes no orders.
#[derive(Debug)]
pub(crate) enum Never {}

impl ConfigCenter {
    pub(crate) fn new(parts: Parts) -> Self {
        Self { seen: parts.seen, parts, complained: None }
    }

    fn look(&mut self) {
        let now = stamp(&self.parts.path);
        if now.is_none() || now == self.seen {
            return;
        }
        self.seen = now;
        let path = &self.parts.path;
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                return self.complain(format!("{}: cannot be read: {error}; the settings stay as they are", path.display()));
            }
        };
        let layers = self.parts.layers.with_file(path, &text);
        let newer = match layers.resolve() {
            Ok(resolved) => resolved.settings,
            Err(errors) => return self.complain(format!("{errors}\nthe settings stay as they are")),
        };
        self.complained = None;
        let changed = changes(&self.parts.settings, &newer);
        if !changed.restart.is_empty() {
            tracing::warn!(keys = changed.restart.join(", "), "these settings changed but need a restart");
        }
        if changed.live.is_empty() {
            return;
        }
        tracing::info!(keys = changed.live.join(", "), "settings changed");
        self.parts.stats.inc("config/reloads");
        let settings = Arc::new(self.parts.settings.with_live_of(&newer));
        self.parts.settings = settings.clone();
        self.parts.layers = layers;
        (self.parts.on_change)(&settings);
        // An engine that is gone needs no settings.
        self.parts.engine.tell(EngineControl::Settings(settings));
    }

    fn complain(&mut self, text: String) {
        self.parts.stats.inc("config/errors");
        if self.complained.as_ref() != Some(&text) {
            tracing::error!("{text}");
            self.complained = Some(text);
        }
    }
}

impl Worker for ConfigCenter {
    type Order = Never;
    type Control = Look;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        cx.after(self.parts.poll, Look);
    }

    fn handle(&mut self, order: Never, _: Slot, _: &mut Cx<'_, Self>) {
        match order {}
    }

    fn control(&mut self, _: Look, cx: &mut Cx<'_, Self>) {
        self.look();
        cx.after(self.parts.poll, Look);
    }
}

pub(crate) fn stamp(path: &std::path::Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::sync::Mutex;

    use super::*;
    use crate::actor::{Inbox, Place, Policy, Tap, run_local, supervise};

    struct Watched {
        dir: tempfile::TempDir,
        engine: Tap<(), EngineControl>,
        told: Arc<Mutex<usize>>,
        stats: Stats,
    }

    fn watch(text: &str, overrides: &str) -> Watched {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dragline.toml");
        std::fs::write(&path, text).unwrap();
        let layers = Layers::new().file(&path).set(overrides);
        let settings = Arc::new(layers.resolve().unwrap().settings);
        let engine: Tap<(), EngineControl> = Tap::new("engine", 4);
        let told = Arc::new(Mutex::new(0));
        let counter = told.clone();
        let stats = Stats::new();
        let parts = Parts {
            layers,
            seen: stamp(&path),
            path,
            settings,
            poll: Duration::from_secs(1),
            engine: engine.controls(),
            on_change: Arc::new(move |_| *counter.lock().unwrap() += 1),
            stats: stats.clone(),
        };
        let inbox = Inbox::new("config", 1);
        supervise(Place::Here, &inbox, Policy::default(), move |_| ConfigCenter::new(parts.clone()), |_| {});
        Watched { dir, engine, told, stats }
    }

    async fn rewrite(watched: &Watched, text: &str) -> Option<Arc<Settings>> {
        std::fs::write(watched.dir.path().join("dragline.toml"), text).unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        match watched.engine.take_control() {
            Some(EngineControl::Settings(settings)) => Some(settings),
            None => None,
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_changed_file_changes_live_settings_and_nothing_above_its_layer() {
        run_local(async {
            let watched = watch("CONCURRENT_REQUESTS = 4\nDOWNLOAD_DELAY = 1\n", "DOWNLOAD_DELAY=3");
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(watched.engine.take_control().is_none());
            let settings = rewrite(&watched, "CONCURRENT_REQUESTS = 40\nDOWNLOAD_DELAY = 2\nRETRY_TIMES = 9\n").await.unwrap();
            assert_eq!(settings.concurrent_requests, 40);
            assert_eq!(settings.download_delay, Duration::from_secs(3), "the command line stays above the file");
            assert_eq!(settings.retry_times, Settings::default().retry_times, "not a live key");
            assert_eq!(*watched.told.lock().unwrap(), 1);
        });
    }

    #[test]
    fn a_broken_file_changes_nothing_and_the_next_good_one_does() {
        run_local(async {
            let watched = watch("CONCURRENT_REQUESTS = 4\n", "LOG_LEVEL=INFO");
            assert!(rewrite(&watched, "CONCURRENT_REQUESTS = \"many\"\n").await.is_none());
            assert_eq!(watched.stats.count("config/errors"), 1);
            assert_eq!(rewrite(&watched, "CONCURRENT_REQUESTS = 12345\n").await.unwrap().concurrent_requests, 12345);
        });
    }
}
