//! The guard of a lease: whoever holds the last share of it ends it.
//!
//! A lease has one share, or one more for every request that is to follow under it. Dropping the last one releases
//! the lease, unless a releasing report took that over. It never asks the plane itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::time::Instant;

use super::ticket::Releaser;
use crate::plane::Grant;

/// One share of a lease.
pub(crate) struct LeaseGuard(Arc<Held>);

/// Leases that ended without a report, for the books.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Given back.
    pub(super) released: AtomicU64,
    /// Given back after their renewal had failed.
    pub(super) lost: AtomicU64,
}

struct Held {
    grant: Grant,
    releaser: Releaser,
    ends: Arc<Ends>,
    /// The last report made under it: the plane must have that before the lease ends.
    reported: AtomicU64,
    is_renewed: AtomicBool,
    is_lost: AtomicBool,
    is_over: AtomicBool,
}

impl LeaseGuard {
    pub(super) fn new(grant: Grant, releaser: Releaser, ends: Arc<Ends>) -> Self {
        Self(Arc::new(Held {
            grant,
            releaser,
            ends,
            reported: AtomicU64::new(0),
            is_renewed: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }))
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.0.grant
    }

    /// One more share.
    pub(super) fn share(&self) -> Self {
        Self(self.0.clone())
    }

    /// Whether this is the only share.
    pub(super) fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The last report made under the lease, by its place in the order of all.
    pub(super) fn reported(&self) -> u64 {
        self.0.reported.load(Ordering::Relaxed)
    }

    pub(super) fn note_report(&self, place: u64) {
        self.0.reported.store(place, Ordering::Relaxed);
    }

    /// Whether the broker renews it.
    pub(super) fn is_renewed(&self) -> bool {
        self.0.is_renewed.load(Ordering::Relaxed)
    }

    pub(super) fn note_renewed(&self) {
        self.0.is_renewed.store(true, Ordering::Relaxed);
    }

    /// Renewing it failed: nothing new goes under it.
    pub(super) fn lose(&self) {
        self.0.is_lost.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.0.is_lost.load(Ordering::Relaxed)
    }

    /// Whether a request that is sent now can go under it. One that the broker renews has no end known here.
    pub(super) fn serves(&self, until: Instant) -> bool {
        !self.is_lost() && (self.is_renewed() || self.grant().expires_at > until)
    }

    /// A releasing report ends the lease: the last share no longer does.
    pub(super) fn hand_over(self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Relaxed) {
            let ends = if self.is_lost.load(Ordering::Relaxed) { &self.ends.lost } else { &self.ends.released };
            ends.fetch_add(1, Ordering::Relaxed);
            (self.releaser)(self.grant.lease.clone());
        }
    }
}

impl fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaseGuard").field(&self.grant().lease).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::plane::{About, Credential, IdentityKey, LeaseId};

    fn guard() -> (LeaseGuard, Arc<Mutex<Vec<LeaseId>>>, Arc<Ends>) {
        let released: Arc<Mutex<Vec<LeaseId>>> = Arc::default();
        let ends: Arc<Ends> = Arc::default();
        let list = released.clone();
        let grant = Grant {
            lease: LeaseId("one".into()),
            identity: IdentityKey { site: "shop".into(), name: "anna".into() },
            credential: Arc::new(Credential::default()),
            proxy: None,
            about: About::default(),
            expires_at: Instant::now() + Duration::from_secs(60),
            renew_before: Duration::from_secs(15),
        };
        let releaser: Releaser = Arc::new(move |lease| list.lock().unwrap().push(lease));
        (LeaseGuard::new(grant, releaser, ends.clone()), released, ends)
    }

    #[test]
    fn the_last_share_releases_the_lease_once() {
        let (guard, released, ends) = guard();
        let (second, third) = (guard.share(), guard.share());
        drop(second);
        drop(guard);
        assert!(released.lock().unwrap().is_empty());
        assert!(third.is_last());
        drop(third);
        assert_eq!(released.lock().unwrap().len(), 1);
        assert_eq!(ends.released.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_lease_that_was_handed_over_is_not_released() {
        let (guard, released, ends) = guard();
        guard.hand_over();
        assert!(released.lock().unwrap().is_empty());
        assert_eq!(ends.released.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_lease_serves_until_it_expires_unless_it_is_renewed_and_not_lost() {
        let (guard, _released, ends) = guard();
        let later = Instant::now() + Duration::from_secs(61);
        assert!(guard.serves(Instant::now()) && !guard.serves(later));
        guard.note_renewed();
        assert!(guard.serves(later));
        guard.lose();
        assert!(!guard.serves(Instant::now()));
        drop(guard);
        assert_eq!((ends.released.load(Ordering::Relaxed), ends.lost.load(Ordering::Relaxed)), (0, 1));
    }
}
