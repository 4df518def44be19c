//! Everything a call can end with, one enum.
//!
//! A variant and its [`Error::advice`] say what a node should do; [`Details`] say what exactly happened. No text and no
//! `Debug` form shows a token, a credential or a proxy's password; of a page of an intermediary only plain words are kept.

mod advice;
mod family;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::code::Code;
use super::error_kind::ErrorKind;
use super::procedure::Procedure;
use super::transport::{Fault, Phase};

/// The result of everything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Clone)]
#[non_exhaustive]
pub enum Error {
    /// The token is missing, unknown, expired or revoked. Stop, and alert a person.
    Unauthenticated(Box<Details>),
    /// The token may not do this, or not from this address. Stop, and alert a person.
    PermissionDenied(Box<Details>),
    /// The request is wrong: found here before anything was sent (status 0), or by the server. Mend the program or its settings.
    InvalidArgument(Box<Details>),
    /// There is no such configuration item, secret or namespace. Do not ask in a loop.
    NotFound(Box<Details>),
    /// The lease is gone, or never was this node's. Acquire another one.
    LeaseUnknown(Box<Details>),
    /// There is one already.
    AlreadyExists(Box<Details>),
    /// The state of the system does not allow it. Mend that first.
    FailedPrecondition(Box<Details>),
    /// The lease was released, by this node or by the server. Acquire another one.
    LeaseReleased(Box<Details>),
    /// The lease reached its end, or cannot live any longer. Acquire another one.
    LeaseExpired(Box<Details>),
    /// A conflict with another call. Try again later.
    Aborted(Box<Details>),
    /// A limit is reached. Wait for the hint.
    ResourceExhausted(Box<Details>),
    /// Every identity is in use, resting or cooling down. Wait for the hint.
    NoIdentityAvailable(Box<Details>),
    /// Every proxy is. Wait for the hint.
    NoProxyAvailable(Box<Details>),
    /// The server cannot serve this now. Try again later.
    Unavailable(Box<Details>),
    /// The endpoint group is switched off for a while. Pause it for the hint.
    CircuitOpen(Box<Details>),
    /// The site is paused. Pause it for the hint.
    SitePaused(Box<Details>),
    /// There was no answer at all. Try again later; see [`Error::error_kind`].
    Transport(Box<Details>),
    /// The server ran out of time. Try again later.
    DeadlineExceeded(Box<Details>),
    /// The server does not have this call. Look whether the URL leads to a Spinneret server, and update it.
    Unimplemented(Box<Details>),
    /// The server failed, or answered something this client cannot read. Try again later, and look at its log.
    Internal(Box<Details>),
    /// A setting of the client cannot be used. Mend it.
    Configuration(Box<Details>),
    /// The reporter is closed: make reports before closing it.
    ReporterClosed(Box<Details>),
    /// The client is closed: make calls before closing it.
    ClientClosed(Box<Details>),
    /// The call was cancelled, or the code is one this client does not know.
    Other(Box<Details>),
}

/// What exactly happened.
#[derive(Clone)]
#[non_exhaustive]
pub struct Details {
    /// The code.
    pub code: Code,
    /// The stable reason, `no_identity_available` for one; empty without one.
    pub reason: String,
    /// What a person reads; may be empty.
    pub message: String,
    /// When to ask again, if the server says so.
    pub retry_after: Option<Duration>,
    /// The status of the answer; 0 when there was none.
    pub http_status: u16,
    /// Whether the answer was not one of the server's own handlers: a page of a proxy in between, for one.
    pub is_bare: bool,
    /// How the transport failed, when there was no answer.
    pub error_kind: Option<ErrorKind>,
    /// Whether the server provably never had the call, when there was no answer.
    pub(crate) is_unsent: bool,
    /// What lies behind it.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Details {
    pub(crate) fn new(code: Code, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            retry_after: None,
            http_status: 0,
            is_bare: false,
            error_kind: None,
            is_unsent: false,
            source: None,
        }
    }
}

impl Error {
    /// The error of an answer: by its code, refined by a reason that belongs to that code.
    pub(crate) fn of(details: Details) -> Self {
        let reason = details.reason.clone();
        let details = Box::new(details);
        match (&details.code, reason.as_str()) {
            (Code::Unauthenticated, _) => Self::Unauthenticated(details),
            (Code::PermissionDenied, _) => Self::PermissionDenied(details),
            (Code::InvalidArgument | Code::OutOfRange, _) => Self::InvalidArgument(details),
            (Code::NotFound, "lease_unknown") => Self::LeaseUnknown(details),
            (Code::NotFound, _) => Self::NotFound(details),
            (Code::AlreadyExists, _) => Self::AlreadyExists(details),
            (Code::FailedPrecondition, "lease_released") => Self::LeaseReleased(details),
            (Code::FailedPrecondition, "lease_expired" | "lease_lifetime_exceeded") => Self::LeaseExpired(details),
            (Code::FailedPrecondition, _) => Self::FailedPrecondition(details),
            (Code::Aborted, _) => Self::Aborted(details),
            (Code::ResourceExhausted, "no_identity_available") => Self::NoIdentityAvailable(details),
            (Code::ResourceExhausted, "no_proxy_available") => Self::NoProxyAvailable(details),
            (Code::ResourceExhausted, _) => Self::ResourceExhausted(details),
            (Code::Unavailable, "circuit_open") => Self::CircuitOpen(details),
            (Code::Unavailable, "site_paused") => Self::SitePaused(details),
            (Code::Unavailable, _) => Self::Unavailable(details),
            (Code::DeadlineExceeded, _) => Self::DeadlineExceeded(details),
            (Code::Unimplemented, _) => Self::Unimplemented(details),
            (Code::Internal | Code::Unknown | Code::DataLoss, _) => Self::Internal(details),
            (Code::Canceled | Code::Other(_), _) => Self::Other(details),
        }
    }

    /// A request that breaks a bound of the wire contract.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArgument(Box::new(Details::new(Code::InvalidArgument, "", message)))
    }

    /// A setting that cannot be used.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::Configuration(Box::new(Details::new(Code::InvalidArgument, "", message)))
    }

    /// No answer.
    pub(crate) fn transport(procedure: Procedure, fault: Fault) -> Self {
        let mut details = Details::new(Code::Unavailable, "transport", format!("{procedure}: {}", fault.message));
        details.error_kind = Some(fault.kind);
        details.is_unsent = match fault.phase {
            Phase::Unsent => true,
            Phase::Ambiguous => false,
            // A refusal at the proxy or a certificate comes before the request, an answer of no use after it.
            Phase::Permanent => {
                matches!(fault.kind, ErrorKind::Tls | ErrorKind::ProxyAuth | ErrorKind::ConnRefused | ErrorKind::Dns)
            }
        };
        details.source = fault.source;
        Self::Transport(Box::new(details))
    }

    /// An answer that cannot be read.
    pub(crate) fn invalid_response(procedure: Procedure, status: u16, what: &str) -> Self {
        let mut details =
            Details::new(Code::Internal, "invalid_response", format!("the answer of {procedure} cannot be read: {what}"));
        details.http_status = status;
        Self::Internal(Box::new(details))
    }

    pub(crate) fn client_closed() -> Self {
        let message = "the client is closed";
        Self::ClientClosed(Box::new(Details::new(Code::FailedPrecondition, "client_closed", message)))
    }

    pub(crate) fn reporter_closed() -> Self {
        let message = "the reporter is closed";
        Self::ReporterClosed(Box::new(Details::new(Code::FailedPrecondition, "reporter_closed", message)))
    }

    pub(crate) fn lease_released(lease_id: &str) -> Self {
        let message = format!("lease {lease_id} is released");
        Self::LeaseReleased(Box::new(Details::new(Code::FailedPrecondition, "lease_released", message)))
    }

    /// What exactly happened.
    #[must_use]
    pub fn details(&self) -> &Details {
        match self {
            Self::Unauthenticated(details)
            | Self::PermissionDenied(details)
            | Self::InvalidArgument(details)
            | Self::NotFound(details)
            | Self::LeaseUnknown(details)
            | Self::AlreadyExists(details)
            | Self::FailedPrecondition(details)
            | Self::LeaseReleased(details)
            | Self::LeaseExpired(details)
            | Self::Aborted(details)
            | Self::ResourceExhausted(details)
            | Self::NoIdentityAvailable(details)
            | Self::NoProxyAvailable(details)
            | Self::Unavailable(details)
            | Self::CircuitOpen(details)
            | Self::SitePaused(details)
            | Self::Transport(details)
            | Self::DeadlineExceeded(details)
            | Self::Unimplemented(details)
            | Self::Internal(details)
            | Self::Configuration(details)
            | Self::ReporterClosed(details)
            | Self::ClientClosed(details)
            | Self::Other(details) => details,
        }
    }

    /// The name of the variant.
    const fn name(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "Unauthenticated",
            Self::PermissionDenied(_) => "PermissionDenied",
            Self::InvalidArgument(_) => "InvalidArgument",
            Self::NotFound(_) => "NotFound",
            Self::LeaseUnknown(_) => "LeaseUnknown",
            Self::AlreadyExists(_) => "AlreadyExists",
            Self::FailedPrecondition(_) => "FailedPrecondition",
            Self::LeaseReleased(_) => "LeaseReleased",
            Self::LeaseExpired(_) => "LeaseExpired",
            Self::Aborted(_) => "Aborted",
            Self::ResourceExhausted(_) => "ResourceExhausted",
            Self::NoIdentityAvailable(_) => "NoIdentityAvailable",
            Self::NoProxyAvailable(_) => "NoProxyAvailable",
            Self::Unavailable(_) => "Unavailable",
            Self::CircuitOpen(_) => "CircuitOpen",
            Self::SitePaused(_) => "SitePaused",
            Self::Transport(_) => "Transport",
            Self::DeadlineExceeded(_) => "DeadlineExceeded",
            Self::Unimplemented(_) => "Unimplemented",
            Self::Internal(_) => "Internal",
            Self::Configuration(_) => "Configuration",
            Self::ReporterClosed(_) => "ReporterClosed",
            Self::ClientClosed(_) => "ClientClosed",
            Self::Other(_) => "Other",
        }
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.details().code
    }

    /// The stable reason; empty without one.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.details().reason
    }

    /// What a person reads; may be empty.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.details().message
    }

    /// When to ask again, if the server says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.details().retry_after
    }

    /// The status of the answer; 0 when there was none.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        self.details().http_status
    }

    /// How the transport failed, when there was no answer.
    #[must_use]
    pub fn error_kind(&self) -> Option<ErrorKind> {
        self.details().error_kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = self.details();
        write!(f, "{}", details.code)?;
        if !details.reason.is_empty() {
            write!(f, " ({})", details.reason)?;
        }
        if !details.message.is_empty() {
            write!(f, ": {}", details.message)?;
        }
        Ok(())
    }
}

/// Everything but what lies behind: the error of an HTTP library shows addresses with what they hold.
impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Details")
            .field("code", &self.code)
            .field("reason", &self.reason)
            .field("message", &self.message)
            .field("retry_after", &self.retry_after)
            .field("http_status", &self.http_status)
            .field("is_bare", &self.is_bare)
            .field("error_kind", &self.error_kind)
            .field("has_source", &self.source.is_some())
            .finish()
    }
}

/// The variant and its details.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name()).field(self.details()).finish()
    }
}

/// For conversions that cannot fail, where one that may is asked for.
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.details().source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
