//! What the engine orders from the scheduler, and what the scheduler answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::job::{Books, Job, Outcome, RequestId, SlotKey};
pub use super::pacing::Pacing;
use super::store::StoreError;
use crate::engine::ticket::Tag;
use crate::web::robots::Robots;

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Take these requests in. Answered by [`Accepted`] with the same `offer`.
    Offer {
        /// The offer's number, rising.
        offer: u64,
        /// The requests, ids and seen keys set.
        jobs: Vec<Job>,
        /// Whether they come from `start()`: then the start cursor moves by their number.
        seeds: bool,
    },
    /// Jobs may be handed out until `upto` were handed out in all: a standing credit until used. Counting from
    /// the start makes a late number harmless. Answered by [`Ready`] at once, and again whenever due jobs use credit.
    Pull {
        /// The pull's number, rising.
        seq: u64,
        /// Jobs handed out in all, at most.
        upto: u64,
    },
    /// The request has ended.
    Settle {
        /// Which.
        id: RequestId,
        /// How.
        outcome: Outcome,
    },
    /// The request goes back into the queue: a retry, a refused lease, a redirect to another origin.
    PutBack {
        /// The job, changed as needed.
        job: Box<Job>,
        /// How long it has to wait at least.
        delay: Duration,
    },
    /// A redirect within its origin asks for a place of its slot; it passes the queue. Answered by [`Paced`].
    Hop {
        /// The hop's ticket.
        tag: Tag,
        /// The job with its new URL and seen key.
        job: Box<Job>,
    },
    /// A request of the slot went out on the wire: the delay counts from here.
    Sent {
        /// Which.
        id: RequestId,
        /// The slot.
        slot: SlotKey,
        /// When.
        at: Instant,
    },
    /// The slot has a place back: its request was answered, failed or never sent.
    Freed {
        /// Which.
        id: RequestId,
        /// The slot.
        slot: SlotKey,
        /// Its sending was to be told, and it never was sent: nothing waits for that any more.
        unsent: bool,
    },
    /// How a request of the slot was answered, for its throttle. Told of hosts that are throttled only.
    Answered {
        /// The slot.
        slot: SlotKey,
        /// The status.
        status: u16,
        /// From sending to the head of the answer.
        latency: Duration,
        /// When it was sent.
        sent: Instant,
    },
    /// `start()` has said everything it has to say, all of it is taken in, and no other worker has to run it.
    StartOver,
    /// `idle` has returned and made something, all of it is taken in.
    IdleOver,
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Nothing of this scope may go before `until`; the later one holds.
    Gate {
        /// What is gated.
        scope: Scope,
        /// Until when.
        until: Instant,
        /// For whom.
        hold: Hold,
    },
    /// A gate is over before its time.
    Lift {
        /// What was gated.
        scope: Scope,
    },
    /// The rules of an origin are known: its pages may go, or are forbidden.
    Robots {
        /// `scheme://host[:port]`.
        origin: Arc<str>,
        /// The rules, or why there are none.
        rules: RobotsAnswer,
    },
    /// Settings that changed while the job runs.
    Pacing(Pacing),
    /// Jobs a slot may have out beyond its places, since they are not sent before they have a lease and the engine has
    /// a place for them. A slot with a delay or a gate never has any.
    Ahead(usize),
    /// Give out no more jobs.
    Stop,
    /// The whole job ends, also for its other workers; followed by `Stop`.
    StopAll {
        /// The finish reason.
        reason: String,
    },
    /// Nothing is left to do and the spider has no more: the job is over for its other workers too; followed by `Stop`.
    Finish,
    /// The scheduler's own timer.
    Tick,
}

/// Whom a gate holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// This run: what it waits for ends with the run, or is lifted before its time.
    Run,
    /// The job: a run that is started before `until` waits as well, and nobody lifts it.
    Job,
}

/// What a gate holds back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One host.
    Slot(SlotKey),
}

/// What a robots.txt fetch came to.
#[derive(Debug, Clone)]
pub enum RobotsAnswer {
    /// These rules.
    Rules(Arc<Robots>),
    /// Not readable: pages of the origin fail with this reason until it is asked for again.
    Unavailable {
        /// What went wrong.
        why: Arc<str>,
        /// When to ask again.
        again_in: Duration,
    },
}

/// Answers an offer.
#[derive(Debug)]
pub struct Accepted {
    /// Which offer.
    pub offer: u64,
    /// Queued.
    pub stored: u64,
    /// Dropped as duplicates.
    pub duplicates: u64,
    /// Dropped as outside the allowed domains.
    pub offsite: u64,
    /// Dropped as deeper than `DEPTH_LIMIT`.
    pub too_deep: u64,
    /// Dropped as longer than `URLLENGTH_LIMIT`.
    pub too_long: u64,
    /// Requests queued or in flight now.
    pub pending: u64,
    /// Why the store refused the whole offer, if it did; then nothing of it was taken or counted.
    pub error: Option<StoreError>,
    /// The offer's requests, back, when it was refused: to be offered again under a new number.
    pub refused: Vec<Job>,
    /// The offer's offsite requests, where the configuration asks for them (`returns_offsite`); none of a refused
    /// offer's, which is judged anew.
    pub filtered: Vec<Job>,
    /// Those of them that were dropped for whatever reason and keep the lease of the page they were found on; none of
    /// a refused offer's.
    pub kept_dropped: Vec<RequestId>,
}

/// Answers a pull: jobs that may go now, and what is left.
#[derive(Debug)]
pub struct Ready {
    /// Jobs, at most as many as there were credits.
    pub jobs: Vec<Due>,
    /// The books after these jobs were taken.
    pub books: Books,
    /// When the next job is due, if any waits for a time rather than for a place.
    pub next_due: Option<Instant>,
    /// The last offer that these numbers include.
    pub after_offer: u64,
    /// The last pull that these numbers include; so do all orders given before it.
    pub seq: u64,
    /// Whose word it is that the job is over, once nothing is pending.
    pub rest: Rest,
}

/// Who may say that a job is over of which nothing is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rest {
    /// The engine that is told so: the job is its own, or it is its turn to ask the spider for more.
    #[default]
    Ours,
    /// Another worker of the job runs `start()` or `idle`, or may have something in flight.
    Elsewhere,
    /// Another worker has said so.
    Over,
}

/// What a worker hears of the job it shares with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fleet {
    /// This worker runs `start()`.
    Elected {
        /// How many start requests were made before.
        cursor: u64,
    },
    /// It is this worker's turn to run `idle`; so many requests of it were made before.
    IdleFrom(u64),
    /// The whole job stops, for this finish reason.
    Stops(String),
    /// The server was not reached for as long as the settings allow, or refuses for good: why, for people.
    Lost(String),
}

/// A job whose time has come.
#[derive(Debug)]
pub struct Due {
    /// The job.
    pub job: Box<Job>,
    /// Its slot; a place of it is taken until `Freed`.
    pub slot: SlotKey,
    /// Whether the engine has to tell `Sent`.
    pub wants_sent: bool,
    /// Whether it may be fetched. A forbidden one takes no place of its slot.
    pub verdict: Verdict,
}

/// Answers a hop.
#[derive(Debug)]
pub struct Paced {
    /// The hop's ticket.
    pub tag: Tag,
    /// The job, back.
    pub job: Box<Job>,
    /// Its slot; a place is taken when the verdict is [`Verdict::Go`].
    pub slot: SlotKey,
    /// Whether the engine has to tell `Sent`.
    pub wants_sent: bool,
    /// Whether it may be fetched.
    pub verdict: Verdict,
}

/// Whether a job may be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Go,
    /// robots.txt forbids it.
    Forbidden,
    /// robots.txt could not be read.
    RobotsUnavailable(Arc<str>),
    /// It was seen before (hops only).
    Duplicate,
    /// It leaves the allowed domains.
    Offsite,
    /// Its host has given all the pages it may.
    HostFull,
    /// It leads to an address of the own machine or network.
    OutOfReach,
    /// Its origin's robots.txt is not known yet: put it back, it waits in the queue (hops only).
    PutBack,
}
