//! The client: every call of a node, and what stands on them.
//!
//! Holds the settings and the parts that share them; the parts hold the wire, and never the client.

mod address;
mod builder;
mod calls;
mod environment;
mod node_name;
mod settings;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

pub use builder::ClientBuilder;
pub(crate) use environment::Environment;
use settings::Settings;

use super::Result;
use super::lease::{Releaser, Ways};
use super::reporter::{Reporter, ReporterOptions};
use super::watcher::{ConfigWatcher, Registry, WatcherContext, WatcherOptions};
use super::wire::Wire;

/// How long all watchers together may take to end.
const WATCHERS: Duration = Duration::from_secs(1);
/// How long reports may take to be sent at the end, unless something else is said.
const REPORTS: Duration = Duration::from_secs(5);
/// How long leases may take to be given back whose reports were given up at the end.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// Speaks for one node with one Spinneret server. Clones share everything.
///
/// # Runtime
///
/// A client belongs to the first tokio runtime in which it is used: the tasks that drive its connections and send its
/// reports live there, and calls from another runtime fail once that one has ended. Building one needs no runtime, and a
/// plain thread uses [`blocking`](crate::spinneret::blocking).
///
/// A process that forks makes its clients after the fork: a child has neither the threads of its parent nor connections of
/// its own.
///
/// # End
///
/// [`Self::close`] sends what is left to be reported and gives dropped leases back. When the last clone is dropped without
/// it, background tasks do the same and end, as long as their runtime lives. What they have not done when the runtime or
/// the process ends is lost: the reports of the last moments, and leases, which the server ends at their expiry. So close
/// the client at the end of the program, after an error too.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    ways: Ways,
    watchers: Registry,
    closed: OnceCell<()>,
}

impl Client {
    /// Settings first.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client whose settings come from the environment alone.
    ///
    /// # Errors
    /// [`Error::Configuration`](super::Error::Configuration) names the variable that is missing or cannot be used.
    pub fn from_env() -> Result<Self> {
        Self::builder().build()
    }

    fn over(settings: Settings, wire: Arc<Wire>, options: ReporterOptions) -> Self {
        let releaser = Releaser::new(Arc::clone(&wire));
        let reporter = Reporter::new(Arc::clone(&wire), releaser.clone(), options);
        let ways = Ways { wire, reporter, releaser };
        Self { inner: Arc::new(Inner { settings, ways, watchers: Registry::default(), closed: OnceCell::new() }) }
    }

    /// The base address of the server, as it was given.
    #[must_use]
    pub fn url(&self) -> &str {
        self.inner.settings.address.base()
    }

    /// The name of this node, as it is sent.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.inner.settings.node
    }

    /// Where watchers keep what they last saw; none when that is not set and there is no home directory.
    #[must_use]
    pub fn cache_dir(&self) -> Option<&Path> {
        self.inner.settings.cache_dir.as_deref()
    }

    /// The reporter of this client. After [`Self::close`] it takes no report.
    #[must_use]
    pub fn reporter(&self) -> Reporter {
        self.inner.ways.reporter.clone()
    }

    /// A watcher of configuration items. It is not started: no I/O.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](super::Error::InvalidArgument) names the option that is out of its range,
    /// [`Error::ClientClosed`](super::Error::ClientClosed).
    pub fn config_watcher(&self, options: WatcherOptions) -> Result<ConfigWatcher> {
        let settings = &self.inner.settings;
        let context = WatcherContext {
            wire: Arc::clone(&self.inner.ways.wire),
            registry: self.inner.watchers.clone(),
            default_cache_dir: settings.cache_dir.clone(),
            host: settings.address.host().to_owned(),
            token: settings.token.clone(),
        };
        ConfigWatcher::new(context, options)
    }

    /// [`Self::close_within`] 5 s.
    pub async fn close(&self) {
        self.close_within(REPORTS).await;
    }

    /// Ends everything, in this order: the watchers (1 s for all of them), the releases of dropped leases and the reports
    /// (`limit` for both together, and half a second more for a call under way), the leases whose reports were given up
    /// (1 s), and then every call, also those under way: a lease that is just being granted then ends by itself, at its
    /// expiry. Closing twice is fine; a second closing waits for the first. Outside of a tokio runtime it waits for
    /// nothing.
    ///
    /// Cancel safe: closing again goes on where it was left.
    pub async fn close_within(&self, limit: Duration) {
        self.inner.closed.get_or_init(|| self.end(limit)).await;
    }

    async fn end(&self, limit: Duration) {
        let Ways { wire, reporter, releaser } = self.ways();
        self.inner.watchers.stop_all(WATCHERS).await;
        let begin = Instant::now();
        let (_, ()) = tokio::join!(releaser.drain(limit), reporter.close(Some(limit)));
        let rest = limit.saturating_sub(begin.elapsed()).max(LEFTOVERS);
        let left = releaser.drain(rest).await;
        if left > 0 {
            tracing::warn!(target: "spinneret.lease", left, "the client is closed before all leases are given back; the server ends them");
        }
        wire.close();
    }

    /// What leases need.
    pub(crate) fn ways(&self) -> &Ways {
        &self.inner.ways
    }

    /// What calls need.
    pub(crate) fn wire(&self) -> &Wire {
        &self.inner.ways.wire
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).field("node", &self.node()).finish()
    }
}

#[cfg(test)]
mod tests;
