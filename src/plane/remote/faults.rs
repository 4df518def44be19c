//! What an error of a call means to the crawl (wire contract, section 5 and 7.3).
//!
//! No text shows more than the error's own, which is free of tokens, credentials and proxy URLs.

use crate::plane::{LeaseId, PlaneError, Refusal, RefusalKind};
use crate::spinneret::{Code, Error};

/// Why a call for leases gave none.
pub(super) fn refusal(error: &Error) -> Refusal {
    let why = why(error);
    let mut message = match why {
        // The kind says already what to do: the broker does it, or the crawl names what a person has to.
        RefusalKind::Unauthorized
        | RefusalKind::SiteUnknown
        | RefusalKind::ClientUnknown
        | RefusalKind::GroupUnknown
        | RefusalKind::NoIdentity
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::time::Duration;

    use super::RefusalKind::*;
    use super::*;
    use crate::spinneret::{Details, Procedure};

    /// An error of the server's own handlers, or of something in between where there is no code.
    fn answered(status: u16, code: &str, reason: &str) -> Error {
        let bare = match status {
            400 => "internal",
            401 => "unauthenticated",
            403 => "permission_denied",
            404 => "unimplemented",
            429 | 502..=504 => "unavailable",
            _ => "unknown",
        };
        let mut details = Details::new(Code::of(if code.is_empty() { bare } else { code }), reason, "c4n4ry-free words");
        details.http_status = status;
        details.is_bare = code.is_empty();
        details.retry_after = Some(Duration::from_millis(70));
        Error::of(details)
    }

    /// What a refusal's text says besides the error: what to do.
    fn has_advice(error: &Error, message: &str) -> bool {
        message.starts_with(&error.to_string()) && message.contains(error.advice())
    }

    #[test]
    fn every_reason_of_the_contract_is_a_refusal() {
        let table = [
            (401, "unauthenticated", "token_invalid", Unauthorized),
            (401, "unauthenticated", "token_expired", Unauthorized),
            (401, "unauthenticated", "token_revoked", Unauthorized),
            (401, "unauthenticated", "session_invalid", Unauthorized),
            (403, "permission_denied", "ip_not_allowed", Forbidden),
            (403, "permission_denied", "scope_missing", Forbidden),
            (403, "permission_denied", "permission_denied", Forbidden),
            (400, "invalid_argument", "site_unknown", SiteUnknown),
            (400, "invalid_argument", "client_unknown", ClientUnknown),
            (400, "invalid_argument", "endpoint_group_unknown", GroupUnknown),
            (400, "invalid_argument", "uri_invalid", Invalid),
            (400, "invalid_argument", "invalid_argument", Invalid),
            (400, "invalid_argument", "", Invalid),
            (400, "out_of_range", "", Invalid),
            (429, "resource_exhausted", "no_identity_available", NoIdentity),
            (429, "resource_exhausted", "no_proxy_available", NoProxy),
            (429, "resource_exhausted", "rate_limited", RateLimited),
            (429, "resource_exhausted", "a_new_reason", RateLimited),
            (503, "unavailable", "circuit_open", CircuitOpen),
            (503, "unavailable", "site_paused", SitePaused),
            (503, "unavailable", "overloaded", Overloaded),
            (503, "unavailable", "rebuilding", Unreachable),
            (503, "unavailable", "internal", Unreachable),
            (503, "unavailable", "a_new_reason", Unreachable),
            (500, "internal", "internal", Unreachable),
            (500, "unknown", "", Unreachable),
            (500, "data_loss", "", Unreachable),
            (504, "deadline_exceeded", "", Unanswered),
            (409, "aborted", "conflict", Overloaded),
            (499, "canceled", "", Unreachable),
            (501, "unimplemented", "", Invalid),
            (404, "not_found", "not_found", Invalid),
            (404, "not_found", "lease_unknown", Invalid),
            (400, "failed_precondition", "failed_precondition", Invalid),
            (409, "already_exists", "already_exists", Invalid),
            (418, "mystery", "", Invalid),
            (500, "mystery", "", Unreachable),
            // Answers of something in between.
            (401, "", "", Unauthorized),
            (403, "", "", Forbidden),
            (404, "", "", Invalid),
            (429, "", "", Unreachable),
            (500, "", "", Unreachable),
            (502, "", "", Unanswered),
            (503, "", "", Unreachable),
            (504, "", "", Unanswered),
            (302, "", "", Unreachable),
        ];
        for (status, code, reason, why) in table {
            let error = answered(status, code, reason);
            let Refusal { why: found, retry_after, message } = refusal(&error);
            assert_eq!(found, why, "{status} {code} {reason}");
            assert_eq!(retry_after, Some(Duration::from_millis(70)));
            let is_routine = matches!(why, NoIdentity | NoProxy | RateLimited | CircuitOpen | SitePaused | Overloaded);
            let is_named = matches!(why, Unauthorized | SiteUnknown | ClientUnknown | GroupUnknown);
            assert_eq!(has_advice(&error, &message), !is_routine && !is_named, "{message}");
            assert_eq!(message.contains("SPINNERET_URL"), matches!(error, Error::Unimplemented(_)), "{message}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_or_a_closed_client_may_leave_a_lease_out() {
        let unread = Error::invalid_response(Procedure::Acquire, 200, "it is not JSON (line 1, column 1)");
        assert_eq!(refusal(&unread).why, Unanswered);
        assert!(refusal(&unread).message.contains("the URL leads to a Spinneret server"));
        assert_eq!(refusal(&Error::client_closed()).why, Unanswered);
        assert_eq!(refusal(&Error::invalid("site has 0 characters")).why, Invalid);
    }

    #[test]
    fn other_calls_are_made_again_or_not() {
        let unavailable = [
            (503, "unavailable", "overloaded"),
            (503, "unavailable", "internal"),
            (500, "internal", "internal"),
            (500, "unknown", ""),
            (504, "deadline_exceeded", ""),
            (409, "aborted", "conflict"),
            (429, "resource_exhausted", "rate_limited"),
            (499, "canceled", ""),
            (501, "unimplemented", ""),
            (502, "", ""),
            (503, "", ""),
            (429, "", ""),
        ];
        for (status, code, reason) in unavailable {
            let error = answered(status, code, reason);
            assert_eq!(plane_error(&error), PlaneError::Unavailable(error.to_string()), "{status} {code} {reason}");
        }
        for (status, code, reason) in [(401, "unauthenticated", "token_expired"), (403, "permission_denied", "scope_missing")] {
            let error = answered(status, code, reason);
            assert!(matches!(plane_error(&error), PlaneError::Unauthorized(text) if has_advice(&error, &text)));
        }
        let invalid = [
            (400, "invalid_argument", "invalid_argument"),
            (400, "failed_precondition", ""),
            (503, "unavailable", "circuit_open"),
            (404, "", ""),
        ];
        for (status, code, reason) in invalid {
            let error = answered(status, code, reason);
            assert!(matches!(plane_error(&error), PlaneError::Invalid(text) if has_advice(&error, &text)), "{status} {code}");
        }
        let missing = answered(404, "not_found", "not_found");
        assert!(matches!(plane_error(&missing), PlaneError::NotFound(text) if has_advice(&missing, &text)));
        assert!(matches!(plane_error(&Error::client_closed()), PlaneError::Invalid(_)));
    }

    #[test]
    fn a_lease_that_is_over_is_named() {
        let lease = LeaseId("lse_1".into());
        let unknown = answered(404, "not_found", "lease_unknown");
        assert_eq!(lease_error(&unknown, &lease), PlaneError::UnknownLease("lse_1".to_owned()));
        for reason in ["lease_released", "lease_expired", "lease_lifetime_exceeded"] {
            let over = answered(400, "failed_precondition", reason);
            assert_eq!(lease_error(&over, &lease), PlaneError::NoLease("lse_1".to_owned()), "{reason}");
        }
        assert!(matches!(lease_error(&answered(503, "unavailable", ""), &lease), PlaneError::Unavailable(_)));
    }
}
