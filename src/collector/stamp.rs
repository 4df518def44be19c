//! The time an item was collected, put into its finished text.
//!
//! Works on the text alone: nothing is parsed into values and nothing is written again. The result is the one
//! [`item_text`](crate::apcloudy::item_text) gives.

use std::fmt::Write as _;
use std::ops::Range;

use memchr::memmem;

const KEY: &[u8] = b"\"_ts\"";

/// Adds `"_ts"` with the time of collection, in seconds since 1970, to an item's JSON object. An item that has a `_ts`
/// of its own keeps the place and loses the value. A text that is no object is given back as it is.
#[must_use]
pub fn stamp(item_text: &str, unix_seconds: u64) -> String {
    let mut out = String::with_capacity(item_text.len() + 24);
    stamp_into(item_text, unix_seconds, &mut out);
    out
}

/// As [`stamp`], at the end of a text that is there already.
pub(super) fn stamp_into(item: &str, unix_seconds: u64, out: &mut String) {
    if memmem::find(item.as_bytes(), KEY).is_some() && replace_own(item, unix_seconds, out) {
        return;
    }
    let Some(head) = item.trim_end().strip_suffix('}') else {
        out.push_str(item);
        return;
    };
    let head = head.trim_end();
    out.push_str(head);
    let separator = if head.trim_start() == "{" { "" } else { ", " };
    // Writing to a text cannot fail.
    let _ = write!(out, "{separator}\"_ts\": {unix_seconds}}}");
}

/// Writes the item with the values of its own `_ts` keys replaced; `false`, and nothing written, when it has none.
fn replace_own(item: &str, unix_seconds: u64, out: &mut String) -> bool {
    let mut after = 0;
    for value in own_values(item.as_bytes()) {
        let (Some(before), true) = (item.get(after..value.start), value.start < value.end) else { continue };
        let _ = write!(out, "{before}{unix_seconds}");
        after = value.end;
    }
    if after == 0 {
        return false;
    }
    out.push_str(item.get(after..).unwrap_or_default());
    true
}

/// Where the values of `_ts` keys of the outermost object lie.
fn own_values(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let (mut depth, mut at) = (0_u32, 0);
    let mut key_next = false;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(text, at);
                if depth == 1 && key_next {
                    key_next = false;
                    if text.get(at..end) == Some(KEY) {
                        at = skip(text, end, |b| b.is_ascii_whitespace() || b == b':');
                        open = Some(at);
                        continue;
                    }
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                key_next = depth == 1;
            }
            b'}' | b']' | b',' => {
                if depth == 1 {
                    found.extend(open.take().map(|start| start..end_of_value(text, start, at)));
                    key_next = *byte == b',';
                }
                if *byte != b',' {
                    depth = depth.saturating_sub(1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The place after the closing quote of the string that starts here.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn end_of_value(text: &[u8], start: usize, mut end: usize) -> usize {
    while end > start && text.get(end - 1).is_some_and(u8::is_ascii_whitespace) {
        end -= 1;
    }
    end
}

fn skip(text: &[u8], mut at: usize, blank: impl Fn(u8) -> bool) -> usize {
    while text.get(at).copied().is_some_and(&blank) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::apcloudy::{item_text, to_text};

    #[test]
    fn the_time_is_last_or_in_its_own_place() {
        for (item, expected) in [
            (r#"{"a": 1}"#, r#"{"a": 1, "_ts": 7}"#),
            ("{}", r#"{"_ts": 7}"#),
            (r#"{"_ts": {"deep": [1, "}"]}, "a": 1}"#, r#"{"_ts": 7, "a": 1}"#),
            (r#"{"a": 1, "_ts": "x\"_ts\": 4"}"#, r#"{"a": 1, "_ts": 7}"#),
            (r#"{"n": {"_ts": 5}}"#, r#"{"n": {"_ts": 5}, "_ts": 7}"#),
            (r#"{"l": [{"_ts": 5}], "_ts": 1}"#, r#"{"l": [{"_ts": 5}], "_ts": 7}"#),
            (r#"{"a": "_ts", "b": "\\\"_ts\": 1"}"#, r#"{"a": "_ts", "b": "\\\"_ts\": 1", "_ts": 7}"#),
            (r#"{"_ts": 1, "_ts": 2}"#, r#"{"_ts": 7, "_ts": 7}"#),
        ] {
            assert_eq!(stamp(item, 7), expected);
        }
    }

    #[test]
    fn a_text_that_is_no_object_stays_as_it_is() {
        for text in ["", "1", "[1]", "\"_ts\"", "{\"a\"", "{\"_ts\": "] {
            assert_eq!(stamp(text, 7), text);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            r#"[a"\\,:{}\[\]_ts ]{0,8}"#.prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((r#"_ts|a|"_ts"|b"#, inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_result_is_that_of_the_serializer(fields in prop::collection::vec((r#"_ts|a|"_ts"|b,\{"#, any_value()), 0..5)) {
            let item = Value::Object(fields.into_iter().collect::<Map<_, _>>());
            prop_assert_eq!(stamp(&to_text(&item).unwrap(), 1_700_000_000), item_text(&item, 1_700_000_000).unwrap().text);
        }

        #[test]
        fn any_text_is_survived(text in ".{0,40}|[{}\"_ts:,\\\\ ]{0,40}") {
            let _ = stamp(&text, 1);
        }
    }

    #[test]
    fn an_item_stays_valid() {
        let item = json!({"a": [1, {"_ts": 2}], "_ts": 3});
        let stamped: Value = serde_json::from_str(&stamp(&item.to_string(), 9)).unwrap();
        assert_eq!(stamped, json!({"a": [1, {"_ts": 2}], "_ts": 9}));
    }
}
