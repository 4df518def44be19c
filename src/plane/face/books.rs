//! The ledger as `GET /plane/ledger` shows it: what was leased and reported, by site and identity.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::plane::model::authority::{IdentityLedger, Ledger, SiteLedger};

/// All sites by name.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'l> {
    sites: BTreeMap<&'l str, Site<'l>>,
}

/// `acquired == released + expired + open`, in every site and for every identity.
#[derive(Debug, Serialize)]
struct Site<'l> {
    acquired: u64,
    released: u64,
    expired: u64,
    open: u64,
    reports_accepted: u64,
    reports_duplicated: u64,
    reports_rejected: u64,
    identities: &'l BTreeMap<String, IdentityLedger>,
}

impl<'l> Shown<'l> {
    pub(super) fn of(ledger: &'l Ledger) -> Self {
        Self { sites: ledger.sites.iter().map(|(name, site)| (name.as_str(), Site::of(site))).collect() }
    }
}

impl<'l> Site<'l> {
    const fn of(site: &'l SiteLedger) -> Self {
        Self {
            acquired: site.acquired,
            released: site.released,
            expired: site.expired,
            open: site.open,
            reports_accepted: site.reports_accepted,
            reports_duplicated: site.reports_duplicated,
            reports_rejected: site.reports_rejected,
            identities: &site.identities,
        }
    }
}
