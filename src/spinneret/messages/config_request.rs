//! Asking for configuration items, once or until they change.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bounds::{self, Broken};
use super::{
    BatchGetConfigResponse, ConfigItem, ConfigKey, GetConfigResponse, WatchConfigResponse, config_key, milliseconds, tolerant,
};
use crate::spinneret::procedure::{Procedure, Rpc};
use crate::spinneret::retry::Timeouts;
use crate::spinneret::{Error, Result};

/// How long the server waits when a watch names no time.
const WATCH_MS: i32 = 30_000;

/// Asks for one item. Made of everything a [`ConfigKey`] is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GetConfigRequest {
    /// The namespace, at most 64 characters; empty means the token's own.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub namespace: String,
    /// The group, 1 to 128 characters.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub group: String,
    /// The key, 1 to 256 characters.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub key: String,
}

impl GetConfigRequest {
    /// Asks for this item in the token's own namespace.
    #[must_use]
    pub fn new(key: impl Into<ConfigKey>) -> Self {
        let ConfigKey { group, key } = key.into();
        Self { namespace: String::new(), group, key }
    }

    /// Names the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }
}

impl From<ConfigKey> for GetConfigRequest {
    fn from(key: ConfigKey) -> Self {
        Self::new(key)
    }
}

impl From<&ConfigKey> for GetConfigRequest {
    fn from(key: &ConfigKey) -> Self {
        Self::new(key)
    }
}

impl<G: Into<String>, K: Into<String>> From<(G, K)> for GetConfigRequest {
    fn from(pair: (G, K)) -> Self {
        Self::new(pair)
    }
}

impl TryFrom<&str> for GetConfigRequest {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse::<ConfigKey>().map(Self::new)
    }
}

impl TryFrom<String> for GetConfigRequest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::try_from(text.as_str())
    }
}

impl TryFrom<&String> for GetConfigRequest {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self> {
        Self::try_from(text.as_str())
    }
}

/// Asks for items, 1 to 200.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchGetConfigRequest {
    /// The namespace, at most 64 characters; empty means the token's own.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub namespace: String,
    /// Which.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub items: Vec<ConfigKey>,
}

impl BatchGetConfigRequest {
    /// Asks for these items in the token's own namespace.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a text that is not of the form `group/key`.
    pub fn new<K>(keys: impl IntoIterator<Item = K>) -> Result<Self>
    where
        K: TryInto<ConfigKey, Error: Into<Error>>,
    {
        let items = keys.into_iter().map(|key| key.try_into().map_err(Into::into)).collect::<Result<_>>()?;
        Ok(Self { namespace: String::new(), items })
    }

    /// Names the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }
}

/// An item and the version that is held; 0 when none is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchItem {
    /// The group, 1 to 128 characters.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub group: String,
    /// The key, 1 to 256 characters.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub key: String,
    /// The version that is held, not negative.
    #[serde(deserialize_with = "tolerant::integer")]
    pub version: i32,
}

impl WatchItem {
    /// The item of this name, of which this version is held.
    #[must_use]
    pub fn new(key: impl Into<ConfigKey>, version: i32) -> Self {
        let ConfigKey { group, key } = key.into();
        Self { group, key, version }
    }

    fn check_bounds(&self) -> Result<(), Broken> {
        config_key::check(&self.group, &self.key)?;
        bounds::number("version", self.version, 0..=i32::MAX)
    }
}

impl From<ConfigKey> for WatchItem {
    fn from(key: ConfigKey) -> Self {
        Self::new(key, 0)
    }
}

impl From<&ConfigKey> for WatchItem {
    fn from(key: &ConfigKey) -> Self {
        Self::new(key, 0)
    }
}

impl From<&ConfigItem> for WatchItem {
    fn from(item: &ConfigItem) -> Self {
        Self::new(item.config_key(), item.version)
    }
}

/// Waits until one of the items has another version than the one held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchConfigRequest {
    /// The namespace, at most 64 characters; empty means the token's own.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub namespace: String,
    /// Which, 1 to 200 distinct ones.
    #[serde(deserialize_with = "tolerant::messages")]
    pub items: Vec<WatchItem>,
    /// How long the server may wait, in milliseconds, 0 to 60,000; 0 means 30,000.
    #[serde(alias = "timeoutMs", deserialize_with = "tolerant::integer")]
    pub timeout_ms: i32,
}

impl WatchConfigRequest {
    /// Waits 30 s for another version of one of these, in the token's own namespace.
    #[must_use]
    pub fn new<I: Into<WatchItem>>(items: impl IntoIterator<Item = I>) -> Self {
        Self { namespace: String::new(), items: items.into_iter().map(Into::into).collect(), timeout_ms: WATCH_MS }
    }

    /// Names the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Lets the server wait so long, at most 60 s; zero means 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = milliseconds(timeout);
        self
    }
}

impl Rpc for GetConfigRequest {
    type Answer = GetConfigResponse;
    const PROCEDURE: Procedure = Procedure::GetConfig;

    fn validate(&self) -> Result<()> {
        check_namespace(&self.namespace)?;
        Ok(config_key::check(&self.group, &self.key)?)
    }
}

impl Rpc for BatchGetConfigRequest {
    type Answer = BatchGetConfigResponse;
    const PROCEDURE: Procedure = Procedure::BatchGetConfig;

    fn validate(&self) -> Result<()> {
        check_namespace(&self.namespace)?;
        bounds::count("items", self.items.len(), 1..=200)?;
        for (index, item) in self.items.iter().enumerate() {
            config_key::check(&item.group, &item.key).map_err(|broken| broken.at("items", index))?;
        }
        Ok(())
    }
}

impl Rpc for WatchConfigRequest {
    type Answer = WatchConfigResponse;
    const PROCEDURE: Procedure = Procedure::WatchConfig;

    fn validate(&self) -> Result<()> {
        check_namespace(&self.namespace)?;
        bounds::count("items", self.items.len(), 1..=200)?;
        for (index, item) in self.items.iter().enumerate() {
            item.check_bounds().map_err(|broken| broken.at("items", index))?;
        }
        bounds::distinct("items", self.items.iter().map(|item| (&item.group, &item.key)))?;
        Ok(bounds::number("timeout_ms", self.timeout_ms, 0..=60_000)?)
    }

    fn read_timeout(&self, timeouts: &Timeouts) -> Duration {
        let wait = if self.timeout_ms == 0 { WATCH_MS } else { self.timeout_ms };
        Duration::from_millis(u64::try_from(wait).unwrap_or(0)) + timeouts.watch_grace
    }
}

fn check_namespace(namespace: &str) -> Result<(), Broken> {
    bounds::text("namespace", namespace, 0..=64)
}
