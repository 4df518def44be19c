//! The store of snapshots: what is written, what is kept out, what is believed when read.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use secrecy::SecretString;

use super::disk;
use super::document::{self, Content, DocumentError};
use super::envelope::Freshness;
use super::path;
use crate::spinneret::{ConfigItem, ConfigKey};

/// What a reference to a secret in a content starts with.
const REFERENCE: &str = "${secret:";

/// Says of an item that it is secret although nothing in it says so.
pub(crate) type TreatAsSecret = Arc<dyn Fn(&ConfigItem) -> bool + Send + Sync>;

/// What a store is made of.
pub(crate) struct SnapshotOptions {
    /// Below it everything lies; made when missing.
    pub(crate) cache_dir: PathBuf,
    /// The server, as in its URL: `spinneret.example.com:8080`.
    pub(crate) host: String,
    /// The node's token, which secret items are encrypted under.
    pub(crate) token: SecretString,
    /// Whether secret items are written at all.
    pub(crate) cache_secrets: bool,
    /// Adds to the items that are secret anyway; cannot exempt one. One that panics says yes.
    pub(crate) treat_as_secret: Option<TreatAsSecret>,
}

/// Snapshots on disk. Holds no lock; all calls block, and may be made from several threads.
pub(crate) struct SnapshotStore {
    cache_dir: PathBuf,
    host: String,
    /// `None`: secret items are neither written nor read.
    token: Option<SecretString>,
    treat_as_secret: Option<TreatAsSecret>,
}

/// What became of an item that was to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Saved {
    /// It is on disk, in the place of any older one.
    Written,
    /// It is secret and was not written; an older one was removed.
    Removed,
    /// It is secret and was not written; there was no older one.
    KeptOut,
    /// It could not be written or, being secret, removed; a warning says why. What was there is still there.
    Failed,
}

/// Why a snapshot is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
enum Refusal {
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error("it holds another item")]
    OtherItem,
    #[error("it holds a secret in plain text")]
    PlainSecret,
}

impl SnapshotStore {
    /// Touches no disk.
    pub(crate) fn new(options: SnapshotOptions) -> Self {
        let SnapshotOptions { cache_dir, host, token, cache_secrets, treat_as_secret } = options;
        Self { cache_dir, host, token: cache_secrets.then_some(token), treat_as_secret }
    }

    /// Writes an item that was asked for in this namespace, or keeps it out if it is secret.
    pub(crate) fn save(&self, namespace: &str, item: &ConfigItem) -> Saved {
        self.save_as_of(namespace, item, Timestamp::now(), Freshness::from_system)
    }

    /// The item that was saved last; `None` without one, and without one that can be believed.
    pub(crate) fn load(&self, namespace: &str, key: &ConfigKey) -> Option<ConfigItem> {
        let path = self.path(namespace, &key.group, &key.key);
        self.read(&path, key).unwrap_or_else(|refusal| {
            tracing::warn!(target: "spinneret.config", path = %path.display(), "a snapshot is ignored: {refusal}");
            None
        })
    }

    /// [`Self::save`] at another time, with other randomness.
    pub(super) fn save_as_of(
        &self,
        namespace: &str,
        item: &ConfigItem,
        saved_at: Timestamp,
        fresh: impl FnOnce() -> io::Result<Freshness>,
    ) -> Saved {
        let path = self.path(namespace, &item.group, &item.key);
        let saved = match (self.is_secret(item), &self.token) {
            (false, _) => document::plain(item, saved_at).and_then(|document| disk::replace(&path, &document)),
            (true, Some(token)) => fresh()
                .and_then(|fresh| document::encrypted(item, saved_at, token, &fresh))
                .and_then(|document| disk::replace(&path, &document)),
            (true, None) => return keep_out(&path),
        };
        match saved {
            Ok(()) => Saved::Written,
            Err(error) => {
                tracing::warn!(target: "spinneret.config", path = %path.display(), "a snapshot could not be written: {error}");
                Saved::Failed
            }
        }
    }

    fn read(&self, path: &Path, key: &ConfigKey) -> Result<Option<ConfigItem>, Refusal> {
        let Some(document) = disk::read(path)? else { return Ok(None) };
        let (item, is_plain) = match document::read(&document, key, self.token.as_ref())? {
            Content::Plain(item) => (item, true),
            Content::Decrypted(item) => (item, false),
            Content::Locked => return Ok(None),
        };
        if item.group != key.group || item.key != key.key {
            Err(Refusal::OtherItem)
        } else if is_plain && self.is_secret(&item) {
            Err(Refusal::PlainSecret)
        } else {
            Ok(Some(item))
        }
    }

    fn path(&self, namespace: &str, group: &str, key: &str) -> PathBuf {
        path::file(&self.cache_dir, &self.host, namespace, group, key)
    }

    fn is_secret(&self, item: &ConfigItem) -> bool {
        item.has_secret_refs
            || item.content.contains(REFERENCE)
            || self.treat_as_secret.as_ref().is_some_and(|says| {
                catch_unwind(AssertUnwindSafe(|| says(item))).unwrap_or_else(|_| {
                    tracing::warn!(
                        target: "spinneret.config", group = item.group, key = item.key,
                        "treat_as_secret panicked: the item counts as secret"
                    );
                    true
                })
            })
    }
}

fn keep_out(path: &Path) -> Saved {
    match disk::remove(path) {
        Ok(true) => Saved::Removed,
        Ok(false) => Saved::KeptOut,
        Err(error) => {
            tracing::warn!(target: "spinneret.config", path = %path.display(), "a snapshot could not be removed: {error}");
            Saved::Failed
        }
    }
}

impl fmt::Debug for SnapshotStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotStore")
            .field("cache_dir", &self.cache_dir)
            .field("host", &self.host)
            .field("cache_secrets", &self.token.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SnapshotOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotOptions")
            .field("cache_dir", &self.cache_dir)
            .field("host", &self.host)
            .field("cache_secrets", &self.cache_secrets)
            .finish_non_exhaustive()
    }
}
