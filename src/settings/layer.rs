//! One layer of settings: the values of one source, each checked as it comes in.
//!
//! A value that refers to secrets is checked when they are known; nothing here knows them, or another layer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;

use serde_json::Value;

use super::environment::Variable;
use super::error::SettingsError;
use super::key::Key;
use super::names::Name;
use super::references;
use super::rule::Problem;
use super::source::Source;

/// What one layer holds: checked values by key, and what was wrong with the others.
#[derive(Clone, Default)]
pub(crate) struct Layer {
    pub(crate) values: BTreeMap<&'static str, Given>,
    pub(crate) errors: Vec<SettingsError>,
}

/// A value and where it was given.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) value: Value,
    pub(crate) source: Source,
    pub(crate) kind: GivenKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenKind {
    /// It stands there as it is meant, and was checked.
    Plain,
    /// It refers to secrets: it can be checked when they are known.
    Refers,
    /// It was checked, and came together with secrets: nobody may see it.
    Hidden,
}

/// A setting in a config item.
#[derive(Clone)]
pub(crate) struct ItemValue {
    pub(crate) key: &'static Key,
    pub(crate) value: Value,
    /// The item holds secrets: the value is shown nowhere.
    pub(crate) is_hidden: bool,
}

/// Shows the key, never the value.
impl fmt::Debug for ItemValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key.name)
    }
}

impl Layer {
    /// One that holds nothing but errors.
    pub(crate) fn failed(errors: Vec<SettingsError>) -> Self {
        Self { values: BTreeMap::new(), errors }
    }

    /// Checks one value by the name it was given under and keeps it, or the reason why not.
    pub(crate) fn put(&mut self, name: &str, origin: Source, value: impl FnOnce(&Key) -> Value) {
        match Name::of(name) {
            Name::Known(key) => {
                let value = value(key);
                let kind = match origin {
                    // The plane has resolved what refers to its secrets.
                    Source::Watched => GivenKind::Plain,
                    _ if references::has_any(&value) => GivenKind::Refers,
                    _ => GivenKind::Plain,
                };
                self.take(key, Given { value, source: origin, kind });
            }
            Name::Unsupported(advice) => self.errors.push(SettingsError::Unsupported { origin, key: name.to_owned(), advice }),
            Name::Unknown(nearest) => self.errors.push(SettingsError::UnknownKey {
                origin,
                key: name.chars().filter(|c| !c.is_control()).take(80).collect(),
                nearest,
            }),
        }
    }

    /// Checks one value and keeps it, or the reason why not.
    pub(crate) fn take(&mut self, key: &'static Key, given: Given) {
        let fault = |problem: Problem| SettingsError::BadValue {
            origin: given.source.clone(),
            key: key.name,
            found: problem.found,
            allowed: problem.allowed,
        };
        let checked = match given.kind {
            GivenKind::Plain => (key.check)(&given.value).map_err(fault),
            GivenKind::Hidden => (key.check)(&given.value)
                .map_err(|problem| fault(Problem { found: "another value (not shown)".to_owned(), ..problem })),
            GivenKind::Refers if references::is_needed_first(key.name) => {
                Err(SettingsError::ReferenceNotAllowed { origin: given.source.clone(), key: key.name })
            }
            GivenKind::Refers => match references::paths(&given.value) {
                Ok(_) => Ok(()),
                Err(references::Malformed) => Err(SettingsError::BadReference { origin: given.source.clone(), key: key.name }),
            },
        };
        match checked {
            Ok(()) => drop(self.values.insert(key.name, given)),
            Err(error) => self.errors.push(error),
        }
    }

    /// Takes an environment variable, if it is one of ours.
    pub(crate) fn put_variable(&mut self, name: &OsStr, value: &OsStr) {
        let name = name.to_string_lossy();
        let variable = name.clone().into_owned();
        match Variable::of(&name) {
            Variable::Foreign => {}
            Variable::Prefixed(key) => self.errors.push(SettingsError::Prefixed { variable, key: key.to_owned() }),
            Variable::Setting(key) => match value.to_str() {
                Some(text) => self.put(key, Source::Environment { variable }, |key| typed(key, text)),
                None => self.errors.push(SettingsError::NotText { variable }),
            },
        }
    }
}

/// A text from outside as the value it stands for. One that is a reference becomes a value when its secret is known.
pub(crate) fn typed(key: &Key, text: &str) -> Value {
    let whole = Value::from(text);
    if references::is_whole(&whole) { whole } else { (key.convert)(text) }
}
