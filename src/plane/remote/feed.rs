//! Followed config items: a watcher of the client, and what was not told of it yet.

use std::fmt;

use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use crate::plane::{ConfigFeed, Configured};
use crate::spinneret::{ChangeFilter, Changes, ConfigItem, ConfigKey, ConfigWatcher};

/// A watcher that runs, until this is dropped or the client is closed.
pub(super) struct Feed {
    watcher: ConfigWatcher,
    /// Changes since the beginning, one after the other; the lock is held while somebody waits for the next.
    changes: Mutex<Changes>,
}

impl Feed {
    /// Of a watcher that was started just now: what it has now is there, and what comes later is a change.
    pub(super) fn new(watcher: ConfigWatcher) -> Self {
        let changes = Mutex::new(watcher.changes(ChangeFilter::any()));
        Self { watcher, changes }
    }

    fn configured(&self, item: ConfigItem) -> Configured {
        Configured { item, from_snapshot: self.watcher.is_from_snapshot() }
    }
}

impl ConfigFeed for Feed {
    fn get(&self, key: &ConfigKey) -> Option<Configured> {
        self.watcher.get(key).map(|item| self.configured(item))
    }

    fn changed(&self) -> BoxFuture<'_, Option<Configured>> {
        Box::pin(async {
            let item = self.changes.lock().await.next().await?;
            Some(self.configured(item))
        })
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Feed").field(&self.watcher).finish()
    }
}
