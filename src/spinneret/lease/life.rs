//! What a lease and its renewal share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::warn;

use super::expiry::Expiry;
use super::held::Lease;
use super::new_lease::{Options, Renewal};
use super::state::{Ending, State};
use super::{Ways, nameless, renewal, settle};
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{AcquireResponse, RenewRequest, Report};
use crate::spinneret::procedure::Procedure;
use crate::spinneret::reporter::Standing;

/// An acquired lease.
pub(super) struct Life {
    pub(super) ways: Ways,
    pub(super) granted: AcquireResponse,
    pub(super) acquired_uri: String,
    pub(super) options: Options,
    state: Mutex<State>,
    expiry: Mutex<Expiry>,
    is_lost: AtomicBool,
    losing: Notify,
    renewing: OnceLock<AbortHandle>,
}

impl Life {
    /// The guard of what was granted, renewed from now on if that is wanted.
    pub(super) fn start(
        ways: Ways,
        granted: AcquireResponse,
        acquired_uri: &str,
        options: Options,
        procedure: Procedure,
    ) -> Result<Lease> {
        if granted.lease.lease_id.is_empty() {
            return Err(nameless(procedure));
        }
        let before = before(&granted);
        let expiry = Expiry::granted(granted.lease.expires_at, before, Timestamp::now(), Instant::now());
        let life = Arc::new(Self {
            ways,
            granted,
            acquired_uri: acquired_uri.to_owned(),
            options,
            state: Mutex::default(),
            expiry: Mutex::new(expiry),
            is_lost: AtomicBool::new(false),
            losing: Notify::new(),
            renewing: OnceLock::new(),
        });
        if let Renewal::Every(extend) = options.renewal {
            life.renew_always(extend);
        }
        Ok(Lease::new(life))
    }

    fn renew_always(self: &Arc<Self>, extend: Duration) {
        match (Handle::try_current(), self.ends()) {
            (Ok(handle), Some(_)) => {
                let task = handle.spawn(renewal::keep(Arc::clone(self), extend));
                self.renewing.get_or_init(|| task.abort_handle());
            }
            _ => {
                warn!(target: "spinneret.lease", lease_id = self.id(), "a lease without a known expiry cannot be renewed by itself")
            }
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.granted.lease.lease_id
    }

    /// How long before its end the lease should be renewed.
    pub(super) fn before(&self) -> Duration {
        before(&self.granted)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expiry(&self) -> MutexGuard<'_, Expiry> {
        self.expiry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        self.expiry().at()
    }

    /// The end by this machine's clock.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.expiry().ends()
    }

    /// Hands a report to the reporter.
    pub(super) fn submit(&self, report: Report) -> Result<()> {
        let standing = if self.granted.lease.probe { Standing::Probe } else { Standing::Ordinary };
        self.ways.reporter.submit_as(report, standing)
    }

    /// Prolongs the lease; the new expiry counts if there is one. A lease that is gone is lost.
    pub(super) async fn renew(&self, extend: Duration) -> Result<Option<Timestamp>> {
        if self.state().is_released() {
            return Err(Error::lease_released(self.id()));
        }
        let request = RenewRequest::new(self.id(), extend);
        match self.ways.wire.call(&request).await {
            Ok(answer) => {
                let mut expiry = self.expiry();
                if let Some(at) = answer.expires_at {
                    expiry.move_to(at);
                }
                Ok(expiry.at())
            }
            Err(error) => {
                // At the end of its lifetime a lease cannot be prolonged, but is there until its expiry.
                if settle::is_gone(&error) && !is_at_its_limit(&error) && !self.state().is_released() {
                    self.lose(&error);
                }
                Err(error)
            }
        }
    }

    pub(super) fn lose(&self, why: &dyn fmt::Display) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            warn!(target: "spinneret.lease", lease_id = self.id(), %why, "lease is lost");
            self.losing.notify_waiters();
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(super) async fn lost(&self) {
        let mut losing = std::pin::pin!(self.losing.notified());
        losing.as_mut().enable();
        if !self.is_lost() {
            losing.await;
        }
    }

    /// Ends the lease and its renewal.
    pub(super) fn end(&self) -> Ending {
        self.stop_renewing();
        self.state().finish()
    }

    pub(super) fn stop_renewing(&self) {
        if let Some(task) = self.renewing.get() {
            task.abort();
        }
    }

    /// Ends the lease without waiting.
    pub(super) fn end_in_background(&self) {
        let releaser = &self.ways.releaser;
        match self.end() {
            Ending::Over => {}
            Ending::Call => releaser.give_back(self.id(), self.ends()),
            Ending::Report(report) => {
                if self.submit(Report::clone(&report)).is_err() {
                    releaser.deliver(*report, self.ends());
                }
            }
        }
    }
}

/// Whether the lease has lived as long as it may.
pub(super) fn is_at_its_limit(error: &Error) -> bool {
    error.reason() == "lease_lifetime_exceeded"
}

fn before(granted: &AcquireResponse) -> Duration {
    Duration::from_millis(u64::try_from(granted.hints.renew_before_ms).unwrap_or(0))
}
