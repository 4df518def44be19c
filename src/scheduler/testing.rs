//! Jobs and configurations for the scheduler's own tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use super::config::SchedulerConfig;
use super::job::{Job, RequestId};
use super::message::Pacing;
use crate::api::request::Request;

/// A start request: its id from `index`, its seen key from its URL.
pub(crate) fn job(index: u64, url: &str) -> Job {
    let request = Request::get(url, &"Page").unwrap();
    Job::page(RequestId::child(None, index), xxhash_rust::xxh3::xxh3_128(url.as_bytes()), request)
}

/// The `index`-th child of `parent`.
pub(crate) fn child(parent: RequestId, index: u64, url: &str) -> Job {
    Job { id: RequestId::child(Some(parent), index), parent: Some(parent), depth: 1, ..job(0, url) }
}

/// `job` with a priority.
pub(crate) fn with_priority(mut job: Job, priority: i32) -> Job {
    job.request.priority(priority);
    job
}

/// `job` past the duplicate filter.
pub(crate) fn unfiltered(mut job: Job) -> Job {
    job.request.dont_filter();
    job
}

/// No limit, no delay, no robots.
pub(crate) fn config() -> SchedulerConfig {
    SchedulerConfig {
        allowed_domains: Vec::new(),
        depth_limit: 0,
        url_length_limit: 0,
        pacing: Pacing { per_slot: 8, delay: Duration::ZERO, jitter: 0.0 },
        robots_agent: None,
        seeds_stop_at: usize::MAX,
        seed: 1,
    }
}
