//! Who is told of changes, in the order they came.
//!
//! No listener is called under the lock; a panic of one is caught and logged and never reaches the others.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::TARGET;
use crate::spinneret::messages::ConfigItem;

/// Names a listener, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListenerId(u64);

/// Something to call with every changed item.
#[derive(Clone)]
pub(super) enum Listener {
    Plain(Arc<dyn Fn(&ConfigItem) + Send + Sync>),
    Awaited(Arc<dyn Fn(ConfigItem) -> BoxFuture<'static, ()> + Send + Sync>),
}

impl Listener {
    pub(super) fn plain(listener: impl Fn(&ConfigItem) + Send + Sync + 'static) -> Self {
        Self::Plain(Arc::new(listener))
    }

    pub(super) fn awaited<F, T>(listener: F) -> Self
    where
        F: Fn(ConfigItem) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        Self::Awaited(Arc::new(move |item| listener(item).boxed()))
    }

    async fn call(&self, item: &ConfigItem) -> Result<(), Panicked> {
        match self {
            Self::Plain(listener) => catch_unwind(AssertUnwindSafe(|| listener(item))).map_err(|_| Panicked),
            Self::Awaited(listener) => {
                let told = catch_unwind(AssertUnwindSafe(|| listener(item.clone()))).map_err(|_| Panicked)?;
                AssertUnwindSafe(told).catch_unwind().await.map_err(|_| Panicked)
            }
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Awaited(_) => "Awaited",
        })
    }
}

/// What a panic carries may hold content: it is dropped.
struct Panicked;

/// The listeners of one watcher.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    added: u64,
    entries: Vec<(ListenerId, Listener)>,
    is_closed: bool,
}

impl Listeners {
    /// One more, after the others. After [`Self::close`] it is let go at once.
    pub(super) fn add(&self, listener: Listener) -> ListenerId {
        let mut inner = self.lock();
        inner.added += 1;
        let id = ListenerId(inner.added);
        if !inner.is_closed {
            inner.entries.push((id, listener));
        }
        id
    }

    /// Calls it no more; whether it was there.
    pub(super) fn remove(&self, id: ListenerId) -> bool {
        let mut inner = self.lock();
        let at = inner.entries.iter().position(|(known, _)| *known == id);
        let removed = at.map(|at| inner.entries.remove(at));
        // What a listener holds may call back when it goes: not under the lock.
        drop(inner);
        removed.is_some()
    }

    /// Calls nobody any more.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        let entries = std::mem::take(&mut inner.entries);
        drop(inner);
        drop(entries);
    }

    /// Calls everyone who is there now and still there when it is their turn.
    pub(super) async fn tell(&self, item: &ConfigItem) {
        let ids: Vec<ListenerId> = self.lock().entries.iter().map(|(id, _)| *id).collect();
        for id in ids {
            let Some(listener) = self.get(id) else { continue };
            if listener.call(item).await.is_err() {
                tracing::error!(
                    target: TARGET,
                    group = %item.group,
                    key = %item.key,
                    version = item.version,
                    listener = id.0,
                    "a listener of configuration changes panicked; the others are still called"
                );
            }
        }
    }

    fn get(&self, id: ListenerId) -> Option<Listener> {
        self.lock().entries.iter().find(|(known, _)| *known == id).map(|(_, listener)| listener.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
