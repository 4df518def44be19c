//! What a run has done so far, and the limits at which it ends by itself.

use std::time::Duration;

/// Limits that end a job.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CloseAfter {
    pub timeout: Duration,
    pub items: u64,
    pub pages: u64,
    pub errors: u64,
    pub timeout_no_item: Duration,
    pub pages_no_item: u64,
}

impl CloseAfter {
    /// `CLOSESPIDER_*`.
    pub(crate) fn of(settings: &crate::settings::Settings) -> Self {
        Self {
            timeout: settings.closespider_timeout,
            items: settings.closespider_itemcount,
            pages: settings.closespider_pagecount,
            errors: settings.closespider_errorcount,
            timeout_no_item: settings.closespider_timeout_no_item,
            pages_no_item: settings.closespider_pagecount_no_item,
        }
    }
}

/// Counts of the whole job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Responses that reached a callback or `failed`.
    pub pages: u64,
    /// Items given by callbacks that were committed, dropped and broken ones included.
    pub scraped: u64,
    /// Items kept.
    pub kept: u64,
    /// Items a pipeline dropped.
    pub dropped: u64,
    /// Items that could not be written.
    pub broken: u64,
    /// Callbacks that failed.
    pub callback_errors: u64,
    /// Requests that failed for good.
    pub failed: u64,
    /// Failed requests whose target could not be reached.
    pub unreachable: u64,
    /// Leases granted.
    pub leased: u64,
    /// Facts that answered an order given up.
    pub stale: u64,
}
