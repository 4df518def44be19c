//! Payloads for display: sensitive values are covered.

use serde_json::{Map, Value};

use super::{FieldKind, IdentityType, Payload};

/// What stands for a hidden text.
const COVER: &str = "••••";

/// How many characters at the end stay visible, if there are more than that.
const VISIBLE: usize = 4;

/// The text covered but for its last four characters; one of four or fewer is covered whole.
pub(crate) fn mask(text: &str) -> String {
    let count = text.chars().count();
    let mut masked = String::from(COVER);
    if count > VISIBLE {
        masked.extend(text.chars().skip(count - VISIBLE));
    }
    masked
}

/// The payload with its sensitive fields covered: cookies one by one, numbers, truth values and JSON whole.
pub(crate) fn masked(kind: &IdentityType, payload: &Payload) -> Map<String, Value> {
    let mut shown = payload.to_map(kind);
    for field in kind.fields.iter().filter(|field| field.sensitive) {
        let Some(value) = shown.get_mut(&*field.name) else { continue };
        match (field.kind, &mut *value) {
            (FieldKind::CookieMap, Value::Object(cookies)) => {
                for cookie in cookies.values_mut() {
                    *cookie = Value::String(cookie.as_str().map_or_else(|| COVER.to_owned(), mask));
                }
            }
            (FieldKind::Text | FieldKind::SecretRef, Value::String(text)) => *text = mask(text),
            _ => *value = Value::String(COVER.to_owned()),
        }
    }
    shown
}
