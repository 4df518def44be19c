//! What tells identities apart: a keyed hash of the values at the type's `unique_by` paths.

use std::fmt;
use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::{IdentityType, Payload, PayloadError, number_text};

/// The key of an identity among those of its type. Says nothing about the values to who does not know the pepper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UniqueKey([u8; 32]);

impl UniqueKey {
    /// HMAC-SHA256 over the type's id and the canonical JSON list of the values.
    pub(crate) fn new(pepper: &[u8], type_id: &str, kind: &IdentityType, payload: &Payload) -> Result<Self, PayloadError> {
        let mut text = String::from("[");
        for (position, path) in kind.unique_by.iter().enumerate() {
            let found = path.find(payload);
            if found.is_empty() {
                return Err(PayloadError::Unique(path.text().to_owned()));
            }
            if position > 0 {
                text.push(',');
            }
            write_canonical(&found.to_value(), &mut text);
        }
        text.push(']');
        #[allow(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(pepper).expect("HMAC takes a key of any length");
        mac.update(type_id.as_bytes());
        mac.update(text.as_bytes());
        Ok(Self(mac.finalize().into_bytes().into()))
    }

    /// The bytes.
    pub(crate) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for UniqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_char('…')
    }
}

/// JSON without white space, keys sorted, equal numbers in one spelling.
pub(super) fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (position, (key, value)) in entries.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}
