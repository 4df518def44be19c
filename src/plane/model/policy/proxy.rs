//! The proxy part of a rotation policy (wire contract, sections 21.1 and 23).

use std::sync::Arc;
use std::time::Duration;

use super::duration::LONGEST;
use super::error::PolicyError;
use super::read::Table;

/// Which proxy a lease gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyPolicy {
    pub(crate) mode: ProxyMode,
    /// Any of these kinds; none given means any at all. So for providers and regions.
    pub(crate) kinds: Box<[Arc<str>]>,
    /// All of these tags.
    pub(crate) tags: Box<[Arc<str>]>,
    pub(crate) providers: Box<[Arc<str>]>,
    pub(crate) regions: Box<[Arc<str>]>,
    /// Whether the proxy's region must be the identity's, in any mode.
    pub(crate) region_match: bool,
    /// How long an identity waits for its own proxy before it gets another; zero for not at all.
    pub(crate) rebind_tolerance: Duration,
    /// Other proxies for one identity on one day (UTC); 0 keeps the first for ever.
    pub(crate) max_rebinds_per_day: u32,
}

/// How leases and proxies go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyMode {
    None,
    Pool,
    BindIdentity,
    RegionMatch,
}

impl ProxyPolicy {
    /// Whether the proxy must have the region of the identity.
    pub(crate) fn matches_region(&self) -> bool {
        self.region_match || self.mode == ProxyMode::RegionMatch
    }
}

impl Default for ProxyPolicy {
    fn default() -> Self {
        Self {
            mode: ProxyMode::None,
            kinds: Box::default(),
            tags: Box::default(),
            providers: Box::default(),
            regions: Box::default(),
            region_match: false,
            rebind_tolerance: Duration::from_secs(300),
            max_rebinds_per_day: 3,
        }
    }
}

/// The table `proxy` of a rotation policy.
pub(super) fn read(top: &Table<'_>) -> Result<ProxyPolicy, PolicyError> {
    let table = top.table(
        "proxy",
        &["mode", "kinds", "tags", "providers", "regions", "region_match", "rebind_tolerance", "max_rebinds_per_day"],
    )?;
    let usual = ProxyPolicy::default();
    Ok(ProxyPolicy {
        mode: table.field("mode").choice(&MODES)?.unwrap_or(usual.mode),
        kinds: table.field("kinds").names()?,
        tags: table.field("tags").names()?,
        providers: table.field("providers").names()?,
        regions: table.field("regions").names()?,
        region_match: table.field("region_match").flag()?.unwrap_or(usual.region_match),
        rebind_tolerance: table.field("rebind_tolerance").duration(Duration::ZERO..=LONGEST)?.unwrap_or(usual.rebind_tolerance),
        max_rebinds_per_day: table.field("max_rebinds_per_day").count(0..=1_000_000)?.unwrap_or(usual.max_rebinds_per_day),
    })
}

const MODES: [(&str, ProxyMode); 4] = [
    ("none", ProxyMode::None),
    ("pool", ProxyMode::Pool),
    ("bind_identity", ProxyMode::BindIdentity),
    ("region_match", ProxyMode::RegionMatch),
];
