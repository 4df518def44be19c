//! What the config center knows and decides, as a plain struct: layers, settings in effect, and the version of each item.
//!
//! It reads no clock and no network, and says nothing by itself: what is to be logged comes out as lines.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::Stamp;
use super::overlay::{self, Overlay, RefusedItem};
use crate::api::stats::Stats;
use crate::plane::Configured;
use crate::settings::{ItemValue, Layers, Settings, Source, changes};
use crate::spinneret::ConfigKey;

/// Keys of one version that are refused by name; more are counted.
const NAMED: usize = 20;

/// What the center knows. It outlives an incarnation of the actor.
pub(crate) struct State {
    /// The last ones that resolved, config items included.
    layers: Layers,
    settings: Arc<Settings>,
    /// The settings file as it was when it was last read.
    seen: Option<Stamp>,
    /// What was said of the file already, so that a broken one is named once.
    complained: Option<String>,
    /// In the order of `CONFIG_WATCH`: later ones go over earlier ones.
    items: Vec<Item>,
    /// Nothing more comes from the feed.
    has_feed_ended: bool,
    stats: Stats,
}

/// One item of `CONFIG_WATCH`.
struct Item {
    key: ConfigKey,
    /// The last version the feed told, refused ones too.
    heard: Option<Arc<Configured>>,
    /// The version in use.
    taken: Option<Arc<Configured>>,
    values: Vec<ItemValue>,
    is_table: bool,
}

/// What came of a change.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Settings that differ from those before.
    pub(crate) settings: Option<Arc<Settings>>,
    /// Versions of items that are in use now.
    pub(crate) taken: Vec<Arc<Configured>>,
    /// What is to be logged.
    pub(crate) lines: Vec<Line>,
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// How serious a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warn,
    Error,
}

/// A version that waits for its turn.
struct Candidate {
    index: usize,
    configured: Arc<Configured>,
    overlay: Overlay,
}

impl State {
    pub(crate) fn new(layers: Layers, settings: Arc<Settings>, seen: Option<Stamp>, keys: &[ConfigKey], stats: Stats) -> Self {
        let item = |key: &ConfigKey| Item { key: key.clone(), heard: None, taken: None, values: Vec::new(), is_table: false };
        let items: Vec<Item> = keys.iter().map(item).collect();
        if !items.is_empty() {
            stats.set("config/items", 0);
        }
        Self { layers, settings, seen, complained: None, items, has_feed_ended: false, stats }
    }

    /// The settings in effect.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.clone()
    }

    /// The items that are followed.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &ConfigKey> {
        self.items.iter().map(|item| &item.key)
    }

    /// Whether it is worth waiting for changes.
    pub(crate) fn has_feed_ended(&self) -> bool {
        self.has_feed_ended
    }

    /// Looks at the settings file and takes what changed in it.
    pub(crate) fn look(&mut self, path: &Path) -> Outcome {
        let mut outcome = Outcome::default();
        let now = super::stamp(path);
        if now.is_none() || now == self.seen {
            return outcome;
        }
        self.seen = now;
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                self.complain(
                    &mut outcome,
                    format!("{}: cannot be read: {error}; the settings stay as they are", path.display()),
                );
                return outcome;
            }
        };
        let layers = self.layers.with_file(path, &text);
        let newer = match layers.resolve() {
            Ok(resolved) => resolved.settings,
            Err(errors) => {
                self.complain(&mut outcome, format!("{errors}\nthe settings stay as they are"));
                return outcome;
            }
        };
        self.complained = None;
        let changed = changes(&self.settings, &newer);
        if !changed.restart.is_empty() {
            outcome.warn(format!("these settings changed but need a restart: {}", changed.restart.join(", ")));
        }
        self.layers = layers;
        self.adopt(&newer, &mut outcome);
        outcome
    }

    /// Takes what the feed says of items: versions that are already known are passed over, of several versions of an item the
    /// last one counts. `now` is for the age of snapshots.
    pub(crate) fn hear(&mut self, told: impl IntoIterator<Item = Configured>, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::default();
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut news: Vec<Option<Arc<Configured>>> = self.items.iter().map(|_| None).collect();
        for configured in told {
            let index = self.items.iter().position(|item| super::is_of(&configured, &item.key));
            if let Some(place) = index.and_then(|at| news.get_mut(at)) {
                *place = Some(Arc::new(configured));
            }
        }
        for (index, (item, configured)) in self.items.iter_mut().zip(news).enumerate() {
            let Some(configured) = configured else { continue };
            if item.heard.as_ref().is_some_and(|known| is_same(known, &configured)) {
                continue;
            }
            item.heard = Some(configured.clone());
            let read = overlay::read(&configured.item).and_then(|overlay| match item.is_table && !overlay.is_table {
                true => Err(RefusedItem::NoTable),
                false => Ok(overlay),
            });
            match read {
                Ok(overlay) => candidates.push(Candidate { index, configured, overlay }),
                Err(why) => refuse(&self.stats, &configured, &why, &mut outcome),
            }
        }
        if candidates.is_empty() {
            return outcome;
        }
        let refused = self.take(candidates, now, &mut outcome);
        for (candidate, why) in refused {
            refuse(&self.stats, &candidate.configured, &RefusedItem::Conflict(why), &mut outcome);
        }
        self.stats.set("config/items", self.items.iter().filter(|item| item.taken.is_some()).count());
        if !outcome.taken.is_empty()
            && let Ok(resolved) = self.layers.resolve()
        {
            self.adopt(&resolved.settings, &mut outcome);
        }
        outcome
    }

    /// Nothing more will come from the feed.
    pub(crate) fn feed_ended(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        if !self.has_feed_ended {
            self.has_feed_ended = true;
            self.stats.inc("config/errors");
            outcome.warn("config items are not followed any more (CONFIG_WATCH); what they say stays in effect".to_owned());
        }
        outcome
    }

    /// Takes all candidates that fit the settings, together or in turn; gives back the others, and why.
    fn take(&mut self, mut waiting: Vec<Candidate>, now: Timestamp, outcome: &mut Outcome) -> Vec<(Candidate, String)> {
        let all: Vec<&Candidate> = waiting.iter().collect();
        if self.try_on(&all).is_ok() {
            for candidate in waiting {
                self.take_one(candidate, now, outcome);
            }
            return Vec::new();
        }
        // One that does not fit yet may fit after another.
        loop {
            let mut left = Vec::new();
            let before = waiting.len();
            for candidate in waiting {
                match self.try_on(&[&candidate]) {
                    Ok(()) => self.take_one(candidate, now, outcome),
                    Err(why) => left.push((candidate, why)),
                }
            }
            if left.is_empty() || left.len() == before {
                return left;
            }
            waiting = left.into_iter().map(|(candidate, _)| candidate).collect();
        }
    }

    /// Whether the settings resolve with these versions.
    fn try_on(&self, candidates: &[&Candidate]) -> Result<(), String> {
        let items = self.items.iter().enumerate().filter_map(|(index, item)| {
            let candidate = candidates.iter().find(|candidate| candidate.index == index);
            match candidate {
                Some(candidate) => Some((source_of(&candidate.configured), candidate.overlay.values.as_slice())),
                None => Some((source_of(item.taken.as_ref()?), item.values.as_slice())),
            }
        });
        self.layers.with_items(items).resolve().map(|_| ()).map_err(|errors| errors.to_string())
    }

    fn take_one(&mut self, candidate: Candidate, now: Timestamp, outcome: &mut Outcome) {
        let Candidate { index, configured, overlay: Overlay { values, refused, is_table } } = candidate;
        let name = Named(&configured);
        if configured.from_snapshot {
            let age = configured.item.updated_at.map_or_else(
                || "nobody knows when it was published".to_owned(),
                |at| format!("it was published {} ago", age(at, now)),
            );
            outcome
                .info(format!("{name} comes from the snapshot of an earlier run, as the control plane cannot be reached; {age}"));
        } else {
            outcome.info(format!("{name} is in use"));
        }
        for key in refused.iter().take(NAMED) {
            outcome.warn(format!("{name}: {key}"));
        }
        if refused.len() > NAMED {
            outcome.warn(format!("{name}: {} more keys are refused", refused.len() - NAMED));
        }
        self.stats.add("config/refused", i64::try_from(refused.len()).unwrap_or(i64::MAX));
        let keys: Vec<&'static str> = values.iter().map(|value| value.key.name()).collect();
        if let Some(item) = self.items.get_mut(index) {
            item.taken = Some(configured.clone());
            item.values = values;
            item.is_table = is_table;
        }
        let items = self.items.iter().filter_map(|item| Some((source_of(item.taken.as_ref()?), item.values.as_slice())));
        self.layers = self.layers.with_items(items);
        for key in keys {
            let winner = self.layers.source_of(key);
            if winner != source_of(&configured) {
                outcome.info(format!("{name}: {key} has no effect, as what is given elsewhere goes before it: {winner}"));
            }
        }
        outcome.taken.push(configured);
    }

    /// Puts the live ones of newer settings in effect, if they differ.
    fn adopt(&mut self, newer: &Settings, outcome: &mut Outcome) {
        let changed = changes(&self.settings, newer);
        if changed.live.is_empty() {
            return;
        }
        outcome.info(format!("settings changed: {}", changed.live.join(", ")));
        self.stats.inc("config/reloads");
        self.settings = Arc::new(self.settings.with_live_of(newer));
        outcome.settings = Some(self.settings.clone());
    }

    fn complain(&mut self, outcome: &mut Outcome, text: String) {
        self.stats.inc("config/errors");
        if self.complained.as_ref() != Some(&text) {
            outcome.lines.push(Line { level: Level::Error, text: text.clone() });
            self.complained = Some(text);
        }
    }
}

impl Outcome {
    fn info(&mut self, text: String) {
        self.lines.push(Line { level: Level::Info, text });
    }

    fn warn(&mut self, text: String) {
        self.lines.push(Line { level: Level::Warn, text });
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("layers", &self.layers).field("items", &self.items.len()).finish_non_exhaustive()
    }
}

/// An item and its version, as lines begin.
struct Named<'a>(&'a Configured);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let item = &self.0.item;
        write!(f, "config item {}/{}, version {}", item.group, item.key, item.version)
    }
}

fn source_of(configured: &Configured) -> Source {
    let item = &configured.item;
    Source::Item { name: format!("{}/{}", item.group, item.key), version: item.version }
}

/// A change is another version, or another content: a server that began anew counts from 1 again.
fn is_same(one: &Configured, other: &Configured) -> bool {
    one.item.version == other.item.version && one.item.content == other.item.content && one.item.format == other.item.format
}

fn refuse(stats: &Stats, configured: &Configured, why: &RefusedItem, outcome: &mut Outcome) {
    stats.inc("config/refused");
    let text = format!("{} is refused, and what was in effect stays: {why}", Named(configured));
    outcome.lines.push(Line { level: Level::Error, text });
}

/// A time span as people say it, in whole seconds.
fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    format!("{:#}", jiff::SignedDuration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
