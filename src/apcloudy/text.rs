//! The JSON text form of the wire: what Python's default JSON writer produces.
//!
//! Separators `", "` and `": "`, pure ASCII with lower-case `\u` escapes, floats in Python's spelling, keys in
//! insertion order. A receiver may check a signature over the raw bytes or over a re-written object: this form
//! satisfies both. Numbers JSON cannot hold (NaN and the infinities) become `null` and are counted.

use std::io::Write as _;

use serde::Serialize;

use super::serializer::TextWriter;

/// The deepest nesting of arrays and objects a value may have. A body adds four levels, which keeps it readable
/// for parsers that stop at 128.
pub const MAX_DEPTH: u32 = 120;

/// Why a value has no wire text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextError {
    /// An object key is neither text, number, boolean nor null.
    #[error("an object key must be text, a number, a boolean or null, found {found}; make the key text")]
    Key {
        /// What was found in place of a key.
        found: &'static str,
    },
    /// The value nests deeper than [`MAX_DEPTH`].
    #[error("the value nests deeper than {MAX_DEPTH} levels; flatten it")]
    TooDeep,
    /// An item must be an object.
    #[error("an item must be an object with named fields; wrap the value in a struct or a map")]
    NotAnObject,
    /// The value's own serialisation failed.
    #[error("the value cannot be written as JSON: {0}")]
    Value(String),
}

impl TextError {
    /// Says which field the value is that cannot be written; fields around it come before it: `size.width`.
    pub(super) fn in_field(self, field: &str) -> Self {
        match self {
            Self::Value(reason) => Self::Value(match reason.strip_prefix("field ") {
                Some(inner) => format!("field {field}.{inner}"),
                None => format!("field {field}: {reason}"),
            }),
            other => other,
        }
    }
}

/// Writes a value in the wire's text form. Non-finite floats become `null`.
///
/// # Errors
/// [`TextError`] when a key is not a scalar, the value nests too deep, or its own serialisation fails.
pub fn to_text<T: Serialize + ?Sized>(value: &T) -> Result<String, TextError> {
    to_text_counting(value).map(|(text, _)| text)
}

/// Like [`to_text`], and tells how many non-finite floats were replaced by `null`.
///
/// # Errors
/// The same as [`to_text`].
pub fn to_text_counting<T: Serialize + ?Sized>(value: &T) -> Result<(String, u32), TextError> {
    let mut writer = TextWriter::new();
    value.serialize(&mut writer)?;
    Ok(writer.finish())
}

/// Appends `text` as a quoted JSON string in pure ASCII.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// As [`write_string`], without the quotes.
pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    loop {
        let (plain, tail) = rest.split_at(plain_run(rest.as_bytes()));
        out.extend_from_slice(plain.as_bytes());
        let mut chars = tail.chars();
        let Some(c) = chars.next() else { break };
        write_escape(out, c);
        rest = chars.as_str();
    }
}

/// Appends a finite float as Python spells it: shortest digits that read back the same, `.0` when integral,
/// an exponent with sign and at least two digits below 1e-4 and from 1e16 on.
pub(super) fn write_float(out: &mut Vec<u8>, value: f64) {
    // Few decimals are the rule (prices, seconds); with at most 15 digits the decimal is the shortest form.
    let hundredths = value * 100.0;
    if hundredths.abs() < 1e14 && hundredths.fract() == 0.0 && hundredths / 100.0 == value {
        return write_hundredths(out, value.is_sign_negative(), hundredths.abs());
    }
    let from = out.len();
    let _ = write!(out, "{value:?}");
    fix_exponent(out, from);
}

/// As [`write_float`], with the shortest digits that read back as the same single-precision number.
pub(super) fn write_single(out: &mut Vec<u8>, value: f32) {
    let from = out.len();
    let _ = write!(out, "{value:?}");
    fix_exponent(out, from);
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole, non-negative number below 1e14")]
fn write_hundredths(out: &mut Vec<u8>, negative: bool, hundredths: f64) {
    let n = hundredths as u64;
    let (whole, part) = (n / 100, n % 100);
    if negative {
        out.push(b'-');
    }
    let _ = if part % 10 == 0 { write!(out, "{whole}.{}", part / 10) } else { write!(out, "{whole}.{part:02}") };
}

/// The standard library switches to an exponent at the same bounds as Python, but writes `1e16` and `1e-7`.
fn fix_exponent(out: &mut Vec<u8>, from: usize) {
    let digits = out.get(from..).unwrap_or_default();
    let Some(at) = digits.iter().position(|b| *b == b'e') else {
        return;
    };
    let exponent = out.split_off(from + at + 1);
    let (sign, digits) = match exponent.split_first() {
        Some((b'-', digits)) => (b'-', digits),
        _ => (b'+', exponent.as_slice()),
    };
    out.push(sign);
    if digits.len() < 2 {
        out.push(b'0');
    }
    out.extend_from_slice(digits);
}

const fn is_plain(byte: u8) -> bool {
    byte >= 0x20 && byte < 0x7f && byte != b'"' && byte != b'\\'
}

/// The number of leading bytes that go out unchanged. Whole blocks first: that loop becomes vector code.
fn plain_run(bytes: &[u8]) -> usize {
    const BLOCK: usize = 16;
    let blocks = bytes.chunks_exact(BLOCK).take_while(|block| block.iter().fold(true, |all, b| all & is_plain(*b))).count();
    let done = blocks * BLOCK;
    let tail = bytes.get(done..).unwrap_or_default();
    done + tail.iter().position(|b| !is_plain(*b)).unwrap_or(tail.len())
}

fn write_escape(out: &mut Vec<u8>, c: char) {
    let short = match c {
        '"' => b'"',
        '\\' => b'\\',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        _ => {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn floats_are_spelled_as_python_spells_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (9.99, "9.99"),
            (-9.9, "-9.9"),
            (0.05, "0.05"),
            (2.675, "2.675"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1e22, "1e+22"),
            (1.234_567_890_123_456_7e19, "1.2345678901234567e+19"),
            (1_796_057_447.921_124_5, "1796057447.9211245"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (123_456_789_012.34, "123456789012.34"),
        ] {
            assert_eq!(to_text(&value).unwrap(), expected);
        }
        assert_eq!(to_text(&0.1f32).unwrap(), "0.1");
        assert_eq!(to_text(&1e-7f32).unwrap(), "1e-07");
    }

    #[test]
    fn strings_are_ascii_with_lower_case_escapes() {
        for (value, expected) in [
            ("", r#""""#),
            ("a/b", r#""a/b""#),
            ("\"\\\n\r\t\u{8}\u{c}", r#""\"\\\n\r\t\b\f""#),
            ("\u{0}\u{1f}\u{7f}", r#""\u0000\u001f\u007f""#),
            ("Ж & <b>", r#""\u0416 & <b>""#),
            ("😀é", r#""\ud83d\ude00\u00e9""#),
            ("\u{fffd}\u{2028}", r#""\ufffd\u2028""#),
            ("sixteen plain ch\u{e9}", r#""sixteen plain ch\u00e9""#),
        ] {
            assert_eq!(to_text(value).unwrap(), expected);
        }
    }

    #[test]
    fn containers_use_pythons_separators_and_keep_their_order() {
        let value: Value = serde_json::from_str(r#"{"z":[],"a":{},"m":[1,[2,{"k":null}],true],"":-5}"#).unwrap();
        assert_eq!(to_text(&value).unwrap(), r#"{"z": [], "a": {}, "m": [1, [2, {"k": null}], true], "": -5}"#);
        assert_eq!(to_text(&(1u128 << 70)).unwrap(), "1180591620717411303424");
    }

    #[test]
    fn keys_that_are_not_text_become_text() {
        let by_number: BTreeMap<i32, u8> = [(1, 2)].into();
        assert_eq!(to_text(&by_number).unwrap(), r#"{"1": 2}"#);
        let by_flag: BTreeMap<bool, u8> = [(true, 2)].into();
        assert_eq!(to_text(&by_flag).unwrap(), r#"{"true": 2}"#);
        let by_option: BTreeMap<Option<u8>, u8> = [(None, 2)].into();
        assert_eq!(to_text(&by_option).unwrap(), r#"{"null": 2}"#);
        let by_pair: BTreeMap<(u8, u8), u8> = [((1, 2), 2)].into();
        assert!(matches!(to_text(&by_pair), Err(TextError::Key { .. })));
    }

    #[test]
    fn numbers_outside_json_become_null_and_are_counted() {
        let value = [1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let (text, count) = to_text_counting(&value).unwrap();
        assert_eq!((text.as_str(), count), ("[1.0, null, null, null]", 3));
        assert_eq!(to_text_counting(&None::<u8>).unwrap(), ("null".into(), 0));
    }

    #[test]
    fn enums_bytes_and_raw_text_have_a_form() {
        #[derive(Serialize)]
        enum Shape {
            Unit,
            One(u8),
            Two(u8, u8),
            Named { a: u8 },
        }
        let all = [Shape::Unit, Shape::One(1), Shape::Two(1, 2), Shape::Named { a: 1 }];
        assert_eq!(to_text(&all).unwrap(), r#"["Unit", {"One": 1}, {"Two": [1, 2]}, {"Named": {"a": 1}}]"#);
        let raw = serde_json::value::RawValue::from_string(r#"{"a":["é"]}"#.into()).unwrap();
        assert_eq!(to_text(&[raw]).unwrap(), r#"[{"a": ["\u00e9"]}]"#);
    }

    #[test]
    fn bytes_are_base64() {
        struct Raw(&'static [u8]);
        impl Serialize for Raw {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(self.0)
            }
        }
        let all = [Raw(b"\xff\x00abc"), Raw(b""), Raw(b"?>~")];
        assert_eq!(to_text(&all).unwrap(), r#"["/wBhYmM=", "", "Pz5+"]"#);
        let by_bytes: Vec<(&str, Raw)> = vec![("a", Raw(b"b"))];
        assert_eq!(to_text(&by_bytes).unwrap(), r#"[["a", "Yg=="]]"#);
    }

    #[test]
    fn ready_json_keeps_its_digits_and_loses_what_json_cannot_hold() {
        let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
        let text = r#"{"a": 1180591620717411303424, "b": "x\ud800", "\udfff": [1e400, -1e400, 1.50], "c": {}}"#;
        let expected = r#"{"a": 1180591620717411303424, "b": "x\ufffd", "\ufffd": [null, null, 1.5], "c": {}}"#;
        assert_eq!(to_text_counting(&raw(text)).unwrap(), (expected.to_owned(), 2));
        let nest = |levels: usize| raw(&format!("{}1{}", "[".repeat(levels), "]".repeat(levels)));
        let most = MAX_DEPTH as usize;
        assert!(to_text(&nest(most)).is_ok());
        assert_eq!(to_text(&nest(most + 1)), Err(TextError::TooDeep));
        assert_eq!(to_text(&[nest(most)]), Err(TextError::TooDeep));
        assert!(matches!(to_text(&nest(200)), Err(TextError::Value(_))));
    }

    #[test]
    fn a_value_that_nests_too_deep_is_refused() {
        let nest = |levels: u32| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(to_text(&nest(MAX_DEPTH)).is_ok());
        assert_eq!(to_text(&nest(MAX_DEPTH + 1)), Err(TextError::TooDeep));
    }

    proptest! {
        #[test]
        fn any_text_reads_back_and_is_ascii(text in "\\PC*|[\\x00-\\x7f]*|.*") {
            let written = to_text(&text).unwrap();
            prop_assert!(written.bytes().all(|b| (0x20..0x7f).contains(&b)));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }

        #[test]
        fn any_float_reads_back_the_same(bits in any::<u64>(), cents in -10_000_000i64..10_000_000) {
            #[allow(clippy::cast_precision_loss)]
            for value in [f64::from_bits(bits), cents as f64 / 100.0, cents as f64 / 1000.0] {
                if value.is_finite() {
                    let written = to_text(&value).unwrap();
                    prop_assert_eq!(written.parse::<f64>().unwrap().to_bits(), value.to_bits());
                    let longest = format!("{value:?}").len() + 2;
                    prop_assert!(written.len() <= longest);
                }
            }
        }
    }
}
