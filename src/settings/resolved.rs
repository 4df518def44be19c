//! Resolved settings: the typed values, and for each key what it is and where it came from.
//!
//! Only redacted values are kept beside the settings, so no print of them can leak.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::key::{Key, Reload};
use super::redact::REDACTED;
use super::references;
use super::source::Source;
use super::table::Settings;
use super::template::toml_text;

/// The effective value of one key.
#[derive(Clone, Debug)]
pub struct Origin {
    key: &'static Key,
    shown: Value,
    source: Source,
}

impl Origin {
    pub(crate) fn new(key: &'static Key, value: &Value, source: Source) -> Self {
        Self { key, shown: (key.show)(value), source }
    }

    /// The origin of a value that refers to secrets: shown as it was written, the secrets not filled in.
    pub(crate) fn of_reference(key: &'static Key, written: &Value, source: Source) -> Self {
        // Nothing but a reference gives nothing away; what stands around one may.
        let shown = if references::is_whole(written) { written.clone() } else { (key.show)(written) };
        Self { key, shown, source }
    }

    /// The origin of a value that is not to be seen.
    pub(crate) fn of_secret(key: &'static Key, source: Source) -> Self {
        Self { key, shown: Value::from(REDACTED), source }
    }

    /// The key.
    pub fn key(&self) -> &'static Key {
        self.key
    }

    /// The value as it would stand in a TOML file, secrets redacted.
    pub fn value_text(&self) -> String {
        toml_text(&self.shown)
    }

    /// Where the value was given.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// Settings that passed every check, with the origin of each value.
///
/// `Display` gives the table of `dragline settings`: key, value, source.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The values.
    pub settings: Settings,
    origins: Vec<Origin>,
    file: Option<PathBuf>,
}

impl Resolved {
    pub(crate) fn new(settings: Settings, origins: Vec<Origin>, file: Option<PathBuf>) -> Self {
        Self { settings, origins, file }
    }

    /// Every key with its value and source, in the order of the documentation.
    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// The origin of one key.
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.origins.iter().find(|origin| origin.key.name() == name)
    }

    /// The settings file that was read.
    pub fn settings_file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// One object per key: `value`, `source`, `default`, `type`, `live`; secrets redacted.
    pub fn to_json(&self) -> Value {
        let entries: Map<String, Value> = self
            .origins
            .iter()
            .map(|origin| {
                let entry = json!({
                    "value": origin.shown,
                    "source": origin.source.to_string(),
                    "default": origin.key.default,
                    "type": origin.key.type_text(),
                    "live": origin.key.reload() == Reload::Live,
                });
                (origin.key.name().to_owned(), entry)
            })
            .collect();
        Value::Object(entries)
    }
}

impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<(&str, String, String)> =
            self.origins.iter().map(|origin| (origin.key.name(), origin.value_text(), origin.source.to_string())).collect();
        let names = rows.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
        // Long values push their own source aside and leave the other columns in place.
        let values = rows.iter().map(|(_, value, _)| value.chars().count()).filter(|width| *width <= 40).max().unwrap_or(0);
        for (name, value, source) in rows {
            writeln!(f, "{name:names$}  {value:values$}  {source}")?;
        }
        Ok(())
    }
}
