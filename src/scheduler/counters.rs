//! The scheduler's counters, in Scrapy's names. Each `true` answer is the first of its kind: worth a log line.

use crate::api::stats::Stats;
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
