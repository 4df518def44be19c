#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::HashSet;

use super::*;
use crate::spinneret::transport::Phase;

fn of(code: &str, reason: &str, status: u16) -> Error {
    let mut details = Details::new(Code::of(code), reason, "text");
    details.http_status = status;
    details.retry_after = Some(Duration::from_millis(1200));
    Error::of(details)
}

fn local() -> Vec<Error> {
    vec![
        Error::invalid("text"),
        Error::configuration("text"),
        Error::client_closed(),
        Error::reporter_closed(),
        Error::lease_released("lse_1"),
        Error::transport(Procedure::Acquire, fault()),
        Error::invalid_response(Procedure::Acquire, 200, "it is not JSON"),
    ]
}

fn fault() -> Fault {
    let source: Arc<dyn StdError + Send + Sync> = Arc::new(std::io::Error::other("c4n4ry"));
    Fault { kind: ErrorKind::ConnReset, phase: Phase::Ambiguous, message: "connection reset".to_owned(), source: Some(source) }
}

/// Status, code, reason, variant.
const ROWS: [(u16, &str, &str, &str); 37] = [
    (401, "unauthenticated", "token_invalid", "Unauthenticated"),
    (401, "unauthenticated", "session_invalid", "Unauthenticated"),
    (403, "permission_denied", "scope_missing", "PermissionDenied"),
    (400, "invalid_argument", "site_unknown", "InvalidArgument"),
    (400, "out_of_range", "", "InvalidArgument"),
    (404, "not_found", "not_found", "NotFound"),
    (404, "not_found", "lease_unknown", "LeaseUnknown"),
    (404, "not_found", "lease_expired", "NotFound"),
    (409, "already_exists", "already_exists", "AlreadyExists"),
    (400, "failed_precondition", "failed_precondition", "FailedPrecondition"),
    (400, "failed_precondition", "lease_unknown", "FailedPrecondition"),
    (400, "failed_precondition", "lease_released", "LeaseReleased"),
    (400, "failed_precondition", "lease_expired", "LeaseExpired"),
    (400, "failed_precondition", "lease_lifetime_exceeded", "LeaseExpired"),
    (400, "failed_precondition", "client_closed", "FailedPrecondition"),
    (409, "aborted", "conflict", "Aborted"),
    (429, "resource_exhausted", "rate_limited", "ResourceExhausted"),
    (429, "resource_exhausted", "no_identity_available", "NoIdentityAvailable"),
    (429, "resource_exhausted", "no_proxy_available", "NoProxyAvailable"),
    (429, "resource_exhausted", "circuit_open", "ResourceExhausted"),
    (503, "unavailable", "", "Unavailable"),
    (503, "unavailable", "overloaded", "Unavailable"),
    (503, "unavailable", "no_identity_available", "Unavailable"),
    (503, "unavailable", "transport", "Unavailable"),
    (503, "unavailable", "circuit_open", "CircuitOpen"),
    (503, "unavailable", "site_paused", "SitePaused"),
    (504, "deadline_exceeded", "", "DeadlineExceeded"),
    (501, "unimplemented", "", "Unimplemented"),
    (500, "internal", "internal", "Internal"),
    (500, "internal", "site_paused", "Internal"),
    (500, "unknown", "", "Internal"),
    (500, "data_loss", "", "Internal"),
    (499, "canceled", "", "Other"),
    (400, "mystery", "lease_unknown", "Other"),
    (500, "mystery", "", "Other"),
    (400, "NOT_FOUND", "lease_unknown", "Other"),
    (404, "unimplemented", "", "Unimplemented"),
];

#[test]
fn b030_every_code_has_its_variant_refined_by_its_own_reasons() {
    for (status, code, reason, variant) in ROWS {
        let error = of(code, reason, status);
        assert_eq!(error.name(), variant, "{code} {reason}");
        assert_eq!((error.code().as_str(), error.reason(), error.message(), error.http_status()), (code, reason, "text", status));
        assert_eq!(error.retry_after(), Some(Duration::from_millis(1200)));
        let expected = if reason.is_empty() { format!("{code}: text") } else { format!("{code} ({reason}): text") };
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn b031_a_reason_of_another_code_refines_nothing() {
    let error = of("unavailable", "no_identity_available", 503);
    assert!(matches!(error, Error::Unavailable(_)) && !error.is_resource_exhausted());
    assert_eq!(error.reason(), "no_identity_available");
}

#[test]
fn b032_unknown_codes_and_cancellation_are_kept_as_they_are() {
    let mystery = of("mystery", "", 400);
    assert!(matches!(mystery, Error::Other(_)));
    assert_eq!(mystery.code(), &Code::Other("mystery".into()));
    let canceled = of("canceled", "", 499);
    assert!(matches!(canceled, Error::Other(_)) && canceled.code() == &Code::Canceled && !canceled.is_retry_later());
}

#[test]
fn b035_missing_parts_leave_no_trace_in_the_text() {
    let text = |reason, message| Error::of(Details::new(Code::NotFound, reason, message)).to_string();
    assert_eq!(text("", ""), "not_found");
    assert_eq!(text("lease_unknown", ""), "not_found (lease_unknown)");
    assert_eq!(text("", "gone"), "not_found: gone");
}

#[test]
fn background_loops_try_again_what_may_pass() {
    let later = |code, reason, status| of(code, reason, status).is_retry_later();
    for (code, reason, status) in [
        ("unavailable", "", 503),
        ("unavailable", "overloaded", 503),
        ("unavailable", "rebuilding", 503),
        ("unavailable", "internal", 503),
        ("internal", "internal", 500),
        ("internal", "", 400),
        ("unknown", "", 418),
        ("data_loss", "", 500),
        ("deadline_exceeded", "", 504),
        ("aborted", "", 409),
        ("resource_exhausted", "rate_limited", 429),
        ("resource_exhausted", "no_identity_available", 429),
        ("resource_exhausted", "no_proxy_available", 429),
        ("unimplemented", "", 501),
        ("mystery", "", 500),
        ("canceled", "", 500),
        ("not_found", "", 502),
    ] {
        assert!(later(code, reason, status), "{code} {reason} {status}");
    }
    for (code, reason, status) in [
        ("unavailable", "circuit_open", 503),
        ("unavailable", "site_paused", 503),
        ("invalid_argument", "", 400),
        ("out_of_range", "", 400),
        ("unauthenticated", "token_expired", 401),
        ("permission_denied", "", 403),
        ("not_found", "lease_unknown", 404),
        ("already_exists", "", 409),
        ("failed_precondition", "lease_expired", 400),
        ("unimplemented", "", 404),
        ("canceled", "", 499),
        ("mystery", "", 418),
    ] {
        assert!(!later(code, reason, status), "{code} {reason} {status}");
    }
    let local: Vec<bool> = local().iter().map(Error::is_retry_later).collect();
    assert_eq!(local, [false, false, false, false, false, true, true]);
}

/// A name, the question, the variants that answer yes.
type Family = (&'static str, fn(&Error) -> bool, &'static [&'static str]);

#[test]
fn families_hold_their_refined_kinds() {
    let families: [Family; 6] = [
        ("unavailable", Error::is_unavailable, &["Unavailable", "CircuitOpen", "SitePaused", "Transport"]),
        ("exhausted", Error::is_resource_exhausted, &["ResourceExhausted", "NoIdentityAvailable", "NoProxyAvailable"]),
        (
            "precondition",
            Error::is_failed_precondition,
            &["FailedPrecondition", "LeaseReleased", "LeaseExpired", "ReporterClosed", "ClientClosed"],
        ),
        ("not found", Error::is_not_found, &["NotFound", "LeaseUnknown"]),
        ("gone", Error::is_lease_gone, &["LeaseUnknown", "LeaseReleased", "LeaseExpired"]),
        ("denied", Error::is_access_denied, &["Unauthenticated", "PermissionDenied"]),
    ];
    let all = || ROWS.into_iter().map(|(status, code, reason, _)| of(code, reason, status)).chain(local());
    assert_eq!(all().map(|error| error.name()).collect::<HashSet<_>>().len(), 24, "every variant is looked at");
    for (name, is_member, members) in families {
        for error in all() {
            assert_eq!(is_member(&error), members.contains(&error.name()), "{name}: {error:?}");
        }
    }
}

#[test]
fn local_errors_have_the_codes_of_the_contract() {
    let summary: Vec<_> = local().iter().map(|error| format!("{} {} {}", error.name(), error, error.http_status())).collect();
    let expected = [
        "InvalidArgument invalid_argument: text 0",
        "Configuration invalid_argument: text 0",
        "ClientClosed failed_precondition (client_closed): the client is closed 0",
        "ReporterClosed failed_precondition (reporter_closed): the reporter is closed 0",
        "LeaseReleased failed_precondition (lease_released): lease lse_1 is released 0",
        "Transport unavailable (transport): spinneret.v1.LeaseService/Acquire: connection reset 0",
        "Internal internal (invalid_response): the answer of spinneret.v1.LeaseService/Acquire cannot be read: it is not JSON 200",
    ];
    assert_eq!(summary, expected);
}

#[test]
fn a_transport_error_keeps_its_cause_and_does_not_show_it() {
    let error = Error::transport(Procedure::Release, fault());
    assert_eq!(error.error_kind(), Some(ErrorKind::ConnReset));
    let source = StdError::source(&error).unwrap();
    assert!(source.is::<std::io::Error>());
    assert_eq!(source.to_string(), "c4n4ry");
    assert!(!format!("{error} {error:?} {error:#?} {:?}", error.details()).contains("c4n4ry"));
    assert!(StdError::source(&Error::client_closed()).is_none());
}

#[test]
fn the_debug_form_says_everything_else() {
    let expected = "Unavailable(Details { code: Unavailable, reason: \"overloaded\", message: \"text\", retry_after: Some(1.2s), \
                    http_status: 503, is_bare: false, error_kind: None, has_source: false })";
    assert_eq!(format!("{:?}", of("unavailable", "overloaded", 503)), expected);
}

#[test]
fn every_error_says_what_to_do() {
    let mut bare = Details::new(Code::Unavailable, "", "HTTP 502");
    bare.is_bare = true;
    let reasons = [
        ("unauthenticated", "token_invalid", "alert"),
        ("unauthenticated", "token_expired", "past its end"),
        ("unauthenticated", "token_revoked", "revoked"),
        ("unauthenticated", "session_invalid", "Authorization header"),
        ("permission_denied", "ip_not_allowed", "address"),
        ("permission_denied", "scope_missing", "scope"),
        ("permission_denied", "permission_denied", "alert"),
        ("invalid_argument", "site_unknown", "site"),
        ("invalid_argument", "client_unknown", "client type"),
        ("invalid_argument", "endpoint_group_unknown", "endpoint group"),
        ("invalid_argument", "uri_invalid", "path"),
        ("invalid_argument", "invalid_argument", "does not help"),
        ("resource_exhausted", "no_identity_available", "wait for the hint"),
        ("resource_exhausted", "no_proxy_available", "wait for the hint"),
        ("resource_exhausted", "rate_limited", "less often"),
        ("unavailable", "circuit_open", "pause the endpoint group"),
        ("unavailable", "site_paused", "pause the site"),
        ("unavailable", "overloaded", "try again"),
        ("not_found", "lease_unknown", "acquire another"),
        ("not_found", "not_found", "tight loop"),
        ("failed_precondition", "lease_released", "acquire another"),
        ("failed_precondition", "lease_expired", "acquire another"),
        ("failed_precondition", "lease_lifetime_exceeded", "as often as the policy allows"),
        ("failed_precondition", "failed_precondition", "secret"),
        ("canceled", "", "connect again"),
    ];
    for (code, reason, word) in reasons {
        let advice = of(code, reason, 0).advice();
        assert!(advice.contains(word), "{code} {reason}: {advice}");
    }
    for (kind, word) in [
        (ErrorKind::Tls, "SPINNERET_CA_FILE"),
        (ErrorKind::Dns, "host"),
        (ErrorKind::ProxyAuth, "password of the proxy"),
        (ErrorKind::Timeout, "limits of time"),
        (ErrorKind::ConnRefused, "that the server runs"),
    ] {
        let advice = Error::transport(Procedure::Acquire, Fault { kind, ..fault() }).advice();
        assert!(advice.contains(word), "{kind}: {advice}");
    }
    for (code, word) in [
        (Code::Unauthenticated, "in front of the server"),
        (Code::PermissionDenied, "in front of the server"),
        (Code::Unknown, "something that answers for it"),
    ] {
        let details = Details { is_bare: true, ..Details::new(code, "", "HTTP 4xx") };
        assert!(Error::of(details.clone()).advice().contains(word), "{details:?}");
    }
    let all = ROWS.into_iter().map(|(status, code, reason, _)| of(code, reason, status)).chain(local()).chain([Error::of(bare)]);
    let said: HashSet<&str> = all.map(|error| error.advice()).collect();
    assert!(said.len() >= 24, "{}", said.len());
    assert!(said.iter().all(|advice| !advice.ends_with('.') && advice.chars().next().is_some_and(char::is_lowercase)));
}
