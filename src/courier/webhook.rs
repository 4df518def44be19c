//! The sink of batches, and what it can answer.

use std::time::Duration;

use crate::collector::batch::Batch;

/// Takes batches. A call may block: it is made on the delivery thread and nowhere else.
pub trait Webhook: Send {
    /// Hands over one batch. A batch that was taken before, recognised by its id, is not taken twice.
    ///
    /// # Errors
    /// [`SinkError`] tells whether the same batch may be tried again.
    fn deliver(&mut self, batch: &Batch) -> Result<Delivery, SinkError>;
}

/// How a batch arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// It is there now.
    Delivered,
    /// It was there already.
    AlreadyHad,
}

/// Why a batch did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The sink is not able to take anything at the moment.
    #[error("the sink cannot take batches at the moment: {why}")]
    Retry {
        /// The shortest time to wait, when the sink knows one.
        after: Option<Duration>,
        /// What happened.
        why: String,
    },
    /// The sink will never take this batch; others may pass.
    #[error("the sink refuses the batch: {why}")]
    Reject {
        /// What is wrong with it.
        why: String,
    },
    /// The sink will take no batch until someone changes something.
    #[error("the sink takes no batches: {why}")]
    Fatal {
        /// What has to change.
        why: String,
    },
}
