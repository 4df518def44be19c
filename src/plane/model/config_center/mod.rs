//! The config centre of one namespace: items with published versions, read, watched, filled with secrets
//! (wire contract, sections 4.3 and 30).
//!
//! Waits for nothing itself: a watch that has to wait gets a [`WaiterId`], and every change answers whose wait it ends. What
//! a change must not slip past (looking, and then waiting) is one method.

mod items;
mod reads;
mod references;
#[cfg(test)]
mod tests;
mod waiters;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use self::items::Items;
pub(crate) use self::reads::{Look, WatchedItem};
pub(crate) use self::waiters::WaiterId;
use self::waiters::Waiters;
use super::Ms;
use super::refusal::Refusal;
use super::runtime_items::{self, Raise, RuntimeItems, SiteNow};
use super::secrets::Secrets;
use crate::spinneret;

/// Most content of one answer, bytes.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// Most watches that wait at once.
const WATCHES: usize = 20_000;

/// How an item's content is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Json,
    Yaml,
    Text,
}

impl Format {
    const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Text];

    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Text => "text",
        }
    }

    /// The format of exactly this spelling.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// An item's name within its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ItemName<'a> {
    /// 1 to 128 characters.
    pub(crate) group: &'a str,
    /// 1 to 256 characters.
    pub(crate) key: &'a str,
}

impl fmt::Display for ItemName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.key)
    }
}

/// An item as it is delivered. Its content may hold secrets, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ConfigItem {
    pub(crate) namespace: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) format: Format,
    /// Grows with each publishing and rollback, and never repeats.
    pub(crate) version: i32,
    /// With all references to secrets replaced.
    pub(crate) content: Arc<str>,
    /// When this version was published; `None` for items of `_runtime`.
    pub(crate) updated_at: Option<Ms>,
    /// Whether the content had references to secrets.
    pub(crate) has_secret_refs: bool,
}

impl ConfigItem {
    /// The item as a message of the wire.
    pub(crate) fn on_the_wire(&self) -> spinneret::ConfigItem {
        spinneret::ConfigItem {
            namespace: self.namespace.to_string(),
            group: self.group.to_string(),
            key: self.key.to_string(),
            format: self.format.name().to_owned(),
            version: self.version,
            content: self.content.to_string(),
            updated_at: self.updated_at.and_then(|at| Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()),
            has_secret_refs: self.has_secret_refs,
        }
    }
}

impl fmt::Debug for ConfigItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ItemName { group: &self.group, key: &self.key };
        write!(f, "ConfigItem({}: {name} version {}, {} bytes)", self.namespace, self.version, self.content.len())
    }
}

/// What a publishing or a rollback did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Published {
    /// The new version.
    pub(crate) version: i32,
    /// Whose waits this ended.
    pub(crate) woken: Vec<WaiterId>,
}

/// The config centre of one namespace, with its secrets and its `_runtime` items.
#[derive(Debug)]
pub(crate) struct ConfigCenter {
    namespace: Arc<str>,
    items: Items,
    runtime: RuntimeItems,
    secrets: Secrets,
    waiters: Waiters,
    answer_bytes: usize,
}

impl ConfigCenter {
    /// An empty centre. All versions begin above `floor`: 0 for a fresh server. One that restarts and remembers nothing passes
    /// more than it may have given out, since readers never go back to a lower version.
    pub(crate) fn new(namespace: Arc<str>, floor: i32, sites: &[SiteNow<'_>]) -> Self {
        Self {
            items: Items::above(floor),
            runtime: RuntimeItems::new(Arc::clone(&namespace), floor, sites),
            secrets: Secrets::default(),
            waiters: Waiters::new(WATCHES),
            answer_bytes: ANSWER_BYTES,
            namespace,
        }
    }

    /// The namespace.
    pub(crate) fn namespace(&self) -> &Arc<str> {
        &self.namespace
    }

    /// The secrets. A new value does not change the version of an item that refers to it, and wakes nobody.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The secrets, to change.
    pub(crate) fn secrets_mut(&mut self) -> &mut Secrets {
        &mut self.secrets
    }

    /// Publishes a new version of an item, the first or the next.
    ///
    /// # Errors
    /// `invalid_argument` for names and contents outside the bounds, for groups that begin with `_`, and for what opens like a
    /// reference to a secret and is none.
    pub(crate) fn publish(&mut self, name: ItemName<'_>, format: Format, content: &str, now: Ms) -> Result<Published, Refusal> {
        let version = self.items.publish(name, format, content, now)?;
        Ok(Published { version, woken: self.waiters.changed(name) })
    }

    /// Publishes the content of an older version once more, as a new version.
    ///
    /// # Errors
    /// `not_found` when the item or that version of it is not kept.
    pub(crate) fn roll_back(&mut self, name: ItemName<'_>, version: i32, now: Ms) -> Result<Published, Refusal> {
        let version = self.items.roll_back(name, version, now)?;
        Ok(Published { version, woken: self.waiters.changed(name) })
    }

    /// Deletes an item and wakes nobody; answers whether it was there. The next version is above all that ever were.
    pub(crate) fn delete(&mut self, name: ItemName<'_>) -> bool {
        self.items.delete(name)
    }

    /// Whether exactly this is published: then a reloaded file need not publish it again.
    pub(crate) fn holds(&self, name: ItemName<'_>, format: Format, content: &str) -> bool {
        self.items.find(name).is_some_and(|item| item.format == format && *item.content == *content)
    }

    /// The names of all published items, in order; those of `_runtime` are not among them.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = ItemName<'_>> {
        self.items.names()
    }

    /// Renders the `_runtime` items anew after a breaker or a pause changed; answers whose waits this ended.
    #[must_use]
    pub(crate) fn raise(&mut self, what: Raise, sites: &[SiteNow<'_>]) -> Vec<WaiterId> {
        let keys = self.runtime.raise(what, sites);
        keys.iter().flat_map(|key| self.waiters.changed(ItemName { group: runtime_items::GROUP, key })).collect()
    }

    /// A watch no longer waits: its time is over or its caller is gone.
    pub(crate) fn leave(&mut self, waiter: WaiterId) {
        self.waiters.leave(waiter);
    }

    /// The server is going down: all waits end, with [`Refusal::canceled`].
    #[must_use]
    #[cfg(test)]
    pub(crate) fn end_all_waits(&mut self) -> Vec<WaiterId> {
        self.waiters.drain()
    }

    /// Watches that wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }
}
