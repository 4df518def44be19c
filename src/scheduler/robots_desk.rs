//! Robots desk: which origins' robots.txt is asked for, by which request, and what waits for the answer.
//!
//! What waits is the frontier's business: `W` is a slot for one that is alone, the pages themselves for one that
//! shares its queue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::job::{Job, JobKind, RequestId};
use super::message::RobotsAnswer;
use super::robots_gate::{Pass, RobotsGate, origin_of};
use crate::api::request::Request;
use crate::web::robots::robots_url;

/// Priority of a robots.txt request among the requests of the downloader and, after a crash, of the queue.
const PRIORITY: i32 = 1000;

/// The gate and who waits at it.
pub(super) struct RobotsDesk<W> {
    /// `None` when robots.txt is not obeyed.
    gate: Option<RobotsGate>,
    /// Requests that were given out, with their origin; until they are settled.
    out: HashMap<RequestId, Arc<str>>,
    /// What waits for this origin.
    parked: HashMap<Arc<str>, W>,
}

impl<W> RobotsDesk<W> {
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

    /// Notes that an origin's robots.txt is fetched by this request.
    pub(super) fn asked(&mut self, origin: Arc<str>, id: RequestId) {
        if let Some(gate) = &mut self.gate {
            gate.asked(&origin);
        }
        self.out.insert(id, origin);
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

    /// What waits for an origin's rules, to be added to.
    pub(super) fn parked(&mut self, origin: Arc<str>) -> std::collections::hash_map::Entry<'_, Arc<str>, W> {
        self.parked.entry(origin)
    }

    /// Everything that waits for rules.
    #[cfg(feature = "redis")]
    pub(super) fn take_parked(&mut self) -> Vec<W> {
        self.parked.drain().map(|(_, waiting)| waiting).collect()
    }

    /// The rules of an origin are known, or that they cannot be had: what waited for them.
    pub(super) fn answer(&mut self, origin: &Arc<str>, answer: RobotsAnswer, now: Instant) -> Option<W> {
        let gate = self.gate.as_mut()?;
        if let RobotsAnswer::Unavailable { why, again_in } = &answer {
            tracing::warn!(%origin, %why, ?again_in, "robots.txt cannot be read: requests to this origin fail until it is asked again");
        }
        gate.answer(origin, answer, now);
        self.parked.remove(origin)
    }
}

/// The answer for pages whose robots.txt request ended without one: that it will not come is an answer too.
pub(super) fn no_answer() -> RobotsAnswer {
    let why = Arc::from("the robots.txt request ended without an answer");
    RobotsAnswer::Unavailable { why, again_in: Duration::from_secs(60) }
}

/// The origin whose robots.txt a job fetches, wherever redirects have led it.
fn asked_origin(job: &Job) -> Option<Arc<str>> {
    match &job.first_url {
        Some(first) => Url::parse(first).ok().as_ref().and_then(origin_of),
        None => origin_of(job.url()),
    }
}

/// `None` never in practice: the unit step can be serialised.
pub(super) fn robots_job(origin: &str, page: &Url, round: u32) -> Option<Job> {
    let mut request = Request::to_url(robots_url(page), &()).ok()?;
    request.priority(PRIORITY).dont_filter().allow_offsite().ignore_robots();
    let id = RequestId::robots(origin, round);
    // The key is the request's own: a page of the same URL is another request.
    // No callback asked for it: it has no parent.
    Some(Job { kind: JobKind::Robots, ..Job::page(id, id.0, request) })
}
