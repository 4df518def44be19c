//! Changed items on their way to the disk: one at a time, an older version of an item never after a newer one.
//!
//! Whoever saves does not wait for the disk; what cannot be written is the store's to log.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::TARGET;
use super::state::key_of;
use crate::spinneret::messages::{ConfigItem, ConfigKey};
use crate::spinneret::snapshot::SnapshotStore;

/// Writes the items of one watcher.
#[derive(Debug)]
pub(super) struct Saver {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: SnapshotStore,
    namespace: String,
    /// At most one item of every key.
    waiting: Mutex<VecDeque<Arc<ConfigItem>>>,
    /// Whether a thread is at it; changed under the lock of `waiting` only.
    is_writing: watch::Sender<bool>,
}

impl Saver {
    pub(super) fn new(store: SnapshotStore, namespace: String) -> Self {
        let (is_writing, _) = watch::channel(false);
        Self { shared: Arc::new(Shared { store, namespace, waiting: Mutex::default(), is_writing }) }
    }

    /// What the disk has of these keys. Errors count as nothing.
    pub(super) async fn load(&self, keys: Vec<ConfigKey>) -> Vec<ConfigItem> {
        let shared = Arc::clone(&self.shared);
        let load = move || keys.iter().filter_map(|key| shared.store.load(&shared.namespace, key)).collect();
        tokio::task::spawn_blocking(load).await.unwrap_or_default()
    }

    /// Writes these soon; an item that still waits is replaced by its newer version.
    pub(super) fn save(&self, items: &[Arc<ConfigItem>]) {
        let mut waiting = self.shared.waiting();
        for item in items {
            let key = key_of(item);
            match waiting.iter_mut().find(|older| key_of(older) == key) {
                Some(older) => *older = Arc::clone(item),
                None => waiting.push_back(Arc::clone(item)),
            }
        }
        if waiting.is_empty() || *self.shared.is_writing.borrow() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        self.shared.is_writing.send_replace(true);
        let shared = Arc::clone(&self.shared);
        runtime.spawn_blocking(move || shared.write_all());
    }

    /// Waits until nothing is left to be written.
    pub(super) async fn settled(&self) {
        // The sender lives in `self`: no error.
        let _ = self.shared.is_writing.subscribe().wait_for(|is_writing| !is_writing).await;
    }
}

impl Shared {
    fn write_all(&self) {
        while let Some(item) = self.next() {
            let written = catch_unwind(AssertUnwindSafe(|| self.store.save(&self.namespace, &item)));
            if written.is_err() {
                tracing::error!(target: TARGET, group = %item.group, key = %item.key, "saving an item panicked");
            }
        }
    }

    fn next(&self) -> Option<Arc<ConfigItem>> {
        let mut waiting = self.waiting();
        let next = waiting.pop_front();
        if next.is_none() {
            self.is_writing.send_replace(false);
        }
        next
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<ConfigItem>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
