//! Steps: what this worker has to tell or ask the server, each with what is needed to act on the answer, and the
//! server as the frontier knows it.
//!
//! Steps go in exchanges, each done as a whole, once, or not at all: one that failed is given again unchanged.

use std::time::Duration;

use tokio::time::Instant;

use super::place::Waiting;
use crate::engine::ticket::Tag;
use crate::scheduler::intake::Sifted;
use crate::scheduler::job::{Job, Outcome, RequestId, SlotKey};
use crate::scheduler::pacing::Pacing;
use crate::scheduler::redis::{Applied, Batch, FleetState, Origin, PlaceFor, RedisError, RedisStore};

/// The server's side of a job that several workers share.
pub(crate) trait Server: Send {
    /// Does an exchange, all of it or nothing, and answers each step.
    ///
    /// # Errors
    /// When it is not known to be done. Unless the error is for good, the same exchange is given again before any other.
    fn apply(&mut self, exchange: &mut Exchange) -> Result<Applied, RedisError>;

    /// How the fleet paces a host, from the next exchange on.
    fn set_pacing(&mut self, pacing: Pacing);

    /// How long what was handed out belongs to this worker without a renewal.
    fn visibility(&self) -> Duration;

    /// A small state that was saved under a name.
    ///
    /// # Errors
    /// When the server cannot be used.
    fn state(&mut self, name: &str) -> Result<Option<Vec<u8>>, RedisError>;
}

/// Steps that are done together.
#[derive(Default)]
pub(crate) struct Exchange {
    pub(super) steps: Vec<Step>,
    /// As the server takes them, once they were tried.
    batch: Option<Batch>,
}

/// One thing to tell or to ask.
pub(crate) enum Step {
    /// What is in flight stays this worker's.
    Renew(Vec<RequestId>),
    Offer(Offer),
    /// A robots.txt request, which this worker holds from the start.
    Admit(Box<Job>),
    PutBack {
        job: Box<Job>,
        at: Instant,
    },
    /// Back as it was, to its old place.
    GiveBack(RequestId, Duration),
    Settle(RequestId, Outcome),
    /// A redirect's target, which may be known; if it is not, it is what comes back if this worker is lost.
    Follow(Tag, Box<Job>),
    /// What a request has become.
    Replace(Box<Job>),
    Sent {
        slot: SlotKey,
        id: RequestId,
        at: Instant,
        pause: Duration,
        factor: f64,
    },
    Heard {
        slot: SlotKey,
        status: u16,
        latency: Duration,
        sent: Instant,
    },
    Freed(RequestId),
    Gate(SlotKey, Instant),
    /// A gate that nobody lifts.
    Pause(SlotKey, Instant),
    Lift(SlotKey),
    CrawlDelay(SlotKey, Duration),
    Place(Box<Waiting>),
    Lease(usize),
    ClaimStart,
    FinishStart,
    ClaimIdle,
    FinishIdle,
    Conclude,
    /// Has the whole job stop.
    StopJob,
    Save(&'static str, Vec<u8>),
    Leave,
}

/// Requests to be taken in.
pub(crate) struct Offer {
    pub(super) number: u64,
    pub(super) jobs: Vec<Job>,
    pub(super) origin: Origin,
    pub(super) sifted: Sifted,
}

impl Exchange {
    pub(super) const fn of(steps: Vec<Step>) -> Self {
        Self { steps, batch: None }
    }

    /// As the server takes it, the same at every try.
    pub(crate) fn batch(&mut self) -> &mut Batch {
        let steps = &self.steps;
        self.batch.get_or_insert_with(|| {
            let (mut batch, now) = (Batch::new(), Instant::now());
            steps.iter().for_each(|step| step.write(&mut batch, now));
            batch
        })
    }
}

impl Step {
    /// Whether it asks for something new for this worker, or keeps what it has.
    pub(super) const fn is_question(&self) -> bool {
        matches!(self, Self::Lease(_) | Self::ClaimStart | Self::ClaimIdle | Self::Renew(_))
    }

    /// Jobs in it: what an exchange costs the server.
    pub(super) fn jobs(&self) -> usize {
        match self {
            Self::Offer(offer) => offer.jobs.len(),
            Self::Renew(ids) => ids.len() / 8,
            _ => 1,
        }
    }

    fn write(&self, batch: &mut Batch, now: Instant) {
        match self {
            Self::Renew(ids) => batch.renew(ids.iter().copied()),
            Self::Offer(offer) => batch.offer(&offer.jobs, offer.origin),
            Self::Admit(job) => batch.admit(job),
            Self::PutBack { job, at } => batch.put_back(job, at.saturating_duration_since(now)),
            Self::GiveBack(id, delay) => batch.give_back(*id, *delay),
            Self::Settle(id, outcome) => batch.settle(*id, *outcome),
            Self::Follow(_, job) => batch.follow(job),
            Self::Replace(job) => batch.replace(job),
            Self::Sent { slot, id, at, pause, factor } => {
                batch.sent(slot, *id, now.saturating_duration_since(*at), *pause, *factor);
            }
            Self::Heard { slot, status, latency, sent } => {
                batch.heard(slot, *status, *latency, now.saturating_duration_since(*sent));
            }
            Self::Freed(id) => batch.freed(*id),
            Self::Gate(slot, until) => batch.gate(slot, until.saturating_duration_since(now)),
            Self::Pause(slot, until) => batch.pause(slot, until.saturating_duration_since(now)),
            Self::Lift(slot) => batch.lift(slot),
            Self::CrawlDelay(slot, delay) => batch.crawl_delay(slot, *delay),
            Self::Place(waiting) => batch.place(waiting.job.id, waiting.place_for()),
            Self::Lease(most) => batch.lease(*most),
            Self::ClaimStart => batch.claim_start(),
            Self::FinishStart => batch.finish_start(),
            Self::ClaimIdle => batch.claim_idle(),
            Self::FinishIdle => batch.finish_idle(),
            Self::Conclude => batch.conclude(),
            Self::StopJob => batch.set_state(FleetState::Stopping),
            Self::Save(name, state) => batch.save(name, state),
            Self::Leave => batch.leave(),
        }
    }
}

impl Server for RedisStore {
    fn apply(&mut self, exchange: &mut Exchange) -> Result<Applied, RedisError> {
        Self::apply(self, exchange.batch())
    }

    fn set_pacing(&mut self, pacing: Pacing) {
        Self::set_pacing(self, pacing);
    }

    fn visibility(&self) -> Duration {
        Self::visibility(self)
    }

    fn state(&mut self, name: &str) -> Result<Option<Vec<u8>>, RedisError> {
        Self::state(self, name)
    }
}

impl Waiting {
    fn place_for(&self) -> PlaceFor {
        if self.is_robots() { PlaceFor::Robots } else { PlaceFor::Hop }
    }
}
