//! Robots.txt requests: pages of an origin wait until its rules are known, one request fetches them.
//!
//! The request is an ordinary one of the books, under a lease of its own. It is given out at once with the
//! place and the credit of the page that asked, so no more of them are out than there were credits.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Frontier, STORE_PAUSE, report};
use crate::scheduler::job::Job;
use crate::scheduler::message::RobotsAnswer;
use crate::scheduler::robots_desk::robots_job;
use crate::scheduler::robots_gate::origin_of;
use crate::scheduler::slots::{Pick, SlotId};

impl Frontier {
    /// Keeps a page until its origin's rules are known.
    pub(super) fn hold_for_robots(&mut self, id: SlotId, job: Box<Job>, now: Instant) {
        if let Some(origin) = origin_of(job.url()) {
            // An origin has one host, so one slot.
            self.robots.parked(origin).insert_entry(id);
        }
        self.waiting.entry(id).or_default().held = Some(job);
        self.slots.park(id, true, now);
    }

    /// Keeps a page and gives out the request for its origin's robots.txt.
    pub(super) fn ask_robots(&mut self, id: SlotId, page: Box<Job>, now: Instant) {
        let admitted = origin_of(page.url()).and_then(|origin| {
            // The round is the time in seconds: an origin is not asked twice in one, and runs do not meet.
            let round = u32::try_from(self.clock.unix(now).as_secs() & 0xffff_ffff).unwrap_or_default();
            let job = robots_job(&origin, page.url(), round)?;
            match self.store.admit(&job) {
                Ok(()) => Some((origin, job)),
                Err(error) => {
                    report("take in a robots.txt request", &error);
                    None
                }
            }
        });
        let Some((origin, job)) = admitted else {
            self.waiting.entry(id).or_default().held = Some(page);
            self.slots.queue_is(id, Some(now + STORE_PAUSE), now);
            return;
        };
        self.robots.asked(origin, job.id);
        self.intake.counters.robots_request();
        self.hold_for_robots(id, page, now);
        self.give(Pick::Robots(id), Box::new(job), now);
    }

    /// Gives out a robots.txt request that was put back.
    pub(super) fn give_robots_put_back(&mut self, id: SlotId, now: Instant) {
        let mut job = None;
        let mut next = None;
        if let Some(waiting) = self.waiting.get_mut(&id) {
            let first = waiting.robots.iter().enumerate().min_by_key(|(_, (at, _))| *at).map(|(place, _)| place);
            job = first.map(|place| waiting.robots.swap_remove(place).1);
            next = waiting.next_robots();
        }
        self.slots.robots_is(id, next, now);
        self.tidy(id);
        if let Some(job) = job {
            self.give(Pick::Robots(id), job, now);
        }
    }

    /// The rules of an origin are known, or that they cannot be had: what waits for them is judged again.
    pub(super) fn robots_answer(&mut self, origin: &Arc<str>, answer: RobotsAnswer, now: Instant) {
        if let Some(id) = self.robots.answer(origin, answer, now) {
            self.slots.park(id, false, now);
        }
    }
}
