//! What the collector orders from the courier, and what the courier answers.

use std::time::Duration;

/// Orders of the collector.
#[derive(Debug)]
pub enum Order {
    /// Deliver this batch; it is repeated with the same id until it is settled.
    Cut(Batch),
}

/// One batch.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its id, the same on every repeat.
    pub id: String,
    /// The whole body.
    pub body: String,
    /// First and last sequence number of the record log.
    pub range: (u64, u64),
    /// Items in it.
    pub items: u64,
    /// Records of any kind in it.
    pub records: u64,
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Try the batch that waits again.
    Retry,
    /// Give up what is not delivered by then: it stays in the spool.
    CloseWithin(Duration),
}

/// A batch's end.
#[derive(Debug)]
pub struct Settled {
    /// Which batch.
    pub id: String,
    /// Its range.
    pub range: (u64, u64),
    /// Items in it.
    pub items: u64,
    /// Records in it.
    pub records: u64,
    /// How.
    pub how: How,
}

/// How a batch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The sink has it.
    Delivered,
    /// It stays in the spool: the job closes first.
    Spooled(String),
    /// The sink refuses it for good.
    Rejected(String),
}
