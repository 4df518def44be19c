//! The config center: follows the settings file and the items of `CONFIG_WATCH`, and hands changed live settings to the engine.
//!
//! A reload replaces the file's own layer, an item what it says itself, and nothing above them. What cannot be read or has
//! errors changes nothing and is named; keys that need a restart are named too. Decisions are in [`state`], readings in
//! [`overlay`].

mod overlay;
mod secrets;
mod state;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use crate::actor::{Controls, Cx, Slot, Worker};
use crate::api::config::ConfigValue;
use crate::api::context::Context;
use crate::api::signal::ConfigChanged;
use crate::api::stats::Stats;
use crate::engine::message::Control as EngineControl;
use crate::plane::{ConfigFeed, Configured};
use crate::settings::{Layers, Settings};
use crate::spinneret::ConfigKey;
pub(crate) use secrets::read_secrets;
use state::{Level, Outcome, State};

/// How long changes of items are gathered: of a burst only the newest versions count.
const GATHER: Duration = Duration::from_millis(50);

/// What the center works with.
#[derive(Clone)]
pub(crate) struct Parts {
    /// The layers the settings in effect came from, secrets in place.
    pub layers: Layers,
    /// The settings in effect.
    pub settings: Arc<Settings>,
    /// The settings file, if it is followed.
    pub file: Option<FollowedFile>,
    /// The items of `CONFIG_WATCH`, if there are any; loaded once already.
    pub feed: Option<Arc<dyn ConfigFeed>>,
    /// Their names, in the order of `CONFIG_WATCH`.
    pub items: Vec<ConfigKey>,
    /// Gives items to the spider.
    pub context: Context,
    /// Takes changed settings.
    pub engine: Controls<EngineControl>,
    /// Takes a changed `LOG_LEVEL`.
    pub on_change: Arc<dyn Fn(&Settings) + Send + Sync>,
    /// The job's counters.
    pub stats: Stats,
}

/// A settings file that is looked at.
#[derive(Debug, Clone)]
pub(crate) struct FollowedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its stamp when the layers read it.
    pub seen: Option<Stamp>,
    /// `SETTINGS_POLL`.
    pub poll: Duration,
}

/// What tells one state of a file from another without reading it: when it was changed, and its length.
pub(crate) type Stamp = (SystemTime, u64);

/// Settings and items as they are followed. All incarnations of the actor share it, so that a panic forgets nothing.
#[derive(Clone)]
pub(crate) struct Following {
    parts: Parts,
    state: Arc<Mutex<State>>,
}

impl Following {
    /// Takes what the items say now, before anything else of the job begins: no signal tells of it.
    pub(crate) fn begin(parts: Parts) -> Self {
        let seen = parts.file.as_ref().and_then(|file| file.seen);
        let state = State::new(parts.layers.clone(), parts.settings.clone(), seen, &parts.items, parts.stats.clone());
        let following = Self { parts, state: Arc::new(Mutex::new(state)) };
        let told = following.told();
        let outcome = following.state().hear(told, Timestamp::now());
        if let Some(settings) = &outcome.settings {
            following.parts.context.replace_settings(settings.clone());
        }
        following.show(&outcome);
        following
    }

    /// The settings in effect, items included.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.state().settings()
    }

    /// What the feed says of every item.
    fn told(&self) -> Vec<Configured> {
        let Some(feed) = &self.parts.feed else { return Vec::new() };
        let state = self.state();
        state.keys().filter_map(|key| feed.get(key)).collect()
    }

    /// Logs, and shows items and log level to those that hear no signal.
    fn show(&self, outcome: &Outcome) {
        for line in &outcome.lines {
            match line.level {
                Level::Info => tracing::info!("{}", line.text),
                Level::Warn => tracing::warn!("{}", line.text),
                Level::Error => tracing::error!("{}", line.text),
            }
        }
        for configured in &outcome.taken {
            self.parts.context.configs().set(ConfigValue::new(configured.clone()));
        }
        if let Some(settings) = &outcome.settings {
            (self.parts.on_change)(settings);
        }
    }

    /// Puts a change in force: values are visible before anybody is told of them.
    fn apply(&self, outcome: Outcome) {
        self.show(&outcome);
        let Outcome { settings, taken, lines: _ } = outcome;
        // An engine that is gone needs neither.
        if let Some(settings) = settings {
            self.parts.engine.tell(EngineControl::Settings(settings));
        }
        for configured in taken {
            self.parts.stats.inc("config/changes");
            let Configured { item, from_snapshot } = &*configured;
            self.parts.engine.tell(EngineControl::ConfigChanged(ConfigChanged {
                group: item.group.clone(),
                key: item.key.clone(),
                version: item.version,
                from_snapshot: *from_snapshot,
            }));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A change is put together before it is stored: a panic in between leaves what was there.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The actor.
pub(crate) struct ConfigCenter {
    following: Following,
    /// Items that changed a moment ago, by their names; no more than are followed.
    gathered: Vec<Configured>,
}

/// Its own timers.
#[derive(Debug)]
pub(crate) enum Wake {
    /// Look at the settings file.
    Look,
    /// Take the items that were gathered.
    Take,
}

/// The center takes no orders.
#[derive(Debug)]
pub(crate) enum Never {}

impl ConfigCenter {
    pub(crate) fn new(following: Following) -> Self {
        Self { following, gathered: Vec::new() }
    }

    fn look(&self) {
        if let Some(file) = &self.following.parts.file {
            let outcome = self.following.state().look(&file.path);
            self.following.apply(outcome);
        }
    }

    /// Keeps what was told until the burst is over.
    fn gather(&mut self, configured: Configured, cx: &mut Cx<'_, Self>) {
        let is_followed = self.following.state().keys().any(|key| is_of(&configured, key));
        if !is_followed {
            return;
        }
        if self.gathered.is_empty() {
            cx.after(GATHER, Wake::Take);
        }
        let same = |known: &&mut Configured| known.item.group == configured.item.group && known.item.key == configured.item.key;
        match self.gathered.iter_mut().find(same) {
            Some(known) => *known = configured,
            None => self.gathered.push(configured),
        }
    }

    fn hear(&self, told: Vec<Configured>) {
        let outcome = self.following.state().hear(told, Timestamp::now());
        self.following.apply(outcome);
    }

    fn wait(&self, cx: &mut Cx<'_, Self>) {
        let Some(feed) = self.following.parts.feed.clone() else { return };
        if self.following.state().has_feed_ended() {
            return;
        }
        cx.spawn(async move { feed.changed().await }, |center, changed, cx| match changed {
            Some(configured) => {
                center.gather(configured, cx);
                center.wait(cx);
            }
            None => {
                let outcome = center.following.state().feed_ended();
                center.following.apply(outcome);
            }
        });
    }
}

impl Worker for ConfigCenter {
    type Order = Never;
    type Control = Wake;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        // What changed since the beginning, or was told to an incarnation that is no more.
        self.hear(self.following.told());
        self.wait(cx);
        if let Some(file) = &self.following.parts.file {
            cx.after(file.poll, Wake::Look);
        }
    }

    fn handle(&mut self, order: Never, _: Slot, _: &mut Cx<'_, Self>) {
        match order {}
    }

    fn control(&mut self, wake: Wake, cx: &mut Cx<'_, Self>) {
        match wake {
            Wake::Look => {
                self.look();
                if let Some(file) = &self.following.parts.file {
                    cx.after(file.poll, Wake::Look);
                }
            }
            Wake::Take => {
                let told = std::mem::take(&mut self.gathered);
                self.hear(told);
            }
        }
    }
}

fn is_of(configured: &Configured, key: &ConfigKey) -> bool {
    configured.item.group == key.group && configured.item.key == key.key
}

pub(crate) fn stamp(path: &std::path::Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}
