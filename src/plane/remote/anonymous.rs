//! Leases for hosts that no rule covers: one identity for each host, without credential and without limit.
//!
//! The server knows nothing of them: they are granted, prolonged and ended here, and what is reported on them is heard by
//! nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::plane::{About, Credential, Grant, IdentityKey, LeaseId};

/// The name of every host's identity.
const NAME: &str = "(anonymous)";

/// What every lease's name begins with; those of a server begin otherwise.
const PREFIX: &str = "any_";

/// How long a lease lasts, and how much longer after each renewal.
pub(super) const LIFE: Duration = Duration::from_secs(300);

/// Grants to everybody, at once.
#[derive(Debug)]
pub(super) struct Anonymous {
    granted: AtomicU64,
    run: String,
    name: Arc<str>,
    nothing: Arc<Credential>,
}

impl Anonymous {
    /// Leases whose names are those of this run.
    pub(super) fn new(run: &str) -> Self {
        Self { granted: AtomicU64::new(0), run: run.to_owned(), name: NAME.into(), nothing: Arc::default() }
    }

    /// Whether a lease is such a one.
    pub(super) fn owns(lease: &LeaseId) -> bool {
        lease.0.starts_with(PREFIX)
    }

    /// A lease of this host.
    pub(super) fn grant(&self, host: &Arc<str>, now: Instant) -> Grant {
        let number = self.granted.fetch_add(1, Ordering::Relaxed);
        Grant {
            lease: LeaseId(format!("{PREFIX}{}_{number}", self.run).into()),
            identity: IdentityKey { site: Arc::clone(host), name: Arc::clone(&self.name) },
            credential: Arc::clone(&self.nothing),
            proxy: None,
            about: About::default(),
            expires_at: now + LIFE,
            renew_before: LIFE / 4,
        }
    }
}
