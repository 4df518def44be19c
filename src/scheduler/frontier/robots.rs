//! Robots.txt requests: pages of an origin wait until its rules are known, one request fetches them.
//!
//! The request is an ordinary one of the books, under a lease of its own. It is given out at once with the
//! place and the credit of the page that asked, so no more of them are out than there were credits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::{Frontier, STORE_PAUSE, report};
use crate::api::request::Request;
use crate::scheduler::job::{Job, JobKind, RequestId};
use crate::scheduler::message::RobotsAnswer;
use crate::scheduler::robots_gate::{Pass, RobotsGate, origin_of, robots_url};
use crate::scheduler::slots::{Pick, SlotId};

/// Priority of a robots.txt request among the requests of the downloader and, after a crash, of the queue.
const PRIORITY: i32 = 1000;

/// The gate and who waits at it.
pub(super) struct RobotsDesk {
    /// `None` when robots.txt is not obeyed.
    gate: Option<RobotsGate>,
    /// Requests that were given out, with their origin; until they are settled.
    out: HashMap<RequestId, Arc<str>>,
    /// The slot whose next job waits for this origin. An origin has one host, so one slot.
    parked: HashMap<Arc<str>, SlotId>,
}

impl RobotsDesk {
    pub(super) fn new(agent: Option<String>) -> Self {
        Self { gate: agent.map(RobotsGate::new), out: HashMap::new(), parked: HashMap::new() }
    }

    /// Whether robots.txt lets a job go.
    pub(super) fn look(&mut self, job: &Job, now: Instant) -> Pass {
        let free = Pass::Go { crawl_delay: Duration::ZERO };
        let Some(gate) = &mut self.gate else {
            return free;
        };
        if job.kind == JobKind::Robots {
            // One from before a crash: it stands for a request that would be made anyway.
            if let Some(origin) = asked_origin(job) {
                gate.asked(&origin);
                self.out.insert(job.id, origin);
            }
            return free;
        }
        match origin_of(job.url()) {
            Some(origin) if !job.request.ignores_robots() => gate.look(&origin, job.url(), now),
            _ => free,
        }
    }

    /// Notes that a request was settled; its origin, if pages still wait for the answer.
    pub(super) fn ended(&mut self, id: RequestId) -> Option<Arc<str>> {
        if self.out.is_empty() {
            return None;
        }
        let origin = self.out.remove(&id)?;
        let others = self.out.values().any(|other| *other == origin);
        self.gate.as_ref().is_some_and(|gate| !others && gate.is_asked(&origin)).then_some(origin)
    }
}

impl Frontier {
    /// Keeps a page until its origin's rules are known.
    pub(super) fn hold_for_robots(&mut self, id: SlotId, job: Box<Job>, now: Instant) {
        if let Some(origin) = origin_of(job.url()) {
            self.robots.parked.insert(origin, id);
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
        if let Some(gate) = &mut self.robots.gate {
            gate.asked(&origin);
        }
        self.robots.out.insert(job.id, origin);
        self.counters.robots_request();
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
        let Some(gate) = &mut self.robots.gate else {
            return;
        };
        if let RobotsAnswer::Unavailable { why, again_in } = &answer {
            tracing::warn!(%origin, %why, ?again_in, "robots.txt cannot be read: requests to this origin fail until it is asked again");
        }
        gate.answer(origin, answer, now);
        if let Some(id) = self.robots.parked.remove(origin) {
            self.slots.park(id, false, now);
        }
    }
}

/// The origin whose robots.txt a job fetches, wherever redirects have led it.
fn asked_origin(job: &Job) -> Option<Arc<str>> {
    match &job.first_url {
        Some(first) => Url::parse(first).ok().as_ref().and_then(origin_of),
        None => origin_of(job.url()),
    }
}

/// `None` never in practice: the unit step can be serialised.
fn robots_job(origin: &str, page: &Url, round: u32) -> Option<Job> {
    let mut request = Request::to_url(robots_url(page), &()).ok()?;
    request.priority(PRIORITY).dont_filter().allow_offsite().ignore_robots();
    let id = RequestId::robots(origin, round);
    // The key is the request's own: a page of the same URL is another request.
    // No callback asked for it: it has no parent.
    Some(Job { kind: JobKind::Robots, ..Job::page(id, id.0, request) })
}
