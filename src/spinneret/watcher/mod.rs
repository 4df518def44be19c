//! Live configuration: loaded once, then kept up to date by a long poll, with what is on disk for starts without a
//! server (wire contract, section 14).
//!
//! A watcher never gives up: every failure after the start is followed by a pause and another try. It never calls a
//! listener for something that did not change, and never one after it was stopped.

mod changes;
mod core;
mod listeners;
mod options;
mod pacing;
mod registry;
mod run;
mod saver;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::runtime::Handle;
use tokio::time::Instant;

pub use changes::Changes;
pub use listeners::ListenerId;
pub use options::WatcherOptions;
pub(crate) use registry::Registry;
pub use state::ChangeFilter;

use self::core::{Core, Phase, stopped};
use self::listeners::Listener;
use self::options::{CacheSecrets, Snapshots};
use self::saver::Saver;
use super::Result;
use super::error::Error;
use super::messages::{ConfigItem, ConfigKey};
use super::snapshot::{SnapshotOptions, SnapshotStore};
use super::wire::Wire;

/// Where this module logs.
const TARGET: &str = "spinneret.config";

/// How long [`ConfigWatcher::stop`] waits unless told otherwise.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// What a watcher needs of its client.
pub(crate) struct WatcherContext {
    pub(crate) wire: Arc<Wire>,
    pub(crate) registry: Registry,
    /// Where snapshots are kept unless the options say otherwise; without either there are none.
    pub(crate) default_cache_dir: Option<PathBuf>,
    /// The authority of the server's URL with its port, as it was given.
    pub(crate) host: String,
    pub(crate) token: SecretString,
}

impl fmt::Debug for WatcherContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatcherContext")
            .field("wire", &self.wire)
            .field("default_cache_dir", &self.default_cache_dir)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// Keeps configuration items up to date. Clones share everything.
///
/// The task behind it ends when the watcher is stopped, when the client is closed and when the last clone is gone. A
/// listener that holds a clone keeps the watcher alive until one of the first two.
#[derive(Clone)]
pub struct ConfigWatcher {
    handle: Arc<Owner>,
}

/// The clones together: gone with the last of them.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.signal_stop();
    }
}

impl ConfigWatcher {
    /// A watcher that is not started; no I/O.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the option that is out of its range, [`Error::ClientClosed`].
    pub(crate) fn new(context: WatcherContext, options: WatcherOptions) -> Result<Self> {
        options.validate()?;
        if context.wire.is_closed() {
            return Err(Error::client_closed());
        }
        let dir = match options.snapshots {
            Snapshots::On => options.cache_dir.or(context.default_cache_dir),
            Snapshots::Off => None,
        };
        let saver = dir.map(|cache_dir| {
            let store = SnapshotStore::new(SnapshotOptions {
                cache_dir,
                host: context.host,
                token: context.token,
                cache_secrets: options.secrets == CacheSecrets::Encrypted,
                treat_as_secret: options.treat_as_secret,
            });
            Saver::new(store, options.namespace.clone())
        });
        let backoff = (options.backoff_initial, options.backoff_max);
        let core = Arc::new(Core::new(context.wire, options.keys, options.namespace, options.poll_timeout, backoff, saver));
        for listener in options.listeners {
            core.listeners.add(listener);
        }
        context.registry.register(&core)?;
        Ok(Self { handle: Arc::new(Owner(core)) })
    }

    /// Loads the items, calls the listeners with each, and keeps them up to date from then on.
    ///
    /// When the server may answer later, the watcher starts with what is on disk: see [`Self::is_from_snapshot`].
    /// Starting a watcher that runs does nothing. Given up midway it may be started again.
    ///
    /// # Errors
    /// What the server says if asking again later is no help: the token, the scope, the namespace. The watcher does
    /// not run then and may be started again. [`Error::FailedPrecondition`] once it was stopped.
    pub async fn start(&self) -> Result<()> {
        let core = self.core();
        if self.can_start()? {
            let turn = core.unless_stopped(core.starting.lock()).await;
            let _turn = turn.ok_or_else(|| stopped("was stopped while it started"))?;
            if self.can_start()? {
                core.load().await?;
                // From here on the task goes on by itself, even if the caller does not.
                core.spawn()?;
                core.tell().await;
            }
        }
        Ok(())
    }

    /// The same without waiting: loading goes on in the background, and every failure of it is tried again. The
    /// listeners are called from there.
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`] once the watcher was stopped, and outside of a tokio runtime.
    pub fn start_in_background(&self) -> Result<()> {
        if self.can_start()? {
            self.core().spawn()?;
        }
        Ok(())
    }

    /// Stops it: the poll is cancelled, everyone who waits is woken, no listener is called afterwards. Waits for a
    /// listener that is being called and for snapshots that are being written, 1 s unless told otherwise; a listener
    /// that takes longer is broken off where it waits. Outside of a tokio runtime it does not wait. Doing it again is
    /// harmless.
    pub async fn stop(&self, limit: Option<Duration>) {
        let core = self.core();
        core.signal_stop();
        core.ended(limit.unwrap_or(STOP_LIMIT)).await;
    }

    /// The latest item of a key or a pair. One that was deleted on the server stays: the server does not tell. `None` when
    /// the key is not watched, or there is no such item yet.
    #[must_use]
    pub fn get(&self, key: impl Into<ConfigKey>) -> Option<ConfigItem> {
        self.core().state().get(&key.into()).map(Arc::unwrap_or_clone)
    }

    /// The latest items, in the order of the watched keys.
    #[must_use]
    pub fn items(&self) -> Vec<ConfigItem> {
        let items = self.core().state().items();
        items.into_iter().map(Arc::unwrap_or_clone).collect()
    }

    /// Whether the items, even if there are none, come from the disk, because the server has not answered yet.
    #[must_use]
    pub fn is_from_snapshot(&self) -> bool {
        self.core().state().is_from_snapshot()
    }

    /// Whether the first load is over.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.core().state().is_loaded()
    }

    /// Whether it was started and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.core().phase() == Phase::Running
    }

    /// Calls this with every item that changes, after the listeners there are; with those of the first load too if
    /// it is added before the start.
    ///
    /// Listeners are called by whoever awaits [`Self::start`] and then by the watcher's task, one after the other: a
    /// slow one delays the next poll, and one that blocks a thread should have a thread of its own. A panic is logged.
    pub fn on_change(&self, listener: impl Fn(&ConfigItem) + Send + Sync + 'static) -> ListenerId {
        self.core().listeners.add(Listener::plain(listener))
    }

    /// The same for a listener that has to wait for something: the next call is made when it is done.
    pub fn on_change_async<F, T>(&self, listener: F) -> ListenerId
    where
        F: Fn(ConfigItem) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        self.core().listeners.add(Listener::awaited(listener))
    }

    /// Calls that listener no more; whether it was there. Doing it again is harmless.
    pub fn remove(&self, listener: ListenerId) -> bool {
        self.core().listeners.remove(listener)
    }

    /// The first matching item that changes after this call, even if that is before the future is polled. `None` when
    /// the time is up, when the watcher is stopped, and at once if it is stopped already, or if there is a limit and no
    /// tokio runtime to keep it. Dropping the future is harmless; while it exists it counts as a clone of the watcher.
    ///
    /// An item that changes several times before anyone looks is given once, as it is then. See [`Self::changes`] to
    /// miss none between two calls.
    pub fn wait_for_change(
        &self,
        filter: ChangeFilter,
        limit: Option<Duration>,
    ) -> impl Future<Output = Option<ConfigItem>> + Send + use<> {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut changes = self.changes(filter);
        async move {
            match deadline {
                Some(_) if Handle::try_current().is_err() => None,
                Some(deadline) => tokio::time::timeout_at(deadline, changes.next()).await.ok().flatten(),
                None => changes.next().await,
            }
        }
    }

    /// The matching items that change after this call, one after the other.
    #[must_use]
    pub fn changes(&self, filter: ChangeFilter) -> Changes {
        Changes::new(self.clone(), filter)
    }

    fn can_start(&self) -> Result<bool> {
        match self.core().phase() {
            Phase::Idle => Ok(true),
            Phase::Running => Ok(false),
            Phase::Stopped => Err(stopped("was stopped and does not start again")),
        }
    }

    fn core(&self) -> &Arc<Core> {
        &self.handle.0
    }
}

impl fmt::Debug for ConfigWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.core();
        let state = core.state();
        f.debug_struct("ConfigWatcher")
            .field("keys", &state.keys())
            .field("namespace", &core.namespace)
            .field("is_running", &(core.phase() == Phase::Running))
            .field("is_loaded", &state.is_loaded())
            .field("is_from_snapshot", &state.is_from_snapshot())
            .finish_non_exhaustive()
    }
}
