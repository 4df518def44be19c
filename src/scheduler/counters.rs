//! The scheduler's counters, in Scrapy's names. Each `true` answer is the first of its kind: worth a log line.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::stats::Stats;
use crate::scheduler::job::SlotKey;
use crate::scheduler::store::Medium;

/// Counts into the job's stats.
pub(crate) struct Counters {
    stats: Stats,
    enqueued: &'static str,
    dequeued: &'static str,
    deepest: Option<u32>,
    seen_duplicate: bool,
    seen_too_deep: bool,
    seen_too_long: bool,
    seen_private: bool,
    seen_repeats: bool,
    seen_host_full: bool,
}

impl Counters {
    pub(crate) const fn new(stats: Stats, medium: Medium) -> Self {
        let (enqueued, dequeued) = match medium {
            Medium::Memory => ("scheduler/enqueued/memory", "scheduler/dequeued/memory"),
            Medium::Disk => ("scheduler/enqueued/disk", "scheduler/dequeued/disk"),
            Medium::Redis => ("scheduler/enqueued/redis", "scheduler/dequeued/redis"),
        };
        Self {
            stats,
            enqueued,
            dequeued,
            deepest: None,
            seen_duplicate: false,
            seen_too_deep: false,
            seen_too_long: false,
            seen_private: false,
            seen_repeats: false,
            seen_host_full: false,
        }
    }

    /// Requests put into the queue, for the first time or again.
    pub(crate) fn enqueued(&self, count: u64) {
        self.add("scheduler/enqueued", count);
        self.add(self.enqueued, count);
    }

    /// Requests taken from the queue.
    pub(crate) fn dequeued(&self, count: u64) {
        self.add("scheduler/dequeued", count);
        self.add(self.dequeued, count);
    }

    pub(crate) fn duplicates(&mut self, count: u64) -> bool {
        self.add("dupefilter/filtered", count);
        first(&mut self.seen_duplicate, count)
    }

    pub(crate) fn too_deep(&mut self, count: u64) -> bool {
        self.add("depth/filtered", count);
        first(&mut self.seen_too_deep, count)
    }

    pub(crate) fn too_long(&mut self, count: u64) -> bool {
        self.add("urllength/request_ignored_count", count);
        first(&mut self.seen_too_long, count)
    }

    /// An answer moved the delay of a host from one to another, or not at all.
    pub(crate) fn throttled(
        &self,
        slot: &SlotKey,
        (status, latency): (u16, Duration),
        (before, after): (Duration, Duration),
        is_told: bool,
    ) {
        if matches!(status, 429 | 503) && after > before {
            self.stats.inc("autothrottle/raised");
        }
        self.stats.max("autothrottle/delay_ms_max", i64::try_from(after.as_millis()).unwrap_or(i64::MAX));
        if is_told {
            let (delay_ms, was_ms, latency_ms) = (after.as_millis(), before.as_millis(), latency.as_millis());
            tracing::info!(host = &*slot.0, status, latency_ms, was_ms, delay_ms, "autothrottle");
        }
    }

    pub(crate) fn repeats(&mut self, count: u64) -> bool {
        self.add("url_repeats/filtered", count);
        first(&mut self.seen_repeats, count)
    }

    pub(crate) fn host_full(&mut self, count: u64) -> bool {
        self.add("host_pages/filtered", count);
        first(&mut self.seen_host_full, count)
    }

    /// One request to an address of the own machine or network.
    pub(crate) fn private(&mut self) -> bool {
        self.add("private_address/filtered", 1);
        first(&mut self.seen_private, 1)
    }

    /// One request to a host outside the allowed domains.
    pub(crate) fn offsite(&self, is_new_host: bool) {
        self.stats.inc("offsite/filtered");
        if is_new_host {
            self.stats.inc("offsite/domains");
        }
    }

    pub(crate) fn depth(&mut self, depth: u32) {
        if self.deepest.is_none_or(|deepest| deepest < depth) {
            self.deepest = Some(depth);
            self.stats.max("request_depth_max", i64::from(depth));
        }
    }

    /// Requests of each depth (`DEPTH_STATS_VERBOSE`).
    pub(crate) fn depths(&self, depths: &BTreeMap<u32, u64>) {
        for (depth, count) in depths {
            self.stats.add(format!("request_depth_count/{depth}"), i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }

    /// A robots.txt request. It passes the queue, so that the queue's counters leave it out, as Scrapy's do.
    pub(crate) fn robots_request(&self) {
        self.stats.inc("robotstxt/request_count");
    }

    pub(crate) fn forbidden(&self) {
        self.stats.inc("robotstxt/forbidden");
    }

    fn add(&self, key: &'static str, count: u64) {
        if count > 0 {
            self.stats.add(key, i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

const fn first(seen: &mut bool, count: u64) -> bool {
    let is_first = count > 0 && !*seen;
    *seen |= count > 0;
    is_first
}
