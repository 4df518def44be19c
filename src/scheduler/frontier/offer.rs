//! Offers: what is in scope goes to the store, what is not is counted and named once.

use tokio::time::Instant;

use super::Frontier;
use crate::engine::message::Fact;
use crate::scheduler::job::{Job, RequestId};
use crate::scheduler::message::Accepted;
use crate::scheduler::scope::Outside;
use crate::scheduler::store::{Cursors, Offered, StoreError};

/// A job out of scope, with its place in the offer.
struct Rejected {
    place: usize,
    why: Outside,
    job: Job,
}

impl Frontier {
    pub(super) fn offer(&mut self, offer: u64, mut jobs: Vec<Job>, seeds: bool, now: Instant) {
        self.after_offer = self.after_offer.max(offer);
        let held = self.store.weight();
        if seeds && held > self.seeds_stop_at {
            self.refuse(offer, jobs, StoreError::Full { held, bound: self.seeds_stop_at });
            return;
        }
        let offered_jobs = jobs.len();
        let by_idle = jobs.first().is_some_and(|job| job.parent == Some(RequestId::IDLE));
        let rejected = self.reject(&mut jobs);
        let deepest = jobs.iter().map(|job| job.depth).max();
        let parent = jobs.first().and_then(|job| job.parent_url.clone());
        self.touch(&jobs);
        let taken = self.store.offer(&mut jobs);
        let stored = taken.as_ref().map_or(0, |offered| offered.stored);
        for (id, priority) in self.touched.drain(..) {
            if stored > 0 {
                self.slots.queued(id, now, priority, now);
            } else {
                self.slots.review(id, now);
            }
        }
        match taken {
            Ok(offered) => {
                if seeds || by_idle {
                    self.advance(u64::try_from(offered_jobs).unwrap_or(u64::MAX), seeds);
                }
                if let Some(depth) = deepest {
                    self.counters.depth(depth);
                }
                self.filtered_duplicates(offered.duplicates, parent.as_deref());
                self.counters.enqueued(offered.stored);
                self.accept(offer, offered, rejected);
            }
            Err(error) => {
                // In rising order each goes back to where it was.
                for Rejected { place, job, .. } in rejected {
                    jobs.insert(place.min(jobs.len()), job);
                }
                self.refuse(offer, jobs, error);
            }
        }
    }

    /// Moves the cursor of `start`, else that of `idle`; it is committed with the offer.
    fn advance(&mut self, count: u64, seeds: bool) {
        let Cursors { start, idle } = self.store.cursors();
        let to = if seeds {
            Cursors { start: start.saturating_add(count), idle }
        } else {
            Cursors { start, idle: idle.saturating_add(count) }
        };
        if let Err(error) = self.store.advance(to) {
            super::report("move a cursor", &error);
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

    fn reject(&self, jobs: &mut Vec<Job>) -> Vec<Rejected> {
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
        reasons.into_iter().zip(outside).map(|((place, why), job)| Rejected { place, why, job }).collect()
    }

    /// Notes the slots of these jobs; neighbours mostly share one.
    fn touch(&mut self, jobs: &[Job]) {
        let mut last: Option<&str> = None;
        for job in jobs {
            let host = job.url().host_str().unwrap_or_default();
            let priority = job.request.priority_value();
            match self.touched.last_mut() {
                Some((_, highest)) if last == Some(host) => *highest = priority.max(*highest),
                _ => self.touched.push((self.slots.id(host), priority)),
            }
            last = Some(host);
        }
    }

    fn accept(&mut self, offer: u64, offered: Offered, rejected: Vec<Rejected>) {
        let mut accepted = Accepted {
            offer,
            stored: offered.stored,
            duplicates: offered.duplicates,
            offsite: 0,
            too_deep: 0,
            too_long: 0,
            pending: self.store.books().pending,
            error: None,
            refused: Vec::new(),
            filtered: Vec::new(),
            kept_dropped: offered.kept_dropped,
        };
        for Rejected { why, job, .. } in rejected {
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
        self.facts.push(Fact::Accepted(accepted));
    }

    fn refuse(&mut self, offer: u64, refused: Vec<Job>, error: StoreError) {
        self.facts.push(Fact::Accepted(Accepted {
            offer,
            stored: 0,
            duplicates: 0,
            offsite: 0,
            too_deep: 0,
            too_long: 0,
            pending: self.store.books().pending,
            error: Some(error),
            refused,
            filtered: Vec::new(),
            kept_dropped: Vec::new(),
        }));
    }
}
