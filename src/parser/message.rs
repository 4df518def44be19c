//! What the engine orders from a parser, and what the parser answers.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::api::failure::Fault;
use crate::api::signal::Lifecycle;
use crate::downloader::message::Attempt;
use crate::downloader::transport::Reply;
use crate::engine::ticket::Tag;
use crate::scheduler::job::Job;

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Run the callback of a page.
    Page {
        /// The ticket.
        tag: Tag,
        /// Its request.
        job: Arc<Job>,
        /// The answer.
        reply: Arc<Reply>,
        /// The attempt on the wire.
        attempt: Attempt,
    },
    /// Run `failed`.
    Failed {
        /// The ticket.
        tag: Tag,
        /// Its request.
        job: Arc<Job>,
        /// Why.
        fault: Fault,
        /// The answer, where the failure is a status.
        reply: Option<Arc<Reply>>,
        /// The attempt on the wire, if one was made.
        attempt: Option<Attempt>,
    },
    /// Run `start`, leaving out the first `cursor` requests: an earlier run has them.
    Start {
        /// The ticket.
        tag: Tag,
        /// How many to leave out.
        cursor: u64,
    },
    /// Run `idle`.
    Idle {
        /// The ticket.
        tag: Tag,
        /// How many requests earlier idle calls made, for the ids of this one's.
        made: u64,
    },
    /// Tell spider and extensions.
    Signal(Lifecycle),
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Stop running callbacks; each ends as cancelled, and so does whatever is ordered later.
    Abandon,
}

/// A callback is over.
#[derive(Debug)]
pub struct Parsed {
    /// The ticket.
    pub tag: Tag,
    /// What it made and was not flushed before; empty unless it ended well.
    pub effects: Effects,
    /// How it ended.
    pub result: Result<(), CallbackFault>,
    /// What it said about the response.
    pub marks: Marks,
    /// Requests and items thrown away because it failed.
    pub discarded: u64,
    /// The step was unknown: nothing ran.
    pub unknown_step: bool,
}

/// A callback asked for a commit of what it has made so far.
#[derive(Debug)]
pub struct Part {
    /// The ticket.
    pub tag: Tag,
    /// What it made.
    pub effects: Effects,
    /// Answered when the effects are kept and there is room for more.
    pub done: oneshot::Sender<Result<(), String>>,
}

/// Requests and items of a callback.
#[derive(Debug, Default)]
pub struct Effects {
    /// Requests, ids and seen keys set.
    pub jobs: Vec<Job>,
    /// Items that came through the pipelines, as JSON objects in wire text form.
    pub items: Vec<String>,
    /// Items scraped, those below included.
    pub scraped: u64,
    /// Items that a pipeline dropped.
    pub dropped: u64,
    /// Items that could not be written.
    pub broken: u64,
}

/// What a callback said about its response, for the lease report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Markers, in order.
    pub markers: Vec<String>,
    /// The site's own code.
    pub business_code: Option<String>,
    /// The callback's judgement.
    pub outcome_hint: Option<String>,
}

/// How a callback failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackFault {
    /// It returned an error.
    Error(String),
    /// It panicked.
    Panic(String),
    /// One of its awaits took longer than `CALLBACK_TIMEOUT`.
    TimedOut,
    /// It did not let go of its thread for `PARSE_STALL`.
    Stalled,
    /// It did nothing wrong: its parser ended under it.
    Lost,
    /// The job stopped.
    Cancelled,
}

impl CallbackFault {
    /// The class name in `spider_exceptions/…`.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Error(_) => "CallbackError",
            Self::Panic(_) => "Panic",
            Self::TimedOut => "CallbackTimeout",
            Self::Stalled => "CallbackStalled",
            Self::Lost => "CallbackLost",
            Self::Cancelled => "Cancelled",
        }
    }
}

impl Effects {
    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.items.is_empty() && self.scraped == 0
    }
}
