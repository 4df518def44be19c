//! The books of a plane, as they are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::Plane;
use super::site::Site;
use crate::plane::{IdentityKey, IdentityUse, PlaneLedger};

/// All sites by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Ledger {
    pub(crate) sites: BTreeMap<String, SiteLedger>,
    /// Reports that named no lease of any site.
    pub(crate) stray_reports: u64,
}

/// A site's books: `acquired == released + expired + open`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct SiteLedger {
    pub(crate) acquired: u64,
    /// Aborted ones too.
    pub(crate) released: u64,
    pub(crate) expired: u64,
    pub(crate) open: u64,
    /// Leases that were never delivered.
    pub(crate) aborted: u64,
    /// Leases that expired without a report.
    pub(crate) abandoned: u64,
    pub(crate) reports_accepted: u64,
    pub(crate) reports_duplicated: u64,
    pub(crate) reports_rejected: u64,
    /// Identities and proxies that reports sent to rest, each time counted: cooled down, banned, quarantined, expired.
    pub(crate) cooled: u64,
    pub(crate) identities: BTreeMap<String, IdentityLedger>,
}

/// An identity's books.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct IdentityLedger {
    pub(crate) state: String,
    pub(crate) acquired: u64,
    pub(crate) released: u64,
    pub(crate) expired: u64,
    pub(crate) open: u64,
    pub(crate) reports: u64,
    /// Cool-downs that took effect.
    pub(crate) cooldowns: u64,
    /// Bans that took effect.
    pub(crate) bans: u64,
}

impl Plane {
    /// The books as they are.
    pub(crate) fn ledger(&self) -> Ledger {
        let named =
            self.by_name.iter().filter_map(|(name, key)| Some((name.to_string(), self.sites.get(*key as usize)?.ledger())));
        Ledger { sites: named.collect(), stray_reports: self.stray_reports }
    }

    /// The leases of each identity that has had any, most first.
    pub(crate) fn uses(&self) -> Vec<IdentityUse> {
        let mut uses: Vec<IdentityUse> = self.sites.iter().flat_map(Site::uses).collect();
        uses.sort_by_key(|of| std::cmp::Reverse(of.leases));
        uses
    }

    /// The sums of all sites, those too that a reloaded file no longer has.
    pub(crate) fn totals(&self) -> PlaneLedger {
        let mut totals = PlaneLedger::default();
        for site in &self.sites {
            let counts = site.leases.counts();
            totals.acquired += counts.acquired;
            totals.released += counts.released;
            totals.expired += counts.expired;
            totals.open += counts.open;
            totals.reports += site.books.accepted;
            totals.cooled += site.books.cooled;
        }
        totals
    }
}

impl Site {
    fn uses(&self) -> impl Iterator<Item = IdentityUse> {
        self.identities.iter().filter(|identity| identity.books.acquired > 0).map(|identity| IdentityUse {
            identity: IdentityKey { site: Arc::clone(&self.name), name: Arc::clone(&identity.id) },
            leases: identity.books.acquired,
        })
    }

    pub(super) fn ledger(&self) -> SiteLedger {
        let counts = self.leases.counts();
        let identities = self.identities.iter().map(|identity| {
            let books = identity.books;
            let ledger = IdentityLedger {
                state: identity.state.name().to_owned(),
                acquired: books.acquired,
                released: books.released,
                expired: books.expired,
                open: u64::from(identity.occupancy.active()),
                reports: books.reports,
                cooldowns: books.cooldowns,
                bans: books.bans,
            };
            (identity.id.to_string(), ledger)
        });
        SiteLedger {
            acquired: counts.acquired,
            released: counts.released,
            expired: counts.expired,
            open: counts.open,
            aborted: counts.aborted,
            abandoned: counts.abandoned,
            reports_accepted: self.books.accepted,
            reports_duplicated: self.books.duplicated,
            reports_rejected: self.books.rejected,
            cooled: self.books.cooled,
            identities: identities.collect(),
        }
    }
}
