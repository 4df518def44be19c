//! The configuration watcher of plain threads.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::oneshot;

use super::background::Background;
use crate::spinneret::messages::{ConfigItem, ConfigKey};
use crate::spinneret::{self, ChangeFilter, ListenerId, Result};

thread_local! {
    /// Whether this thread runs a listener.
    static IS_LISTENER: Cell<bool> = const { Cell::new(false) };
}

/// Keeps configuration items up to date. Clones share everything.
///
/// Does what [`spinneret::ConfigWatcher`](crate::spinneret::ConfigWatcher) does. What waits answers
/// [`Error::Configuration`](crate::spinneret::Error::Configuration) inside a tokio runtime.
#[derive(Clone)]
pub struct ConfigWatcher {
    watcher: spinneret::ConfigWatcher,
    background: Arc<Background>,
}

impl ConfigWatcher {
    pub(super) const fn new(background: Arc<Background>, watcher: spinneret::ConfigWatcher) -> Self {
        Self { watcher, background }
    }

    /// Loads the items, calls the listeners with each, and keeps them up to date from then on. When the server may answer
    /// later, the watcher starts with what is on disk. Starting one that runs does nothing.
    ///
    /// # Errors
    /// What the server says if asking again later is no help: the token, the scope, the namespace. The watcher does
    /// not run then and may be started again. [`Error::FailedPrecondition`](crate::spinneret::Error::FailedPrecondition)
    /// once it was stopped.
    pub fn start(&self) -> Result<()> {
        self.background.wait(self.watcher.start())
    }

    /// The same without waiting: loading goes on in the background, and every failure of it is tried again. May be called
    /// anywhere.
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`](crate::spinneret::Error::FailedPrecondition) once the watcher was stopped.
    pub fn start_in_background(&self) -> Result<()> {
        let _inside = self.background.enter()?;
        self.watcher.start_in_background()
    }

    /// Stops it: everyone who waits is woken, no listener is called afterwards. Waits for a listener that is being called
    /// and for snapshots that are being written, 1 s unless told otherwise; in a listener it waits for nothing. Doing it
    /// again is harmless.
    ///
    /// # Errors
    /// [`Error::Configuration`](crate::spinneret::Error::Configuration) inside a tokio runtime and after a fork; it is not
    /// stopped then.
    pub fn stop(&self, limit: Option<Duration>) -> Result<()> {
        let limit = if IS_LISTENER.get() { Some(Duration::ZERO) } else { limit };
        self.background.wait_for(self.watcher.stop(limit))
    }

    /// The latest item of a key or a pair. One that was deleted on the server stays: the server does not tell. `None` when
    /// the key is not watched, or there is no such item yet.
    #[must_use]
    pub fn get(&self, key: impl Into<ConfigKey>) -> Option<ConfigItem> {
        self.watcher.get(key)
    }

    /// The latest items, in the order of the watched keys.
    #[must_use]
    pub fn items(&self) -> Vec<ConfigItem> {
        self.watcher.items()
    }

    /// Whether the items, even if there are none, come from the disk, because the server has not answered yet.
    #[must_use]
    pub fn is_from_snapshot(&self) -> bool {
        self.watcher.is_from_snapshot()
    }

    /// Whether the first load is over.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.watcher.is_loaded()
    }

    /// Whether it was started and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.watcher.is_running()
    }

    /// Calls this with every item that changes, after the listeners there are; with those of the first load too if it is
    /// added before the start.
    ///
    /// Each call has a thread of its own, where everything may be called that waits; one after the other, so a slow
    /// listener delays the next poll. A panic is logged.
    pub fn on_change(&self, listener: impl Fn(&ConfigItem) + Send + Sync + 'static) -> ListenerId {
        let listener: Arc<dyn Fn(&ConfigItem) + Send + Sync> = Arc::new(listener);
        self.watcher.on_change_async(move |item| on_a_thread(Arc::clone(&listener), item))
    }

    /// Calls that listener no more; whether it was there. Doing it again is harmless.
    pub fn remove(&self, listener: ListenerId) -> bool {
        self.watcher.remove(listener)
    }

    /// The first matching item that changes after this call. `None` when the time is up, when the watcher is stopped, and
    /// at once if it is stopped already. See [`Self::changes`] to miss none between two calls.
    ///
    /// # Errors
    /// [`Error::Configuration`](crate::spinneret::Error::Configuration) inside a tokio runtime and after a fork.
    pub fn wait_for_change(&self, filter: ChangeFilter, limit: Option<Duration>) -> Result<Option<ConfigItem>> {
        self.background.wait_for(self.watcher.wait_for_change(filter, limit))
    }

    /// The matching items that change after this call, one after the other.
    #[must_use]
    pub fn changes(&self, filter: ChangeFilter) -> Changes {
        Changes { changes: self.watcher.changes(filter), background: Arc::clone(&self.background) }
    }
}

impl fmt::Debug for ConfigWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.watcher.fmt(f)
    }
}

/// The changes since it was made; see [`ConfigWatcher::changes`]. Counts as a clone of the watcher.
#[derive(Debug)]
pub struct Changes {
    changes: spinneret::Changes,
    background: Arc<Background>,
}

impl Changes {
    /// The next change, at most this long; `None` when the time is up, and once the watcher is stopped and there is none
    /// left. An item that changes again before anyone looks is given once, as it is then.
    ///
    /// # Errors
    /// [`Error::Configuration`](crate::spinneret::Error::Configuration) inside a tokio runtime and after a fork.
    pub fn next(&mut self, limit: Option<Duration>) -> Result<Option<ConfigItem>> {
        let Self { changes, background } = self;
        background.wait_for(async {
            match limit {
                Some(limit) => tokio::time::timeout(limit, changes.next()).await.ok().flatten(),
                None => changes.next().await,
            }
        })
    }
}

/// Calls a listener on a thread of its own, and waits for it.
async fn on_a_thread(listener: Arc<dyn Fn(&ConfigItem) + Send + Sync>, item: ConfigItem) {
    let (group, key) = (item.group.clone(), item.key.clone());
    let (is_done, done) = oneshot::channel();
    let thread = Builder::new().name("spinneret-listener".to_owned()).spawn(move || {
        IS_LISTENER.set(true);
        listener(&item);
        // What it holds goes before the next one is called.
        drop(listener);
        is_done.send(()).ok();
    });
    match thread {
        Ok(_) if done.await.is_err() => {
            tracing::error!(target: "spinneret.config", group, key, "a configuration listener panicked");
        }
        Ok(_) => {}
        Err(error) => {
            tracing::error!(target: "spinneret.config", group, key, %error, "no thread could be started for a listener");
        }
    }
}
