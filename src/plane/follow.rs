//! Config items that are followed: what a plane says of them now, and what changes.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::spinneret::{ConfigItem, ConfigKey};

/// Config items kept up to date. Dropping it ends that.
pub trait ConfigFeed: Send + Sync + fmt::Debug + 'static {
    /// The item as it is now; `None` as long as the plane has none of this name.
    fn get(&self, key: &ConfigKey) -> Option<Configured>;

    /// Waits for the next item that is not as it was; `None` when nothing will change any more. Each change is told once,
    /// and to one that waits. Cancel safe.
    fn changed(&self) -> BoxFuture<'_, Option<Configured>>;
}

/// A config item, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// The item; its `Debug` shows no content.
    pub item: ConfigItem,
    /// It was read from the snapshot of an earlier run, as the plane could not be asked.
    pub from_snapshot: bool,
}
