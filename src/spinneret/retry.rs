//! How long a call may take and whether it is made again.

use std::time::Duration;

/// Limits of time of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The longest time to connect, TLS included. Default 3 s.
    pub connect: Duration,
    /// The longest wait for the answer; what the server itself may wait is added. Default 10 s.
    pub read: Duration,
    /// The longest time a connection may take no byte of the request. Default 10 s.
    pub write: Duration,
    /// What is added to the time of a long poll. Default 5 s.
    pub watch_grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            read: Duration::from_secs(10),
            write: Duration::from_secs(10),
            watch_grace: Duration::from_secs(5),
        }
    }
}

/// Whether and when a failed call is made again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Further attempts after the first. Default 2.
    pub max_retries: u32,
    /// The longest hint of the server that is waited for. Default 5 s.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 2, max_retry_after: Duration::from_secs(5) }
    }
}

impl RetryPolicy {
    /// One attempt.
    pub const NO_RETRY: Self = Self { max_retries: 0, max_retry_after: Duration::ZERO };
}
