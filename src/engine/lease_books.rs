//! The books of leases: what became of each one this run was granted, whichever plane granted it.
//!
//! Counted by the engine from what it ordered and was told; the plane's own ledger is never asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::guard::Ends;
use crate::api::stats::Stats;

/// Leases by their end, as this run knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseBooks {
    /// Granted.
    pub acquired: u64,
    /// Ended by a report that the plane took.
    pub reported: u64,
    /// Given back without a report.
    pub released: u64,
    /// Ended in a way the plane may not know of, so that it takes them back by their expiry: their renewal failed, giving
    /// them back failed, the plane did not know them when their last report came, or never took that report.
    pub lost: u64,
    /// How often one was prolonged.
    pub renewed: u64,
    /// Asks that were refused.
    pub refused: u64,
    /// Reports handed over, of leases that ended or not.
    pub reports: u64,
}

impl LeaseBooks {
    /// Whether the counts add up: `acquired == reported + released + lost`.
    #[must_use]
    pub const fn balances(&self) -> bool {
        self.acquired == self.reported + self.released + self.lost
    }
}

/// Counts as the run goes.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) acquired: u64,
    pub(super) refused: u64,
    /// Ended by a report that was taken.
    pub(super) reported: u64,
    /// Releasing reports made, and those of leases whose renewal had failed.
    pub(super) ending: u64,
    pub(super) ending_lost: u64,
    /// Unknown to the plane when their last report came.
    pub(super) unknown: u64,
    /// Given back after all, since the plane did not take the report that should have ended them.
    pub(super) after_all: u64,
    pub(super) ends: Arc<Ends>,
    /// What earlier runs of the job counted as renewed, as failed releases, and as reports.
    renewed_before: u64,
    failed_before: u64,
    reports_before: u64,
}

impl Account {
    /// Begins the books of a run over the job's counters.
    pub(super) fn begin(stats: &Stats) -> Self {
        Self {
            renewed_before: count(stats, "lease/renewed"),
            failed_before: count(stats, "lease/release_failed"),
            reports_before: count(stats, "reporter/reports"),
            ..Self::default()
        }
    }

    /// Leases that are out, or whose last report the plane does not have yet.
    pub(super) fn open(&self) -> u64 {
        self.acquired.saturating_sub(self.reported + self.unknown + self.after_all + self.given_back())
    }

    /// The books at the end of a run: a report that was not taken by now never will be.
    pub(super) fn close(&self, stats: &Stats) -> LeaseBooks {
        let dropped = self.ends.released.load(Ordering::Relaxed) + self.after_all;
        let failed = count(stats, "lease/release_failed").saturating_sub(self.failed_before).min(dropped);
        let of_lost = self.ending_lost.min(self.reported);
        let untaken = self.ending.saturating_sub(self.reported + self.unknown + self.after_all);
        LeaseBooks {
            acquired: self.acquired,
            reported: self.reported - of_lost,
            released: dropped - failed,
            lost: self.ends.lost.load(Ordering::Relaxed) + self.unknown + untaken + failed + of_lost,
            renewed: count(stats, "lease/renewed").saturating_sub(self.renewed_before),
            refused: self.refused,
            reports: count(stats, "reporter/reports").saturating_sub(self.reports_before),
        }
    }

    fn given_back(&self) -> u64 {
        self.ends.released.load(Ordering::Relaxed) + self.ends.lost.load(Ordering::Relaxed)
    }
}

fn count(stats: &Stats, name: &str) -> u64 {
    u64::try_from(stats.count(name)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lease_ends_in_one_of_three_ways() {
        let account =
            Account { acquired: 20, refused: 3, reported: 9, ending: 13, ending_lost: 1, unknown: 2, ..Account::default() };
        account.ends.released.fetch_add(5, Ordering::Relaxed);
        account.ends.lost.fetch_add(2, Ordering::Relaxed);
        let stats = Stats::new();
        stats.add("lease/release_failed", 1);
        stats.add("lease/renewed", 4);
        let books = account.close(&stats);
        // 13 ends by report: 9 taken, one of them of a lost lease; 2 unknown; 2 never taken.
        let expected = LeaseBooks { acquired: 20, reported: 8, released: 4, lost: 8, renewed: 4, refused: 3, reports: 0 };
        assert_eq!(books, expected);
        assert!(books.balances());
        assert_eq!(account.open(), 2);
    }

    #[test]
    fn a_report_that_was_not_taken_and_a_release_instead_count_once() {
        let account = Account { acquired: 2, reported: 1, ending: 2, after_all: 1, ..Account::default() };
        let books = account.close(&Stats::new());
        assert_eq!((books.reported, books.released, books.lost), (1, 1, 0));
        assert!(books.balances());
    }

    #[test]
    fn what_earlier_runs_counted_is_in_no_line_of_this_one() {
        let stats = Stats::new();
        let count_all = |n| ["lease/renewed", "lease/release_failed", "reporter/reports"].map(|name| stats.add(name, n));
        count_all(100);
        let account = Account::begin(&stats);
        account.ends.released.fetch_add(9, Ordering::Relaxed);
        count_all(7);
        let books = account.close(&stats);
        assert_eq!((books.renewed, books.released, books.lost, books.reports), (7, 2, 7, 7));
    }

    #[test]
    fn a_lease_that_nobody_ended_shows() {
        let account = Account { acquired: 3, reported: 2, ending: 2, ..Account::default() };
        assert!(!account.close(&Stats::new()).balances());
    }
}
