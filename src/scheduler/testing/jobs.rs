//! Jobs for tests of stores and of the scheduler.

use crate::api::request::Request;
use crate::scheduler::job::{Job, RequestId};

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
