//! Intake: what becomes of an offer before and after the store has it. What is not in scope is counted and named
//! once, what the store answered is made the engine's answer. Nothing is queued here.

use super::config::SchedulerConfig;
use super::counters::Counters;
use super::job::{Books, Job};
use super::message::Accepted;
use super::scope::{Outside, Scope};
use super::store::{Medium, Offered, StoreError};
use crate::api::request::Request;
use crate::api::stats::Stats;

/// Scope and counters.
pub(super) struct Intake {
    scope: Scope,
    pub(super) counters: Counters,
    returns_offsite: bool,
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
    parent: Option<std::sync::Arc<str>>,
    /// Jobs offered in all.
    pub(super) count: u64,
}

impl Intake {
    pub(super) fn new(config: &SchedulerConfig, stats: Stats, medium: Medium) -> Self {
        Self { scope: Scope::new(config), counters: Counters::new(stats, medium), returns_offsite: config.returns_offsite }
    }

    /// Whether a request may not leave the site it is on.
    pub(super) fn is_offsite(&self, request: &Request) -> bool {
        self.scope.is_offsite(request)
    }

    /// Whether a job's URL names by itself an address that may not be asked.
    pub(super) fn is_out_of_reach(&self, job: &Job) -> bool {
        self.scope.is_out_of_reach(job)
    }

    /// Hears of a job that was let into the queue: by this run, an earlier one, or another worker.
    pub(super) fn dequeued(&self, job: &Job) {
        self.scope.wanted(job);
        self.counters.dequeued(1);
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
                let why = self.scope.check(job);
                reasons.extend(why.map(|why| (place, why)));
                place += 1;
                why.is_some()
            })
            .collect();
        let rejected = reasons.into_iter().zip(outside).map(|((place, why), job)| Rejected { place, why, job }).collect();
        let deepest = jobs.iter().map(|job| job.depth).max();
        let parent = jobs.first().and_then(|job| job.parent_url.clone());
        Sifted { rejected, deepest, parent, count }
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
            }
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
