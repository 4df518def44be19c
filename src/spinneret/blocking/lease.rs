//! Leases of plain threads, guards as the others.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::background::Background;
use crate::spinneret::messages::{Credential, ProxyAssignment, Report};
use crate::spinneret::{self, Error, Explicit, Parts, ReportDraft, Result};

/// A lease that is not acquired yet; made by [`Client::lease`](super::Client::lease). It has no identity and no proxy, and
/// can be acquired once.
#[must_use = "nothing is asked for until it is acquired"]
pub struct NewLease {
    lease: spinneret::NewLease,
    background: Arc<Background>,
}

impl NewLease {
    pub(super) const fn new(background: Arc<Background>, lease: spinneret::NewLease) -> Self {
        Self { lease, background }
    }

    /// Makes the end of the lease wait until the reporter is empty, at most its `close_timeout`. A dropped lease never
    /// waits.
    pub fn flush_on_exit(mut self) -> Self {
        self.lease = self.lease.flush_on_exit();
        self
    }

    /// Makes [`Self::run`] fail when the block was fine and the lease could not be given back.
    pub fn raise_on_release_error(mut self) -> Self {
        self.lease = self.lease.raise_on_release_error();
        self
    }

    /// Renews the lease by itself, as long before its end as the server advises, by the policy's own duration.
    pub fn auto_renew(mut self) -> Self {
        self.lease = self.lease.auto_renew();
        self
    }

    /// Renews the lease by itself, by this much every time: at most 30 min.
    pub fn auto_renew_by(mut self, extend: Duration) -> Self {
        self.lease = self.lease.auto_renew_by(extend);
        self
    }

    /// Asks for the lease.
    ///
    /// # Errors
    /// Any [`Error`] of a call. [`Error::NoIdentityAvailable`], [`Error::NoProxyAvailable`], [`Error::CircuitOpen`] and
    /// [`Error::SitePaused`] say with [`Error::retry_after`] when to ask again. Nothing is held and nothing is to be
    /// released.
    pub fn acquire(self) -> Result<Lease> {
        let lease = self.background.wait(self.lease.acquire())?;
        Ok(Lease::new(self.background, lease))
    }

    /// Asks for the lease, runs the block with it on this thread, and gives it back: by the last report, or by a call if
    /// there was none. If the block panics, the lease is given back in the background.
    ///
    /// ```no_run
    /// # use dragline::spinneret::{AcquireRequest, Error, ReportDraft, blocking::Client};
    /// # fn fetch(_: &dragline::spinneret::blocking::Lease) -> u16 { 200 }
    /// # fn example(client: Client) -> Result<(), Error> {
    /// let status = client.lease(AcquireRequest::new("shop", "web").uri("/search"))?.run(|lease| {
    ///     let status = fetch(lease);
    ///     lease.report(ReportDraft::status(status))?;
    ///     Ok::<_, Error>(status)
    /// })?;
    /// # assert_eq!(status, 200); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The error of [`Self::acquire`], before the block runs; the error of the block, whatever the release does; with
    /// [`Self::raise_on_release_error`] the error of the release after a block that was fine.
    pub fn run<T, E: From<Error>>(self, block: impl FnOnce(&Lease) -> Result<T, E>) -> Result<T, E> {
        let on_release_error = self.lease.on_release_error();
        let lease = self.acquire()?;
        let result = block(&lease);
        on_release_error.outcome(result, lease.release())
    }
}

impl fmt::Debug for NewLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease.fmt(f)
    }
}

/// A lease: an identity, and a proxy, for as long as it is held.
///
/// Every request made under it is [reported](Self::report); the last report gives the lease back, when it is released or
/// dropped: at the end of its scope, on an early return, by a panic. Dropping may be done anywhere, and waits only where it
/// is the last handle of its client. See [`spinneret::Lease`](crate::spinneret::Lease). Shared as `Arc<Lease>` it serves
/// several threads. The HTTP client is the caller's choice: [`Self::parts`] has everything for it as plain values.
pub struct Lease {
    /// There until it is dropped.
    lease: Option<spinneret::Lease>,
    background: Arc<Background>,
}

impl Lease {
    pub(super) const fn new(background: Arc<Background>, lease: spinneret::Lease) -> Self {
        Self { lease: Some(lease), background }
    }

    #[allow(clippy::expect_used, reason = "only Drop takes it out")]
    const fn lease(&self) -> &spinneret::Lease {
        self.lease.as_ref().expect("a lease is there until it is dropped")
    }

    /// The lease's name; opaque.
    #[must_use]
    pub fn lease_id(&self) -> &str {
        self.lease().lease_id()
    }

    /// The identity's name.
    #[must_use]
    pub fn identity_id(&self) -> &str {
        self.lease().identity_id()
    }

    /// The identity's type, `account` for one.
    #[must_use]
    pub fn identity_type(&self) -> &str {
        self.lease().identity_type()
    }

    /// The endpoint group the lease counts for.
    #[must_use]
    pub fn endpoint_group(&self) -> &str {
        self.lease().endpoint_group()
    }

    /// What the identity puts on a request.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        self.lease().credential()
    }

    /// The proxy to go through; `None` when the policy assigns none.
    #[must_use]
    pub fn proxy(&self) -> Option<&ProxyAssignment> {
        self.lease().proxy()
    }

    /// When the server takes the lease back, by the server's clock; the latest renewal counts.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.lease().expires_at()
    }

    /// How long before its end the server advises to renew the lease; zero without advice.
    #[must_use]
    pub fn renew_before(&self) -> Duration {
        self.lease().renew_before()
    }

    /// Whether the server tries something out with this lease: its report matters more than others.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.lease().is_probe()
    }

    /// Whether the identity is the one the session key had before.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.lease().is_sticky()
    }

    /// Whether the lease was given back here. What the server does by itself is not seen here; see [`Self::is_lost`].
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.lease().is_released()
    }

    /// Whether a renewal found the lease gone, or could not be made before its end.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lease().is_lost()
    }

    /// What a request under this lease carries when the caller says this much, for any HTTP client. See
    /// [`parts`](crate::spinneret::parts).
    #[must_use]
    pub fn parts(&self, explicit: &Explicit) -> Parts {
        self.lease().parts(explicit)
    }

    /// Reports a request; never waits, and may be called anywhere. The report is sent in the background when the next one
    /// is made, or when the lease is over: then it gives the lease back. A draft with [`ReportDraft::release`] gives it
    /// back at once.
    ///
    /// Answers the report as it was built; `release` is still false in one that is held back.
    ///
    /// # Errors
    /// - [`Error::LeaseReleased`]: the lease is over. Acquire another one.
    /// - [`Error::InvalidArgument`]: the draft breaks a bound, or has no URI when the lease was acquired without one.
    /// - [`Error::ReporterClosed`]: the client is being closed. An earlier report is delivered all the same.
    pub fn report(&self, draft: impl Into<ReportDraft>) -> Result<Report> {
        // What the conversion does is the caller's, and stays on the caller's runtime.
        let draft = draft.into();
        let _inside = self.background.enter()?;
        self.lease().report(draft)
    }

    /// Reports a request that failed: [`ReportDraft::error`] with nothing added.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn report_error(&self, error: &(dyn StdError + 'static)) -> Result<Report> {
        self.report(ReportDraft::error(error))
    }

    /// Prolongs the lease by this much from now, at most 30 min; zero means the policy's own duration. Never shortens it.
    /// Answers the expiry that now holds.
    ///
    /// # Errors
    /// - [`Error::LeaseReleased`], [`Error::LeaseUnknown`], [`Error::LeaseExpired`]: the lease is over, or (with reason
    ///   `lease_lifetime_exceeded`) cannot be prolonged any more. Acquire another one.
    /// - [`Error::InvalidArgument`]: too long.
    /// - Any other [`Error`] of a call: the lease is still there, until its expiry.
    pub fn renew(&self, extend: Duration) -> Result<Option<Timestamp>> {
        self.background.wait(self.lease().renew(extend))
    }

    /// Gives the lease back now: by the report held back, or by a call if there was none. Does nothing when the lease is
    /// over. A lease that was gone already is no error.
    ///
    /// # Errors
    /// Why the call failed; the lease then ends by itself at its expiry. A last report that could not be delivered is
    /// logged and no error. [`Error::Configuration`] inside a tokio runtime; the lease is still there then.
    pub fn release(&self) -> Result<()> {
        self.background.wait(self.lease().release())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.background.let_go(self.lease.take());
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease().fmt(f)
    }
}
