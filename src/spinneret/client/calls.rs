//! The nine calls of a node, one method each.

use std::time::Duration;

use super::Client;
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{
    AcquireBatchRequest, AcquireBatchResponse, AcquireRequest, AcquireResponse, BatchGetConfigRequest, BatchGetConfigResponse,
    ConfigItem, GetConfigRequest, GetSecretRequest, ReleaseRequest, ReleaseResponse, RenewRequest, RenewResponse, Report,
    ReportRequest, ReportResponse, Secret, WatchConfigRequest,
};

/// # Calls
///
/// Each call checks its request first, and an error of that check has the status 0 and means that nothing was sent. Then it
/// is sent, and again if the [`RetryPolicy`](crate::spinneret::RetryPolicy) allows it. After [`Client::close`] every call
/// ends with [`Error::ClientClosed`] at once, also one that is under way.
///
/// Dropping the future of a call ends it: no further attempt is begun, and the connection of the one under way is closed.
/// What the server has read by then it may still do.
impl Client {
    /// Acquires a lease; the message only: nothing gives the lease back by itself, as what [`Client::lease`] makes does.
    ///
    /// Not cancel safe: a lease that was granted to a dropped call is lost until the server ends it.
    ///
    /// # Errors
    /// [`Error::NoIdentityAvailable`], [`Error::NoProxyAvailable`], [`Error::CircuitOpen`] and [`Error::SitePaused`] say when
    /// to ask again; the others are described at [`Error`].
    pub async fn acquire(&self, request: AcquireRequest) -> Result<AcquireResponse> {
        self.wire().call(&request).await
    }

    /// Acquires up to 50 leases at once; there may be fewer in the answer than were asked for.
    ///
    /// Not cancel safe: leases that were granted to a dropped call are lost until the server ends them.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn acquire_batch(&self, request: AcquireBatchRequest) -> Result<AcquireBatchResponse> {
        self.wire().call(&request).await
    }

    /// Makes a lease last `extend` longer than now, at most 30 minutes, rounded up to milliseconds; zero for what the site's
    /// policy says.
    ///
    /// Cancel safe: calling again does no harm.
    ///
    /// # Errors
    /// [`Error::LeaseUnknown`], [`Error::LeaseReleased`] and [`Error::LeaseExpired`] mean that another lease must be acquired.
    pub async fn renew(&self, lease_id: &str, extend: Duration) -> Result<RenewResponse> {
        self.wire().call(&RenewRequest::new(lease_id, extend)).await
    }

    /// Gives a lease back; `released` is false when it was given back before.
    ///
    /// Cancel safe: calling again does no harm.
    ///
    /// # Errors
    /// [`Error::LeaseUnknown`] and [`Error::LeaseExpired`] mean that there is nothing to give back any more.
    pub async fn release(&self, lease_id: &str) -> Result<ReleaseResponse> {
        self.wire().call(&ReleaseRequest { lease_id: lease_id.to_owned() }).await
    }

    /// Sends 1 to 500 reports now and waits; [`Client::reporter`] sends them in the background. The answer names those the
    /// server will never take.
    ///
    /// Cancel safe: a report that is sent again, with the id it has, counts once.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn report(&self, reports: Vec<Report>) -> Result<ReportResponse> {
        self.wire().call(&ReportRequest { reports }).await
    }

    /// One configuration item: `"group/key"`, a pair, a key or a whole request.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such item.
    pub async fn get_config(&self, what: impl TryInto<GetConfigRequest, Error: Into<Error>>) -> Result<ConfigItem> {
        let request: GetConfigRequest = what.try_into().map_err(Into::into)?;
        Ok(self.wire().call(&request).await?.item)
    }

    /// Up to 200 configuration items at once, and the names of those there are not.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn batch_get_config(&self, request: BatchGetConfigRequest) -> Result<BatchGetConfigResponse> {
        self.wire().call(&request).await
    }

    /// Waits at the server until one of the items has another version than the one named, at most as long as the request
    /// says; none in the answer means that nothing has changed. [`Client::config_watcher`] does this again and again.
    ///
    /// Cancel safe: what has changed is answered again.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn watch_config(&self, request: WatchConfigRequest) -> Result<Vec<ConfigItem>> {
        Ok(self.wire().call(&request).await?.items)
    }

    /// A secret: its path, or a whole request. The server writes each reading down.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such secret.
    pub async fn get_secret(&self, what: impl TryInto<GetSecretRequest, Error: Into<Error>>) -> Result<Secret> {
        let request: GetSecretRequest = what.try_into().map_err(Into::into)?;
        self.wire().call(&request).await
    }
}
