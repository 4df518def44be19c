//! The name of a configuration item, in its three spellings: object, pair, and text `group/key`.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::bounds::{self, Broken};
use super::tolerant;
use crate::spinneret::{Error, Result};

/// The name of an item. Made of a pair or of the text `group/key`, which is split at its first slash; read from an object
/// `{"group", "key"}` or from such a text.
///
/// ```
/// use dragline::spinneret::ConfigKey;
///
/// # fn main() -> dragline::spinneret::Result<()> {
/// let key: ConfigKey = "crawler/sites/search.json".parse()?;
/// assert_eq!(key, ConfigKey::from(("crawler", "sites/search.json")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct ConfigKey {
    /// The group, 1 to 128 characters.
    pub group: String,
    /// The key, 1 to 256 characters; may hold slashes.
    pub key: String,
}

impl ConfigKey {
    /// The item of this group and key.
    #[must_use]
    pub fn new(group: impl Into<String>, key: impl Into<String>) -> Self {
        Self { group: group.into(), key: key.into() }
    }

    /// Checks the lengths.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the part that is too short or too long.
    pub fn validate(&self) -> Result<()> {
        Ok(check(&self.group, &self.key)?)
    }
}

/// Checks the lengths of a group and a key.
pub(super) fn check(group: &str, key: &str) -> Result<(), Broken> {
    bounds::text("group", group, 1..=128)?;
    bounds::text("key", key, 1..=256)
}

fn split(text: &str) -> Option<ConfigKey> {
    let (group, key) = text.split_once('/').filter(|(group, key)| !group.is_empty() && !key.is_empty())?;
    Some(ConfigKey::new(group, key))
}

impl FromStr for ConfigKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        split(text).ok_or_else(|| {
            let start: String = text.chars().take(64).collect();
            Error::invalid(format!("the configuration key {start:?} is not of the form \"group/key\""))
        })
    }
}

impl TryFrom<&str> for ConfigKey {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<String> for ConfigKey {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<&String> for ConfigKey {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self> {
        text.parse()
    }
}

impl<G: Into<String>, K: Into<String>> From<(G, K)> for ConfigKey {
    fn from((group, key): (G, K)) -> Self {
        Self::new(group, key)
    }
}

impl From<&Self> for ConfigKey {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

impl fmt::Display for ConfigKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.key)
    }
}

impl<'de> Deserialize<'de> for ConfigKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Spelling)
    }
}

struct Spelling;

impl<'de> Visitor<'de> for Spelling {
    type Value = ConfigKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with group and key, or a text of the form group/key")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ConfigKey, E> {
        split(text).ok_or_else(|| E::custom("a text that is not of the form group/key"))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ConfigKey, A::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Members {
            #[serde(deserialize_with = "tolerant::or_default")]
            group: String,
            #[serde(deserialize_with = "tolerant::or_default")]
            key: String,
        }

        let Members { group, key } = Members::deserialize(MapAccessDeserializer::new(members))?;
        Ok(ConfigKey { group, key })
    }
}
