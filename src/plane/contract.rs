//! The control plane as the crawl sees it: leases out, reports back.
//!
//! A lease is one identity and one proxy for one request. Every type here redacts what it carries.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::time::Instant;

/// A control plane. Calls may take long; the broker and the reporter never block on them.
pub trait ControlPlane: Send + Sync + 'static {
    /// Asks for one lease.
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>>;

    /// Hands over a batch of reports; answers those that were rejected for good.
    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<Vec<Rejected>, PlaneError>>;

    /// Gives a lease back without a report. Releasing twice is no error.
    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>>;

    /// Prolongs a lease; answers the new expiry.
    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>>;

    /// The plane's own count of leases, where it can be known (the embedded plane).
    fn ledger(&self) -> Option<PlaneLedger>;
}

/// A lease's name at its control plane.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub Arc<str>);

/// What a request needs a lease for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The control plane's name of the site.
    pub site: Arc<str>,
    /// The control plane's name of the client.
    pub client: Arc<str>,
    /// The endpoint group, or empty: the plane matches the path.
    pub group: Arc<str>,
    /// The request's path, without query.
    pub path: String,
    /// Requests with the same key get the same identity, as long as it lives.
    pub session_key: Option<Arc<str>>,
    /// True where no rule matched: an identity of the host without credential, limit or cool-down.
    pub anonymous: bool,
}

/// One identity and one proxy, for one request, until it is released or expires.
#[derive(Clone)]
pub struct Grant {
    /// The lease's name.
    pub lease: LeaseId,
    /// Whose cookies, connections and credentials go together.
    pub identity: IdentityKey,
    /// What the identity adds to a request. Shared by all leases of the identity.
    pub credential: Arc<Credential>,
    /// The proxy to go through.
    pub proxy: Option<ProxyUrl>,
    /// When the plane takes the lease back.
    pub expires_at: Instant,
    /// How long before the expiry to renew, if the request is still under way.
    pub renew_before: Duration,
}

/// A site's identity: the key of its cookie jar and of its connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdentityKey {
    /// The site.
    pub site: Arc<str>,
    /// The identity's name within the site.
    pub name: Arc<str>,
}

/// What an identity puts on a request. `Debug` shows names, never values.
#[derive(Clone, Default)]
pub struct Credential {
    /// Headers.
    pub headers: HeaderMap,
    /// Cookies.
    pub cookies: Vec<(String, SecretString)>,
    /// Query parameters.
    pub query: Vec<(String, SecretString)>,
    /// Free JSON for `authorize`; never merged by the runtime.
    pub json: Map<String, Value>,
}

/// A proxy's URL, user and password included. `Debug` shows scheme and host only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyUrl(pub Arc<str>);

/// Why there is no lease now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: RefusalKind,
    /// When to ask again, if the plane says so.
    pub retry_after: Option<Duration>,
    /// What a person reads.
    pub message: String,
}

/// The plane's reasons for refusing a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// Every identity is in use, resting or cooling down.
    NoIdentity,
    /// Every proxy is.
    NoProxy,
    /// Too many asks.
    RateLimited,
    /// The endpoint group is switched off for a while.
    CircuitOpen,
    /// The site is paused.
    SitePaused,
    /// The plane has too much to do.
    Overloaded,
    /// The plane does not know this site.
    SiteUnknown,
    /// The plane does not know this client.
    ClientUnknown,
    /// The ask itself is wrong.
    Invalid,
    /// The token is not accepted: nothing will be granted.
    Unauthorized,
    /// The plane cannot be reached.
    Unreachable,
}

/// What one attempt was like. Each attempt and each redirect hop is reported exactly once.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Unique within the job.
    pub id: u64,
    /// The lease it was made under.
    pub lease: LeaseId,
    /// The path that was asked for, without query.
    pub path: String,
    /// The method.
    pub method: http::Method,
    /// The status, when there was a response.
    pub status: Option<u16>,
    /// The kind of error, when there was none.
    pub error: Option<ErrorKind>,
    /// Marks of the callback.
    pub markers: Vec<String>,
    /// The callback's business code.
    pub business_code: Option<String>,
    /// The callback's own judgement.
    pub outcome_hint: Option<String>,
    /// From send to last byte.
    pub latency: Duration,
    /// Bytes on the wire.
    pub bytes: u64,
    /// How long the target asked to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// Whether the lease ends with this report.
    pub release: bool,
}

/// The control plane's classes of transport errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Name resolution.
    Dns,
    /// Connecting.
    Connect,
    /// TLS.
    Tls,
    /// The proxy.
    Proxy,
    /// A time limit.
    Timeout,
    /// The connection broke.
    Reset,
    /// The reply could not be read.
    Protocol,
    /// The job stopped the request.
    Cancelled,
    /// Anything else.
    Other,
}

/// A report the plane will never take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Which report.
    pub id: u64,
    /// Why.
    pub reason: String,
}

/// A call to the plane that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaneError {
    /// Try again later.
    #[error("the control plane is unavailable: {0}")]
    Unavailable(String),
    /// The plane does not take this node's token.
    #[error("the control plane refuses this node: {0}")]
    Unauthorized(String),
    /// The lease is unknown or over.
    #[error("lease {0} is unknown or over")]
    NoLease(String),
}

/// Leases by their end. Always `acquired == released + expired + open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlaneLedger {
    /// Granted since the start.
    pub acquired: u64,
    /// Given back by a report or a release.
    pub released: u64,
    /// Taken back by the plane.
    pub expired: u64,
    /// Out now.
    pub open: u64,
    /// Reports taken.
    pub reports: u64,
}

impl PlaneLedger {
    /// Whether the counts add up.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.acquired == self.released + self.expired + self.open
    }
}

impl RefusalKind {
    /// The reason's name in counters, the wire contract's spelling.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoIdentity => "no_identity_available",
            Self::NoProxy => "no_proxy_available",
            Self::RateLimited => "rate_limited",
            Self::CircuitOpen => "circuit_open",
            Self::SitePaused => "site_paused",
            Self::Overloaded => "overloaded",
            Self::SiteUnknown => "site_unknown",
            Self::ClientUnknown => "client_unknown",
            Self::Invalid => "invalid_argument",
            Self::Unauthorized => "unauthenticated",
            Self::Unreachable => "unavailable",
        }
    }

    /// Whether asking again can help.
    #[must_use]
    pub fn is_temporary(self) -> bool {
        !matches!(self, Self::SiteUnknown | Self::ClientUnknown | Self::Invalid | Self::Unauthorized)
    }
}

impl ProxyUrl {
    /// The URL with its credential; for the connector only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = url::Url::parse(&self.0).ok().and_then(|u| {
            let host = u.host_str()?.to_owned();
            // A private address says little and helps to debug; a public host name may be an account.
            let shown = if host.parse::<IpAddr>().is_ok() { host } else { "…".to_owned() };
            Some(format!("{}://{shown}", u.scheme()))
        });
        f.write_str(shown.as_deref().unwrap_or("proxy"))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("cookies", &self.cookies.iter().map(|(k, _)| k).collect::<Vec<_>>())
            .field("query", &self.query.iter().map(|(k, _)| k).collect::<Vec<_>>())
            .field("json", &self.json.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("lease", &self.lease)
            .field("identity", &self.identity)
            .field("credential", &self.credential)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// Whether the credential adds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.cookies.is_empty() && self.query.is_empty() && self.json.is_empty()
    }

    /// The credential's cookies as one `Cookie` header value, `None` without any.
    #[must_use]
    pub fn cookie_header(&self) -> Option<HeaderValue> {
        if self.cookies.is_empty() {
            return None;
        }
        let text = self.cookies.iter().map(|(k, v)| format!("{k}={}", v.expose_secret())).collect::<Vec<_>>().join("; ");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}
