//! What the engine orders from the downloader, and what the downloader answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::transport::{Meter, Reply};
use crate::api::failure::Fault;
use crate::api::lease::LeaseView;
use crate::engine::ticket::Tag;
use crate::plane::Grant;
use crate::scheduler::job::Job;
use crate::settings::Settings;
use crate::web::referrer_policy::ReferrerPolicy;

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Make one attempt. Answered by `Sent`, then by [`Fetched`].
    Fetch {
        /// The ticket.
        tag: Tag,
        /// The request.
        job: Arc<Job>,
        /// Its lease.
        grant: Grant,
        /// Whether to tell `Sent`.
        wants_sent: bool,
        /// Charges the body's bytes to the window.
        meter: Arc<dyn Meter>,
    },
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// End this attempt; answered by [`Fetched`] with [`crate::api::failure::FailureKind::Cancelled`].
    Cancel(Tag),
    /// End every attempt.
    CancelAll,
    /// Retries and time limits of attempts from now on.
    Settings(Arc<Settings>),
    /// Own timer: idle clients.
    Tick,
}

/// A request went out.
#[derive(Debug)]
pub struct Sent {
    /// Which.
    pub tag: Tag,
    /// When.
    pub at: Instant,
}

/// An attempt is over.
#[derive(Debug)]
pub struct Fetched {
    /// Which.
    pub tag: Tag,
    /// What the middlewares made of it.
    pub verdict: Verdict,
    /// The attempt as it was on the wire.
    pub attempt: Attempt,
}

/// The attempt as it was on the wire, for report and record. The default is one that never went out.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    /// The status, when there was a response; one whose body was too large has both status and fault.
    pub status: Option<u16>,
    /// The fault, when there was no usable response.
    pub fault: Option<Fault>,
    /// When it was sent.
    pub sent_at: Option<Instant>,
    /// From send to the end of the body.
    pub latency: Duration,
    /// From send to the head of the answer, where the transport tells of it.
    pub waited: Option<Duration>,
    /// Length of the decoded body; of one that was too large what it announced, 0 if it announced nothing.
    pub bytes: u64,
    /// Decoded body bytes, as charged to the window.
    pub charged: usize,
    /// `Retry-After`, read.
    pub retry_after: Option<Duration>,
    /// What rules of `MARKERS` say of the answer.
    pub markers: Vec<String>,
    /// The lease it was made under, without what is secret in it.
    pub lease: Option<LeaseView>,
}

impl Attempt {
    /// One that was answered with this status.
    pub(crate) fn answered(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// One that had no answer.
    pub(crate) fn failed(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// What becomes of an answered or failed attempt.
#[derive(Debug)]
pub enum Verdict {
    /// Give it to the callback.
    Deliver(Box<Reply>),
    /// Give it to `failed`.
    Fail(Fault, Option<Box<Reply>>),
    /// Make another attempt after this time, at a priority changed by this much.
    Retry {
        /// Why, for `retry/reason_count/…`.
        reason: String,
        /// How long to wait.
        after: Duration,
    },
    /// Go on to another URL.
    Redirect(Hop),
}

/// Where an answer leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The target.
    pub to: Url,
    /// Whether method and body are dropped (RFC 9110, 15.4: 303 always, 301 and 302 after POST; always after a refresh).
    pub becomes_get: bool,
    /// The time that a page asks for before it is left.
    pub after: Duration,
    /// What the answer says of the `Referer` of requests that it leads to.
    pub referrer_policy: Option<ReferrerPolicy>,
}

impl Hop {
    /// One that waits for nothing, to a target that takes the request as it is.
    #[cfg(test)]
    pub(crate) fn to(to: Url) -> Self {
        Self { to, becomes_get: false, after: Duration::ZERO, referrer_policy: None }
    }
}
