//! Reading one document: tables whose keys are all known, fields whose values are all within their limits.
//!
//! Every error names the policy and the path of the field, what was found and what is allowed. `null` counts as left out.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::duration::{self, Term};
use super::error::PolicyError;
use super::head::Kind;
use crate::nearest::nearest;

/// Most characters of a found value that a message shows.
const SHOWN: usize = 60;

/// A place in a policy, for messages.
#[derive(Clone)]
pub(super) struct At {
    policy: Arc<str>,
    path: String,
}

/// A table of a policy; one that is left out has no fields.
pub(super) struct Table<'v> {
    at: At,
    fields: Option<&'v Map<String, Value>>,
}

/// A field that may be left out.
pub(super) struct Field<'v> {
    pub(super) at: At,
    pub(super) value: Option<&'v Value>,
}

impl At {
    /// The top of a document.
    pub(super) fn top(kind: Kind, document: &Value) -> Self {
        let name = document.get("name").and_then(Value::as_str);
        Self { policy: name.map_or_else(|| kind.policy().into(), |name| label(kind, name).into()), path: String::new() }
    }

    fn key(&self, key: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self { policy: Arc::clone(&self.policy), path: format!("{}{dot}{key}", self.path) }
    }

    fn item(&self, index: usize) -> Self {
        Self { policy: Arc::clone(&self.policy), path: format!("{}[{index}]", self.path) }
    }

    /// The value here is not allowed.
    pub(super) fn wrong(&self, found: impl Into<String>, allowed: impl Into<String>) -> PolicyError {
        PolicyError::NotAllowed {
            policy: self.policy.to_string(),
            path: self.path.clone(),
            found: found.into(),
            guess: String::new(),
            allowed: allowed.into(),
        }
    }

    /// The value here is missing.
    pub(super) fn missing(&self, allowed: impl Into<String>) -> PolicyError {
        PolicyError::Missing { policy: self.policy.to_string(), path: self.path.clone(), allowed: allowed.into() }
    }
}

impl<'v> Table<'v> {
    /// The table, all of whose keys are among `keys`.
    pub(super) fn of(value: &'v Value, at: At, keys: &[&str]) -> Result<Self, PolicyError> {
        let Value::Object(fields) = value else {
            let at = if at.path.is_empty() { at.key("the document") } else { at };
            return Err(at.wrong(show(value), format!("a table with the keys {}", keys.join(", "))));
        };
        for key in fields.keys() {
            if !keys.contains(&key.as_str()) {
                return Err(PolicyError::UnknownKey {
                    policy: at.policy.to_string(),
                    path: at.key(&cut(key)).path,
                    guess: guess(key, keys.iter().copied()),
                    allowed: keys.join(", "),
                });
            }
        }
        Ok(Self { at, fields: Some(fields) })
    }

    /// The field of this key.
    pub(super) fn field(&self, key: &str) -> Field<'v> {
        let value = self.fields.and_then(|fields| fields.get(key)).filter(|value| !value.is_null());
        Field { at: self.at.key(key), value }
    }

    /// The table under this key; empty if left out.
    pub(super) fn table(&self, key: &str, keys: &[&str]) -> Result<Self, PolicyError> {
        Ok(self.field(key).table(keys)?.unwrap_or(Self { at: self.at.key(key), fields: None }))
    }
}

impl<'v> Field<'v> {
    /// The same field, which must be there.
    pub(super) fn required(self, allowed: &str) -> Result<Self, PolicyError> {
        if self.value.is_none() { Err(self.at.missing(allowed)) } else { Ok(self) }
    }

    /// A table.
    pub(super) fn table(self, keys: &[&str]) -> Result<Option<Table<'v>>, PolicyError> {
        self.value.map(|value| Table::of(value, self.at, keys)).transpose()
    }

    /// A text of at most so many characters, which may be empty.
    pub(super) fn text(&self, most: usize) -> Result<Option<&'v str>, PolicyError> {
        let allowed = || format!("a text of at most {most} characters");
        match self.value {
            None => Ok(None),
            Some(Value::String(text)) if text.chars().count() <= most => Ok(Some(text)),
            Some(Value::String(text)) => Err(self.at.wrong(format!("a text of {} characters", text.chars().count()), allowed())),
            Some(other) => Err(self.at.wrong(show(other), allowed())),
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<Option<bool>, PolicyError> {
        match self.value {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.at.wrong(show(other), "true or false")),
        }
    }

    /// A whole number within the limits.
    pub(super) fn whole(&self, limits: RangeInclusive<u64>) -> Result<Option<u64>, PolicyError> {
        let Some(value) = self.value else { return Ok(None) };
        value
            .as_u64()
            .filter(|number| limits.contains(number))
            .map(Some)
            .ok_or_else(|| self.at.wrong(show(value), format!("a whole number from {} to {}", limits.start(), limits.end())))
    }

    /// A whole number within the limits.
    pub(super) fn count(&self, limits: RangeInclusive<u32>) -> Result<Option<u32>, PolicyError> {
        let number = self.whole(u64::from(*limits.start())..=u64::from(*limits.end()))?;
        Ok(number.map(|number| u32::try_from(number).unwrap_or(*limits.end())))
    }

    /// A number within the limits.
    pub(super) fn number(&self, limits: RangeInclusive<f64>) -> Result<Option<f64>, PolicyError> {
        let allowed = format!("a number from {} to {}", limits.start(), limits.end());
        self.number_if(|number| limits.contains(&number), &allowed)
    }

    /// A number above 0, at most 1.
    pub(super) fn factor(&self) -> Result<Option<f64>, PolicyError> {
        self.number_if(|number| number > 0.0 && number <= 1.0, "a number above 0, at most 1")
    }

    fn number_if(&self, fits: impl Fn(f64) -> bool, allowed: &str) -> Result<Option<f64>, PolicyError> {
        let Some(value) = self.value else { return Ok(None) };
        value.as_f64().filter(|number| fits(*number)).map(Some).ok_or_else(|| self.at.wrong(show(value), allowed))
    }

    /// A duration within the limits, which is not `permanent`.
    pub(super) fn duration(&self, limits: RangeInclusive<Duration>) -> Result<Option<Duration>, PolicyError> {
        match self.written_term()? {
            None => Ok(None),
            Some(Term::For(duration)) if limits.contains(&duration) => Ok(Some(duration)),
            Some(_) => Err(self.out_of(&limits, "")),
        }
    }

    /// A duration within the limits, or `permanent`.
    pub(super) fn term(&self, limits: RangeInclusive<Duration>) -> Result<Option<Term>, PolicyError> {
        match self.written_term()? {
            Some(Term::For(duration)) if !limits.contains(&duration) => Err(self.out_of(&limits, ", or \"permanent\"")),
            term => Ok(term),
        }
    }

    fn written_term(&self) -> Result<Option<Term>, PolicyError> {
        let Some(value) = self.value else { return Ok(None) };
        let text = match value {
            Value::String(text) => text.as_str(),
            // YAML and TOML write it without quotes.
            Value::Number(number) if number.as_u64() == Some(0) => "0",
            other => return Err(self.at.wrong(show(other), "a text such as \"30s\", \"1h30m\" or \"0\"")),
        };
        Term::parse(text).map(Some).map_err(|error| PolicyError::Duration {
            policy: self.at.policy.to_string(),
            path: self.at.path.clone(),
            found: show(value),
            error,
        })
    }

    fn out_of(&self, limits: &RangeInclusive<Duration>, more: &str) -> PolicyError {
        let (low, high) = (duration::text(*limits.start()), duration::text(*limits.end()));
        self.at.wrong(self.value.map_or_else(String::new, show), format!("a duration from {low} to {high}{more}"))
    }

    /// One of the names.
    pub(super) fn choice<T: Copy>(&self, names: &[(&str, T)]) -> Result<Option<T>, PolicyError> {
        let Some(value) = self.value else { return Ok(None) };
        let given = value.as_str();
        if let Some((_, choice)) = names.iter().find(|(name, _)| Some(*name) == given) {
            return Ok(Some(*choice));
        }
        Err(PolicyError::NotAllowed {
            policy: self.at.policy.to_string(),
            path: self.at.path.clone(),
            found: show(value),
            guess: given.map_or_else(String::new, |given| guess(given, names.iter().map(|(name, _)| *name))),
            allowed: names.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(", "),
        })
    }

    /// The items of a list of at most so many; none if left out.
    pub(super) fn items(&self, most: usize) -> Result<Vec<Field<'v>>, PolicyError> {
        match self.value {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) if list.len() <= most => {
                Ok(list.iter().enumerate().map(|(index, item)| Field { at: self.at.item(index), value: Some(item) }).collect())
            }
            Some(other) => Err(self.at.wrong(show(other), format!("a list of at most {most}"))),
        }
    }

    /// The items of a list that has some, or the one value that stands for a list of one; `None` if left out.
    pub(super) fn some_items(&self, most: usize) -> Result<Option<Vec<Field<'v>>>, PolicyError> {
        match self.value {
            None => Ok(None),
            Some(Value::Array(list)) if list.is_empty() => {
                Err(self.at.wrong("an empty list", format!("1 to {most} values; leave the key out where none is meant")))
            }
            Some(Value::Array(_)) => self.items(most).map(Some),
            Some(value) => Ok(Some(vec![Field { at: self.at.clone(), value: Some(value) }])),
        }
    }

    /// A list of texts of 1 to 64 characters.
    pub(super) fn names(&self) -> Result<Box<[Arc<str>]>, PolicyError> {
        self.items(64)?
            .into_iter()
            .map(|item| match item.value {
                Some(Value::String(text)) if (1..=64).contains(&text.chars().count()) => Ok(Arc::from(text.as_str())),
                other => Err(item.at.wrong(show(other.unwrap_or(&Value::Null)), "a text of 1 to 64 characters")),
            })
            .collect()
    }
}

/// A policy's kind and name, as messages name it.
pub(super) fn label(kind: Kind, name: &str) -> String {
    format!("{} {:?}", kind.policy(), cut(name))
}

/// A value as a message shows it.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("{:?}", cut(text)),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(_) => "a table".to_owned(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn guess<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> String {
    // What is longer than any name is no slip, and comparing it would take its length times ours.
    if given.len() > SHOWN {
        return String::new();
    }
    nearest(given, names).map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}
