//! What errors have in common: families wider than one variant, and which ones may pass by themselves.

use super::Error;

impl Error {
    /// Whether the server cannot serve this now, for whatever reason: also no answer at all, an open breaker, a paused
    /// site.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::CircuitOpen(_) | Self::SitePaused(_) | Self::Transport(_))
    }

    /// Whether a limit is reached: no identity, no proxy, too many calls.
    #[must_use]
    pub const fn is_resource_exhausted(&self) -> bool {
        matches!(self, Self::ResourceExhausted(_) | Self::NoIdentityAvailable(_) | Self::NoProxyAvailable(_))
    }

    /// Whether the state of something does not allow it: of the system, of a lease, of this client or its reporter.
    #[must_use]
    pub const fn is_failed_precondition(&self) -> bool {
        matches!(
            self,
            Self::FailedPrecondition(_)
                | Self::LeaseReleased(_)
                | Self::LeaseExpired(_)
                | Self::ReporterClosed(_)
                | Self::ClientClosed(_)
        )
    }

    /// Whether there is no such thing: item, secret, namespace, lease.
    #[must_use]
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::LeaseUnknown(_))
    }

    /// Whether the lease is over: released, expired, unable to live longer, or unknown. Only another one helps.
    #[must_use]
    pub const fn is_lease_gone(&self) -> bool {
        matches!(self, Self::LeaseUnknown(_) | Self::LeaseReleased(_) | Self::LeaseExpired(_))
    }

    /// Whether only a person can help: the token is not accepted or may not do this.
    #[must_use]
    pub const fn is_access_denied(&self) -> bool {
        matches!(self, Self::Unauthenticated(_) | Self::PermissionDenied(_))
    }

    /// Whether the answer came from something between client and server, as far as one can tell.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.details().is_bare
    }

    /// Whether there was no answer, and the server provably never had the call.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self, Self::Transport(details) if details.is_unsent)
    }

    /// Whether trying again later may help: the class that background loops retry (wire contract, 7.3).
    #[must_use]
    pub fn is_retry_later(&self) -> bool {
        match self {
            Self::Transport(_)
            | Self::Unavailable(_)
            | Self::Internal(_)
            | Self::DeadlineExceeded(_)
            | Self::Aborted(_)
            | Self::ResourceExhausted(_)
            | Self::NoIdentityAvailable(_)
            | Self::NoProxyAvailable(_) => true,
            Self::CircuitOpen(_) | Self::SitePaused(_) => false,
            other => other.http_status() >= 500,
        }
    }
}
