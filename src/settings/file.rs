//! Settings files: TOML, YAML or JSON by ending, read into keys and values with their lines.
//!
//! Keys keep their case and values their types; nothing is merged or interpreted here. A repeated
//! key is an error in every format. Size and depth are bounded, as a file may change while it is
//! watched.

use std::path::Path;

use serde_json::{Number, Value};
use toml::de::{DeTable, DeValue};

use super::error::SettingsError;
use super::redact::redact_text;
use super::yaml;

/// Largest settings file that is read: 4 MiB.
pub(crate) const MAX_FILE_BYTES: u64 = 4 << 20;

/// One top-level key of a file; the line where the parser tells it, from 1.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) line: Option<usize>,
}

/// Reads the text of a settings file.
pub(crate) fn read(path: &Path) -> Result<String, SettingsError> {
    let unreadable = |error: std::io::Error| SettingsError::Unreadable { path: path.to_owned(), why: error.to_string() };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(SettingsError::TooLarge { path: path.to_owned(), bytes, limit: MAX_FILE_BYTES });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Parses a settings file by the ending of its path; all syntax errors the parser can tell apart.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, Vec<SettingsError>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let ending = path.extension().and_then(|ending| ending.to_str());
    let parsed = match ending.map(str::to_ascii_lowercase).as_deref() {
        Some("toml") => parse_toml(text),
        Some("yaml" | "yml") => yaml::parse(text).map_err(|fault| vec![fault]),
        Some("json") => parse_json(text).map_err(|fault| vec![fault]),
        _ => {
            return Err(vec![SettingsError::UnknownFormat { path: path.to_owned() }]);
        }
    };
    parsed.map_err(|faults| {
        faults
            .into_iter()
            .map(|fault| SettingsError::Syntax {
                path: path.to_owned(),
                place: fault.place.map_or_else(String::new, |(line, column)| format!(", line {line}, column {column}")),
                message: redact_text(&fault.message),
            })
            .collect()
    })
}

/// Reads a single TOML value, such as `{ a = 1 }`.
pub(crate) fn inline_toml(text: &str) -> Option<Value> {
    let mut entries = parse_toml(&format!("value = {text}")).ok()?;
    let only = entries.pop().filter(|entry| entry.key == "value")?;
    entries.is_empty().then_some(only.value)
}

/// A syntax error: line and column from 1, if known, and the parser's words.
pub(crate) struct Fault {
    pub(crate) place: Option<(usize, usize)>,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn not_a_table(found: &str) -> Self {
        Self { place: None, message: format!("found {found} at the top; allowed: a table of settings") }
    }
}

/// The words of a fault, for where there is no file to name.
impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&redact_text(&self.message))
    }
}

pub(crate) fn parse_toml(text: &str) -> Result<Vec<Entry>, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // Ten are enough to see what went wrong; later ones tend to follow from the first.
        return Err(errors
            .iter()
            .take(10)
            .map(|error| Fault {
                place: error.span().map(|span| place_of(text, span.start)),
                message: error.message().to_owned(),
            })
            .collect());
    }
    let mut entries: Vec<(usize, Entry)> = table
        .get_ref()
        .iter()
        .map(|(key, value)| {
            let start = key.span().start;
            let entry =
                Entry { key: key.get_ref().to_string(), value: from_toml(value.get_ref()), line: Some(place_of(text, start).0) };
            (start, entry)
        })
        .collect();
    entries.sort_by_key(|(start, _)| *start);
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn from_toml(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            // Beyond 64 bits it is a number all the same, as in JSON and YAML, and no rule takes it for text.
            i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Value::from(size_of(number.as_str(), number.radix())), Value::from)
        }
        // JSON has no infinity; as text it is refused with its own name.
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map_or_else(|| Value::String(number.to_string()), Value::Number),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| from_toml(item.get_ref())).collect()),
        DeValue::Table(table) => {
            let mut fields: Vec<_> = table.iter().collect();
            fields.sort_by_key(|(key, _)| key.span().start);
            Value::Object(
                fields.into_iter().map(|(key, value)| (key.get_ref().to_string(), from_toml(value.get_ref()))).collect(),
            )
        }
    }
}

/// The nearest number to what the digits say.
fn size_of(number: &str, radix: u32) -> f64 {
    let size = match radix {
        10 => number.parse().unwrap_or(f64::MAX),
        // Exact but for the end: the other radices are powers of two.
        _ => number
            .chars()
            .filter_map(|digit| digit.to_digit(radix))
            .fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit)),
    };
    size.clamp(f64::MIN, f64::MAX)
}

/// Line and column, both from 1, of a byte position.
fn place_of(text: &str, position: usize) -> (usize, usize) {
    let before = text.get(..position).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    let column = before.get(line_start..).unwrap_or("").chars().count() + 1;
    (line, column)
}

/// The top level of a JSON file, with repeated keys kept so that they can be refused.
struct JsonEntries(Vec<(String, Value)>);

impl<'de> serde::Deserialize<'de> for JsonEntries {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Top;
        impl<'de> serde::de::Visitor<'de> for Top {
            type Value = JsonEntries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a table of settings")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<JsonEntries, A::Error> {
                let mut entries: Vec<(String, Value)> = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    if entries.iter().any(|(known, _)| *known == key) {
                        return Err(serde::de::Error::custom(format!("duplicate key {key:?}")));
                    }
                    entries.push((key, map.next_value()?));
                }
                Ok(JsonEntries(entries))
            }
        }
        deserializer.deserialize_map(Top)
    }
}

pub(crate) fn parse_json(text: &str) -> Result<Vec<Entry>, Fault> {
    let JsonEntries(entries) = serde_json::from_str(text).map_err(|error| {
        let shown = error.to_string();
        let message = shown.split(" at line ").next().unwrap_or("not JSON").to_owned();
        Fault { place: (error.line() > 0).then(|| (error.line(), error.column())), message }
    })?;
    Ok(entries.into_iter().map(|(key, value)| Entry { key, value, line: None }).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use serde_json::json;

    fn values(name: &str, text: &str) -> Vec<(String, Value)> {
        parse(Path::new(name), text).unwrap().into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    #[test]
    fn the_three_formats_say_the_same_with_case_and_order_kept() {
        let toml = "\u{feff}Z = 0x10\na = 0.5\nFEEDS = { 'b.x' = { format = 'x' }, 'a.x' = {} }\nL = [1, 'two', false]\n";
        let yaml = "Z: 16\na: 0.5\nFEEDS:\n  b.x: {format: x}\n  a.x: {}\nL: [1, two, false]\n";
        let json = r#"{"Z": 16, "a": 0.5, "FEEDS": {"b.x": {"format": "x"}, "a.x": {}}, "L": [1, "two", false]}"#;
        let expected = vec![
            ("Z".to_owned(), json!(16)),
            ("a".to_owned(), json!(0.5)),
            ("FEEDS".to_owned(), json!({"b.x": {"format": "x"}, "a.x": {}})),
            ("L".to_owned(), json!([1, "two", false])),
        ];
        for (name, text) in [("s.toml", toml), ("s.yaml", yaml), ("s.YML", yaml), ("s.json", json)] {
            let found = values(name, text);
            assert_eq!(found, expected, "{name}");
            let feeds: Vec<&String> = found[2].1.as_object().unwrap().keys().collect();
            assert_eq!(feeds, ["b.x", "a.x"], "{name}");
        }
    }

    #[test]
    fn a_key_knows_its_line() {
        let yaml = parse(Path::new("s.yaml"), "A: {x: 1, y: [2]}\n\n\nB:\n  - x\nC: 1\n").unwrap();
        let lines: Vec<_> = yaml.iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        assert_eq!(lines, [("A", Some(1)), ("B", Some(4)), ("C", Some(6))]);

        let entries = parse(Path::new("s.toml"), "A = 1\n\n  B = 2\n[[L]]\nx = 1\n").unwrap();
        let lines: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.line)).collect();
        assert_eq!(lines, [("A", Some(1)), ("B", Some(3)), ("L", Some(4))]);
    }

    #[test]
    fn a_syntax_error_names_file_line_and_column_and_shows_no_line_of_the_file() {
        for (name, text, place) in [
            ("s.toml", "A = 1\nB = \"canary", "line 2, column "),
            ("s.toml", "A = 1\nA = 2\n", "line 2, column 1"),
            ("s.yaml", "A: 1\nB: [canary\n", "line "),
            ("s.yaml", "A: 1\nA: 2\n", "duplicated key"),
            ("s.json", "{\"A\": 1,\n \"B\": canary}", "line 2, column "),
            ("s.json", "{\"A\": 1,\n \"A\": 2}", "duplicate key"),
            ("s.json", "[1]", "a table of settings"),
            ("s.yaml", "- 1", "a table of settings"),
            ("s.ini", "A=1", "allowed: .toml, .yaml, .yml, .json"),
        ] {
            let errors = parse(Path::new(name), text).unwrap_err();
            let shown = errors[0].to_string();
            assert!(shown.contains(name) && shown.contains(place), "{shown}");
            assert!(!shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn a_file_of_endless_depth_is_refused() {
        let deep = 100_000;
        for (name, text) in [
            ("s.toml", format!("A = {}", "[".repeat(deep))),
            ("s.json", format!("{{\"A\": {}", "[".repeat(deep))),
            ("s.yaml", format!("A: {}", "[".repeat(deep))),
            ("s.yaml", format!("A:\n  {}1", "- ".repeat(1_000))),
            ("s.yaml", format!("A: &a [1]\nB: [{}]", "*a,".repeat(1_000))),
        ] {
            assert!(parse(Path::new(name), &text).is_err(), "{name}");
        }
    }

    #[test]
    fn a_whole_number_beyond_64_bits_is_a_number_in_every_format() {
        for (name, text, number) in [
            ("s.toml", "A = 9_223_372_036_854_775_808", 9_223_372_036_854_775_808.0),
            ("s.toml", "A = -18446744073709551616", -18_446_744_073_709_551_616.0),
            ("s.toml", "A = 0x1_0000_0000_0000_0000", 18_446_744_073_709_551_616.0),
            ("s.yaml", "A: 18446744073709551616", 18_446_744_073_709_551_616.0),
            ("s.json", "{\"A\": 18446744073709551616}", 18_446_744_073_709_551_616.0),
        ] {
            assert_eq!(values(name, text), [("A".to_owned(), json!(number))], "{text}");
        }
        let (_, value) = values("s.toml", &format!("A = {}", "9".repeat(400))).pop().unwrap();
        assert!(value.is_number(), "{value}");
    }

    #[test]
    fn an_empty_file_has_no_settings() {
        for (name, text) in [("s.toml", ""), ("s.yaml", ""), ("s.yaml", "# none\n"), ("s.json", "{}")] {
            assert_eq!(values(name, text), [], "{name} {text:?}");
        }
    }

    #[test]
    fn an_inline_value_is_one_value() {
        assert_eq!(inline_toml("{ a = 1 }"), Some(json!({"a": 1})));
        assert_eq!(inline_toml("1\nother = 2"), None);
        assert_eq!(inline_toml("canary"), None);
    }
}
