//! Releases: leases that wait to be given back, a bounded number of them under way at once.
//!
//! Kept outside the broker, for its successor. Calls nobody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::plane::LeaseId;

/// How many leases are being given back right now; the last step of a shutdown waits for none. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Releasing(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: Mutex<VecDeque<LeaseId>>,
    under_way: AtomicUsize,
}

/// Ends its count however the release ends.
#[derive(Debug)]
pub(super) struct ReleaseUnderWay(Arc<Inner>);

impl Releasing {
    /// Releases wanted and not yet over.
    #[must_use]
    pub fn count(&self) -> usize {
        let queue = self.queue();
        queue.len() + self.0.under_way.load(Ordering::SeqCst)
    }

    /// Wants `lease` given back.
    pub(super) fn want(&self, lease: LeaseId) {
        self.queue().push_back(lease);
    }

    /// The next lease to give back, under way from now on.
    pub(super) fn begin(&self) -> Option<(LeaseId, ReleaseUnderWay)> {
        let mut queue = self.queue();
        let lease = queue.pop_front()?;
        self.0.under_way.fetch_add(1, Ordering::SeqCst); // under the lock: it is never counted nowhere
        Some((lease, ReleaseUnderWay(Arc::clone(&self.0))))
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<LeaseId>> {
        // Nothing that changes it can panic half-way.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReleaseUnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_release_counts_from_the_wish_to_its_end() {
        let releasing = Releasing::default();
        for name in ["a", "b"] {
            releasing.want(LeaseId(name.into()));
        }
        let (first, under_way) = releasing.begin().unwrap();
        assert_eq!((&*first.0, releasing.clone().count()), ("a", 2));
        drop(under_way);
        assert_eq!(releasing.count(), 1);
        assert_eq!(&*releasing.begin().unwrap().0.0, "b");
        assert!(releasing.begin().is_none());
        assert_eq!(releasing.count(), 0);
    }
}
