//! Paths to values: a field, and dotted keys below it.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::{Field, FieldKind, FieldValue, Payload};
use crate::nearest::nearest;

/// A checked path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldPath {
    field: usize,
    text: Box<str>,
    /// A cookie's name or the keys of a JSON value; empty for the whole field.
    below: Vec<Box<str>>,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found<'a> {
    /// Nothing, or a JSON `null`.
    Missing,
    Text(&'a str),
    Number(&'a Number),
    Bool(bool),
    Cookies(&'a BTreeMap<String, String>),
    Json(&'a Value),
    /// The path of a secret.
    Secret(&'a str),
}

impl FieldPath {
    /// Checks a path against the fields of its type; an error says what is wrong.
    pub(crate) fn parse(text: &str, fields: &[Field]) -> Result<Self, String> {
        let (name, rest) = text.split_once('.').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let Some((index, field)) = fields.iter().enumerate().find(|(_, field)| &*field.name == name) else {
            let near = nearest(name, fields.iter().map(|field| &*field.name))
                .map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            return Err(format!("the type has no field \"{name}\"{near}"));
        };
        let below: Vec<Box<str>> = match (rest, field.kind) {
            (None, _) => Vec::new(),
            // A cookie's name may have dots itself.
            (Some(cookie), FieldKind::CookieMap) => vec![cookie.into()],
            (Some(keys), FieldKind::Json) => keys.split('.').map(Into::into).collect(),
            (Some(_), kind) => return Err(format!("field {name} is a {} and has no keys below it", kind.name())),
        };
        if below.iter().any(|key| key.is_empty()) {
            return Err("a key between two dots is empty".to_owned());
        }
        Ok(Self { field: index, text: text.into(), below })
    }

    /// The index of the field.
    pub(crate) const fn field(&self) -> usize {
        self.field
    }

    /// The path as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it means a whole field.
    pub(crate) const fn is_whole(&self) -> bool {
        self.below.is_empty()
    }

    /// The value there.
    pub(crate) fn find<'a>(&self, payload: &'a Payload) -> Found<'a> {
        match payload.get(self.field) {
            None => Found::Missing,
            Some(FieldValue::Text(text)) => Found::Text(text),
            Some(FieldValue::Number(number)) => Found::Number(number),
            Some(FieldValue::Bool(truth)) => Found::Bool(*truth),
            Some(FieldValue::Secret(path)) => Found::Secret(path),
            Some(FieldValue::Cookies(cookies)) => match self.below.first() {
                None => Found::Cookies(cookies),
                Some(name) => cookies.get(&**name).map_or(Found::Missing, |value| Found::Text(value)),
            },
            Some(FieldValue::Json(value)) => {
                let found = self.below.iter().try_fold(value, |value, key| match value {
                    Value::Object(map) => map.get(&**key),
                    Value::Array(items) => items.get(key.parse::<usize>().ok()?),
                    _ => None,
                });
                match found {
                    None | Some(Value::Null) => Found::Missing,
                    Some(value) => Found::Json(value),
                }
            }
        }
    }
}

impl Found<'_> {
    /// Whether there is nothing: no value, or an empty text, list or map.
    pub(crate) fn is_empty(self) -> bool {
        match self {
            Self::Missing => true,
            Self::Text(text) | Self::Secret(text) => text.is_empty(),
            Self::Cookies(cookies) => cookies.is_empty(),
            Self::Json(Value::String(text)) => text.is_empty(),
            Self::Json(Value::Array(items)) => items.is_empty(),
            Self::Json(Value::Object(map)) => map.is_empty(),
            Self::Number(_) | Self::Bool(_) | Self::Json(_) => false,
        }
    }

    /// The value as text, added to `text`: cookies as a header, JSON in its shortest form, nothing as nothing.
    pub(crate) fn write(self, text: &mut String) {
        match self {
            Self::Missing => {}
            Self::Text(value) | Self::Secret(value) => text.push_str(value),
            Self::Number(number) => text.push_str(&number_text(number)),
            Self::Bool(truth) => text.push_str(if truth { "true" } else { "false" }),
            Self::Cookies(cookies) => super::cookies::write_header(cookies, text),
            Self::Json(Value::String(value)) => text.push_str(value),
            Self::Json(Value::Number(number)) => text.push_str(&number_text(number)),
            Self::Json(value) => text.push_str(&value.to_string()),
        }
    }

    /// The value with its type.
    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::Missing => Value::Null,
            Self::Text(text) | Self::Secret(text) => Value::String(text.to_owned()),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Bool(truth) => Value::Bool(truth),
            Self::Cookies(cookies) => {
                Value::Object(cookies.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect())
            }
            Self::Json(value) => value.clone(),
        }
    }
}

/// A number as text; one without a fraction has no point.
pub(crate) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() && double.fract() == 0.0 && double.abs() < 1e21 => format!("{double:.0}"),
        _ => number.to_string(),
    }
}
