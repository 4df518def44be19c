//! The books of a scripted plane, typed.

use std::collections::BTreeMap;

use crate::plane::model::authority;

/// What was leased and reported, by site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// By name.
    pub sites: BTreeMap<String, SiteLedger>,
    /// Reports that named no lease of any site: of a plane before a restart, say.
    pub stray_reports: u64,
}

/// The books of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SiteLedger {
    /// Leases granted.
    pub acquired: u64,
    /// Leases given back, those that were never delivered too.
    pub released: u64,
    /// Leases that the plane took back.
    pub expired: u64,
    /// Leases that are out.
    pub open: u64,
    /// Leases that were never delivered.
    pub aborted: u64,
    /// Leases that expired without a report.
    pub abandoned: u64,
    /// Reports taken.
    pub reports_accepted: u64,
    /// Reports that came again.
    pub reports_duplicated: u64,
    /// Reports that were not taken.
    pub reports_rejected: u64,
    /// By name.
    pub identities: BTreeMap<String, IdentityLedger>,
}

/// The books of an identity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdentityLedger {
    /// `pending`, `active`, `expired`, `banned`, `quarantined` or `disabled`.
    pub state: String,
    /// Leases granted.
    pub acquired: u64,
    /// Leases given back.
    pub released: u64,
    /// Leases that the plane took back.
    pub expired: u64,
    /// Leases that are out.
    pub open: u64,
    /// Reports taken.
    pub reports: u64,
    /// Cool-downs that took effect.
    pub cooldowns: u64,
    /// Bans that took effect.
    pub bans: u64,
}

impl Ledger {
    /// Whether each site's count of leases adds up, as a whole and over its identities.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.sites.values().all(SiteLedger::balances)
    }

    /// All sites as one; without identities.
    #[must_use]
    pub fn total(&self) -> SiteLedger {
        self.sites.values().fold(SiteLedger::default(), |sum, site| SiteLedger {
            acquired: sum.acquired + site.acquired,
            released: sum.released + site.released,
            expired: sum.expired + site.expired,
            open: sum.open + site.open,
            aborted: sum.aborted + site.aborted,
            abandoned: sum.abandoned + site.abandoned,
            reports_accepted: sum.reports_accepted + site.reports_accepted,
            reports_duplicated: sum.reports_duplicated + site.reports_duplicated,
            reports_rejected: sum.reports_rejected + site.reports_rejected,
            identities: BTreeMap::new(),
        })
    }
}

impl SiteLedger {
    /// Whether `acquired` is `released + expired + open`, as a whole and over the identities.
    #[must_use]
    pub fn balances(&self) -> bool {
        let of = |count: fn(&IdentityLedger) -> u64| self.identities.values().map(count).sum::<u64>();
        let whole = self.acquired == self.released + self.expired + self.open;
        let parts = self.identities.values().all(|one| one.acquired == one.released + one.expired + one.open);
        whole && parts && (self.identities.is_empty() || of(|one| one.acquired) == self.acquired)
    }
}

impl From<authority::Ledger> for Ledger {
    fn from(of: authority::Ledger) -> Self {
        let authority::Ledger { sites, stray_reports } = of;
        Self { sites: sites.into_iter().map(|(name, site)| (name, site.into())).collect(), stray_reports }
    }
}

impl From<authority::SiteLedger> for SiteLedger {
    fn from(of: authority::SiteLedger) -> Self {
        Self {
            acquired: of.acquired,
            released: of.released,
            expired: of.expired,
            open: of.open,
            aborted: of.aborted,
            abandoned: of.abandoned,
            reports_accepted: of.reports_accepted,
            reports_duplicated: of.reports_duplicated,
            reports_rejected: of.reports_rejected,
            identities: of.identities.into_iter().map(|(name, identity)| (name, identity.into())).collect(),
        }
    }
}

impl From<authority::IdentityLedger> for IdentityLedger {
    fn from(of: authority::IdentityLedger) -> Self {
        Self {
            state: of.state,
            acquired: of.acquired,
            released: of.released,
            expired: of.expired,
            open: of.open,
            reports: of.reports,
            cooldowns: of.cooldowns,
            bans: of.bans,
        }
    }
}
