//! Roster: who may be leased, as plain data: sites, their identities and proxies, and the rules of their use.
//!
//! It is what the identities file says, checked; the plane builds its state from it and never changes it.

use std::sync::Arc;
use std::time::Duration;

use crate::plane::{Credential, ProxyUrl};

/// The name of the identity that stands for none; no identity of a roster may have it.
pub const ANONYMOUS: &str = "anonymous";

/// The endpoint group of every path that no other group covers.
pub const DEFAULT_GROUP: &str = "_default";

/// Everything the embedded plane leases from.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// The sites, by unique name.
    pub sites: Vec<Site>,
    /// Proxies that sites with [`Pool::Shared`] share.
    pub proxies: Vec<Proxy>,
}

/// A site with its identities.
#[derive(Debug, Clone)]
pub struct Site {
    /// Its name, as `LEASES` writes it.
    pub name: Arc<str>,
    /// The clients it knows; empty: any.
    pub clients: Vec<Arc<str>>,
    /// Its endpoint groups beside [`DEFAULT_GROUP`].
    pub groups: Vec<Group>,
    /// Its rules.
    pub rules: Rules,
    /// Its identities, at least one.
    pub identities: Vec<Identity>,
    /// Where its proxies come from.
    pub pool: Pool,
}

/// Where a site's proxies come from. An identity's own proxy wins over each.
#[derive(Debug, Clone)]
pub enum Pool {
    /// Requests go out directly.
    None,
    /// From the roster's proxies.
    Shared,
    /// From these; never empty.
    Own(Vec<Proxy>),
}

/// Paths that rest and cool down together.
#[derive(Debug, Clone)]
pub struct Group {
    /// The name.
    pub name: Arc<str>,
    /// Byte prefixes of the path; the longest of all groups wins.
    pub prefixes: Vec<String>,
}

/// How the identities of a site may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long a lease lasts unless it is given back or renewed.
    pub ttl: Duration,
    /// What the reuse interval of an identity is counted from.
    pub reuse_anchor: ReuseAnchor,
    /// Rest of an identity in a group after a 429, at least what the target asked for.
    pub cooldown_429: Duration,
    /// Rest of an identity in a group after a 403.
    pub cooldown_403: Duration,
    /// Rest of a proxy after it failed.
    pub cooldown_proxy: Duration,
    /// How long a session key stays with its identity after its last use.
    pub sticky_ttl: Duration,
}

/// Where the reuse interval begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReuseAnchor {
    /// When the previous lease ended.
    Released,
    /// When the previous lease was granted.
    Acquired,
}

/// One identity.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name, unique in the site.
    pub name: Arc<str>,
    /// The clients it may serve; empty: every client of the site.
    pub clients: Vec<Arc<str>>,
    /// What it adds to a request.
    pub credential: Arc<Credential>,
    /// The proxy it always goes through.
    pub proxy: Option<Proxy>,
    /// Leases at once, at least 1.
    pub concurrency: u32,
    /// Rest between two leases.
    pub reuse_interval: Duration,
}

/// One proxy.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Its name, for messages.
    pub name: Arc<str>,
    /// Its URL.
    pub url: ProxyUrl,
    /// Leases at once, at least 1.
    pub concurrency: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(300),
            reuse_anchor: ReuseAnchor::Released,
            cooldown_429: Duration::from_secs(60),
            cooldown_403: Duration::from_secs(300),
            cooldown_proxy: Duration::from_secs(60),
            sticky_ttl: Duration::from_secs(600),
        }
    }
}

impl Identity {
    /// An identity without credential that serves one lease at a time.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            clients: Vec::new(),
            credential: Arc::default(),
            proxy: None,
            concurrency: 1,
            reuse_interval: Duration::ZERO,
        }
    }
}

impl Site {
    /// A site with default rules, without clients, groups and proxies.
    #[must_use]
    pub fn new(name: &str, identities: Vec<Identity>) -> Self {
        Self { name: name.into(), clients: Vec::new(), groups: Vec::new(), rules: Rules::default(), identities, pool: Pool::None }
    }
}
