//! What a watcher watches and how, checked before anything starts.

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::listeners::Listener;
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{ConfigItem, ConfigKey};

/// Says of an item that it is secret.
pub(super) type IsSecret = Arc<dyn Fn(&ConfigItem) -> bool + Send + Sync>;

const KEYS: RangeInclusive<usize> = 1..=200;
const GROUP_LENGTH: RangeInclusive<usize> = 1..=128;
const KEY_LENGTH: RangeInclusive<usize> = 1..=256;
const NAMESPACE_LENGTH: RangeInclusive<usize> = 0..=64;
const POLL_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);
const BACKOFF: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3_600);

/// What is watched, and how; checked when the watcher is made.
#[derive(Clone)]
pub struct WatcherOptions {
    pub(super) keys: Vec<ConfigKey>,
    pub(super) namespace: String,
    pub(super) poll_timeout: Duration,
    pub(super) backoff_initial: Duration,
    pub(super) backoff_max: Duration,
    pub(super) snapshots: Snapshots,
    pub(super) cache_dir: Option<PathBuf>,
    pub(super) secrets: CacheSecrets,
    pub(super) treat_as_secret: Option<IsSecret>,
    pub(super) listeners: Vec<Listener>,
}

/// Whether items are kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Snapshots {
    On,
    Off,
}

/// What becomes of secret items on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheSecrets {
    Encrypted,
    Never,
}

impl WatcherOptions {
    /// Watches these keys, 1 to 200; one that is named twice is watched once.
    pub fn new(keys: impl IntoIterator<Item = ConfigKey>) -> Self {
        let mut named = HashSet::new();
        Self {
            keys: keys.into_iter().filter(|key| named.insert(key.clone())).collect(),
            namespace: String::new(),
            poll_timeout: Duration::from_secs(30),
            backoff_initial: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            snapshots: Snapshots::On,
            cache_dir: None,
            secrets: CacheSecrets::Never,
            treat_as_secret: None,
            listeners: Vec::new(),
        }
    }

    /// The namespace, at most 64 characters; by default, and if empty, the token's own. The server refuses every other.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How long the server may hold a poll, 1 ms to 60 s. Default 30 s.
    #[must_use]
    pub fn poll_timeout(mut self, timeout: Duration) -> Self {
        self.poll_timeout = timeout;
        self
    }

    /// The pauses after failures: the first is half to the whole of `initial`, each further one twice that up to
    /// `longest`. Both 1 ms to 1 h, `initial` not above `longest`. Default 1 s and 30 s. A hint of the server may
    /// lengthen a pause, to 30 s at most.
    #[must_use]
    pub fn backoff(mut self, initial: Duration, longest: Duration) -> Self {
        (self.backoff_initial, self.backoff_max) = (initial, longest);
        self
    }

    /// Keeps nothing on disk and reads nothing from it.
    #[must_use]
    pub fn without_snapshots(mut self) -> Self {
        self.snapshots = Snapshots::Off;
        self
    }

    /// Keeps the items below this directory instead of the client's.
    #[must_use]
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(dir.into());
        self
    }

    /// Keeps secret items on disk too, encrypted under the token. Without this they are not kept at all.
    #[must_use]
    pub fn cache_secrets(mut self) -> Self {
        self.secrets = CacheSecrets::Encrypted;
        self
    }

    /// Items of which this is true are secret, besides those the server says so of. Called on threads that may block.
    #[must_use]
    pub fn treat_as_secret(mut self, is_secret: impl Fn(&ConfigItem) -> bool + Send + Sync + 'static) -> Self {
        self.treat_as_secret = Some(Arc::new(is_secret));
        self
    }

    /// Called with every item of the first load and every one that changes later. See
    /// [`ConfigWatcher::on_change`](super::ConfigWatcher::on_change).
    #[must_use]
    pub fn on_change(mut self, listener: impl Fn(&ConfigItem) + Send + Sync + 'static) -> Self {
        self.listeners.push(Listener::plain(listener));
        self
    }

    /// The same for a listener that has to wait for something. See
    /// [`ConfigWatcher::on_change_async`](super::ConfigWatcher::on_change_async).
    #[must_use]
    pub fn on_change_async<F, T>(mut self, listener: F) -> Self
    where
        F: Fn(ConfigItem) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        self.listeners.push(Listener::awaited(listener));
        self
    }

    pub(super) fn validate(&self) -> Result<()> {
        within("keys", self.keys.len(), &KEYS, "keys")?;
        within("namespace", self.namespace.chars().count(), &NAMESPACE_LENGTH, "characters")?;
        for (n, key) in self.keys.iter().enumerate() {
            within(&format!("keys[{n}].group"), key.group.chars().count(), &GROUP_LENGTH, "characters")?;
            within(&format!("keys[{n}].key"), key.key.chars().count(), &KEY_LENGTH, "characters")?;
        }
        between("poll_timeout", self.poll_timeout, &POLL_TIMEOUT)?;
        between("backoff_initial", self.backoff_initial, &BACKOFF)?;
        between("backoff_max", self.backoff_max, &(self.backoff_initial..=*BACKOFF.end()))
    }
}

impl fmt::Debug for WatcherOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatcherOptions")
            .field("keys", &self.keys)
            .field("namespace", &self.namespace)
            .field("poll_timeout", &self.poll_timeout)
            .field("backoff_initial", &self.backoff_initial)
            .field("backoff_max", &self.backoff_max)
            .field("snapshots", &self.snapshots)
            .field("cache_dir", &self.cache_dir)
            .field("secrets", &self.secrets)
            .field("treat_as_secret", &self.treat_as_secret.is_some())
            .field("listeners", &self.listeners)
            .finish()
    }
}

fn within(field: &str, found: usize, allowed: &RangeInclusive<usize>, unit: &str) -> Result<()> {
    if allowed.contains(&found) {
        return Ok(());
    }
    let (low, high) = (allowed.start(), allowed.end());
    Err(Error::invalid(format!("config watcher: {field} has {found} {unit}, {low} to {high} are allowed")))
}

fn between(field: &str, found: Duration, allowed: &RangeInclusive<Duration>) -> Result<()> {
    if allowed.contains(&found) {
        return Ok(());
    }
    let (low, high) = (allowed.start(), allowed.end());
    Err(Error::invalid(format!("config watcher: {field} is {found:?}, {low:?} to {high:?} are allowed")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn key(group: &str, key: &str) -> ConfigKey {
        ConfigKey { group: group.to_owned(), key: key.to_owned() }
    }

    fn keys(count: usize) -> WatcherOptions {
        WatcherOptions::new((0..count).map(|n| key("g", &n.to_string())))
    }

    fn refusal(options: &WatcherOptions) -> String {
        let error = options.validate().unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)) && error.http_status() == 0);
        error.message().to_owned()
    }

    #[test]
    fn keys_named_twice_are_watched_once_in_the_order_they_were_first_named() {
        let options = WatcherOptions::new([key("g", "b"), key("g", "a"), key("g", "b"), key("h", "a")]);
        assert_eq!(options.keys, [key("g", "b"), key("g", "a"), key("h", "a")]);
        let many = WatcherOptions::new((0..500).map(|n| key("g", &(n % 200).to_string())));
        many.validate().unwrap();
    }

    #[test]
    fn every_bound_is_checked_and_named() {
        let ms = Duration::from_millis;
        for options in [
            keys(1),
            keys(200),
            keys(1).poll_timeout(ms(1)),
            keys(1).poll_timeout(ms(60_000)),
            keys(1).backoff(ms(1), ms(1)),
            keys(1).namespace("n".repeat(64)),
            WatcherOptions::new([key(&"ü".repeat(128), &"ü".repeat(256))]),
        ] {
            options.validate().unwrap();
        }
        let table = [
            (keys(0), "keys has 0 keys, 1 to 200 are allowed"),
            (keys(201), "keys has 201 keys, 1 to 200 are allowed"),
            (keys(1).namespace("n".repeat(65)), "namespace has 65 characters, 0 to 64 are allowed"),
            (WatcherOptions::new([key("g", "k"), key("", "k")]), "keys[1].group has 0 characters, 1 to 128 are allowed"),
            (WatcherOptions::new([key("g", &"k".repeat(257))]), "keys[0].key has 257 characters, 1 to 256 are allowed"),
            (keys(1).poll_timeout(ms(0)), "poll_timeout is 0ns, 1ms to 60s are allowed"),
            (keys(1).poll_timeout(Duration::from_micros(999)), "poll_timeout is 999µs, 1ms to 60s are allowed"),
            (keys(1).poll_timeout(ms(60_001)), "poll_timeout is 60.001s, 1ms to 60s are allowed"),
            (keys(1).backoff(ms(0), ms(5)), "backoff_initial is 0ns, 1ms to 3600s are allowed"),
            (keys(1).backoff(ms(10), ms(9)), "backoff_max is 9ms, 10ms to 3600s are allowed"),
            (keys(1).backoff(ms(10), ms(3_600_001)), "backoff_max is 3600.001s, 10ms to 3600s are allowed"),
        ];
        for (options, expected) in table {
            assert_eq!(refusal(&options), format!("config watcher: {expected}"));
        }
    }
}
