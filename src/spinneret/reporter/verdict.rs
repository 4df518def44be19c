//! What the failure of a call means for its batch.

use std::time::Duration;

use crate::spinneret::error::Error;
use crate::spinneret::error_kind::ErrorKind;

/// What becomes of a batch whose call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is sent again.
    Again {
        /// When the server wants it.
        hint: Option<Duration>,
        /// Whether the server may have it all the same.
        is_doubtful: bool,
    },
    /// It is given up.
    GiveUp {
        /// Whether leases that end with its reports can be given back by a call.
        can_release: bool,
    },
}

/// Judges an error of a `Report` call (wire contract, 7.3).
///
/// Where a batch is given up, its leases are given back by calls, unless the same refusal waits there: a token that is not
/// accepted, an address that is not, a closed client. A token without the scope to report still has the scope to release what it acquired.
pub(super) fn judge(error: &Error) -> Verdict {
    if error.is_retry_later() {
        return Verdict::Again { hint: error.retry_after(), is_doubtful: is_doubtful(error) };
    }
    let is_hopeless = match error {
        Error::Unauthenticated(_) | Error::ClientClosed(_) => true,
        Error::PermissionDenied(details) => details.reason != "scope_missing",
        _ => false,
    };
    Verdict::GiveUp { can_release: !is_hopeless }
}

/// Whether the server may have taken the batch. In doubt, yes.
fn is_doubtful(error: &Error) -> bool {
    match error {
        // Nobody was reached who could have taken it.
        Error::Transport(details) => {
            !matches!(details.error_kind, Some(ErrorKind::ConnRefused | ErrorKind::Dns | ErrorKind::Tls | ErrorKind::ProxyAuth))
        }
        // Turned away before anything was done.
        Error::ResourceExhausted(_) | Error::NoIdentityAvailable(_) | Error::NoProxyAvailable(_) => false,
        Error::Unavailable(details) => details.reason != "overloaded" && !(details.is_bare && details.http_status == 429),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::spinneret::code::Code;
    use crate::spinneret::error::Details;
    use crate::spinneret::procedure::Procedure;
    use crate::spinneret::transport::{Fault, Phase};

    fn refused(code: &str, reason: &str, status: u16) -> Error {
        let mut details = Details::new(Code::of(code), reason, "scripted");
        details.http_status = status;
        Error::of(details)
    }

    fn again(is_doubtful: bool) -> Verdict {
        Verdict::Again { hint: None, is_doubtful }
    }

    fn give_up(can_release: bool) -> Verdict {
        Verdict::GiveUp { can_release }
    }

    #[test]
    fn every_answer_of_the_server_has_its_verdict() {
        let table = [
            ("unavailable", "overloaded", 503, again(false)),
            ("unavailable", "rebuilding", 503, again(true)),
            ("unavailable", "internal", 503, again(true)),
            ("unavailable", "", 503, again(true)),
            ("internal", "internal", 500, again(true)),
            ("unknown", "", 500, again(true)),
            ("data_loss", "", 500, again(true)),
            ("deadline_exceeded", "", 504, again(true)),
            ("aborted", "conflict", 409, again(true)),
            ("resource_exhausted", "rate_limited", 429, again(false)),
            ("unimplemented", "", 501, again(true)),
            ("invalid_argument", "invalid_argument", 400, give_up(true)),
            ("invalid_argument", "", 502, again(true)),
            ("permission_denied", "scope_missing", 403, give_up(true)),
            ("permission_denied", "ip_not_allowed", 403, give_up(false)),
            ("unauthenticated", "token_expired", 401, give_up(false)),
            ("unavailable", "circuit_open", 503, give_up(true)),
            ("unavailable", "site_paused", 503, give_up(true)),
            ("not_found", "", 404, give_up(true)),
            ("failed_precondition", "", 400, give_up(true)),
            ("canceled", "", 499, give_up(true)),
            ("mystery", "", 418, give_up(true)),
        ];
        for (code, reason, status, verdict) in table {
            assert_eq!(judge(&refused(code, reason, status)), verdict, "{code} {reason} {status}");
        }
        assert_eq!(judge(&Error::client_closed()), give_up(false));
        assert_eq!(judge(&Error::invalid("a report is wrong")), give_up(true));
        assert_eq!(judge(&Error::invalid_response(Procedure::Report, 200, "Syntax")), again(true));
    }

    #[test]
    fn only_a_connection_that_came_about_leaves_doubt() {
        let kinds = [
            (ErrorKind::Timeout, true),
            (ErrorKind::ConnReset, true),
            (ErrorKind::Other, true),
            (ErrorKind::ConnRefused, false),
            (ErrorKind::Dns, false),
            (ErrorKind::Tls, false),
            (ErrorKind::ProxyAuth, false),
        ];
        for (kind, is_doubtful) in kinds {
            let fault = Fault { kind, phase: Phase::Ambiguous, message: String::new(), source: None };
            assert_eq!(judge(&Error::transport(Procedure::Report, fault)), again(is_doubtful), "{kind}");
        }
    }

    #[test]
    fn a_hint_is_passed_on() {
        let mut details = Details::new(Code::ResourceExhausted, "rate_limited", "");
        details.retry_after = Some(Duration::from_secs(20));
        let verdict = judge(&Error::of(details));
        assert_eq!(verdict, Verdict::Again { hint: Some(Duration::from_secs(20)), is_doubtful: false });
    }
}
