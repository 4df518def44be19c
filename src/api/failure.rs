//! Why a request gave no usable response: one kind for every way, and the text a person reads.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::lease::LeaseView;
use super::request::Request;
use super::response::Response;
use crate::parser::message::Marks;
use crate::scheduler::job::Job;

/// Every way a request can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The host's name has no address.
    Resolve,
    /// The target refused the connection.
    Refused,
    /// No connection within `DOWNLOAD_CONNECT_TIMEOUT`.
    ConnectTimeout,
    /// Not finished within the request's timeout.
    Timeout,
    /// No byte for `DOWNLOAD_IDLE_TIMEOUT`.
    IdleTimeout,
    /// The connection was lost before the response was complete.
    Lost,
    /// The TLS handshake or the certificate failed.
    Tls,
    /// The proxy cannot be reached, or breaks the tunnel.
    Proxy,
    /// The proxy does not take the user or password of the lease (407, or the SOCKS answer that says so).
    ProxyAuth,
    /// The answer is not HTTP.
    BadReply,
    /// The body ended early (`DOWNLOAD_FAIL_ON_DATALOSS`).
    DataLoss,
    /// The decoded body is over `DOWNLOAD_MAXSIZE`.
    TooLarge,
    /// The body does not decode as its `Content-Encoding` says.
    Decode,
    /// The scheme is neither `http` nor `https`.
    UnsupportedScheme,
    /// A status that no callback asked for.
    HttpStatus,
    /// robots.txt forbids the URL.
    RobotsForbidden,
    /// robots.txt could not be read (RFC 9309, 2.3.1.4: then everything is forbidden for now).
    RobotsUnavailable,
    /// More than `REDIRECT_MAX_TIMES` hops.
    RedirectLimit,
    /// A redirect whose `Location` cannot be followed.
    RedirectTarget,
    /// A redirect to a URL that was seen before.
    RedirectDuplicate,
    /// A redirect that leaves the spider's allowed domains.
    Offsite,
    /// No grant for this site within `LEASE_GIVE_UP`.
    LeaseUnavailable,
    /// The control plane will never grant this request.
    LeaseRefused,
    /// No rule of `LEASES` covers the host, and `LEASE_UNMATCHED` says that such requests are dropped.
    LeaseUnmatched,
    /// The lease ended while the request was under way.
    LeaseLost,
    /// A middleware refused the request or failed.
    Middleware,
    /// The callback returned an error, panicked, or did not end in time.
    Callback,
    /// The job stopped first.
    Cancelled,
    /// A part of the runtime failed while it held the request.
    Internal,
}

impl FailureKind {
    /// The kind's name in counters and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Refused => "refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::Timeout => "timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::Lost => "lost",
            Self::Tls => "tls",
            Self::Proxy => "proxy",
            Self::ProxyAuth => "proxy_auth",
            Self::BadReply => "bad_reply",
            Self::DataLoss => "data_loss",
            Self::TooLarge => "too_large",
            Self::Decode => "decode",
            Self::UnsupportedScheme => "unsupported_scheme",
            Self::HttpStatus => "http_status",
            Self::RobotsForbidden => "robots_forbidden",
            Self::RobotsUnavailable => "robots_unavailable",
            Self::RedirectLimit => "redirect_limit",
            Self::RedirectTarget => "redirect_target",
            Self::RedirectDuplicate => "redirect_duplicate",
            Self::Offsite => "offsite",
            Self::LeaseUnavailable => "lease_unavailable",
            Self::LeaseRefused => "lease_refused",
            Self::LeaseUnmatched => "lease_unmatched",
            Self::LeaseLost => "lease_lost",
            Self::Middleware => "middleware",
            Self::Callback => "callback",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// The class name APCloudy's request records carry, as Scrapy 2.19 spells it.
    #[must_use]
    pub fn error_class(self) -> &'static str {
        match self {
            Self::Resolve => "CannotResolveHostError",
            Self::Refused => "DownloadConnectionRefusedError",
            Self::ConnectTimeout | Self::Timeout | Self::IdleTimeout => "DownloadTimeoutError",
            Self::Lost | Self::Tls | Self::BadReply | Self::Decode | Self::Proxy | Self::ProxyAuth | Self::LeaseLost => {
                "DownloadFailedError"
            }
            Self::DataLoss => "ResponseDataLossError",
            Self::TooLarge | Self::Cancelled => "DownloadCancelledError",
            Self::UnsupportedScheme => "NotSupported",
            Self::HttpStatus => "HttpError",
            Self::RobotsForbidden
            | Self::RobotsUnavailable
            | Self::RedirectLimit
            | Self::RedirectTarget
            | Self::RedirectDuplicate
            | Self::Offsite
            | Self::LeaseUnavailable
            | Self::LeaseRefused
            | Self::LeaseUnmatched
            | Self::Middleware => "IgnoreRequest",
            Self::Callback => "SpiderError",
            Self::Internal => "InternalError",
        }
    }

    /// Whether the failure says that the target could not be reached at all.
    #[must_use]
    pub fn is_unreachable(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::Refused
                | Self::ConnectTimeout
                | Self::Timeout
                | Self::IdleTimeout
                | Self::Lost
                | Self::Tls
                | Self::Proxy
                | Self::ProxyAuth
                | Self::RobotsUnavailable
        )
    }

    /// Whether another attempt may succeed (Scrapy's `RETRY_EXCEPTIONS`, as kinds).
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::Refused
                | Self::ConnectTimeout
                | Self::Timeout
                | Self::IdleTimeout
                | Self::Lost
                | Self::Tls
                | Self::Proxy
                | Self::ProxyAuth
                | Self::BadReply
                | Self::DataLoss
                | Self::LeaseLost
        )
    }

    /// Whether the request ends as dropped (with a reason) rather than failed.
    #[must_use]
    pub fn is_drop(self) -> bool {
        matches!(self, Self::RobotsForbidden | Self::RedirectDuplicate | Self::Offsite | Self::LeaseUnmatched)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
