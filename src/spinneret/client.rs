//! The client: every call of a node, and what stands on them.

use std::fmt;
use std::sync::Arc;

use super::Result;
use super::error::Error;
use super::lease::{Releaser, Ways};
use super::messages::{AcquireRequest, AcquireResponse};
use super::reporter::{Reporter, ReporterOptions};
use super::retry::{RetryPolicy, Timeouts};
use super::transport::Transport;
use super::wire::Wire;

/// Speaks for one node with one Spinneret server. Clones share everything.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    ways: Ways,
}

/// Puts a client together.
#[derive(Debug, Clone, Default)]
pub struct ClientBuilder {
    timeouts: Timeouts,
    retry: RetryPolicy,
    reporter: ReporterOptions,
}

impl ClientBuilder {
    /// The client; no I/O.
    ///
    /// # Errors
    /// [`Error::Configuration`] names the setting that is missing or cannot be used.
    pub fn build(self) -> Result<Client> {
        Err(Error::configuration("no transport yet"))
    }

    /// The same client over another transport.
    pub(crate) fn build_over(self, transport: Arc<dyn Transport>) -> Result<Client> {
        let wire = Arc::new(Wire::new(transport, self.timeouts, self.retry));
        let releaser = Releaser::new(Arc::clone(&wire));
        let reporter = Reporter::new(Arc::clone(&wire), releaser.clone(), self.reporter);
        Ok(Client { inner: Arc::new(Inner { ways: Ways { wire, reporter, releaser } }) })
    }
}

impl Client {
    /// Settings first.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Asks for a lease; the message only, nothing gives it back by itself.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn acquire(&self, request: AcquireRequest) -> Result<AcquireResponse> {
        self.inner.ways.wire.call(&request).await
    }

    /// The reporter of this client.
    #[must_use]
    pub fn reporter(&self) -> Reporter {
        self.inner.ways.reporter.clone()
    }

    /// What leases need.
    pub(crate) fn ways(&self) -> &Ways {
        &self.inner.ways
    }

    /// Ends everything: watchers, reporter, calls.
    pub async fn close(&self) {
        self.inner.ways.reporter.close(None).await;
        self.inner.ways.wire.close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
