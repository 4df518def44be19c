//! What the engine orders from the reporter, and what the reporter answers.

use crate::plane::{Rejected, Report};

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Hand this report over.
    Report(Report),
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Send what is queued, at once.
    Flush,
    /// Own timer.
    Tick,
}

/// Facts of the reporter.
#[derive(Debug)]
pub enum Fact {
    /// This many reports were taken by the plane.
    Handed(u64),
    /// The plane will never take this report.
    Rejected(Rejected),
    /// A call failed; the reports stay queued.
    Delayed {
        /// How many are queued.
        queued: usize,
        /// Why.
        why: String,
    },
}
