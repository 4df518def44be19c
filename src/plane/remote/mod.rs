//! A Spinneret server as the control plane of a crawl: [`spinneret::Client`](crate::spinneret::Client) behind [`ControlPlane`].

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::{Ask, ControlPlane, Grant, LeaseId, PlaneError, PlaneLedger, Refusal, Report, Taken};
use crate::spinneret::Client;

/// How the server is used.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// How long the server may wait for an identity, at most 5 s.
    pub wait: Duration,
    /// Keep snapshots of followed config items.
    pub snapshots: bool,
    /// Keep encrypted ones of items with secrets.
    pub cache_secrets: bool,
    /// Config groups whose items count as secret.
    pub secret_groups: Vec<String>,
    /// How many followed config items the client asks for at once; for tests shorter than 30 s.
    pub watch_wait: Duration,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            wait: Duration::ZERO,
            snapshots: true,
            cache_secrets: false,
            secret_groups: Vec::new(),
            watch_wait: Duration::from_secs(30),
        }
    }
}

/// The control plane at a URL.
pub struct Remote {
    client: Client,
    options: RemoteOptions,
}

impl Remote {
    /// Uses this client, whose reporter is not used: a crawl has its own.
    #[must_use]
    pub fn new(client: Client, options: RemoteOptions) -> Self {
        Self { client, options }
    }
}

impl ControlPlane for Remote {
    fn acquire(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Refusal>> {
        let _ = (&self.client, &self.options, ask);
        unimplemented!()
    }

    fn report(&self, _reports: Vec<Report>) -> BoxFuture<'_, Result<Taken, PlaneError>> {
        unimplemented!()
    }

    fn release(&self, _lease: LeaseId) -> BoxFuture<'_, Result<(), PlaneError>> {
        unimplemented!()
    }

    fn renew(&self, _lease: LeaseId) -> BoxFuture<'_, Result<Instant, PlaneError>> {
        unimplemented!()
    }

    fn ledger(&self) -> Option<PlaneLedger> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("client", &self.client).finish_non_exhaustive()
    }
}
