//! Settings files.

use serde_json::Value;

/// Reads a single TOML value, such as `{ a = 1 }`.
pub(crate) fn inline_toml(text: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
    match serde_json::to_value(table).ok()? {
        Value::Object(mut map) if map.len() == 1 => map.remove("value"),
        _ => None,
    }
}
