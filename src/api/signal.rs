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
}

/// The job's own events, as the engine orders them.
#[derive(Debug, Clone)]
pub enum Lifecycle {
    /// Before `start`.
    Opened,
    /// Before `idle`.
    Idle,
    /// At the end.
    #[allow(missing_docs)]
    Closed { reason: String, stats: Map<String, Value> },
}

impl Lifecycle {
    pub(crate) fn signal(&self) -> Signal<'_> {
        match self {
            Self::Opened => Signal::SpiderOpened,
            Self::Idle => Signal::SpiderIdle,
            Self::Closed { reason, stats } => Signal::SpiderClosed { reason, stats },
        }
    }
}
