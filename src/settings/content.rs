//! The content of a config item: JSON, YAML, or text that may be TOML.
//!
//! As strict as a settings file: a repeated name is an error, size and depth are bounded. Messages show no content.

use serde_json::Value;

use super::file::{Entry, MAX_FILE_BYTES, parse_json, parse_toml};
use super::yaml;

/// What a content is.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// A table, its entries in their order.
    Table(Vec<(String, Value)>),
    /// One value that is not a table.
    Value(Value),
    /// A text of no form that is known.
    Text,
}

/// Reads a content by the name of its format: `json`, `yaml`, or any other, which is TOML if it reads as a table.
///
/// The error says what does not parse, and where.
pub(crate) fn content(format: &str, text: &str) -> Result<Content, String> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("found {} bytes; allowed: up to {MAX_FILE_BYTES}", text.len()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        "json" => match serde_json::from_str::<Value>(text) {
            // A second reading, as the first one keeps only the last of names that are repeated.
            Ok(Value::Object(_)) | Err(_) => parse_json(text).map(table).map_err(|fault| fault.to_string()),
            Ok(other) => Ok(Content::Value(other)),
        },
        "yaml" => match yaml::document(text).map_err(|fault| fault.to_string())? {
            Value::Object(map) => Ok(Content::Table(map.into_iter().collect())),
            other => Ok(Content::Value(other)),
        },
        _ => Ok(parse_toml(text).map_or(Content::Text, table)),
    }
}

fn table(entries: Vec<Entry>) -> Content {
    Content::Table(entries.into_iter().map(|entry| (entry.key, entry.value)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_three_formats_give_the_same_table() {
        let expected = Content::Table(vec![("B".to_owned(), json!(2)), ("a".to_owned(), json!({"x": [1, true]}))]);
        for (format, text) in [
            ("json", r#"{"B": 2, "a": {"x": [1, true]}}"#),
            ("yaml", "B: 2\na:\n  x: [1, true]\n"),
            ("text", "B = 2\na = { x = [1, true] }\n"),
            ("text", "\u{feff}B = 2\n[a]\nx = [1, true]\n"),
        ] {
            assert_eq!(content(format, text).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn what_is_no_table_is_a_value_or_a_text() {
        assert_eq!(content("json", "[1]"), Ok(Content::Value(json!([1]))));
        assert_eq!(content("json", "\"a\""), Ok(Content::Value(json!("a"))));
        assert_eq!(content("yaml", "- a\n- 2"), Ok(Content::Value(json!(["a", 2]))));
        assert_eq!(content("yaml", ""), Ok(Content::Value(Value::Null)));
        assert_eq!(content("text", "only some words"), Ok(Content::Text));
        assert_eq!(content("text", ""), Ok(Content::Table(vec![])));
    }

    #[test]
    fn what_does_not_parse_is_named_by_its_place_and_not_shown() {
        for (format, text, place) in [
            ("json", "{\"a\": canary}", "line 1, column 7"),
            ("json", "{\"a\": 1, \"a\": 2}", "duplicate"),
            ("json", "", "line 1, column 0"),
            ("yaml", "a: [canary", "line "),
            ("yaml", "a: 1\n---\nb: 2\n", "several documents"),
            ("yaml", &format!("a: {}", "[".repeat(100_000)), "line 1, column "),
        ] {
            let error = content(format, text).unwrap_err();
            assert!(error.contains(place) && !error.contains("canary"), "{error}");
        }
        assert!(content("text", &"#".repeat(5 << 20)).is_err());
    }
}
