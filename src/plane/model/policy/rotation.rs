//! Rotation policy: who is leased, for how long, how often (wire contract, section 21.1).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Policy;
use super::duration::{LONGEST, text};
use super::error::PolicyError;
use super::head::{Head, KEYS, Kind};
use super::proxy::{self, ProxyPolicy};
use super::read::{At, Table};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Most quotas of one policy: each is two numbers per identity and group.
const MAX_QUOTAS: usize = 16;

/// The policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RotationPolicy {
    pub(crate) head: Head,
    /// The types that are leased; none means all of site and client.
    pub(crate) identity_types: Box<[Arc<str>]>,
    pub(crate) strategy: Strategy,
    /// Identities looked at in one round (K), 1..256.
    pub(crate) candidate_sample: u32,
    /// Until a lease expires that is not renewed, 5 s..30 min.
    pub(crate) lease_ttl: Duration,
    /// Until it can be renewed no more, at least `lease_ttl`, at most a day.
    pub(crate) max_lease_lifetime: Duration,
    /// Leases of one identity at once, over all groups of the site, 1..10,000.
    pub(crate) max_concurrent_leases: u32,
    /// The rest between two leases of one identity; zero for none.
    pub(crate) reuse_interval: Duration,
    pub(crate) reuse_anchor: ReuseAnchor,
    pub(crate) reuse_scope: ReuseScope,
    /// Requests per time; no two of one window.
    pub(crate) quota: Box<[Quota]>,
    pub(crate) sticky: Sticky,
    pub(crate) warmup: Warmup,
    pub(crate) probe: Probe,
    pub(crate) proxy: ProxyPolicy,
}

/// How one of the candidates is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    WeightedRandom,
    LeastRecentlyUsed,
    RoundRobin,
    BestHealth,
}

/// When the rest begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReuseAnchor {
    Released,
    Acquired,
}

/// Where the identity rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReuseScope {
    EndpointGroup,
    Site,
}

/// So many requests of one identity to one group in a window of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) limit: u32,
    pub(crate) window: Duration,
}

/// Whether a session key keeps its identity, and for how long after its last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sticky {
    pub(crate) enabled: bool,
    pub(crate) ttl: Duration,
}

/// A young identity's share of its quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Warmup {
    /// Since the activation; zero for no warm-up.
    pub(crate) duration: Duration,
    pub(crate) quota_factor: f64,
}

/// How carefully a pending identity is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Probe {
    pub(crate) weight_factor: f64,
    pub(crate) max_leases: u32,
}

impl Default for RotationPolicy {
    fn default() -> Self {
        Self {
            head: Head::built_in(Kind::Rotation),
            identity_types: Box::default(),
            strategy: Strategy::WeightedRandom,
            candidate_sample: 32,
            lease_ttl: Duration::from_secs(120),
            max_lease_lifetime: 30 * MINUTE,
            max_concurrent_leases: 1,
            reuse_interval: Duration::ZERO,
            reuse_anchor: ReuseAnchor::Released,
            reuse_scope: ReuseScope::EndpointGroup,
            quota: Box::default(),
            sticky: Sticky { enabled: false, ttl: 10 * MINUTE },
            warmup: Warmup { duration: Duration::ZERO, quota_factor: 1.0 },
            probe: Probe { weight_factor: 0.1, max_leases: 2 },
            proxy: ProxyPolicy::default(),
        }
    }
}

impl Policy for RotationPolicy {
    const KIND: Kind = Kind::Rotation;

    fn head(&self) -> &Head {
        &self.head
    }

    fn read(document: &Value) -> Result<Self, PolicyError> {
        let [name, description, bind] = KEYS;
        let at = At::top(Self::KIND, document);
        let top = Table::of(document, at, &[name, description, bind, "identity_types", "rotation", "proxy"])?;
        let rotation = top.table(
            "rotation",
            &[
                "strategy",
                "candidate_sample",
                "lease_ttl",
                "max_lease_lifetime",
                "max_concurrent_leases",
                "reuse_interval",
                "reuse_anchor",
                "reuse_scope",
                "quota",
                "sticky",
                "warmup",
                "probe",
            ],
        )?;
        let usual = Self::default();
        let lease_ttl = rotation.field("lease_ttl").duration(5 * SECOND..=30 * MINUTE)?.unwrap_or(usual.lease_ttl);
        let lifetime = rotation.field("max_lease_lifetime");
        let max_lease_lifetime = lifetime.duration(5 * SECOND..=DAY)?.unwrap_or(usual.max_lease_lifetime);
        if max_lease_lifetime < lease_ttl {
            let allowed = format!("lease_ttl, which is {}, to 1d", text(lease_ttl));
            return Err(lifetime.at.wrong(text(max_lease_lifetime), allowed));
        }
        let reuse = rotation.field("reuse_interval").duration(Duration::ZERO..=LONGEST)?;
        Ok(Self {
            head: Head::read(&top)?,
            identity_types: top.field("identity_types").names()?,
            strategy: rotation.field("strategy").choice(&STRATEGIES)?.unwrap_or(usual.strategy),
            candidate_sample: rotation.field("candidate_sample").count(1..=256)?.unwrap_or(usual.candidate_sample),
            lease_ttl,
            max_lease_lifetime,
            max_concurrent_leases: rotation
                .field("max_concurrent_leases")
                .count(1..=10_000)?
                .unwrap_or(usual.max_concurrent_leases),
            reuse_interval: reuse.unwrap_or(usual.reuse_interval),
            reuse_anchor: rotation
                .field("reuse_anchor")
                .choice(&[("released", ReuseAnchor::Released), ("acquired", ReuseAnchor::Acquired)])?
                .unwrap_or(usual.reuse_anchor),
            reuse_scope: rotation
                .field("reuse_scope")
                .choice(&[("endpoint_group", ReuseScope::EndpointGroup), ("site", ReuseScope::Site)])?
                .unwrap_or(usual.reuse_scope),
            quota: quotas(&rotation)?,
            sticky: sticky(&rotation, usual.sticky)?,
            warmup: warmup(&rotation, usual.warmup)?,
            probe: probe(&rotation, usual.probe)?,
            proxy: proxy::read(&top)?,
        })
    }
}

const STRATEGIES: [(&str, Strategy); 4] = [
    ("weighted_random", Strategy::WeightedRandom),
    ("least_recently_used", Strategy::LeastRecentlyUsed),
    ("round_robin", Strategy::RoundRobin),
    ("best_health", Strategy::BestHealth),
];

fn quotas(rotation: &Table<'_>) -> Result<Box<[Quota]>, PolicyError> {
    let mut quotas: Vec<Quota> = Vec::new();
    for item in rotation.field("quota").items(MAX_QUOTAS)? {
        let Some(table) = item.required("a table with limit and window")?.table(&["limit", "window"])? else { continue };
        let limit = table.field("limit").required("the requests of one window, 1 or more")?.count(1..=1_000_000_000)?;
        let window = table.field("window").required("the length of the window, such as \"1h\"")?;
        let at = window.at.clone();
        if let (Some(limit), Some(window)) = (limit, window.duration(SECOND..=LONGEST)?) {
            if quotas.iter().any(|quota| quota.window == window) {
                return Err(at.wrong(text(window), "a window that no other quota of the policy has"));
            }
            quotas.push(Quota { limit, window });
        }
    }
    Ok(quotas.into())
}

fn sticky(rotation: &Table<'_>, usual: Sticky) -> Result<Sticky, PolicyError> {
    let table = rotation.table("sticky", &["enabled", "ttl"])?;
    Ok(Sticky {
        enabled: table.field("enabled").flag()?.unwrap_or(usual.enabled),
        ttl: table.field("ttl").duration(SECOND..=LONGEST)?.unwrap_or(usual.ttl),
    })
}

fn warmup(rotation: &Table<'_>, usual: Warmup) -> Result<Warmup, PolicyError> {
    let table = rotation.table("warmup", &["duration", "quota_factor"])?;
    Ok(Warmup {
        duration: table.field("duration").duration(Duration::ZERO..=LONGEST)?.unwrap_or(usual.duration),
        quota_factor: table.field("quota_factor").factor()?.unwrap_or(usual.quota_factor),
    })
}

fn probe(rotation: &Table<'_>, usual: Probe) -> Result<Probe, PolicyError> {
    let table = rotation.table("probe", &["weight_factor", "max_leases"])?;
    Ok(Probe {
        weight_factor: table.field("weight_factor").factor()?.unwrap_or(usual.weight_factor),
        max_leases: table.field("max_leases").count(1..=10_000)?.unwrap_or(usual.max_leases),
    })
}
