//! How the server says no: a code, a stable reason, a text that says what to do, and when to come again
//! (wire contract, sections 3 and 5).
//!
//! Every answer that is not a success is made here, so that code and reason never come apart.

use std::borrow::Cow;

use super::Ms;
use crate::spinneret::Code;

/// Shortest hint of an exhausted pool, ms.
const LEAST_WAIT: Ms = 50;
/// Longest hint of an exhausted pool, ms.
const MOST_WAIT: Ms = 60_000;
/// Hint of a paused site, ms.
const PAUSED_WAIT: Ms = 30_000;
/// Hint when too many watches are held, ms.
const WATCHES_WAIT: Ms = 1_000;
/// Longest text of a message, characters: names from requests go into it.
const LONGEST: usize = 512;

/// The stable word for why, in the header `Spinneret-Reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Reason {
    TokenInvalid,
    TokenExpired,
    TokenRevoked,
    SessionInvalid,
    IpNotAllowed,
    ScopeMissing,
    PermissionDenied,
    SiteUnknown,
    ClientUnknown,
    EndpointGroupUnknown,
    UriInvalid,
    InvalidArgument,
    NoIdentityAvailable,
    NoProxyAvailable,
    RateLimited,
    CircuitOpen,
    SitePaused,
    Overloaded,
    #[allow(dead_code, reason = "a word of the contract that nothing here says yet")]
    Rebuilding,
    Internal,
    LeaseUnknown,
    LeaseReleased,
    LeaseExpired,
    LeaseLifetimeExceeded,
    NotFound,
    FailedPrecondition,
    #[allow(dead_code, reason = "a word of the contract that nothing here says yet")]
    AlreadyExists,
    #[allow(dead_code, reason = "a word of the contract that nothing here says yet")]
    Conflict,
}

impl Reason {
    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TokenInvalid => "token_invalid",
            Self::TokenExpired => "token_expired",
            Self::TokenRevoked => "token_revoked",
            Self::SessionInvalid => "session_invalid",
            Self::IpNotAllowed => "ip_not_allowed",
            Self::ScopeMissing => "scope_missing",
            Self::PermissionDenied => "permission_denied",
            Self::SiteUnknown => "site_unknown",
            Self::ClientUnknown => "client_unknown",
            Self::EndpointGroupUnknown => "endpoint_group_unknown",
            Self::UriInvalid => "uri_invalid",
            Self::InvalidArgument => "invalid_argument",
            Self::NoIdentityAvailable => "no_identity_available",
            Self::NoProxyAvailable => "no_proxy_available",
            Self::RateLimited => "rate_limited",
            Self::CircuitOpen => "circuit_open",
            Self::SitePaused => "site_paused",
            Self::Overloaded => "overloaded",
            Self::Rebuilding => "rebuilding",
            Self::Internal => "internal",
            Self::LeaseUnknown => "lease_unknown",
            Self::LeaseReleased => "lease_released",
            Self::LeaseExpired => "lease_expired",
            Self::LeaseLifetimeExceeded => "lease_lifetime_exceeded",
            Self::NotFound => "not_found",
            Self::FailedPrecondition => "failed_precondition",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
        }
    }
}

/// One refused call. The text never carries a token, a credential, a secret or a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct Refusal {
    /// What kind of thing went wrong; decides the HTTP status.
    pub(crate) code: Code,
    /// Why; `None` where no handler was reached.
    pub(crate) reason: Option<Reason>,
    /// What happened and what to do, for people.
    pub(crate) message: Cow<'static, str>,
    /// When to come again, ms from now, at least 1; `None` gives no hint.
    pub(crate) retry_after: Option<Ms>,
}

impl Refusal {
    /// The HTTP status of the answer (section 3.2).
    pub(crate) const fn status(&self) -> u16 {
        match self.code {
            Code::Canceled => 499,
            Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => 400,
            Code::DeadlineExceeded => 504,
            Code::NotFound => 404,
            Code::AlreadyExists | Code::Aborted => 409,
            Code::PermissionDenied => 403,
            Code::ResourceExhausted => 429,
            Code::Unimplemented => 501,
            Code::Unavailable => 503,
            Code::Unauthenticated => 401,
            Code::Unknown | Code::Internal | Code::DataLoss | Code::Other(_) => 500,
        }
    }

    /// The JSON body of the answer (section 3.1).
    pub(crate) fn body(&self) -> String {
        serde_json::json!({ "code": self.code.as_str(), "message": self.message }).to_string()
    }

    /// The token is malformed or nobody's.
    pub(crate) fn token_invalid() -> Self {
        Self::of(Code::Unauthenticated, Reason::TokenInvalid, "the token is not known here; check the token and the address")
    }

    /// The token's time is over.
    pub(crate) fn token_expired() -> Self {
        Self::of(Code::Unauthenticated, Reason::TokenExpired, "the token has expired; issue a new one")
    }

    /// The token was withdrawn.
    pub(crate) fn token_revoked() -> Self {
        Self::of(Code::Unauthenticated, Reason::TokenRevoked, "the token was revoked; issue a new one")
    }

    /// No credential came at all.
    pub(crate) fn session_invalid() -> Self {
        Self::of(
            Code::Unauthenticated,
            Reason::SessionInvalid,
            "no credential was sent; send the token in the header Authorization as Bearer",
        )
    }

    /// The token may not be used from where the call comes from.
    pub(crate) fn ip_not_allowed() -> Self {
        Self::of(
            Code::PermissionDenied,
            Reason::IpNotAllowed,
            "the token may not be used from this address; extend its list of allowed networks",
        )
    }

    /// The token lacks a scope, given as it would be written.
    pub(crate) fn scope_missing(scope: &str) -> Self {
        Self::saying(Code::PermissionDenied, Reason::ScopeMissing, format!("the token lacks the scope {scope}"))
    }

    /// A namespace other than the token's was named.
    pub(crate) fn other_namespace(given: &str, own: &str) -> Self {
        Self::saying(
            Code::PermissionDenied,
            Reason::ScopeMissing,
            format!("the token belongs to the namespace {own}, not to {given}; leave the namespace empty"),
        )
    }

    /// The caller's kind may not do this.
    pub(crate) fn permission_denied(what: &str) -> Self {
        Self::saying(Code::PermissionDenied, Reason::PermissionDenied, what.to_owned())
    }

    /// There is no such site.
    pub(crate) fn site_unknown(site: &str) -> Self {
        Self::saying(Code::InvalidArgument, Reason::SiteUnknown, format!("there is no site {site}"))
    }

    /// The site has no such client.
    pub(crate) fn client_unknown(site: &str, client: &str) -> Self {
        Self::saying(Code::InvalidArgument, Reason::ClientUnknown, format!("the site {site} declares no client {client}"))
    }

    /// The client has no such endpoint group.
    pub(crate) fn endpoint_group_unknown(site: &str, client: &str, group: &str) -> Self {
        Self::saying(
            Code::InvalidArgument,
            Reason::EndpointGroupUnknown,
            format!("there is no endpoint group {group} for {site}/{client}"),
        )
    }

    /// The URI is none; `why` names the rule it breaks, never the URI itself.
    pub(crate) fn uri_invalid(why: &str) -> Self {
        Self::saying(Code::InvalidArgument, Reason::UriInvalid, format!("the uri cannot be used: {why}"))
    }

    /// A field of the request breaks a rule.
    pub(crate) fn invalid_argument(what: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(Code::InvalidArgument, Reason::InvalidArgument, what)
    }

    /// The request could not be read: no handler was reached, so there is no reason.
    pub(crate) fn malformed(what: impl Into<Cow<'static, str>>) -> Self {
        Self::bare(Code::InvalidArgument, what)
    }

    /// The request's body is above the limit of 8 MiB.
    pub(crate) fn body_too_large() -> Self {
        Self::bare(Code::ResourceExhausted, "the request is larger than 8 MiB; send less in one call")
    }

    /// What was asked for is more than one answer may carry.
    pub(crate) fn answer_too_large(limit: usize) -> Self {
        Self::bare(
            Code::ResourceExhausted,
            format!("the answer would be larger than {limit} bytes; ask for fewer items in one call"),
        )
    }

    /// The server gave up on a call that took too long.
    pub(crate) fn deadline_exceeded() -> Self {
        Self::bare(Code::DeadlineExceeded, "the call took longer than its deadline")
    }

    /// The server is going down and ends what waits.
    pub(crate) fn canceled() -> Self {
        Self::bare(Code::Canceled, "the server is shutting down; connect again")
    }

    /// No identity is free; the hint is kept within 50 to 60,000 ms.
    pub(crate) fn no_identity_available(site: &str, client: &str, group: &str, wait: Ms) -> Self {
        let text = format!("no identity is free for {site}/{client}/{group}");
        Self::saying(Code::ResourceExhausted, Reason::NoIdentityAvailable, text).after(wait.clamp(LEAST_WAIT, MOST_WAIT))
    }

    /// No proxy is free; the hint is kept within 50 to 60,000 ms.
    pub(crate) fn no_proxy_available(site: &str, client: &str, group: &str, wait: Ms) -> Self {
        let text = format!("no proxy is free for {site}/{client}/{group}");
        Self::saying(Code::ResourceExhausted, Reason::NoProxyAvailable, text).after(wait.clamp(LEAST_WAIT, MOST_WAIT))
    }

    /// The token made too many calls.
    pub(crate) fn rate_limited(wait: Ms) -> Self {
        Self::of(Code::ResourceExhausted, Reason::RateLimited, "the token makes more calls than its limit allows").after(wait)
    }

    /// Too many watches are held.
    pub(crate) fn too_many_watches(limit: usize) -> Self {
        let text = format!("{limit} watches are held already; watch more items in one call");
        Self::saying(Code::ResourceExhausted, Reason::RateLimited, text).after(WATCHES_WAIT)
    }

    /// The endpoint group's breaker is open, or all its probes are out.
    pub(crate) fn circuit_open(site: &str, client: &str, group: &str, wait: Ms) -> Self {
        let text = format!("the breaker of {site}/{client}/{group} is open");
        Self::saying(Code::Unavailable, Reason::CircuitOpen, text).after(wait)
    }

    /// Somebody paused the site.
    pub(crate) fn site_paused(site: &str) -> Self {
        Self::saying(Code::Unavailable, Reason::SitePaused, format!("the site {site} is paused")).after(PAUSED_WAIT)
    }

    /// Too many acquires at once; nothing was consumed.
    pub(crate) fn overloaded(wait: Ms) -> Self {
        Self::of(Code::Unavailable, Reason::Overloaded, "too many acquires at once; nothing was taken").after(wait)
    }

    /// The server's state is being rebuilt.
    #[cfg(test)]
    pub(crate) fn rebuilding(wait: Ms) -> Self {
        Self::of(Code::Unavailable, Reason::Rebuilding, "the state is being rebuilt; try again").after(wait)
    }

    /// Something the server depends on is down.
    pub(crate) fn dependency_down(what: &str, wait: Ms) -> Self {
        Self::saying(Code::Unavailable, Reason::Internal, what.to_owned()).after(wait)
    }

    /// An unexpected failure. The text is always the same: what went wrong is for the log.
    pub(crate) fn internal() -> Self {
        Self::of(Code::Internal, Reason::Internal, "internal error")
    }

    /// The lease is gone, never was, or is none of the token's business: these are not told apart.
    pub(crate) fn lease_unknown() -> Self {
        Self::of(Code::NotFound, Reason::LeaseUnknown, "lease is unknown or expired")
    }

    /// The lease was released.
    pub(crate) fn lease_released() -> Self {
        Self::of(Code::FailedPrecondition, Reason::LeaseReleased, "the lease was released; acquire again")
    }

    /// The lease's time is over.
    pub(crate) fn lease_expired() -> Self {
        Self::of(Code::FailedPrecondition, Reason::LeaseExpired, "the lease has expired; acquire again")
    }

    /// The lease cannot be prolonged any further.
    pub(crate) fn lease_lifetime_exceeded() -> Self {
        Self::of(Code::FailedPrecondition, Reason::LeaseLifetimeExceeded, "the lease is as long as it may become; acquire again")
    }

    /// There is no such thing; `what` names it.
    pub(crate) fn not_found(what: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(Code::NotFound, Reason::NotFound, what)
    }

    /// Something else must be put right first.
    pub(crate) fn failed_precondition(what: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(Code::FailedPrecondition, Reason::FailedPrecondition, what)
    }

    /// There is one already.
    #[cfg(test)]
    pub(crate) fn already_exists(what: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(Code::AlreadyExists, Reason::AlreadyExists, what)
    }

    /// Another change came first.
    #[cfg(test)]
    pub(crate) fn conflict(what: impl Into<Cow<'static, str>>) -> Self {
        Self::saying(Code::Aborted, Reason::Conflict, what)
    }

    fn of(code: Code, reason: Reason, message: &'static str) -> Self {
        Self { code, reason: Some(reason), message: Cow::Borrowed(message), retry_after: None }
    }

    fn saying(code: Code, reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, reason: Some(reason), message: cut(message.into()), retry_after: None }
    }

    fn bare(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, reason: None, message: cut(message.into()), retry_after: None }
    }

    /// With a hint; none when there is nothing to wait for (section 1.3).
    fn after(mut self, wait: Ms) -> Self {
        self.retry_after = (wait > 0).then_some(wait);
        self
    }
}

fn cut(mut message: Cow<'static, str>) -> Cow<'static, str> {
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.to_mut().truncate(end);
    }
    message
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    /// Every row of section 5 with its code, its HTTP status and its hint.
    #[test]
    fn every_refusal_has_the_contracts_code_reason_status_and_hint() {
        let rows = [
            (Refusal::token_invalid(), "unauthenticated", "token_invalid", 401, None),
            (Refusal::token_expired(), "unauthenticated", "token_expired", 401, None),
            (Refusal::token_revoked(), "unauthenticated", "token_revoked", 401, None),
            (Refusal::session_invalid(), "unauthenticated", "session_invalid", 401, None),
            (Refusal::ip_not_allowed(), "permission_denied", "ip_not_allowed", 403, None),
            (Refusal::scope_missing("admin"), "permission_denied", "scope_missing", 403, None),
            (Refusal::other_namespace("a", "b"), "permission_denied", "scope_missing", 403, None),
            (Refusal::permission_denied("no"), "permission_denied", "permission_denied", 403, None),
            (Refusal::site_unknown("s"), "invalid_argument", "site_unknown", 400, None),
            (Refusal::client_unknown("s", "c"), "invalid_argument", "client_unknown", 400, None),
            (Refusal::endpoint_group_unknown("s", "c", "g"), "invalid_argument", "endpoint_group_unknown", 400, None),
            (Refusal::uri_invalid("no"), "invalid_argument", "uri_invalid", 400, None),
            (Refusal::invalid_argument("no"), "invalid_argument", "invalid_argument", 400, None),
            (Refusal::malformed("no"), "invalid_argument", "", 400, None),
            (Refusal::no_identity_available("s", "c", "g", 5000), "resource_exhausted", "no_identity_available", 429, Some(5000)),
            (Refusal::no_identity_available("s", "c", "g", 10), "resource_exhausted", "no_identity_available", 429, Some(50)),
            (Refusal::no_proxy_available("s", "c", "g", 90_000), "resource_exhausted", "no_proxy_available", 429, Some(60_000)),
            (Refusal::rate_limited(7), "resource_exhausted", "rate_limited", 429, Some(7)),
            (Refusal::too_many_watches(20_000), "resource_exhausted", "rate_limited", 429, Some(1000)),
            (Refusal::body_too_large(), "resource_exhausted", "", 429, None),
            (Refusal::answer_too_large(9), "resource_exhausted", "", 429, None),
            (Refusal::circuit_open("s", "c", "g", 120_000), "unavailable", "circuit_open", 503, Some(120_000)),
            (Refusal::circuit_open("s", "c", "g", 0), "unavailable", "circuit_open", 503, None),
            (Refusal::site_paused("s"), "unavailable", "site_paused", 503, Some(30_000)),
            (Refusal::overloaded(150), "unavailable", "overloaded", 503, Some(150)),
            (Refusal::rebuilding(1), "unavailable", "rebuilding", 503, Some(1)),
            (Refusal::dependency_down("queue", 1000), "unavailable", "internal", 503, Some(1000)),
            (Refusal::internal(), "internal", "internal", 500, None),
            (Refusal::lease_unknown(), "not_found", "lease_unknown", 404, None),
            (Refusal::lease_released(), "failed_precondition", "lease_released", 400, None),
            (Refusal::lease_expired(), "failed_precondition", "lease_expired", 400, None),
            (Refusal::lease_lifetime_exceeded(), "failed_precondition", "lease_lifetime_exceeded", 400, None),
            (Refusal::not_found("x"), "not_found", "not_found", 404, None),
            (Refusal::failed_precondition("x"), "failed_precondition", "failed_precondition", 400, None),
            (Refusal::already_exists("x"), "already_exists", "already_exists", 409, None),
            (Refusal::conflict("x"), "aborted", "conflict", 409, None),
            (Refusal::canceled(), "canceled", "", 499, None),
            (Refusal::deadline_exceeded(), "deadline_exceeded", "", 504, None),
        ];
        for (refusal, code, reason, status, hint) in rows {
            let name = refusal.reason.map_or("", Reason::name);
            assert_eq!((refusal.code.as_str(), name, refusal.status(), refusal.retry_after), (code, reason, status, hint));
        }
    }

    #[test]
    fn the_codes_no_refusal_uses_have_the_contracts_status_too() {
        for (code, status) in [
            (Code::Unknown, 500),
            (Code::OutOfRange, 400),
            (Code::Unimplemented, 501),
            (Code::DataLoss, 500),
            (Code::Other("mystery".into()), 500),
        ] {
            assert_eq!(Refusal::bare(code.clone(), "").status(), status, "{code}");
        }
    }

    #[test]
    fn the_body_is_a_connect_error() {
        assert_eq!(Refusal::site_unknown("a\"b").body(), r#"{"code":"invalid_argument","message":"there is no site a\"b"}"#);
        assert_eq!(Refusal::internal().body(), r#"{"code":"internal","message":"internal error"}"#);
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let refusal = Refusal::site_unknown(&"ü".repeat(10_000));
        assert_eq!(refusal.message.chars().count(), LONGEST);
    }
}
