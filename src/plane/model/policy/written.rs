//! A document as it was written, from any format of serde: no key twice, no number that is none, no bottomless nesting.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Deepest nesting; a policy needs six levels.
const MAX_DEPTH: usize = 32;

/// The document.
pub(super) struct Written(pub(super) Value);

impl<'de> serde::Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Node { depth: 0 }.deserialize(deserializer).map(Self)
    }
}

/// One value within it.
#[derive(Clone, Copy)]
struct Node {
    depth: usize,
}

impl Node {
    fn below<E: Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!("a policy has more than {MAX_DEPTH} levels of nesting; write it flatter")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Node {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, a truth value, a list or a table")
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        // As `null` it would silently mean the default.
        Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a policy has no use for inf and nan; write a number"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut fields = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(below)?;
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} is written twice in one table; keep one")));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn json(text: &str) -> Result<Value, String> {
        serde_json::from_str::<Written>(text).map(|written| written.0).map_err(|e| e.to_string())
    }

    #[test]
    fn a_document_keeps_its_values() {
        let text = r#"{"a":[1,-2,2.5,true,null,"x"],"b":{"c":{}}}"#;
        assert_eq!(json(text).unwrap().to_string(), text);
        let toml: Written = toml::from_str("a = [1, -2, 2.5, true]\nb = { c = \"x\" }").unwrap();
        assert_eq!(toml.0.to_string(), r#"{"a":[1,-2,2.5,true],"b":{"c":"x"}}"#);
    }

    #[test]
    fn a_key_written_twice_is_an_error() {
        assert!(json(r#"{"a":1,"b":{"k":1,"k":1}}"#).unwrap_err().contains("\"k\" is written twice"));
    }

    #[test]
    fn nan_and_deep_nesting_are_errors() {
        let error = toml::from_str::<Written>("a = nan").map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("no use for inf and nan"), "{error}");
        assert!(json(&format!("{}{}", "[".repeat(32), "]".repeat(32))).is_ok());
        assert!(json(&format!("{}{}", "[".repeat(33), "]".repeat(33))).unwrap_err().contains("32 levels"));
    }
}
