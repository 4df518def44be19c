//! Everything that can happen to the engine, in one list. Facts are past tense, commands imperative.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::hub::Tally;
use super::lease_books::LeaseBooks;
use crate::actor::Died;
use crate::api::signal::ConfigChanged;
use crate::settings::Settings;
use crate::{broker, collector, downloader, parser, reporter, scheduler};

/// What the leaves tell the engine. Each answers an order, so their number is bounded by the window.
#[derive(Debug)]
pub enum Fact {
    /// The scheduler took an offer.
    Accepted(scheduler::message::Accepted),
    /// The scheduler has jobs.
    Ready(scheduler::message::Ready),
    /// The scheduler gave a hop its place.
    Paced(Box<scheduler::message::Paced>),
    /// Something happened to the workers that share the frontier, or to its server.
    Fleet(scheduler::message::Fleet),
    /// The frontier has kept the ends of these requests: the record log may forget them.
    Settled(Vec<scheduler::job::RequestId>),
    /// The frontier cannot write: it tells nothing and gives nothing out until it can.
    FrontierBlocked {
        /// What a person reads.
        why: String,
    },
    /// The frontier writes again.
    FrontierUnblocked,
    /// The frontier could not be used for longer than `DISK_WAIT`: why, and what to do.
    FrontierGaveUp(String),
    /// The broker has a lease.
    Leased(broker::message::Leased),
    /// The broker has none.
    Refused(broker::message::Refused),
    /// The broker could not renew.
    RenewFailed(broker::message::RenewFailed),
    /// The control plane has answered nobody for `SPINNERET_UNAVAILABLE_TIMEOUT`: why, for people.
    PlaneLost(String),
    /// The downloader sent a request.
    Sent(downloader::message::Sent),
    /// The downloader has an answer or a fault.
    Fetched(Box<downloader::message::Fetched>),
    /// A callback wants its effects committed.
    Part(parser::message::Part),
    /// A callback is over.
    Parsed(Box<parser::message::Parsed>),
    /// Spider and extensions have heard that the job is over.
    Farewell,
    /// The collector has something to say.
    Collector(collector::message::Fact),
    /// The reporter has something to say.
    Reporter(reporter::message::Fact),
}

/// What must never wait behind facts.
#[derive(Debug)]
pub enum Control {
    /// Stop the job.
    Stop(StopReason),
    /// Stop now: skip to persist and exit.
    Kill,
    /// An actor ended.
    Died(Died),
    /// A link that was full has room.
    Room(Peer),
    /// Live settings changed.
    Settings(Arc<Settings>),
    /// A config item is not as it was: spider and extensions are told.
    ConfigChanged(ConfigChanged),
    /// The engine's own timer.
    Tick,
    /// A limit of the shutdown is over.
    StepOver(u32),
}

/// Whom an order could not be given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The scheduler.
    Scheduler,
    /// The broker.
    Broker,
    /// The downloader.
    Downloader,
    /// One of the parsers.
    Parser(usize),
    /// The reporter.
    Reporter,
    /// The collector.
    Collector,
}

/// Why a job stops before it is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// Nothing is left to do.
    Finished,
    /// A signal.
    Signal,
    /// A limit of the settings, by its finish reason: `closespider_itemcount` and the like.
    Limit(&'static str),
    /// The spider asked for it.
    Spider(String),
    /// The control plane refuses this node.
    Unauthorized(String),
    /// The control plane cannot be reached for too long.
    PlaneLost(String),
    /// The control plane does not know a site or client that a rule names.
    Misconfigured(String),
    /// The disk refused writes for too long.
    DiskFull(String),
    /// The sink takes nothing any more, and the settings say to stop then.
    DeliveryRefused(String),
    /// The frontier is full and nothing can empty it.
    FrontierFull(String),
    /// The shared frontier cannot be reached for too long.
    FrontierLost(String),
    /// The job was stopped for all its workers, with this finish reason.
    Fleet(String),
    /// A part of the runtime cannot be kept alive.
    Internal(String),
}

/// How a job ended, for the summary and the exit code.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// `finished`, `shutdown`, `closespider_…`, or ours.
    pub reason: String,
    /// The exit code by the table of the command line.
    pub code: u8,
    /// What became of every lease.
    pub leases: LeaseBooks,
    /// The books at the end.
    pub books: scheduler::job::Books,
    /// What delivery left behind.
    pub delivery: collector::message::Closed,
    /// The closing stats.
    pub stats: Map<String, Value>,
    /// The top reasons of failures: text, count, an example URL.
    pub failures: Vec<(String, u64, String)>,
    /// Sentences about what did not balance; empty when all is well.
    pub imbalances: Vec<String>,
    /// Counts of the whole job.
    pub tally: Tally,
    /// Why the job stopped early, when the reason alone does not say it.
    pub note: Option<String>,
}
