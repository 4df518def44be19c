//! Changes one after the other, none missed for want of somebody waiting.

use tokio::sync::watch;

use super::ConfigWatcher;
use super::core::{Phase, Signal};
use super::state::ChangeFilter;
use crate::spinneret::messages::ConfigItem;

/// The changes since it was made; see [`ConfigWatcher::changes`]. Counts as a clone of the watcher.
#[derive(Debug)]
pub struct Changes {
    watcher: ConfigWatcher,
    filter: ChangeFilter,
    signal: watch::Receiver<Signal>,
    /// The number of the last change that was given or that is too old.
    since: u64,
}

impl Changes {
    pub(super) fn new(watcher: ConfigWatcher, filter: ChangeFilter) -> Self {
        let signal = watcher.core().subscribe();
        let since = watcher.core().state().changes();
        Self { watcher, filter, signal, since }
    }

    /// The next change, `None` once the watcher is stopped and there is none left. An item that changes again before
    /// anyone looks is given once, as it is then. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ConfigItem> {
        loop {
            let phase = self.signal.borrow_and_update().phase;
            let found = self.watcher.core().state().first_after(self.since, &self.filter);
            if let Some((number, item)) = found {
                self.since = number;
                return Some((*item).clone());
            }
            if phase == Phase::Stopped || self.signal.changed().await.is_err() {
                return None;
            }
        }
    }
}
