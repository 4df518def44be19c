//! The numbers of a reporter.

use std::time::Duration;

/// How reports are gathered and sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReporterOptions {
    /// The longest time a report waits for others. Default 200 ms.
    pub flush_interval: Duration,
    /// A batch is sent at once when so many are queued. Default 100.
    pub batch_size: usize,
    /// The most reports of a call, at most 500. Default 500.
    pub max_batch_size: usize,
    /// The most reports that wait. Default 10,000.
    pub max_queue_size: usize,
    /// The first wait after a failure. Default 500 ms.
    pub backoff_initial: Duration,
    /// The longest wait after a failure. Default 30 s.
    pub backoff_max: Duration,
    /// How long closing may take. Default 5 s.
    pub close_timeout: Duration,
}

impl Default for ReporterOptions {
    fn default() -> Self {
        Self {
            flush_interval: Duration::from_millis(200),
            batch_size: 100,
            max_batch_size: 500,
            max_queue_size: 10_000,
            backoff_initial: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            close_timeout: Duration::from_secs(5),
        }
    }
}

/// What a reporter has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReporterStats {
    /// Reports taken.
    pub submitted: u64,
    /// Reports in successful calls.
    pub sent: u64,
    /// Reports new to the server.
    pub accepted: u64,
    /// Reports the server had already.
    pub duplicated: u64,
    /// Reports the server will never take.
    pub rejected: u64,
    /// Reports given up: no room, a failure for good, no time at the end.
    pub dropped: u64,
    /// Calls that failed.
    pub failed_sends: u64,
    /// Reports that wait now.
    pub queued: u64,
}
