//! A lease that is held.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tracing::warn;

use super::completing::Completing;
use super::life::Life;
use super::new_lease::Delivery;
use super::settle;
use super::state::Ending;
use crate::spinneret::draft::ReportDraft;
use crate::spinneret::error::Error;
use crate::spinneret::merge::{Explicit, Parts};
use crate::spinneret::messages::{Credential, ProxyAssignment, Report};
use crate::spinneret::{Result, merge};

/// A lease: an identity, and a proxy, for as long as it is held.
///
/// Every request made under it is [reported](Self::report). The last report gives the lease back: which one that is shows
/// when the lease is over, so the latest is held back until then. A lease that is dropped - at the end of its scope, on an
/// early return, by a panic, on a thread without a runtime - is given back in the background by the client; without any
/// report by a call, never by a report that was made up.
///
/// Shared as `Arc<Lease>` it serves several tasks; their reports arrive in the order in which they were made.
pub struct Lease {
    life: Arc<Life>,
}

impl Lease {
    pub(super) const fn new(life: Arc<Life>) -> Self {
        Self { life }
    }

    /// The lease's name; opaque.
    #[must_use]
    pub fn lease_id(&self) -> &str {
        self.life.id()
    }

    /// The identity's name.
    #[must_use]
    pub fn identity_id(&self) -> &str {
        &self.life.granted.lease.identity_id
    }

    /// The identity's type, `account` for one.
    #[must_use]
    pub fn identity_type(&self) -> &str {
        &self.life.granted.lease.identity_type
    }

    /// The endpoint group the lease counts for.
    #[must_use]
    pub fn endpoint_group(&self) -> &str {
        &self.life.granted.lease.endpoint_group
    }

    /// What the identity puts on a request.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        &self.life.granted.credential
    }

    /// The proxy to go through; `None` when the policy assigns none.
    #[must_use]
    pub fn proxy(&self) -> Option<&ProxyAssignment> {
        self.life.granted.proxy.as_ref()
    }

    /// When the server takes the lease back, by the server's clock; the latest renewal counts.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.life.expires_at()
    }

    /// How long before its end the server advises to renew the lease; zero without advice.
    #[must_use]
    pub fn renew_before(&self) -> Duration {
        self.life.before()
    }

    /// Whether the server tries something out with this lease: its report matters more than others.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.life.granted.lease.probe
    }

    /// Whether the identity is the one the session key had before.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.life.granted.lease.sticky
    }

    /// Whether the lease was given back here. What the server does by itself is not seen here; see [`Self::is_lost`].
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.life.state().is_released()
    }

    /// Whether a renewal found the lease gone, or could not be made before its end. Requests under it are at the
    /// identity's risk; reports are still welcome for a while.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.life.is_lost()
    }

    /// Waits until the lease is [lost](Self::is_lost); for ever if it never is, so put it beside the work.
    pub async fn lost(&self) {
        self.life.lost().await;
    }

    /// A client of `reqwest` to be built that goes through the proxy of the lease, or directly when it has none. It trusts
    /// the certificates that browsers trust, compiled in, and has TLS set up, which the `reqwest` of this crate lacks
    /// otherwise. One for each lease, or for leases with the same proxy and identity: connections belong to both.
    ///
    /// It waits for ever unless told otherwise: `timeout` should be less than the lease lasts.
    ///
    /// # Errors
    /// As [`ProxyAssignment::to_reqwest`].
    pub fn http(&self) -> Result<reqwest::ClientBuilder> {
        merge::http(self.proxy())
    }

    /// Writes the identity's headers, cookies and query parameters onto a request; what the request has already wins. See
    /// [`Credential::apply`]. The proxy is the HTTP client's affair: [`Self::http`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the header that cannot be written; the request is then as it was.
    pub fn apply(&self, request: &mut reqwest::Request) -> Result<()> {
        merge::apply(self.credential(), request)
    }

    /// What a request under this lease carries when the caller says this much, for any HTTP client. See
    /// [`parts`](crate::spinneret::parts).
    #[must_use]
    pub fn parts(&self, explicit: &Explicit) -> Parts {
        merge::parts(self.credential(), self.proxy(), explicit)
    }

    /// Reports a request; never waits. The report is sent in the background when the next one is made, or when the lease
    /// is over: then it gives the lease back. A draft with [`ReportDraft::release`] gives it back at once.
    ///
    /// Answers the report as it was built; `release` is still false in one that is held back.
    ///
    /// # Errors
    /// - [`Error::LeaseReleased`]: the lease is over. Acquire another one.
    /// - [`Error::InvalidArgument`]: the draft breaks a bound, or has no URI when the lease was acquired without one.
    /// - [`Error::ReporterClosed`]: the client is being closed. An earlier report is delivered all the same.
    pub fn report(&self, draft: impl Into<ReportDraft>) -> Result<Report> {
        let life = &*self.life;
        if self.is_released() {
            return Err(Error::lease_released(life.id()));
        }
        let report = draft.into().build(life.id(), &life.acquired_uri)?;
        if life.ways.reporter.is_closed() {
            return Err(Error::reporter_closed());
        }
        // Submitted under the lock: reports of several threads arrive as they are taken. Nothing of the caller's runs here.
        let report = life.state().report(report, |report| life.submit(report))?;
        if report.release {
            life.stop_renewing();
        }
        Ok(report)
    }

    /// Reports a response: [`ReportDraft::response`] with nothing added.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn report_response(&self, response: &reqwest::Response) -> Result<Report> {
        self.report(ReportDraft::response(response))
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
    pub async fn renew(&self, extend: Duration) -> Result<Option<Timestamp>> {
        self.life.renew(extend).await
    }

    /// Gives the lease back now: by the report held back, or by a call if there was none. Does nothing when the lease is
    /// over. A lease that was gone already is no error.
    ///
    /// The call is finished in the background when the future is dropped half-way.
    ///
    /// # Errors
    /// Why the call failed; nothing is tried again, the lease ends by itself at its expiry. A last report that could not
    /// be delivered is logged and no error.
    pub async fn release(&self) -> Result<()> {
        self.finish().await
    }

    /// Ends the lease where it is waited for.
    pub(super) async fn finish(&self) -> Result<()> {
        let life = &self.life;
        let result = match life.end() {
            Ending::Over => return Ok(()),
            Ending::Report(report) if life.submit(Report::clone(&report)).is_err() => {
                self.deliver(*report).await;
                return Ok(());
            }
            Ending::Report(_) => Ok(()),
            Ending::Call => self.give_back().await,
        };
        self.flush().await;
        result
    }

    async fn deliver(&self, report: Report) {
        let wire = Arc::clone(&self.life.ways.wire);
        let delivered = async move {
            let lease_id = report.lease_id.clone();
            if let Err(error) = settle::deliver(&wire, report).await {
                warn!(target: "spinneret.lease", lease_id, %error, "the last report of a lease is lost");
            }
        };
        Completing::new(self.life.ways.releaser.clone(), delivered).await;
    }

    async fn give_back(&self) -> Result<()> {
        let wire = Arc::clone(&self.life.ways.wire);
        let lease_id = self.lease_id().to_owned();
        let released = async move {
            settle::release(&wire, &lease_id).await.inspect_err(|error| {
                warn!(target: "spinneret.lease", lease_id, %error, "release failed: the lease ends by itself");
            })
        };
        Completing::new(self.life.ways.releaser.clone(), released).await
    }

    async fn flush(&self) {
        let reporter = &self.life.ways.reporter;
        if self.life.options.delivery == Delivery::Awaited && !reporter.is_closed() {
            let limit = reporter.close_timeout();
            if !reporter.flush(Some(limit)).await {
                warn!(target: "spinneret.lease", lease_id = self.lease_id(), ?limit, "reports are still on their way");
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.life.end_in_background();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("lease_id", &self.lease_id())
            .field("identity_id", &self.identity_id())
            .field("released", &self.is_released())
            .finish()
    }
}
