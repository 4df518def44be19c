//! Intake: what becomes of an offer before and after the store has it. What is not in scope is counted and named
//! once, what the store answered is made the engine's answer. Nothing is queued here.

use std::collections::BTreeMap;

use url::Url;

use super::config::SchedulerConfig;
use super::counters::Counters;
use super::host_pages::HostPages;
use super::job::{Books, Job, JobKind, RequestId, host_of};
use super::message::{Accepted, Verdict};
use super::scope::{Outside, Scope};
use super::store::{Medium, Offered, StoreError};
use crate::api::request::Request;
use crate::api::stats::Stats;

/// Scope and counters.
pub(super) struct Intake {
    scope: Scope,
    pub(super) counters: Counters,
    host_pages: HostPages,
    returns_offsite: bool,
    counts_depths: bool,
}

/// A job out of scope, with its place in the offer.
pub(super) struct Rejected {
    place: usize,
    why: Outside,
    job: Job,
}

/// What of an offer is known before the store takes it.
pub(super) struct Sifted {
    rejected: Vec<Rejected>,
    deepest: Option<u32>,
    /// How many there are of each depth, where that is counted.
    depths: BTreeMap<u32, u64>,
    parent: Option<std::sync::Arc<str>>,
    /// Jobs offered in all.
    pub(super) count: u64,
}

impl Intake {
    pub(super) fn new(config: &SchedulerConfig, stats: Stats, medium: Medium) -> Self {
        Self {
            scope: Scope::new(config),
            counters: Counters::new(stats, medium),
            host_pages: config.host_pages.clone(),
            returns_offsite: config.returns_offsite,
            counts_depths: config.counts_depths,
        }
    }

    /// Whether a request may not leave the site it is on.
    pub(super) fn is_offsite(&self, request: &Request) -> bool {
        self.scope.is_offsite(request)
    }

    /// Whether a job's URL names by itself an address that may not be asked.
    pub(super) fn is_out_of_reach(&self, job: &Job) -> bool {
        self.scope.is_out_of_reach(job)
    }

    /// Judges a page that comes out of the queue once more: an earlier run with other settings, or another worker, may have
    /// let it in.
    pub(super) fn judge_queued(&mut self, job: &Job) -> Option<Verdict> {
        self.scope.wanted(job);
        if job.kind != JobKind::Page {
            return None;
        }
        if self.is_offsite(&job.request) {
            self.filtered_offsite(host(job));
            return Some(Verdict::Offsite);
        }
        if self.is_out_of_reach(job) {
            self.filtered_private(job);
            return Some(Verdict::OutOfReach);
        }
        None
    }

    /// Counts a page that is to go out, unless its host has given all it may. What was out before is counted already.
    pub(super) fn takes_page(&mut self, job: &Job) -> bool {
        match (job.kind, job.attempts) {
            (JobKind::Robots, _) => true,
            (JobKind::Page, 0) => {
                let takes = self.host_pages.take_one(host(job), job.id);
                self.noted(takes)
            }
            (JobKind::Page, _) => {
                self.host_pages.again(host(job), job.id);
                true
            }
        }
    }

    /// The same of a hop, which counts where it leads to another host than the ones its request has counted for.
    pub(super) fn takes_hop(&mut self, job: &Job) -> bool {
        if job.kind != JobKind::Page || !self.host_pages.has_limit() {
            return true;
        }
        let first = job.first_url.as_deref().and_then(|url| Url::parse(url).ok());
        let was_first = first.is_some_and(|first| host_of(&first) == host(job));
        let takes = self.host_pages.hop(host(job), was_first, job.id);
        self.noted(takes)
    }

    fn noted(&mut self, takes: bool) -> bool {
        if !takes {
            self.filtered_full(1);
        }
        takes
    }

    /// A page comes back into the queue: one that was not fetched, or one for another attempt.
    pub(super) fn page_came_back(&self, job: &Job) {
        match (job.kind, job.attempts) {
            (JobKind::Robots, _) => {}
            (JobKind::Page, 0) => self.host_pages.give_back(host(job), job.id),
            (JobKind::Page, _) => self.host_pages.ended(job.id),
        }
    }

    /// A request has ended.
    pub(super) fn ended(&self, id: RequestId) {
        self.host_pages.ended(id);
    }

    fn is_full(&self, job: &Job) -> bool {
        job.kind == JobKind::Page && self.host_pages.is_full(host(job))
    }

    /// Takes out of an offer what is not in scope. `by_owner`: they come from `start` or `idle`, not from a page.
    pub(super) fn sift(&self, jobs: &mut Vec<Job>, by_owner: bool) -> Sifted {
        if by_owner {
            jobs.iter().for_each(|job| self.scope.wanted(job));
        }
        let count = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
        let mut reasons = Vec::new();
        let mut place = 0;
        let outside: Vec<Job> = jobs
            .extract_if(.., |job| {
                let why = self.scope.check(job).or_else(|| self.is_full(job).then_some(Outside::HostFull));
                reasons.extend(why.map(|why| (place, why)));
                place += 1;
                why.is_some()
            })
            .collect();
        let rejected = reasons.into_iter().zip(outside).map(|((place, why), job)| Rejected { place, why, job }).collect();
        let deepest = jobs.iter().map(|job| job.depth).max();
        let parent = jobs.first().and_then(|job| job.parent_url.clone());
        let mut depths = BTreeMap::new();
        if self.counts_depths {
            jobs.iter().for_each(|job| *depths.entry(job.depth).or_default() += 1);
        }
        Sifted { rejected, deepest, depths, parent, count }
    }

    /// Puts back what was taken out of an offer that the store refused.
    pub(super) fn restore(sifted: Sifted, jobs: &mut Vec<Job>) {
        // In rising order each goes back to where it was.
        for Rejected { place, job, .. } in sifted.rejected {
            jobs.insert(place.min(jobs.len()), job);
        }
    }

    /// The store has taken the offer: counts it, and makes the answer.
    pub(super) fn accept(&mut self, offer: u64, offered: Offered, sifted: Sifted, books: Books) -> Accepted {
        if let Some(depth) = sifted.deepest {
            self.counters.depth(depth);
        }
        self.counters.depths(&sifted.depths);
        self.filtered_duplicates(offered.duplicates, sifted.parent.as_deref());
        self.counters.enqueued(offered.stored);
        let mut accepted = Accepted {
            offer,
            stored: offered.stored,
            duplicates: offered.duplicates,
            offsite: 0,
            too_deep: 0,
            too_long: 0,
            pending: books.pending,
            error: None,
            refused: Vec::new(),
            filtered: Vec::new(),
            kept_dropped: offered.kept_dropped,
        };
        let (mut repeats, mut full) = (0, 0);
        for Rejected { why, job, .. } in sifted.rejected {
            if job.request.keeps_lease() {
                accepted.kept_dropped.push(job.id);
            }
            match why {
                Outside::Offsite => {
                    accepted.offsite += 1;
                    self.filtered_offsite(job.url().host_str().unwrap_or_default());
                    if self.returns_offsite {
                        accepted.filtered.push(job);
                    }
                }
                Outside::Private => self.filtered_private(&job),
                Outside::TooDeep => accepted.too_deep += 1,
                Outside::TooLong => accepted.too_long += 1,
                Outside::Repeats => repeats += 1,
                Outside::HostFull => full += 1,
            }
        }
        self.filtered_full(full);
        if self.counters.repeats(repeats) {
            tracing::info!(
                "requests whose path repeats itself more often than URL_SEGMENT_REPEATS_LIMIT are dropped; \
                 url_repeats/filtered counts them"
            );
        }
        if self.counters.too_deep(accepted.too_deep) {
            tracing::info!("requests deeper than DEPTH_LIMIT are dropped; depth/filtered counts them");
        }
        if self.counters.too_long(accepted.too_long) {
            tracing::info!(
                "requests with a URL longer than URLLENGTH_LIMIT are dropped; urllength/request_ignored_count counts them"
            );
        }
        accepted
    }

    /// The answer to an offer of which the store takes nothing.
    pub(super) fn refuse(offer: u64, refused: Vec<Job>, error: StoreError, books: Books) -> Accepted {
        Accepted {
            offer,
            stored: 0,
            duplicates: 0,
            offsite: 0,
            too_deep: 0,
            too_long: 0,
            pending: books.pending,
            error: Some(error),
            refused,
            filtered: Vec::new(),
            kept_dropped: Vec::new(),
        }
    }

    /// Counts duplicates and says so once.
    pub(super) fn filtered_duplicates(&mut self, count: u64, found_on: Option<&str>) {
        if count == 0 {
            return;
        }
        let found_on = found_on.unwrap_or("start");
        if self.counters.duplicates(count) {
            tracing::info!(found_on, "requests seen before are dropped; dupefilter/filtered counts them");
        } else {
            tracing::debug!(found_on, count, "dropped requests seen before");
        }
    }

    /// Counts what is beyond a host's pages and says so once.
    fn filtered_full(&mut self, count: u64) {
        if self.counters.host_full(count) {
            tracing::info!(
                "requests to hosts that have given HOST_PAGES_LIMIT pages are dropped; host_pages/filtered counts them"
            );
        }
    }

    /// Counts what names an address that may not be asked, and says so once.
    pub(super) fn filtered_private(&mut self, job: &Job) {
        let (url, found_on) = (job.url().as_str(), job.parent_url.as_deref());
        if self.counters.private() {
            tracing::warn!(
                url,
                found_on,
                "requests to addresses of this machine or its network are dropped; private_address/filtered counts them; \
                 ALLOW_PRIVATE_ADDRESSES allows them"
            );
        } else {
            tracing::debug!(url, found_on, "dropped a request to a private address");
        }
    }

    /// Counts a filtered host and names it once.
    pub(super) fn filtered_offsite(&mut self, host: &str) {
        let is_new = self.scope.is_new_filtered_host(host);
        self.counters.offsite(is_new);
        if is_new {
            tracing::info!(host, "requests to this host are dropped: it is in no allowed domain; offsite/filtered counts them");
        } else {
            tracing::debug!(host, "dropped an offsite request");
        }
    }
}

fn host(job: &Job) -> &str {
    host_of(job.url())
}
