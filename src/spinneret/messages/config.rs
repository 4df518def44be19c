//! Configuration items: named texts that the server keeps for its nodes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};

/// The name of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigKey {
    /// The group, 1 to 128 characters.
    pub group: String,
    /// The key, 1 to 256 characters.
    pub key: String,
}

/// An item. `Debug` does not show the content.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigItem {
    /// The namespace.
    pub namespace: String,
    /// The group.
    pub group: String,
    /// The key.
    pub key: String,
    /// `json`, `yaml` or `text`.
    pub format: String,
    /// Grows with every publication.
    pub version: i32,
    /// The text, references to secrets resolved.
    pub content: String,
    /// When it was published; `None` for items the server makes itself.
    pub updated_at: Option<Timestamp>,
    /// Whether the content holds a secret.
    pub has_secret_refs: bool,
}

/// An item and the version that is held; 0 when none is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchItem {
    /// The group.
    pub group: String,
    /// The key.
    pub key: String,
    /// The version that is held.
    pub version: i32,
}

/// Asks for one item.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GetConfigRequest {
    /// The namespace; empty means the token's own.
    pub namespace: String,
    /// The group.
    pub group: String,
    /// The key.
    pub key: String,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GetConfigResponse {
    /// The item.
    pub item: ConfigItem,
}

/// Asks for items, 1 to 200.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchGetConfigRequest {
    /// The namespace; empty means the token's own.
    pub namespace: String,
    /// Which.
    pub items: Vec<ConfigKey>,
}

/// The items there are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchGetConfigResponse {
    /// The items, in the order of the request.
    pub items: Vec<ConfigItem>,
    /// Those there are not.
    pub missing: Vec<ConfigKey>,
}

/// Waits until one of the items has another version than the one held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchConfigRequest {
    /// The namespace; empty means the token's own.
    pub namespace: String,
    /// Which, 1 to 200 distinct ones.
    pub items: Vec<WatchItem>,
    /// How long the server may wait, in milliseconds, 0 to 60,000; 0 means 30,000.
    pub timeout_ms: i32,
}

/// The items that changed; none when the time was up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchConfigResponse {
    /// The items.
    pub items: Vec<ConfigItem>,
}

impl Rpc for GetConfigRequest {
    type Answer = GetConfigResponse;
    const PROCEDURE: Procedure = Procedure::GetConfig;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}

impl Rpc for BatchGetConfigRequest {
    type Answer = BatchGetConfigResponse;
    const PROCEDURE: Procedure = Procedure::BatchGetConfig;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}

impl Rpc for WatchConfigRequest {
    type Answer = WatchConfigResponse;
    const PROCEDURE: Procedure = Procedure::WatchConfig;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}
