//! What an error of a call means to the crawl (wire contract, section 5 and 7.3).
//!
//! No text shows more than the error's own, which is free of tokens, credentials and proxy URLs.

use crate::plane::{LeaseId, PlaneError, Refusal, RefusalKind};
use crate::spinneret::{Code, Error};

/// Why a call for leases gave none.
pub(super) fn refusal(error: &Error) -> Refusal {
    let why = why(error);
    let mut message = match why {
        // The kind says already what to do, and the broker does it.
        RefusalKind::NoIdentity
        | RefusalKind::NoProxy
        | RefusalKind::RateLimited
        | RefusalKind::CircuitOpen
        | RefusalKind::SitePaused
        | RefusalKind::Overloaded => error.to_string(),
        _ => words(error),
    };
    if matches!(error, Error::Unimplemented(_)) {
        message.push_str("; SPINNERET_URL may not be the address of a Spinneret server");
    }
    Refusal { why, retry_after: error.retry_after(), message }
}

fn why(error: &Error) -> RefusalKind {
    match error {
        Error::Unauthenticated(_) => RefusalKind::Unauthorized,
        Error::PermissionDenied(_) => RefusalKind::Forbidden,
        Error::NoIdentityAvailable(_) => RefusalKind::NoIdentity,
        Error::NoProxyAvailable(_) => RefusalKind::NoProxy,
        Error::ResourceExhausted(_) => RefusalKind::RateLimited,
        Error::CircuitOpen(_) => RefusalKind::CircuitOpen,
        Error::SitePaused(_) => RefusalKind::SitePaused,
        // A gateway that passed the call on and got no answer to pass back.
        Error::Unavailable(details) if details.is_bare && matches!(details.http_status, 502 | 504) => RefusalKind::Unanswered,
        Error::Unavailable(details) if details.reason == "overloaded" && !details.is_bare => RefusalKind::Overloaded,
        Error::Unavailable(_) => RefusalKind::Unreachable,
        // Another call was faster; nothing was done.
        Error::Aborted(_) => RefusalKind::Overloaded,
        Error::Transport(_) if error.is_unsent() => RefusalKind::Unreachable,
        // A client that was closed before is not asked.
        Error::Transport(_) | Error::DeadlineExceeded(_) | Error::ClientClosed(_) => RefusalKind::Unanswered,
        // Served, and what came back cannot be read.
        Error::Internal(details) if details.reason == "invalid_response" => RefusalKind::Unanswered,
        Error::Internal(_) => RefusalKind::Unreachable,
        Error::Unimplemented(_) => RefusalKind::Invalid,
        Error::InvalidArgument(details) if details.http_status < 500 => match &*details.reason {
            "site_unknown" => RefusalKind::SiteUnknown,
            "client_unknown" => RefusalKind::ClientUnknown,
            "endpoint_group_unknown" => RefusalKind::GroupUnknown,
            _ => RefusalKind::Invalid,
        },
        _ if error.is_retry_later() || is_draining(error) => RefusalKind::Unreachable,
        _ => RefusalKind::Invalid,
    }
}

/// What the failure of a call means that is not about one lease.
pub(super) fn plane_error(error: &Error) -> PlaneError {
    match error {
        Error::Unauthenticated(_) | Error::PermissionDenied(_) => PlaneError::Unauthorized(words(error)),
        Error::NotFound(_) => PlaneError::NotFound(words(error)),
        _ if error.is_retry_later() || is_draining(error) => PlaneError::Unavailable(error.to_string()),
        _ => PlaneError::Invalid(words(error)),
    }
}

/// What the failure of a call about this lease means.
pub(super) fn lease_error(error: &Error, lease: &LeaseId) -> PlaneError {
    match error {
        Error::LeaseUnknown(_) => PlaneError::UnknownLease(lease.0.to_string()),
        Error::LeaseReleased(_) | Error::LeaseExpired(_) => PlaneError::NoLease(lease.0.to_string()),
        _ => plane_error(error),
    }
}

/// A server that is shutting down: a call made again reaches the next one.
fn is_draining(error: &Error) -> bool {
    matches!(error, Error::Other(details) if details.code == Code::Canceled)
}

/// The error and what a person should do about it.
fn words(error: &Error) -> String {
    format!("{error}; {}", error.advice())
}
