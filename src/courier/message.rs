//! What the collector orders from the courier, and what the courier answers.

use std::time::Duration;

use crate::collector::batch::{Batch, Counts};
use crate::collector::log::BatchId;

/// Orders of the collector.
#[derive(Debug)]
pub enum Order {
    /// Deliver this batch; it is repeated with the same id until it is settled.
    Cut(Batch),
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Try the batch that waits again.
    Retry,
    /// Give up what is not delivered by then: it stays in the spool. An earlier limit is never extended.
    CloseWithin(Duration),
}

/// A batch's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Which batch.
    pub id: BatchId,
    /// What it holds.
    pub counts: Counts,
    /// How.
    pub how: How,
}

/// How a batch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The sink has it.
    Delivered,
    /// The sink has it but for some records, which are in quarantine.
    Split {
        /// The records that are in quarantine.
        rejected: Counts,
        /// Why the first of them was refused.
        why: String,
    },
    /// It stays in the spool: the job closes first, or the sink takes nothing any more.
    Spooled(String),
    /// The sink refuses all of it for good: it is in quarantine.
    Rejected(String),
}
