//! The watchers of a client, so that closing it can stop them. Keeps none alive.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;

use super::core::Core;
use crate::spinneret::Result;
use crate::spinneret::error::Error;

/// The watchers of a client. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    watchers: Vec<Weak<Core>>,
    is_closed: bool,
}

impl Registry {
    /// Remembers a watcher, and forgets those that are gone.
    pub(super) fn register(&self, watcher: &Arc<Core>) -> Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.is_closed {
            return Err(Error::client_closed());
        }
        inner.watchers.retain(|known| known.strong_count() > 0);
        inner.watchers.push(Arc::downgrade(watcher));
        Ok(())
    }

    /// Stops every watcher, and waits this long for all of them together. Takes no more afterwards. Given up midway it
    /// may be called again.
    pub(crate) async fn stop_all(&self, limit: Duration) {
        let watchers: Vec<Arc<Core>> = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.is_closed = true;
            inner.watchers.iter().filter_map(Weak::upgrade).collect()
        };
        for watcher in &watchers {
            watcher.signal_stop();
        }
        // All begin to wait now, so the limit is one for all.
        join_all(watchers.iter().map(|watcher| watcher.ended(limit))).await;
    }
}
