//! Configuration items: named texts that the server keeps for its nodes.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ConfigKey, timestamp, tolerant};

/// An item. `Debug` does not show the content.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigItem {
    /// The namespace.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub namespace: String,
    /// The group.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub group: String,
    /// The key.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub key: String,
    /// `json`, `yaml` or `text`.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub format: String,
    /// Grows with every publication.
    #[serde(deserialize_with = "tolerant::integer")]
    pub version: i32,
    /// The text, references to secrets resolved. [`Self::json_as`] reads it.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub content: String,
    /// When it was published; `None` for items the server makes itself.
    #[serde(serialize_with = "timestamp::write_optional", deserialize_with = "timestamp::read_optional")]
    pub updated_at: Option<Timestamp>,
    /// Whether the content holds a secret.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub has_secret_refs: bool,
}

impl ConfigItem {
    /// The item's name.
    #[must_use]
    pub fn config_key(&self) -> ConfigKey {
        ConfigKey { group: self.group.clone(), key: self.key.clone() }
    }
}

impl fmt::Debug for ConfigItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigItem")
            .field("namespace", &self.namespace)
            .field("group", &self.group)
            .field("key", &self.key)
            .field("format", &self.format)
            .field("version", &self.version)
            .field("updated_at", &self.updated_at)
            .field("has_secret_refs", &self.has_secret_refs)
            .finish_non_exhaustive()
    }
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GetConfigResponse {
    /// The item.
    #[serde(deserialize_with = "tolerant::message")]
    pub item: ConfigItem,
}

/// The items there are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchGetConfigResponse {
    /// The items, in the order of the request.
    #[serde(deserialize_with = "tolerant::messages")]
    pub items: Vec<ConfigItem>,
    /// Those there are not.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub missing: Vec<ConfigKey>,
}

/// The items that changed; none when the time was up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchConfigResponse {
    /// The items.
    #[serde(deserialize_with = "tolerant::messages")]
    pub items: Vec<ConfigItem>,
}
