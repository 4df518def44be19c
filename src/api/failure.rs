//! Why a request gave no usable response: one kind for every way, and the text a person reads.

mod kind;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

pub use self::kind::FailureKind;
use super::lease::LeaseView;
use super::request::Request;
use super::response::Response;
use crate::parser::message::Marks;
use crate::scheduler::job::Job;

/// A failure as the network side states it: kind and message, without the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Fault {
    /// Which way it failed.
    pub kind: FailureKind,
    /// What a person reads; never holds a credential or a proxy URL.
    pub message: String,
}

impl Fault {
    /// A fault of `kind` with `message`.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// `<ErrorClass>: <message>`, the `error` field of a request record. Scrapy's class for a body that ended early
    /// has no message, so the record has none either.
    #[must_use]
    pub fn record_text(&self) -> String {
        let message = if self.kind == FailureKind::DataLoss { "" } else { self.message.as_str() };
        format!("{}: {message}", self.kind.error_class())
    }
}

/// A request that failed for good, in the hands of `failed`.
#[derive(Clone)]
pub struct Failure {
    job: Arc<Job>,
    fault: Fault,
    response: Option<Response>,
    lease: Option<LeaseView>,
    marks: Rc<RefCell<Marks>>,
}

impl Failure {
    pub(crate) fn new(
        job: Arc<Job>,
        fault: Fault,
        response: Option<Response>,
        lease: Option<LeaseView>,
        marks: Rc<RefCell<Marks>>,
    ) -> Self {
        Self { job, fault, response, lease, marks }
    }

    /// Which way it failed.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.fault.kind
    }

    /// What a person reads.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.fault.message
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.job.request
    }

    /// The response, where the failure is a status.
    #[must_use]
    pub fn response(&self) -> Option<&Response> {
        self.response.as_ref()
    }

    /// Attempts made for the URL that failed; redirects before it are not counted.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.job.attempts
    }

    /// The lease the last attempt was made under, without what is secret in it; `None` where nothing was sent.
    #[must_use]
    pub fn lease(&self) -> Option<&LeaseView> {
        self.lease.as_ref()
    }

    /// Adds a marker to the attempt's lease report: 1 to 64 characters, at most 32 markers in one report, each once.
    /// What is longer is cut, what is too many is left out; `reporter/cut` counts both.
    pub fn mark(&self, marker: impl Into<String>) {
        self.marks.borrow_mut().markers.push(marker.into());
    }

    /// Sets the site's own code in the attempt's lease report; at most 64 characters, more are cut.
    pub fn business_code(&self, code: impl Into<String>) {
        self.marks.borrow_mut().business_code = Some(code.into());
    }

    /// Sets the callback's judgement in the attempt's lease report; at most 32 characters, more are cut.
    pub fn outcome_hint(&self, hint: impl Into<String>) {
        self.marks.borrow_mut().outcome_hint = Some(hint.into());
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("fault", &self.fault)
            .field("url", &self.job.url().as_str())
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
