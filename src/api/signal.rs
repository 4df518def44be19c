//! Lifecycle events a spider or an extension can listen to.

use serde_json::{Map, Value};

/// What happened. Delivered after the fact; events of one callback in their order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signal<'a> {
    /// The job begins: before `start`.
    SpiderOpened,
    /// Nothing is queued or in flight: `idle` runs next.
    SpiderIdle,
    /// The job ends; nothing can be added any more.
    SpiderClosed {
        /// The finish reason.
        reason: &'a str,
        /// The stats so far.
        stats: &'a Map<String, Value>,
    },
    /// A callback failed.
    SpiderError {
        /// The page.
        url: &'a str,
        /// The step.
        step: &'a str,
        /// The error.
        error: &'a str,
    },
    /// An item came through the pipelines.
    ItemScraped {
        /// The item as JSON text.
        item: &'a str,
    },
    /// A pipeline dropped an item.
    ItemDropped {
        /// Why.
        reason: &'a str,
    },
    /// An item could not be written.
    ItemError {
        /// Why.
        reason: &'a str,
    },
    /// There is a new version of an item of `CONFIG_WATCH`; [`Context::config`](super::Context::config) gives it already. What
    /// was there when the job began is not told.
    ConfigChanged {
        /// The item's group.
        group: &'a str,
        /// The item's key.
        key: &'a str,
        /// The version there is now.
        version: i32,
        /// It is the snapshot of an earlier run.
        from_snapshot: bool,
    },
}

/// The job's own events, as the engine orders them.
#[derive(Debug, Clone)]
pub enum Lifecycle {
    /// Before `start`.
    Opened,
    /// Before `idle`.
    Idle,
    /// At the end.
    Closed {
        /// The finish reason.
        reason: String,
        /// The job's stats.
        stats: Map<String, Value>,
    },
    /// A config item is not as it was.
    ConfigChanged(ConfigChanged),
}

/// A new version of a config item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChanged {
    /// The item's group.
    pub group: String,
    /// The item's key.
    pub key: String,
    /// Its version.
    pub version: i32,
    /// It is the snapshot of an earlier run.
    pub from_snapshot: bool,
}

impl Lifecycle {
    pub(crate) fn signal(&self) -> Signal<'_> {
        match self {
            Self::Opened => Signal::SpiderOpened,
            Self::Idle => Signal::SpiderIdle,
            Self::Closed { reason, stats } => Signal::SpiderClosed { reason, stats },
            Self::ConfigChanged(ConfigChanged { group, key, version, from_snapshot }) => {
                Signal::ConfigChanged { group, key, version: *version, from_snapshot: *from_snapshot }
            }
        }
    }
}
