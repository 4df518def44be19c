//! Offers: what is in scope goes to the store, what is not is counted and named once.

use tokio::time::Instant;

use super::Frontier;
use crate::engine::message::Fact;
use crate::scheduler::intake::Intake;
use crate::scheduler::job::{Job, RequestId, host_of};
use crate::scheduler::store::{Cursors, StoreError};

impl Frontier {
    pub(super) fn offer(&mut self, offer: u64, mut jobs: Vec<Job>, seeds: bool, now: Instant) {
        self.after_offer = self.after_offer.max(offer);
        let held = self.store.weight();
        // Of one offer the store may come to hold more than that: it is bounded by `CALLBACK_MAX_EFFECTS`.
        let bound = if seeds { self.seeds_stop_at } else { self.max_bytes };
        if held > bound {
            self.refuse(offer, jobs, StoreError::Full { held, bound });
            return;
        }
        let by_idle = jobs.first().is_some_and(|job| job.parent == Some(RequestId::IDLE));
        let sifted = self.intake.sift(&mut jobs, seeds || by_idle);
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
                    self.advance(sifted.count, seeds);
                }
                let accepted = self.intake.accept(offer, offered, sifted, self.store.books());
                self.facts.push(Fact::Accepted(accepted));
            }
            Err(error) => {
                Intake::restore(sifted, &mut jobs);
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

    /// Notes the slots of these jobs; neighbours mostly share one.
    fn touch(&mut self, jobs: &[Job]) {
        let mut last: Option<&str> = None;
        for job in jobs {
            let host = host_of(job.url());
            let priority = job.request.priority_value();
            match self.touched.last_mut() {
                Some((_, highest)) if last == Some(host) => *highest = priority.max(*highest),
                _ => self.touched.push((self.slots.id(host), priority)),
            }
            last = Some(host);
        }
    }

    fn refuse(&mut self, offer: u64, refused: Vec<Job>, error: StoreError) {
        let accepted = Intake::refuse(offer, refused, error, self.store.books());
        self.facts.push(Fact::Accepted(accepted));
    }
}
