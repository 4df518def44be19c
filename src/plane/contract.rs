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

use super::follow::ConfigFeed;
use crate::spinneret::ConfigKey;
pub use crate::spinneret::ErrorKind;

/// Most leases one call asks for (wire contract, 4.1).
pub const BATCH_MAX: usize = 50;

/// A control plane. Calls may take long; the broker and the reporter never block on them.
pub trait ControlPlane: Send + Sync + 'static {
    /// Asks for one lease.
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>>;

    /// Asks for `count` leases at once, at least 1 and at most [`BATCH_MAX`], all for the same ask; between one and `count`
    /// come, each of another identity.
    fn acquire_batch(&self, ask: Ask, count: usize) -> BoxFuture<'_, Result<Vec<Grant>, Refusal>> {
        let _ = count;
        Box::pin(async move { self.acquire(ask).await.map(|grant| vec![grant]) })
    }

    /// Hands over a batch of reports; answers what became of those that were not simply taken.
    fn report(&self, reports: Vec<Report>) -> BoxFuture<'_, Result<Taken, PlaneError>>;

    /// Gives a lease back without a report. Releasing twice is no error.
    fn release(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>>;

    /// Prolongs a lease; answers the new expiry.
    fn renew(&self, lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>>;

    /// The plane's own count of leases, where it can be known (the embedded plane).
    fn ledger(&self) -> Option<PlaneLedger>;

    /// How much each identity was used, most used first, where it can be known (the embedded plane). Anonymous ones are not
    /// among them.
    fn identities(&self) -> Vec<IdentityUse> {
        Vec::new()
    }

    /// Whether a call costs a way over the network: then asks are gathered, and leases asked for ahead.
    fn is_remote(&self) -> bool {
        false
    }

    /// Follows config items, 1 to 200 of them, until the feed is dropped. Begins with what the plane says now, or with the
    /// snapshots of an earlier run when it cannot be reached.
    ///
    /// Fails with [`PlaneError::Unauthorized`] when the token may not read one of them.
    fn follow(&self, keys: Vec<ConfigKey>) -> BoxFuture<'_, Result<Arc<dyn ConfigFeed>, PlaneError>> {
        let _ = keys;
        Box::pin(async { Err(PlaneError::NotFound("this control plane keeps no configuration".to_owned())) })
    }

    /// A secret of the config centre. Each reading is written down there.
    fn secret(&self, path: String) -> BoxFuture<'_, Result<SecretString, PlaneError>> {
        Box::pin(async move { Err(PlaneError::NotFound(format!("this control plane keeps no secret {path}"))) })
    }
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
    /// What named site and client, for messages: `LEASES rule 2`; `None` where the request itself did, or nothing.
    pub rule: Option<Arc<str>>,
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
    /// What else is known of it, for people; nothing of it is secret.
    pub about: About,
    /// When the plane takes the lease back.
    pub expires_at: Instant,
    /// How long before the expiry to renew, if the request is still under way.
    pub renew_before: Duration,
}

/// What a person may know of a lease. Nothing here decides anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The endpoint group the plane chose.
    pub group: Arc<str>,
    /// The type of the identity.
    pub identity_type: Arc<str>,
    /// The proxy, without its URL.
    pub proxy: Option<ProxyAbout>,
    /// The identity was chosen by the session key.
    pub is_sticky: bool,
    /// The lease tries whether site or identity are good again.
    pub is_probe: bool,
}

/// What a person may know of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAbout {
    /// Its name at the plane.
    pub id: Arc<str>,
    /// `datacenter`, `residential`, `mobile`, `tunnel` or another word.
    pub kind: Arc<str>,
    /// Its region; may be empty.
    pub region: Arc<str>,
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
    /// Cookies. Those of a credential that has only a `Cookie` header are read from it.
    pub cookies: Vec<(String, SecretString)>,
    /// Query parameters.
    pub query: Vec<(String, SecretString)>,
    /// Free JSON for `authorize`, `null` without any; never merged by the runtime.
    pub json: Value,
    /// Named values for `authorize`: tokens, device numbers; never merged by the runtime.
    pub values: Map<String, Value>,
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
    /// The plane does not know this endpoint group.
    GroupUnknown,
    /// The ask itself is wrong.
    Invalid,
    /// The token is not accepted: nothing will be granted.
    Unauthorized,
    /// The token is accepted and may not do this.
    Forbidden,
    /// The plane cannot be reached, or cannot serve anybody now.
    Unreachable,
    /// The plane was asked and its answer was lost: it may have granted a lease that nobody knows. It expires by itself.
    Unanswered,
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
    /// When it was sent.
    pub sent_at: Instant,
    /// From send to last byte.
    pub latency: Duration,
    /// Bytes on the wire.
    pub bytes: u64,
    /// How long the target asked to wait (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// Whether the lease ends with this report.
    pub release: bool,
}

/// What became of a batch of reports, besides those that were simply taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Those the plane had already, from a call whose answer was lost.
    pub duplicated: u64,
    /// Those it will never take.
    pub rejected: Vec<Rejected>,
}

/// A report the plane will never take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Which report.
    pub id: u64,
    /// The plane does not know the lease: it was started anew, or the lease ended too long ago.
    pub is_unknown_lease: bool,
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
    /// The lease is over.
    #[error("lease {0} is over")]
    NoLease(String),
    /// The plane does not know the lease: it was started anew, or the lease ended too long ago.
    #[error("the control plane does not know lease {0}")]
    UnknownLease(String),
    /// There is no such thing at the plane.
    #[error("{0}")]
    NotFound(String),
    /// The call itself is wrong, and no repetition of it will be taken.
    #[error("the control plane does not take this call: {0}")]
    Invalid(String),
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
    /// Identities and proxies that a report sent to rest, be it for one endpoint group or for all.
    pub cooled: u64,
}

/// How much an identity was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityUse {
    /// Which.
    pub identity: IdentityKey,
    /// Its leases so far.
    pub leases: u64,
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
            Self::GroupUnknown => "endpoint_group_unknown",
            Self::Invalid => "invalid_argument",
            Self::Unauthorized => "unauthenticated",
            Self::Forbidden => "permission_denied",
            Self::Unreachable => "unavailable",
            Self::Unanswered => "unanswered",
        }
    }

    /// Whether asking again can help.
    #[must_use]
    pub fn is_temporary(self) -> bool {
        !matches!(
            self,
            Self::SiteUnknown | Self::ClientUnknown | Self::GroupUnknown | Self::Invalid | Self::Unauthorized | Self::Forbidden
        )
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
            .field("has_json", &!self.json.is_null())
            .field("values", &self.values.keys().collect::<Vec<_>>())
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
        self.headers.is_empty()
            && self.cookies.is_empty()
            && self.query.is_empty()
            && self.json.is_null()
            && self.values.is_empty()
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
