//! The fields of an item text, with their values as raw text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::text;

/// The fields of an object in their order; a name that comes twice is kept twice.
pub(super) struct Fields<'t>(pub(super) Vec<(String, &'t RawValue)>);

impl<'t> Fields<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl<'de: 't, 't> Deserialize<'de> for Fields<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(8));
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object).map(Fields)
    }
}

/// The fields to write and their order; names are kept in JSON form as well.
#[derive(Debug)]
pub(super) struct Projection(Vec<(String, String)>);

impl Projection {
    pub(super) fn new(fields: &[String]) -> Self {
        let coded = |field: &String| {
            let mut key = String::new();
            text::encode_string(field, &mut key);
            (field.clone(), key)
        };
        Self(fields.iter().map(coded).collect())
    }

    /// Writes an item with these fields only; those it lacks are left out.
    pub(super) fn apply(&self, item: &str, out: &mut String) -> Result<(), serde_json::Error> {
        let Fields(found) = Fields::parse(item)?;
        out.push('{');
        let mut separator = "";
        for (name, key) in &self.0 {
            if let Some((_, value)) = found.iter().rev().find(|(field, _)| field == name) {
                out.push_str(separator);
                out.push_str(key);
                out.push_str(": ");
                out.push_str(value.get());
                separator = ", ";
            }
        }
        out.push('}');
        Ok(())
    }
}

/// Whether a text is one JSON object on one line.
pub(super) fn check(item: &str) -> Result<(), String> {
    if !item.starts_with('{') {
        return Err("it does not start with {".to_owned());
    }
    if memchr::memchr(b'\n', item.as_bytes()).is_some() {
        return Err("it holds a line break".to_owned());
    }
    serde_json::from_str::<IgnoredAny>(item).map(|_| ()).map_err(|error| error.to_string())
}
