//! Hops: redirects of requests under way, which pass the queue of their slot and wait for its delay.

use tokio::time::Instant;

use super::{Frontier, report};
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::scheduler::job::{Job, JobKind, SlotKey};
use crate::scheduler::message::{Paced, Verdict};
use crate::scheduler::robots_gate::Pass;
use crate::scheduler::slots::{Pick, SlotId};

impl Frontier {
    pub(super) fn hop(&mut self, tag: Tag, job: Box<Job>, now: Instant) {
        if let Some(verdict) = self.refuse_hop(&job, now) {
            let slot = SlotKey::of(job.url());
            self.facts.push(Fact::Paced(Box::new(Paced { tag, job, slot, wants_sent: false, verdict })));
            return;
        }
        let id = self.slots.id(job.url().host_str().unwrap_or_default());
        self.waiting.entry(id).or_default().hops.push_back((tag, job));
        self.slots.hop(id, now);
    }

    fn refuse_hop(&mut self, job: &Job, now: Instant) -> Option<Verdict> {
        if job.kind == JobKind::Robots {
            return None;
        }
        if self.intake.is_offsite(&job.request) {
            self.intake.filtered_offsite(job.url().host_str().unwrap_or_default());
            return Some(Verdict::Offsite);
        }
        if self.intake.is_out_of_reach(job) {
            self.intake.filtered_private(job);
            return Some(Verdict::OutOfReach);
        }
        if !job.request.is_unfiltered() && !job.chain.contains(&job.key) {
            match self.store.mark_seen(job.key) {
                Ok(true) => {
                    if let Err(error) = self.store.replace(job) {
                        report("note a redirect", &error);
                    }
                }
                Ok(false) => {
                    self.intake.filtered_duplicates(1, job.first_url.as_deref());
                    return Some(Verdict::Duplicate);
                }
                // Fetching a page twice is better than losing it.
                Err(error) => report("mark a redirect as seen", &error),
            }
        }
        match self.robots.look(job, now) {
            Pass::Go { .. } => (!self.intake.takes_hop(job)).then_some(Verdict::HostFull),
            Pass::Forbidden => {
                self.intake.counters.forbidden();
                Some(Verdict::Forbidden)
            }
            Pass::Unavailable(why) => Some(Verdict::RobotsUnavailable(why)),
            Pass::Wait | Pass::Ask => Some(Verdict::PutBack),
        }
    }

    pub(super) fn give_hop(&mut self, id: SlotId, now: Instant) {
        let hop = self.waiting.get_mut(&id).and_then(|waiting| waiting.hops.pop_front());
        let slot = self.slots.key(id);
        let wants_sent = self.slots.take(Pick::Hop(id), 0, now);
        self.tidy(id);
        if let Some((tag, job)) = hop {
            self.facts.push(Fact::Paced(Box::new(Paced { tag, job, slot, wants_sent, verdict: Verdict::Go })));
        }
    }
}
