//! An item's wire text: its own fields and the time it was collected.

use serde::Serialize;

use super::serializer::TextWriter;
use super::text::TextError;

/// An item as it goes on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StampedItem {
    /// The object's text, `_ts` included.
    pub text: String,
    /// How many floats that JSON cannot hold were written as `null`.
    pub nonfinite: u32,
}

/// Writes an item: its fields in their order, then `"_ts"`. An item that has a `_ts` of its own keeps the place
/// and loses the value, as the backend expects.
///
/// `unix_seconds` is the time the collector took the item.
///
/// # Errors
/// [`TextError::NotAnObject`] when the value has no named fields, else as [`to_text`](super::to_text).
pub fn item_text<T: Serialize + ?Sized>(item: &T, unix_seconds: u64) -> Result<StampedItem, TextError> {
    let mut writer = TextWriter::stamping(unix_seconds);
    item.serialize(&mut writer)?;
    if !writer.is_stamped() {
        return Err(TextError::NotAnObject);
    }
    let (text, nonfinite) = writer.finish();
    Ok(StampedItem { text, nonfinite })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::{Value, json};

    use super::*;

    fn check(item: &Value, expected: &str) {
        assert_eq!(item_text(item, 1_700_000_000).unwrap().text, expected);
    }

    #[test]
    fn the_time_is_last_or_in_its_own_place() {
        check(&json!({"a": 1}), r#"{"a": 1, "_ts": 1700000000}"#);
        check(&json!({}), r#"{"_ts": 1700000000}"#);
        check(&json!({"_ts": {"deep": [1]}, "a": 1}), r#"{"_ts": 1700000000, "a": 1}"#);
        check(&json!({"n": {"_ts": 5}}), r#"{"n": {"_ts": 5}, "_ts": 1700000000}"#);
        check(&json!({"l": [{"_ts": 5}]}), r#"{"l": [{"_ts": 5}], "_ts": 1700000000}"#);
    }

    #[test]
    fn a_struct_and_an_enum_with_fields_are_items() {
        #[derive(Serialize)]
        struct Page {
            title: &'static str,
            _ts: u8,
            score: f64,
        }
        let page = Page { title: "x", _ts: 3, score: f64::NAN };
        let written = item_text(&page, 7).unwrap();
        assert_eq!(written.text, r#"{"title": "x", "_ts": 7, "score": null}"#);
        assert_eq!(written.nonfinite, 1);

        #[derive(Serialize)]
        enum Kind {
            Named { a: u8 },
        }
        assert_eq!(item_text(&Kind::Named { a: 1 }, 7).unwrap().text, r#"{"Named": {"a": 1}, "_ts": 7}"#);
    }

    #[test]
    fn ready_json_is_an_item_too() {
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        for (item, expected) in [
            (r#"{"a":{"_ts":1}}"#, r#"{"a": {"_ts": 1}, "_ts": 7}"#),
            (r#"{"_ts":[1e400],"a":1e400}"#, r#"{"_ts": 7, "a": null}"#),
            ("{}", r#"{"_ts": 7}"#),
        ] {
            assert_eq!(item_text(&raw(item), 7).unwrap().text, expected);
        }
        assert_eq!(item_text(&raw("[1]"), 7), Err(TextError::NotAnObject));
    }

    #[test]
    fn a_value_without_fields_is_no_item() {
        for value in [json!(1), json!("x"), json!([{"a": 1}]), json!(null)] {
            assert_eq!(item_text(&value, 7), Err(TextError::NotAnObject));
        }
    }
}
