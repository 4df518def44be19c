//! What the engine orders from the reporter, and what the reporter answers.

use tokio::time::Instant;

use crate::plane::{LeaseId, Rejected, Report};

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Hand this report over.
    Report(Report),
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Send what is queued without waiting for more of it.
    Flush,
    /// The same, and without waiting until a plane that failed may be asked again: the job ends.
    HandOver,
    /// Own timer.
    Tick,
}

/// Facts of the reporter.
#[derive(Debug)]
pub enum Fact {
    /// Reports were taken by the plane.
    Handed {
        /// How many.
        reports: u64,
        /// How many of them end a lease.
        ends: u64,
    },
    /// So many reports are handed over or rejected, of all that were ordered and from the first on, without a gap: calls
    /// may overtake one another. Told before the others of the same answer.
    Through(u64),
    /// The plane will never take this report.
    Rejected {
        /// Which, and why.
        rejected: Rejected,
        /// The lease that it was to end.
        ends: Option<LeaseId>,
    },
    /// The plane does not take this node's token: why. The reports stay queued, and nobody will take them.
    Unauthorized(String),
    /// A call failed; the reports stay queued.
    Delayed {
        /// How many are queued.
        queued: usize,
        /// Why.
        why: String,
        /// When the call began.
        begun: Instant,
    },
    /// A plane behind a network answered a call, whatever it said.
    Heard,
}
