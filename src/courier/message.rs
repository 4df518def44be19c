//! What the collector orders from the courier, and what the courier answers.

use std::sync::Arc;
use std::time::Duration;

use crate::collector::batch::{Batch, Counts};
use crate::collector::log::{BatchId, Part};

/// Orders of the collector.
#[derive(Debug)]
pub enum Order {
    /// Deliver this batch; it is repeated with the same id until it is settled.
    Cut {
        /// What to deliver.
        batch: Arc<Batch>,
        /// Parts of it that an earlier run was through with: they are not sent again.
        done: Vec<Part>,
    },
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Own timer: the wait is over, or the time for the close.
    Look,
    /// Give up what is not delivered by then: it stays in the spool. An earlier limit is never extended.
    CloseWithin(Duration),
}

/// What the courier has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A part of a batch that was taken apart came to its end.
    Part(Part),
    /// A batch came to its end.
    Settled(Settled),
    /// The sink takes nothing any more, and the job is to stop for it: this is why.
    Refused(String),
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
    /// The sink has it but for some records, which it refuses for good: they are put aside.
    Split {
        /// What was refused, by an earlier run too.
        rejected: Counts,
    },
    /// It stays in the spool: the job closes first, or the sink takes nothing any more.
    Spooled(String),
    /// The sink refuses all of it for good: it is put aside.
    Rejected,
}
