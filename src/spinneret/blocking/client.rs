//! The client of plain threads.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::background::Background;
use super::{ConfigWatcher, Lease, NewLease, Reporter};
use crate::spinneret::messages::{
    AcquireBatchRequest, AcquireBatchResponse, AcquireRequest, AcquireResponse, BatchGetConfigRequest, BatchGetConfigResponse,
    ConfigItem, GetConfigRequest, GetSecretRequest, ReleaseResponse, RenewResponse, Report, ReportResponse, Secret,
    WatchConfigRequest,
};
use crate::spinneret::{self, ClientBuilder, Error, Result, WatcherOptions};

/// Speaks for one node with one Spinneret server, from plain threads. Clones share everything.
///
/// Each method waits on the thread that calls it, and does what the method of the same name of
/// [`spinneret::Client`](crate::spinneret::Client) does. Inside a tokio runtime it answers [`Error::Configuration`]
/// instead; see the [module](super) for that, for forks, and for the end.
#[derive(Clone)]
pub struct Client {
    background: Arc<Background>,
}

impl Client {
    /// A client with these settings, and its thread. May be made anywhere.
    ///
    /// ```no_run
    /// use dragline::spinneret::{ClientBuilder, blocking::Client};
    ///
    /// let client = Client::new(ClientBuilder::default().node("parser-7"))?;
    /// # Ok::<(), dragline::spinneret::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Configuration`] names the setting that is missing or cannot be used.
    pub fn new(builder: ClientBuilder) -> Result<Self> {
        Self::with(|| builder.build())
    }

    /// A client whose settings come from the environment alone.
    ///
    /// # Errors
    /// [`Error::Configuration`] names the variable that is missing or cannot be used.
    pub fn from_env() -> Result<Self> {
        Self::with(spinneret::Client::from_env)
    }

    /// The client that is made on the runtime it will live on.
    pub(super) fn with(make: impl FnOnce() -> Result<spinneret::Client>) -> Result<Self> {
        Ok(Self { background: Background::new(make)? })
    }

    /// A client as a child of the process sees it.
    #[cfg(test)]
    pub(super) fn in_child(client: spinneret::Client) -> Self {
        Self { background: Background::in_child(client) }
    }

    fn client(&self) -> &spinneret::Client {
        self.background.client()
    }

    /// The base address of the server, as it was given.
    #[must_use]
    pub fn url(&self) -> &str {
        self.client().url()
    }

    /// The name of this node, as it is sent.
    #[must_use]
    pub fn node(&self) -> &str {
        self.client().node()
    }

    /// Where watchers keep what they last saw; none when that is not set and there is no home directory.
    #[must_use]
    pub fn cache_dir(&self) -> Option<&Path> {
        self.client().cache_dir()
    }

    /// Prepares a lease: the request is checked, nothing is sent. [`NewLease::acquire`] or [`NewLease::run`] asks for it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the field that breaks its bound.
    pub fn lease(&self, request: AcquireRequest) -> Result<NewLease> {
        Ok(NewLease::new(Arc::clone(&self.background), self.client().lease(request)?))
    }

    /// Asks for several leases of distinct identities at once; fewer may come, at least one. Each is a guard of its own.
    ///
    /// # Errors
    /// As [`NewLease::acquire`].
    pub fn leases(&self, request: AcquireBatchRequest) -> Result<Vec<Lease>> {
        let leases = self.background.wait(self.client().leases(request))?;
        Ok(leases.into_iter().map(|lease| Lease::new(Arc::clone(&self.background), lease)).collect())
    }

    /// Acquires a lease; the message only: nothing gives the lease back by itself, as [`Self::lease`] does.
    ///
    /// # Errors
    /// [`Error::NoIdentityAvailable`], [`Error::NoProxyAvailable`], [`Error::CircuitOpen`] and [`Error::SitePaused`] say when
    /// to ask again; the others are described at [`Error`].
    pub fn acquire(&self, request: AcquireRequest) -> Result<AcquireResponse> {
        self.background.wait(self.client().acquire(request))
    }

    /// Acquires up to 50 leases at once, the messages only; there may be fewer than were asked for.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub fn acquire_batch(&self, request: AcquireBatchRequest) -> Result<AcquireBatchResponse> {
        self.background.wait(self.client().acquire_batch(request))
    }

    /// Makes a lease last `extend` longer than now, at most 30 minutes; zero for what the site's policy says.
    ///
    /// # Errors
    /// [`Error::LeaseUnknown`], [`Error::LeaseReleased`] and [`Error::LeaseExpired`] mean that another lease must be acquired.
    pub fn renew(&self, lease_id: &str, extend: Duration) -> Result<RenewResponse> {
        self.background.wait(self.client().renew(lease_id, extend))
    }

    /// Gives a lease back; `released` is false when it was given back before.
    ///
    /// # Errors
    /// [`Error::LeaseUnknown`] and [`Error::LeaseExpired`] mean that there is nothing to give back any more.
    pub fn release(&self, lease_id: &str) -> Result<ReleaseResponse> {
        self.background.wait(self.client().release(lease_id))
    }

    /// Sends 1 to 500 reports now; [`Self::reporter`] sends them in the background. The answer names those the server
    /// will never take.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn report(&self, reports: Vec<Report>) -> Result<ReportResponse> {
        self.background.wait(self.client().report(reports))
    }

    /// One configuration item: `"group/key"`, a pair, a key or a whole request.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such item.
    pub fn get_config(&self, what: impl TryInto<GetConfigRequest, Error: Into<Error>>) -> Result<ConfigItem> {
        self.background.wait(self.client().get_config(what))
    }

    /// Up to 200 configuration items at once, and the names of those there are not.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn batch_get_config(&self, request: BatchGetConfigRequest) -> Result<BatchGetConfigResponse> {
        self.background.wait(self.client().batch_get_config(request))
    }

    /// Waits at the server until one of the items has another version than the one named, at most as long as the request
    /// says; none in the answer means that nothing has changed. [`Self::config_watcher`] does this again and again.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn watch_config(&self, request: WatchConfigRequest) -> Result<Vec<ConfigItem>> {
        self.background.wait(self.client().watch_config(request))
    }

    /// A secret: its path, or a whole request. The server writes each reading down.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such secret.
    pub fn get_secret(&self, what: impl TryInto<GetSecretRequest, Error: Into<Error>>) -> Result<Secret> {
        self.background.wait(self.client().get_secret(what))
    }

    /// A watcher of configuration items, not started; nothing is sent. Listeners given with the options run on the thread
    /// of the client, where nothing may wait; [`ConfigWatcher::on_change`] takes others.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the option that is out of its range, [`Error::ClientClosed`].
    pub fn config_watcher(&self, options: WatcherOptions) -> Result<ConfigWatcher> {
        let _inside = self.background.enter()?;
        Ok(ConfigWatcher::new(Arc::clone(&self.background), self.client().config_watcher(options)?))
    }

    /// The reporter of this client. After [`Self::close`] it takes no report.
    #[must_use]
    pub fn reporter(&self) -> Reporter {
        Reporter::new(Arc::clone(&self.background), self.client().reporter())
    }

    /// Ends everything, within about 5 s: watchers are stopped, leases given back, reports sent; then every call is
    /// refused. Closing twice is fine.
    ///
    /// # Errors
    /// [`Error::Configuration`] inside a tokio runtime and after a fork; nothing is closed then.
    pub fn close(&self) -> Result<()> {
        self.background.wait_for(self.client().close())
    }

    /// [`Self::close`] with this much time for reports and leases.
    ///
    /// # Errors
    /// As [`Self::close`].
    pub fn close_within(&self, limit: Duration) -> Result<()> {
        self.background.wait_for(self.client().close_within(limit))
    }
}

impl TryFrom<ClientBuilder> for Client {
    type Error = Error;

    fn try_from(builder: ClientBuilder) -> Result<Self> {
        Self::new(builder)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.background.fmt(f)
    }
}
