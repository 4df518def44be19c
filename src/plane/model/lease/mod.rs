//! The life of leases: their table, what they take from an identity, which reports were seen (wire contract, sections 22, 24).
//!
//! Knows neither the identities nor the groups: what a lease holds is the caller's, and comes back when the lease ends.

mod dedup;
mod hash;
mod occupancy;
mod reuse;
mod table;

pub(crate) use dedup::{ReportDedup, Seen};
pub(crate) use occupancy::{Occupancy, busy_until, lease_limit};
pub(crate) use reuse::{Reuse, ReuseAnchor, ReuseMark, ReuseScope};
pub(crate) use table::{Ended, LeaseKey, LeaseState, LeaseTable, LeaseTerms, REAP_BATCH, RenewError, Retention, Timeliness};
