//! When the leases that are out end, by the server's clock and by ours.
//!
//! The server tells the end of a renewed lease as a time of its own clock. What it was before is needed to know how much
//! later that is, so it is kept while the lease is out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::plane::LeaseId;
use crate::spinneret::Expiry;

/// How long a lease lives of which nothing is known (wire contract, 21.1: `rotation.lease_ttl`).
const LIFE: Duration = Duration::from_secs(120);

/// With fewer leases than this nobody looks for such as ended without a word.
const FEW: usize = 1024;

/// The ends of the leases that are out.
#[derive(Debug, Default)]
pub(super) struct Lives {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    ends: HashMap<Arc<str>, Expiry>,
    /// With so many leases, those that are past their end are dropped.
    sweep_at: usize,
}

impl Lives {
    /// A lease was granted.
    pub(super) fn granted(&self, lease: &LeaseId, expiry: Expiry, now: Instant) {
        let mut table = self.table();
        if table.ends.len() >= table.sweep_at.max(FEW) {
            table.ends.retain(|_, expiry| expiry.ends().is_some_and(|ends| ends > now));
            table.sweep_at = table.ends.len() * 2;
        }
        table.ends.insert(Arc::clone(&lease.0), expiry);
    }

    /// A lease is over.
    pub(super) fn over(&self, lease: &LeaseId) {
        self.table().ends.remove(&lease.0);
    }

    /// A lease was renewed: its end, by our clock.
    pub(super) fn renewed(&self, lease: &LeaseId, at: Option<Timestamp>, wall: Timestamp, now: Instant) -> Instant {
        let mut table = self.table();
        let known = table.ends.get_mut(&lease.0);
        let ends = match (known, at) {
            (Some(expiry), Some(at)) => {
                expiry.move_to(at);
                expiry.ends()
            }
            (Some(expiry), None) => expiry.ends(),
            (None, _) => None,
        };
        ends.or_else(|| Expiry::granted(at, Duration::ZERO, wall, now).ends()).unwrap_or_else(|| now + LIFE)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn lease(name: impl Into<Arc<str>>) -> LeaseId {
        LeaseId(name.into())
    }

    #[test]
    fn a_renewal_counts_by_the_difference_whatever_the_clocks_say() {
        let (lives, now) = (Lives::default(), Instant::now());
        for clock in [0, -3600, 3600] {
            lives.granted(&lease("a"), Expiry::granted(Some(at(clock + 120)), s(30), at(0), now), now);
            assert_eq!(lives.renewed(&lease("a"), Some(at(clock + 210)), at(90), now + s(90)), now + s(210), "{clock}");
            assert_eq!(lives.renewed(&lease("a"), None, at(90), now + s(90)), now + s(210));
            assert_eq!(lives.renewed(&lease("a"), Some(at(clock + 300)), at(180), now + s(180)), now + s(300));
        }
    }

    #[test]
    fn a_lease_nobody_knows_ends_when_its_answer_says_or_after_the_usual_time() {
        let (lives, now) = (Lives::default(), Instant::now());
        for (told, ends) in [(Some(at(60)), 60), (Some(at(-60)), 120), (Some(at(86_400)), 120), (None, 120)] {
            assert_eq!(lives.renewed(&lease("a"), told, at(0), now), now + s(ends), "{told:?}");
        }
        lives.granted(&lease("a"), Expiry::granted(Some(at(3600)), s(30), at(0), now), now);
        lives.over(&lease("a"));
        assert_eq!(lives.renewed(&lease("a"), Some(at(3600)), at(0), now), now + s(120));
    }

    #[test]
    fn leases_that_end_without_a_word_are_forgotten() {
        let (lives, begin) = (Lives::default(), Instant::now());
        for n in 0..100_000_u64 {
            let now = begin + Duration::from_millis(n * 100);
            lives.granted(&lease(n.to_string()), Expiry::granted(Some(at(120)), s(30), at(0), now), now);
            assert!(lives.table().ends.len() <= 2 * 1200 + 1);
        }
        let forever = Lives::default();
        for n in 0..5_000_u64 {
            forever.granted(&lease(n.to_string()), Expiry::granted(Some(at(120)), s(30), at(0), begin), begin);
        }
        assert_eq!(forever.table().ends.len(), 5_000, "those that live are kept");
    }
}
