//! Hops: redirects of requests under way, which pass the queue of their slot and wait for its delay.

use std::time::Duration;

use tokio::time::Instant;

use super::{Frontier, report};
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::scheduler::job::{Job, JobKind, SlotKey, host_of};
use crate::scheduler::message::{Paced, Verdict};
use crate::scheduler::robots_gate::Pass;
use crate::scheduler::slots::{Pick, SlotId};

impl Frontier {
    pub(super) fn hop(&mut self, tag: Tag, job: Box<Job>, now: Instant) {
        let crawl_delay = match self.judge_hop(&job, now) {
            Ok(crawl_delay) => crawl_delay,
            Err(verdict) => {
                let slot = SlotKey::of(job.url());
                self.facts.push(Fact::Paced(Box::new(Paced { tag, job, slot, wants_sent: false, verdict })));
                return;
            }
        };
        let id = self.slots.id(host_of(job.url()));
        self.waiting.entry(id).or_default().hops.push_back((tag, job));
        self.slots.hop(id, now);
        // Its slot may be new, and know nothing of the delay. Without the hop it would be dropped again at once.
        if !crawl_delay.is_zero() {
            self.slots.set_crawl_delay(id, crawl_delay, now);
        }
    }

    /// The delay that robots.txt asks of a hop, or why it does not go.
    fn judge_hop(&mut self, job: &Job, now: Instant) -> Result<Duration, Verdict> {
        if job.kind == JobKind::Robots {
            return Ok(Duration::ZERO);
        }
        if self.intake.is_offsite(&job.request) {
            self.intake.filtered_offsite(job.url().host_str().unwrap_or_default());
            return Err(Verdict::Offsite);
        }
        if self.intake.is_out_of_reach(job) {
            self.intake.filtered_private(job);
            return Err(Verdict::OutOfReach);
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
                    return Err(Verdict::Duplicate);
                }
                // Fetching a page twice is better than losing it.
                Err(error) => report("mark a redirect as seen", &error),
            }
        }
        match self.robots.look(job, now) {
            Pass::Go { crawl_delay } if self.intake.takes_hop(job) => Ok(crawl_delay),
            Pass::Go { .. } => Err(Verdict::HostFull),
            Pass::Forbidden => {
                self.intake.counters.forbidden();
                Err(Verdict::Forbidden)
            }
            Pass::Unavailable(why) => Err(Verdict::RobotsUnavailable(why)),
            Pass::Wait | Pass::Ask => Err(Verdict::PutBack),
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
