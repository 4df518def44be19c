//! What came of one delivery.

use std::time::Duration;

/// What came of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The batch is there; it may have been there already.
    Delivered,
    /// The same batch may pass later.
    Retry {
        /// The shortest time to wait, when the other side knows one.
        after: Option<Duration>,
        /// What happened.
        why: String,
    },
    /// The batch does not pass as it is; parts of it may.
    Split {
        /// What is wrong with it.
        why: String,
    },
    /// This batch will never pass; others may.
    Reject {
        /// What is wrong with it.
        why: String,
    },
    /// Nothing passes until someone changes something.
    Fatal {
        /// What has to change.
        why: String,
    },
}
