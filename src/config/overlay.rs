//! What a config item says about settings: a pure reading of its content.
//!
//! Live settings go over the settings file, names of the project's own are left to spiders, everything else is refused. No
//! message shows a value of an item that holds secrets.

use std::fmt;

use serde_json::Value;

use crate::settings::{Content, ItemValue, Name, Reload, content};
use crate::spinneret::ConfigItem;

/// An item as the settings see it.
#[derive(Debug)]
pub(crate) struct Overlay {
    /// Live settings, each checked by its rule, in the order of the item.
    pub(crate) values: Vec<ItemValue>,
    /// Keys that have no effect; the others have theirs.
    pub(crate) refused: Vec<RefusedKey>,
    /// The content is a table; nothing else can hold settings.
    pub(crate) is_table: bool,
}

/// A key of an item that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedKey {
    pub(crate) key: String,
    pub(crate) why: WhyKey,
}

/// Why a key has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhyKey {
    /// It is read once, when a crawl starts.
    NeedsRestart,
    /// It is known elsewhere; what to do instead.
    Unsupported(&'static str),
    /// It looks like a setting and is none; the nearest one.
    Unknown(Option<&'static str>),
}

/// Why a version of an item is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RefusedItem {
    /// It is not what its format says.
    #[error("it does not parse as {format}: {why}")]
    Syntax { format: String, why: String },
    /// It was a table of settings, and is none any more.
    #[error("found a content that is no table, where the version in use is one; publish a table, an empty one to end its effect")]
    NoTable,
    /// A live setting has a value that its rule refuses.
    #[error("setting {key}: found {found}; allowed: {allowed}")]
    BadValue { key: &'static str, found: String, allowed: String },
    /// Its settings do not fit the others.
    #[error("{0}")]
    Conflict(String),
}

/// Reads what an item says about settings.
pub(crate) fn read(item: &ConfigItem) -> Result<Overlay, RefusedItem> {
    let mut overlay = Overlay { values: Vec::new(), refused: Vec::new(), is_table: true };
    let entries = match content(&item.format, &item.content) {
        Ok(Content::Table(entries)) => entries,
        Ok(Content::Value(_) | Content::Text) => return Ok(Overlay { is_table: false, ..overlay }),
        Err(why) => return Err(RefusedItem::Syntax { format: item.format.clone(), why }),
    };
    let is_hidden = holds_secrets(item);
    for (name, value) in entries.into_iter().filter(|(name, _)| looks_like_a_setting(name)) {
        let why = match Name::of(&name) {
            Name::Known(key) if key.reload() == Reload::Live => {
                (key.check)(&value).map_err(|problem| RefusedItem::BadValue {
                    key: key.name(),
                    found: if is_hidden { hidden(&value) } else { problem.found },
                    allowed: problem.allowed,
                })?;
                overlay.values.push(ItemValue { key, value, is_hidden });
                continue;
            }
            Name::Known(_) => WhyKey::NeedsRestart,
            Name::Unsupported(advice) => WhyKey::Unsupported(advice),
            Name::Unknown(nearest) => WhyKey::Unknown(nearest),
        };
        let key = name.chars().filter(|c| !c.is_control()).take(80).collect();
        overlay.refused.push(RefusedKey { key, why });
    }
    Ok(overlay)
}

/// Whether anything in it may be a secret.
fn holds_secrets(item: &ConfigItem) -> bool {
    item.has_secret_refs || item.content.contains("${secret:")
}

/// Settings have no lower case letter in their names; what has one is the project's own.
fn looks_like_a_setting(name: &str) -> bool {
    name.contains(char::is_uppercase) && !name.contains(char::is_lowercase)
}

fn hidden(value: &Value) -> String {
    let kind = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    };
    format!("{kind} (not shown, as the item holds secrets)")
}

impl fmt::Display for RefusedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match self.why {
            WhyKey::NeedsRestart => write!(
                f,
                "setting {key} cannot change while a crawl runs, so no config item may set it; it needs the settings file (or the \
                 environment, or -s) and a restart"
            ),
            WhyKey::Unsupported(advice) => write!(f, "setting {key} is known but not supported by this version: {advice}"),
            WhyKey::Unknown(Some(nearest)) => {
                write!(f, "unknown setting {key}; did you mean {nearest}? a name of your own needs a lower case letter")
            }
            WhyKey::Unknown(None) => write!(f, "unknown setting {key}; a name of your own needs a lower case letter"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn item(format: &str, content: &str) -> ConfigItem {
        ConfigItem { format: format.to_owned(), content: content.to_owned(), ..ConfigItem::default() }
    }

    fn values(overlay: &Overlay) -> Vec<(&str, Value)> {
        overlay.values.iter().map(|value| (value.key.name(), value.value.clone())).collect()
    }

    #[test]
    fn live_settings_are_taken_from_every_format_and_names_of_ones_own_are_left() {
        for (format, text) in [
            ("json", r#"{"DOWNLOAD_DELAY": 2.5, "currency": "EUR", "RETRY_HTTP_CODES": [503], "concurrent_requests": "x"}"#),
            ("yaml", "DOWNLOAD_DELAY: 2.5\ncurrency: EUR\nRETRY_HTTP_CODES: [503]\nMixedCase: 1\n"),
            ("text", "DOWNLOAD_DELAY = 2.5\nRETRY_HTTP_CODES = [503]\n[currency]\nUSER_AGENT = 'mine'\n"),
        ] {
            let overlay = read(&item(format, text)).unwrap();
            assert_eq!(values(&overlay), [("DOWNLOAD_DELAY", json!(2.5)), ("RETRY_HTTP_CODES", json!([503]))], "{format}");
            assert!(overlay.refused.is_empty() && overlay.is_table, "{overlay:?}");
        }
    }

    #[test]
    fn what_is_no_table_has_no_settings() {
        for (format, text) in
            [("json", "[1]"), ("json", "null"), ("yaml", "a list of words"), ("text", "Some: words"), ("text", "{")]
        {
            let overlay = read(&item(format, text)).unwrap();
            assert!(!overlay.is_table && overlay.values.is_empty(), "{format} {text}");
        }
    }

    #[test]
    fn keys_that_no_item_may_set_are_refused_by_name_and_the_rest_is_taken() {
        let text = r#"{"SPINNERET_TOKEN": "canary", "APCLOUDY_URL": "x", "IDENTITIES": "/p", "CONCURENT_REQUESTS": 3,
            "CONCURRENT_REQUESTS_PER_IP": 1, "QQQQ_ZZZZ_XXXX": 1, "CONCURRENT_REQUESTS": 3, "_": 1, "DATA_DIR": 5}"#;
        let overlay = read(&item("json", text)).unwrap();
        assert_eq!(values(&overlay), [("CONCURRENT_REQUESTS", json!(3))]);
        let shown: Vec<String> = overlay.refused.iter().map(ToString::to_string).collect();
        let restart = "cannot change while a crawl runs, so no config item may set it; it needs the settings file (or the environment, \
                       or -s) and a restart";
        assert_eq!(
            shown,
            [
                format!("setting SPINNERET_TOKEN {restart}"),
                format!("setting APCLOUDY_URL {restart}"),
                format!("setting IDENTITIES {restart}"),
                "unknown setting CONCURENT_REQUESTS; did you mean CONCURRENT_REQUESTS? a name of your own needs a lower case letter"
                    .to_owned(),
                "setting CONCURRENT_REQUESTS_PER_IP is known but not supported by this version: use CONCURRENT_REQUESTS_PER_DOMAIN"
                    .to_owned(),
                "unknown setting QQQQ_ZZZZ_XXXX; a name of your own needs a lower case letter".to_owned(),
                format!("setting DATA_DIR {restart}"),
            ]
        );
    }

    #[test]
    fn one_invalid_value_refuses_the_whole_version() {
        for (text, words) in [
            (
                r#"{"DOWNLOAD_DELAY": 1, "CONCURRENT_REQUESTS": "many"}"#,
                "setting CONCURRENT_REQUESTS: found string \"many\"; allowed: a whole",
            ),
            (r#"{"CONCURRENT_REQUESTS": 0}"#, "found number 0; allowed: a whole number from 1 to 100000"),
            (r#"{"LOG_LEVEL": null}"#, "setting LOG_LEVEL: found nothing; allowed: "),
            (r#"{"DOWNLOAD_DELAY": 1, "DOWNLOAD_DELAY": 2}"#, "does not parse as json: line 1, column"),
            (r#"{"DOWNLOAD_DELAY": canary}"#, "does not parse as json: line 1, column 20"),
        ] {
            let shown = read(&item("json", text)).unwrap_err().to_string();
            assert!(shown.contains(words) && !shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn no_value_of_an_item_with_secrets_is_shown() {
        let text = r#"{"CONCURRENT_REQUESTS": "canary"}"#;
        let flagged = ConfigItem { has_secret_refs: true, ..item("json", text) };
        let referring = item("json", &text.replace("canary", "canary ${secret:a}"));
        for item in [flagged, referring] {
            let shown = read(&item).unwrap_err().to_string();
            assert!(shown.contains("found a string (not shown, as the item holds secrets); allowed: a whole number"), "{shown}");
            assert!(!shown.contains("canary"), "{shown}");
        }
        let good = ConfigItem { has_secret_refs: true, ..item("json", r#"{"CONCURRENT_REQUESTS": 5}"#) };
        assert!(read(&good).unwrap().values[0].is_hidden);
    }

    proptest! {
        #[test]
        fn no_content_makes_the_reading_panic(format in "json|yaml|text|other", text in "[A-Z_a-z0-9={}\\[\\]:,.'\"#$ \n-]{0,80}") {
            if let Ok(overlay) = read(&item(&format, &text)) {
                prop_assert!(overlay.values.iter().all(|value| value.key.reload() == Reload::Live));
            }
        }
    }
}
