//! Tickets: one piece of work in flight each.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::guard::LeaseGuard;
use super::window::Share;
use crate::api::failure::Fault;
use crate::collector::message::Group;
use crate::downloader::message::Attempt;
use crate::downloader::transport::Reply;
use crate::parser::message::Parsed;
use crate::plane::LeaseId;
use crate::scheduler::job::{Job, Outcome, SlotKey};

/// Names one ticket and its issue. Every order carries one; a fact whose epoch is not the ticket's present
/// one answers an order that was given up, and is dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The ticket's number, rising over the run.
    pub ticket: u64,
    /// Which issue of it.
    pub epoch: u32,
}

/// Gives a lease back without a report.
pub(crate) type Releaser = Arc<dyn Fn(LeaseId) + Send + Sync>;

/// Hashes a rising number: numbers of one run are as good as random after one multiplication.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Serial;

/// The hasher of [`Serial`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SerialHasher(u64);

impl BuildHasher for Serial {
    type Hasher = SerialHasher;

    fn build_hasher(&self) -> SerialHasher {
        SerialHasher(0)
    }
}

impl Hasher for SerialHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte) ^ self.0);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// What a ticket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request of the frontier: a page, or an origin's robots.txt.
    Request,
    /// The spider's `start`.
    Start,
    /// The spider's `idle`.
    Idle,
}

/// Where a ticket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum State {
    /// Waits for its lease.
    Leasing,
    /// Has its lease and waits for a place on the wire; only where leases are asked for ahead.
    Ready,
    /// Waits for its slot, under its lease: a redirect hop.
    Pacing,
    /// On the wire.
    Fetching,
    /// With a parser.
    Parsing,
    /// Its requests are on their way into the frontier, or its group into the record log.
    Committing,
}

/// An answer on which another hop follows.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The request as it was.
    pub(crate) job: Arc<Job>,
    pub(crate) status: Option<u16>,
    pub(crate) took: Duration,
}

/// One piece of work in flight.
pub(crate) struct Ticket {
    pub(crate) tag: Tag,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    pub(crate) since: Instant,
    /// The request; `None` for `start` and `idle`.
    pub(crate) job: Option<Arc<Job>>,
    /// The redirect that led here, as long as no record tells of it.
    pub(crate) before: Option<Answered>,
    /// The time that the page which led here asks for: until then the hop waits.
    pub(crate) not_before: Option<Instant>,
    /// The slot whose place it holds.
    pub(crate) slot: Option<SlotKey>,
    /// The slot waits to be told of its sending, and was not.
    pub(crate) wants_sent: bool,
    /// The site it asks a lease of, while it does.
    pub(crate) asks: Option<Arc<str>>,
    /// The slot it is on the wire for, where that is counted.
    pub(crate) on_wire: Option<SlotKey>,
    /// Slots of requests that are to follow under its lease and that no lease held up: their gate goes once they are queued.
    pub(crate) lifts: Vec<SlotKey>,
    pub(crate) lease: Option<LeaseGuard>,
    pub(crate) share: Option<Arc<Share>>,
    pub(crate) attempt: Option<Attempt>,
    /// Whether the attempt is reported.
    pub(crate) reported: bool,
    /// Kept until the callback is over, so that a page can be given to another parser.
    pub(crate) reply: Option<Arc<Reply>>,
    pub(crate) fault: Option<Fault>,
    /// Request records that go with the next group.
    pub(crate) records: Vec<String>,
    /// Whether a group of it had items.
    pub(crate) has_items: bool,
    /// Groups made so far.
    pub(crate) parts: u32,
    pub(crate) commit: Option<Commit>,
    /// The end of a callback that was lost while a part of it was being committed: it counts after that part.
    pub(crate) early: Option<Box<Parsed>>,
}

/// A commit under way: children first, then the group, then whoever waits.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The offer that is not accepted yet.
    pub(crate) offer: Option<u64>,
    /// The group, until it is kept; ordered once the offer is accepted.
    pub(crate) group: Arc<Group>,
    pub(crate) then: Then,
}

/// What follows a kept group.
#[derive(Debug)]
pub(crate) enum Then {
    /// The callback goes on, when there is room.
    Resume(oneshot::Sender<Result<(), String>>),
    /// The request has ended.
    Settle(Outcome),
    /// The ticket is over; its request went back into the frontier, or it had none.
    Close,
}

impl Ticket {
    pub(crate) fn new(ticket: u64, kind: Kind, state: State, now: Instant) -> Self {
        Self {
            tag: Tag { ticket, epoch: 0 },
            kind,
            state,
            since: now,
            job: None,
            before: None,
            not_before: None,
            slot: None,
            wants_sent: false,
            asks: None,
            on_wire: None,
            lifts: Vec::new(),
            lease: None,
            share: None,
            attempt: None,
            reported: true,
            reply: None,
            fault: None,
            records: Vec::new(),
            has_items: false,
            parts: 0,
            commit: None,
            early: None,
        }
    }

    pub(crate) fn enter(&mut self, state: State, now: Instant) {
        self.state = state;
        self.since = now;
    }
}

impl State {
    /// How many states there are.
    pub(crate) const COUNT: usize = 6;

    /// What a ticket in this state waits for, for the watchdog.
    pub(crate) fn waits_for(self) -> &'static str {
        match self {
            Self::Leasing => "a lease",
            Self::Ready => "a place on the wire",
            Self::Pacing => "its host's delay",
            Self::Fetching => "the site",
            Self::Parsing => "its callback",
            Self::Committing => "the frontier or the record log",
        }
    }
}
