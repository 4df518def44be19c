//! Config items as spiders read them: the newest content of each item that `CONFIG_WATCH` names.
//!
//! The config center puts values in, spiders only read. No `Debug` and no error shows a content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::plane::Configured;
use crate::settings::{Content, content};

/// Items that are not watched and whose names are remembered, so that each is warned of once.
const WARNED: usize = 100;

/// A config item. Cloning shares the content.
#[derive(Clone)]
pub struct ConfigValue(Arc<Configured>);

/// A content that is not what was wanted. Says where and what is missing, never what the content is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It does not parse as its format.
    #[error("config item {item}, version {version}, does not parse as {format}: {why}")]
    Syntax {
        /// The item, as `group/key`.
        item: String,
        /// Its version.
        version: i32,
        /// Its format.
        format: String,
        /// Where, and the parser's words.
        why: String,
    },
    /// It does not have the form of the wanted type.
    #[error("config item {item}, version {version}, is not what the spider reads it as: {why}")]
    Form {
        /// The item, as `group/key`.
        item: String,
        /// Its version.
        version: i32,
        /// What is missing or was expected.
        why: String,
    },
}

impl ConfigValue {
    pub(crate) fn new(configured: Arc<Configured>) -> Self {
        Self(configured)
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.item.group
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0.item.key
    }

    /// The version; grows with each publication.
    #[must_use]
    pub fn version(&self) -> i32 {
        self.0.item.version
    }

    /// The format: `json`, `yaml` or `text`.
    #[must_use]
    pub fn format(&self) -> &str {
        &self.0.item.format
    }

    /// When it was published; `None` where the plane does not say.
    #[must_use]
    pub fn updated_at(&self) -> Option<jiff::Timestamp> {
        self.0.item.updated_at
    }

    /// Whether it was read from the snapshot of an earlier run, as the control plane could not be asked.
    #[must_use]
    #[allow(clippy::wrong_self_convention, reason = "the field's term: the value is from a snapshot")]
    pub fn from_snapshot(&self) -> bool {
        self.0.from_snapshot
    }

    /// The content as it was published, secrets filled in. It may hold some: show it to nobody.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.item.content
    }

    /// The content as JSON, whatever its format: YAML is read, `text` that is TOML too; other text is one string.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] when it does not parse.
    pub fn json(&self) -> Result<Value, ConfigError> {
        match content(self.format(), self.text()) {
            Ok(Content::Table(entries)) => Ok(Value::Object(entries.into_iter().collect())),
            Ok(Content::Value(value)) => Ok(value),
            Ok(Content::Text) => Ok(Value::from(self.text())),
            Err(why) => {
                Err(ConfigError::Syntax { item: self.name(), version: self.version(), format: self.format().to_owned(), why })
            }
        }
    }

    /// The content as a type of the spider's own, read from [`Self::json`].
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] when it does not parse, [`ConfigError::Form`] when it is not such a value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        serde_json::from_value(self.json()?).map_err(|error| ConfigError::Form {
            item: self.name(),
            version: self.version(),
            why: without_content(&error.to_string()),
        })
    }

    fn name(&self) -> String {
        format!("{}/{}", self.group(), self.key())
    }
}

impl fmt::Debug for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigValue")
            .field("group", &self.group())
            .field("key", &self.key())
            .field("version", &self.version())
            .field("format", &self.format())
            .field("from_snapshot", &self.from_snapshot())
            .finish_non_exhaustive()
    }
}

/// What serde says of a value, without the value: it tells first what it found and then what it expected.
fn without_content(message: &str) -> String {
    if message.starts_with("missing field") || message.starts_with("duplicate field") {
        return message.to_owned();
    }
    let is_serdes = ["invalid type", "invalid value", "invalid length", "unknown variant", "unknown field"]
        .into_iter()
        .any(|begins| message.starts_with(begins));
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if is_serdes => format!("expected {expected}"),
        _ => "a value in it is not allowed (not shown)".to_owned(),
    }
}

/// The items of a job, by group and key.
#[derive(Default)]
pub(crate) struct Configs {
    /// Every watched item has its place, filled or not.
    items: RwLock<BTreeMap<String, BTreeMap<String, Option<ConfigValue>>>>,
    warned: Mutex<BTreeSet<(String, String)>>,
}

impl Configs {
    /// Places for the items of `CONFIG_WATCH`, still empty.
    pub(crate) fn of(watched: &[String]) -> Self {
        let mut items: BTreeMap<String, BTreeMap<String, Option<ConfigValue>>> = BTreeMap::new();
        for (group, key) in watched.iter().filter_map(|name| name.split_once('/')) {
            items.entry(group.to_owned()).or_default().insert(key.to_owned(), None);
        }
        Self { items: RwLock::new(items), warned: Mutex::default() }
    }

    pub(crate) fn get(&self, group: &str, key: &str) -> Option<ConfigValue> {
        let items = self.items.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = items.get(group).and_then(|keys| keys.get(key)) {
            return place.clone();
        }
        drop(items);
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < WARNED && warned.insert((group.to_owned(), key.to_owned())) {
            tracing::warn!(
                item = format!("{group}/{key}"),
                "the spider asks for a config item that is not followed: add it to CONFIG_WATCH"
            );
        }
        None
    }

    /// Puts an item in its place, if it has one.
    pub(crate) fn set(&self, value: ConfigValue) {
        let mut items = self.items.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = items.get_mut(value.group()).and_then(|keys| keys.get_mut(value.key())) {
            *place = Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::spinneret::ConfigItem;

    fn value(format: &str, text: &str) -> ConfigValue {
        let item = ConfigItem {
            group: "crawl".to_owned(),
            key: "limits".to_owned(),
            format: format.to_owned(),
            version: 3,
            content: text.to_owned(),
            ..ConfigItem::default()
        };
        ConfigValue::new(Arc::new(Configured { item, from_snapshot: true }))
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Limits {
        pages: u32,
    }

    #[test]
    fn a_value_is_read_as_text_json_and_a_type_of_the_spiders_own() {
        for (format, text) in [("json", "{\"pages\": 5}"), ("yaml", "pages: 5"), ("text", "pages = 5")] {
            let value = value(format, text);
            assert_eq!((value.text(), value.format(), value.version()), (text, format, 3));
            assert!(value.from_snapshot() && value.updated_at().is_none());
            assert_eq!(value.json().unwrap(), json!({"pages": 5}));
            assert_eq!(value.parse::<Limits>().unwrap(), Limits { pages: 5 });
        }
        assert_eq!(value("text", "just words").parse::<String>().unwrap(), "just words");
        assert_eq!(value("yaml", "[1, 2]").parse::<Vec<u8>>().unwrap(), [1, 2]);
    }

    #[test]
    fn no_debug_and_no_error_shows_a_content() {
        for (format, text, words) in [
            ("json", r#"{"pages": "canary, expected a canary"}"#, "is not what the spider reads it as: expected u32"),
            ("json", r#"{"canary": 1}"#, "missing field `pages`"),
            ("json", r#"{"pages": canary}"#, "does not parse as json: line 1, column "),
            ("text", "canary", "expected struct Limits"),
        ] {
            let value = value(format, text);
            let error = value.parse::<Limits>().unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            let shown = format!("{error} {error:?} {value:?}");
            assert!(shown.contains("crawl/limits") && !shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn only_watched_items_have_a_place_and_others_are_warned_of_once() {
        let configs = Configs::of(&["crawl/limits".to_owned(), "crawl/sites/a.json".to_owned()]);
        assert!(configs.get("crawl", "limits").is_none());
        configs.set(value("text", "a"));
        assert_eq!(configs.get("crawl", "limits").unwrap().text(), "a");
        assert!(configs.get("crawl", "sites/a.json").is_none());
        assert!(configs.warned.lock().unwrap().is_empty());
        for n in 0..200 {
            assert!(configs.get("other", &(n / 2).to_string()).is_none());
        }
        assert_eq!(configs.warned.lock().unwrap().len(), WARNED);
        assert!(configs.get("other", "one more").is_none());
        assert_eq!(configs.warned.lock().unwrap().len(), WARNED);
    }
}
