//! Payloads: the values of one identity, checked against its type.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Number, Value};

use super::{Field, FieldKind, IdentityType, PayloadError, cookies};
use crate::nearest::nearest;

/// The most faults that one message lists.
const MAX_FAULTS: usize = 8;

/// The values of an identity, by the index of their field. Never shown: its debug text counts.
#[derive(Clone, PartialEq)]
pub(crate) struct Payload(Vec<Option<FieldValue>>);

/// A value of a field.
#[derive(Clone, PartialEq)]
pub(crate) enum FieldValue {
    Text(Box<str>),
    Number(Number),
    Bool(bool),
    Cookies(BTreeMap<String, String>),
    Json(Value),
    /// The path of a secret.
    Secret(Box<str>),
}

/// Where values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// JSON: an empty text is a text.
    Json,
    /// Cells of a table, all of them text unless they hold a JSON list or object.
    Cells,
}

impl Payload {
    /// Checks values against a type. All that is wrong is said at once.
    pub(crate) fn new(kind: &IdentityType, mut values: Map<String, Value>, source: Source) -> Result<Self, PayloadError> {
        let mut faults = Vec::new();
        let mut checked = Vec::with_capacity(kind.fields.len());
        for field in &kind.fields {
            let value =
                match values.swap_remove(&*field.name).filter(|value| !value.is_null()).map(|value| read(field, value, source)) {
                    Some(Ok(value)) => Some(value),
                    Some(Err(fault)) => {
                        faults.push(format!("{}: {fault}", field.name));
                        None
                    }
                    None if field.required => {
                        faults.push(format!("{}: the field is required and missing", field.name));
                        None
                    }
                    None => None,
                };
            checked.push(value);
        }
        let mut unknown: Vec<&String> = values.keys().collect();
        unknown.sort();
        for name in unknown {
            let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
            let near = nearest(&shown, kind.fields.iter().map(|field| &*field.name))
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            faults.push(format!("{shown}: identity type {} has no such field{near}", kind.name));
        }
        if faults.is_empty() {
            return Ok(Self(checked));
        }
        let more = faults.len().saturating_sub(MAX_FAULTS);
        faults.truncate(MAX_FAULTS);
        if more > 0 {
            faults.push(format!("and {more} more"));
        }
        Err(PayloadError::Fields(faults.join("; ")))
    }

    /// The value of a field.
    pub(crate) fn get(&self, field: usize) -> Option<&FieldValue> {
        self.0.get(field)?.as_ref()
    }

    /// The values by name, as they are stored.
    #[cfg(test)]
    pub(crate) fn to_map(&self, kind: &IdentityType) -> Map<String, Value> {
        let named = kind.fields.iter().zip(&self.0);
        named.filter_map(|(field, value)| Some((field.name.to_string(), value.as_ref()?.to_value()))).collect()
    }

    /// The paths of the secrets it refers to, by field.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().filter_map(|(field, value)| match value {
            Some(FieldValue::Secret(path)) => Some((field, &**path)),
            _ => None,
        })
    }
}

impl FieldValue {
    #[cfg(test)]
    fn to_value(&self) -> Value {
        match self {
            Self::Text(text) | Self::Secret(text) => Value::String(text.to_string()),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Cookies(cookies) => cookies.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            Self::Json(value) => value.clone(),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").field("values", &self.0.iter().flatten().count()).finish_non_exhaustive()
    }
}

impl fmt::Debug for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text(…)",
            Self::Number(_) => "Number(…)",
            Self::Bool(_) => "Bool(…)",
            Self::Cookies(_) => "Cookies(…)",
            Self::Json(_) => "Json(…)",
            Self::Secret(_) => "Secret(…)",
        })
    }
}

/// Checks one value; an error says what is allowed and quotes nothing.
fn read(field: &Field, value: Value, source: Source) -> Result<FieldValue, String> {
    match (field.kind, value) {
        (FieldKind::Text, Value::String(text)) => Ok(FieldValue::Text(text.into())),
        (FieldKind::Text, _) => Err(match source {
            Source::Json => "expected a text; quote it",
            Source::Cells => "expected a text; a cell that is a JSON list or object is read as one",
        }
        .to_owned()),
        (FieldKind::Number, Value::Number(number)) => canonical(&number).map(FieldValue::Number),
        (FieldKind::Number, Value::String(text)) => {
            let number = text.trim().parse::<f64>().ok().and_then(Number::from_f64);
            canonical(&number.ok_or("expected a number")?).map(FieldValue::Number)
        }
        (FieldKind::Number, _) => Err("expected a number".to_owned()),
        (FieldKind::Bool, Value::Bool(truth)) => Ok(FieldValue::Bool(truth)),
        (FieldKind::Bool, Value::String(text)) => match text.as_str() {
            "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(FieldValue::Bool(true)),
            "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(FieldValue::Bool(false)),
            _ => Err("expected true or false".to_owned()),
        },
        (FieldKind::Bool, _) => Err("expected true or false".to_owned()),
        (FieldKind::CookieMap, value) => cookies::read(&value).map(FieldValue::Cookies),
        (FieldKind::Json, value) => Ok(FieldValue::Json(value)),
        (FieldKind::SecretRef, Value::String(path)) if is_secret_path(&path) => Ok(FieldValue::Secret(path.into())),
        (FieldKind::SecretRef, _) => {
            Err("expected the path of a secret: 1 to 256 of a-z, 0-9, _ . / and -, starting with a letter or digit".to_owned())
        }
    }
}

/// The number as a double, in one spelling: equal numbers are equal values.
fn canonical(number: &Number) -> Result<Number, String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let double = number.as_f64().filter(|double| double.is_finite()).ok_or("expected a finite number")?;
    #[allow(clippy::cast_possible_truncation, reason = "a whole number below 2^53 fits")]
    if double.fract() == 0.0 && double.abs() <= EXACT {
        return Ok(Number::from(double as i64));
    }
    Number::from_f64(double).ok_or_else(|| "expected a finite number".to_owned())
}

fn is_secret_path(path: &str) -> bool {
    path.len() <= 256
        && path.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && path.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'-'))
}
