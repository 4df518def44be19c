//! Rules for lists of words, hosts and codes, and for the tables of components.
//!
//! Text from the environment and the command line may be JSON, an inline TOML value, or for lists
//! words separated by commas.

use std::collections::BTreeMap;

use serde_json::Value;

use super::rule::{Problem, Rule, describe};
use crate::api::failure::FailureKind;

/// A list of words.
pub(crate) struct Words;

impl Rule for Words {
    type Out = Vec<String>;

    fn read(&self, value: &Value) -> Result<Vec<String>, Problem> {
        let Value::Array(items) = value else {
            return self.refuse(value);
        };
        items
            .iter()
            .map(|item| match item {
                Value::String(word) if !word.is_empty() => Ok(word.clone()),
                other => self.refuse(other),
            })
            .collect()
    }

    fn convert(&self, text: &str) -> Value {
        list_from_text(text, |word| Value::from(word))
    }

    fn kind(&self) -> &'static str {
        "list of text"
    }

    fn allowed(&self) -> String {
        "a list of texts that are not empty (as text: separated by commas, or JSON)".to_owned()
    }
}

/// A list of hosts, each on one port or on all, in the form a URL has them.
pub(crate) struct Places;

impl Rule for Places {
    type Out = Vec<String>;

    fn read(&self, value: &Value) -> Result<Vec<String>, Problem> {
        let Value::Array(items) = value else {
            return self.refuse(value);
        };
        items.iter().map(|item| item.as_str().and_then(place).map_or_else(|| self.refuse(item), Ok)).collect()
    }

    fn convert(&self, text: &str) -> Value {
        list_from_text(text, |word| Value::from(word))
    }

    fn kind(&self) -> &'static str {
        "list of hosts"
    }

    fn allowed(&self) -> String {
        "a list of host names, with a port where only that one is meant (shop.example, shop.example:8080), without scheme, path \
         or wildcard; each covers the names below it"
            .to_owned()
    }
}

/// A host, or a host and a port; one colon alone parts them, as an IPv6 address has several.
fn place(text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => (host, Some(port.parse::<u16>().ok()?)),
        _ => (text, None),
    };
    let host = url::Host::parse(host).ok().filter(|_| !host.starts_with('.') && !host.contains('*'))?;
    Some(port.map_or_else(|| host.to_string(), |port| format!("{host}:{port}")))
}

/// A list of hosts, in the form a URL has them: lower case, names beyond ASCII encoded.
pub(crate) struct Domains;

impl Rule for Domains {
    type Out = Vec<String>;

    fn read(&self, value: &Value) -> Result<Vec<String>, Problem> {
        let Value::Array(items) = value else {
            return self.refuse(value);
        };
        items
            .iter()
            .map(|item| {
                item.as_str()
                    .filter(|text| !text.starts_with('.') && !text.contains('*'))
                    .and_then(|text| url::Host::parse(text).ok())
                    .map_or_else(|| self.refuse(item), |host| Ok(host.to_string()))
            })
            .collect()
    }

    fn convert(&self, text: &str) -> Value {
        list_from_text(text, |word| Value::from(word))
    }

    fn kind(&self) -> &'static str {
        "list of domains"
    }

    fn allowed(&self) -> String {
        "a list of host names without scheme, port, path or wildcard; each covers the names below \
         it (as text: separated by commas, or JSON)"
            .to_owned()
    }
}

/// One host, in the form a URL has it; empty: not set.
pub(crate) struct OptionalDomain;

impl Rule for OptionalDomain {
    type Out = Option<String>;

    fn read(&self, value: &Value) -> Result<Option<String>, Problem> {
        match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if !text.starts_with('.') && !text.contains('*') => {
                url::Host::parse(text).map_or_else(|_| self.refuse(value), |host| Ok(Some(host.to_string())))
            }
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "domain"
    }

    fn allowed(&self) -> String {
        "a host name without scheme, port, path or wildcard; it covers the names below it (empty: not set)".to_owned()
    }
}

/// A list of kinds of failure that another attempt may cure.
pub(crate) struct Kinds;

impl Rule for Kinds {
    type Out = Vec<FailureKind>;

    fn read(&self, value: &Value) -> Result<Vec<FailureKind>, Problem> {
        let Value::Array(items) = value else {
            return self.refuse(value);
        };
        let named = |name: &str| FailureKind::OF_ATTEMPTS.iter().copied().find(|kind| kind.name() == name);
        items.iter().map(|item| item.as_str().and_then(named).map_or_else(|| self.refuse(item), Ok)).collect()
    }

    fn convert(&self, text: &str) -> Value {
        list_from_text(text, |word| Value::from(word))
    }

    fn kind(&self) -> &'static str {
        "list of kinds"
    }

    fn allowed(&self) -> String {
        let names: Vec<&str> = FailureKind::OF_ATTEMPTS.iter().map(|kind| kind.name()).collect();
        format!("a list of {} (as text: separated by commas, or JSON)", names.join(", "))
    }
}

/// What is retried unless the settings say otherwise.
pub(crate) fn retried_kinds() -> Vec<&'static str> {
    FailureKind::OF_ATTEMPTS.iter().filter(|kind| kind.is_retryable()).map(|kind| kind.name()).collect()
}

/// A list of HTTP status codes.
pub(crate) struct Codes;

impl Rule for Codes {
    type Out = Vec<u16>;

    fn read(&self, value: &Value) -> Result<Vec<u16>, Problem> {
        let Value::Array(items) = value else {
            return self.refuse(value);
        };
        items
            .iter()
            .map(|item| {
                item.as_u64()
                    .filter(|code| (100..=599).contains(code))
                    .and_then(|code| u16::try_from(code).ok())
                    .map_or_else(|| self.refuse(item), Ok)
            })
            .collect()
    }

    fn convert(&self, text: &str) -> Value {
        list_from_text(text, |word| word.parse::<i64>().map_or_else(|_| Value::from(word), Value::from))
    }

    fn kind(&self) -> &'static str {
        "list of codes"
    }

    fn allowed(&self) -> String {
        "a list of HTTP status codes from 100 to 599 (as text: separated by commas, or JSON)".to_owned()
    }
}

/// A table of component names and their order; `false` or null switches a component off.
pub(crate) struct Components;

impl Rule for Components {
    type Out = BTreeMap<String, Option<i32>>;

    fn read(&self, value: &Value) -> Result<Self::Out, Problem> {
        let Value::Object(map) = value else {
            return self.refuse(value);
        };
        map.iter()
            .map(|(name, order)| match order {
                Value::Null | Value::Bool(false) => Ok((name.clone(), None)),
                other => match other.as_i64().and_then(|order| i32::try_from(order).ok()) {
                    Some(order) if !name.is_empty() => Ok((name.clone(), Some(order))),
                    _ => Err(Problem { found: format!("{name:?} = {}", describe(other)), allowed: self.allowed() }),
                },
            })
            .collect()
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "table of components"
    }

    fn allowed(&self) -> String {
        "a table of component names and whole numbers, lower ones first, or false \
         (JSON, YAML: null too) to switch one off"
            .to_owned()
    }
}

/// JSON if it begins like a JSON list, else words separated by commas; empty text is an empty list.
pub(crate) fn list_from_text(text: &str, word: impl Fn(&str) -> Value) -> Value {
    let trimmed = text.trim();
    if trimmed.starts_with('[') {
        return structure_from_text(trimmed);
    }
    if trimmed.is_empty() {
        return Value::Array(Vec::new());
    }
    Value::Array(trimmed.split(',').map(|part| word(part.trim())).collect())
}

/// JSON, else an inline TOML value, else the text itself.
pub(crate) fn structure_from_text(text: &str) -> Value {
    let trimmed = text.trim();
    serde_json::from_str(trimmed)
        .ok()
        .or_else(|| super::file::inline_toml(trimmed))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_a_host_with_or_without_a_port() {
        let read = |text: &str| Places.read(&json!([text])).map(|mut places| places.remove(0));
        for (given, meant) in [
            ("Shop.Example", "shop.example"),
            ("shop.example:8080", "shop.example:8080"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:99", "[::1]:99"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(read(given).unwrap(), meant, "{given}");
        }
        for bad in
            ["", ".shop.example", "*.shop.example", "shop.example:", "shop.example:x", "shop.example:99999", "http://a", "a/b"]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
