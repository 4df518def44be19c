//! What a spider may know of the lease a response came under.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::plane::{About, Credential, Grant, IdentityKey, LeaseId, ProxyAbout};

/// A lease as a spider sees it: names and times, and nothing that is secret. Its `Debug` may be logged.
#[derive(Clone)]
pub struct LeaseView {
    id: LeaseId,
    identity: IdentityKey,
    about: About,
    expires_at: Instant,
    /// Shown to nobody: to know what a page repeats of it.
    pub(crate) credential: Arc<Credential>,
}

impl LeaseView {
    pub(crate) fn of(grant: &Grant) -> Self {
        Self {
            id: grant.lease.clone(),
            identity: grant.identity.clone(),
            about: grant.about.clone(),
            expires_at: grant.expires_at,
            credential: Arc::clone(&grant.credential),
        }
    }

    /// The lease's name at the control plane.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id.0
    }

    /// The control plane's name of the site; the host for a lease without rule.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.identity.site
    }

    /// The identity's name within the site.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity.name
    }

    /// The type of the identity; empty where there is none.
    #[must_use]
    pub fn identity_type(&self) -> &str {
        &self.about.identity_type
    }

    /// The endpoint group the control plane chose; empty where there is none.
    #[must_use]
    pub fn endpoint_group(&self) -> &str {
        &self.about.group
    }

    /// The proxy, if the request went through one.
    #[must_use]
    pub fn proxy(&self) -> Option<&ProxyAbout> {
        self.about.proxy.as_ref()
    }

    /// Whether the session key chose the identity.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.about.is_sticky
    }

    /// Whether the control plane tries with this lease if site or identity are good again.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.about.is_probe
    }

    /// When the control plane takes the lease back, as known when the request was sent.
    #[must_use]
    pub fn expires_at(&self) -> Instant {
        self.expires_at
    }
}

impl fmt::Debug for LeaseView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseView")
            .field("id", &self.id)
            .field("identity", &self.identity)
            .field("about", &self.about)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
