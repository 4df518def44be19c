//! Lifecycle events a spider or an extension can listen to.

use serde_json::{Map, Value};

/// What happened. Delivered in order, after the fact.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signal {
    /// The job begins: before `start`.
    SpiderOpened,
    /// Nothing is queued or in flight: `idle` runs next.
    SpiderIdle,
    /// The job ends; nothing can be added any more.
    SpiderClosed {
        /// The finish reason.
        reason: String,
        /// The stats so far.
        stats: Map<String, Value>,
    },
    /// A callback failed.
    SpiderError {
        /// The page.
        url: String,
        /// The step.
        step: String,
        /// The error.
        error: String,
    },
    /// An item came through the pipelines.
    ItemScraped {
        /// The item as JSON text.
        item: String,
    },
    /// A pipeline dropped an item.
    ItemDropped {
        /// Why.
        reason: String,
    },
    /// An item could not be written.
    ItemError {
        /// Why.
        reason: String,
    },
}
