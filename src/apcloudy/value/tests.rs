#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::apcloudy::testdata::captures;
use crate::apcloudy::to_text;

fn rewritten(text: &str) -> String {
    Value::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).write()
}

#[test]
fn every_captured_body_is_read_and_written_again_without_a_change() {
    let bodies: Vec<_> = captures().into_iter().filter(|capture| capture.captured).collect();
    assert_eq!(bodies.len(), 18);
    for capture in bodies {
        assert_eq!(rewritten(&capture.body), capture.body, "{}", capture.name);
    }
}

#[test]
fn what_only_python_writes_comes_back_as_it_was() {
    for text in [
        "NaN",
        "[Infinity, -Infinity]",
        r#""\ud800""#,
        r#""a\udc00\ud800b\ud83d\ude00\udfff""#,
        r#"{"\ud83d": 1}"#,
        "1180591620717411303424",
        "-1180591620717411303424",
        "1.0",
        "-0.0",
        "1e+16",
        "1e-07",
        "123456789012345678901234567890123456789012345678901234567890",
    ] {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn other_spellings_become_pythons() {
    for (text, written) in [
        (" [ 1 ,\t2\r\n] ", "[1, 2]"),
        ("{\"a\":{ },\"b\":[ ]}", r#"{"a": {}, "b": []}"#),
        ("-0", "0"),
        ("0", "0"),
        ("1E5", "100000.0"),
        ("1e400", "Infinity"),
        ("-1e400", "-Infinity"),
        ("1e-400", "0.0"),
        ("9.990", "9.99"),
        (r#""\/\u0041\u00E9é😀""#, r#""/A\u00e9\u00e9\ud83d\ude00""#),
        (r#""\uD83D\uDE00\uD83D""#, r#""\ud83d\ude00\ud83d""#),
        ("\"\u{7f}\"", r#""\u007f""#),
    ] {
        assert_eq!(rewritten(text), written, "{text}");
    }
}

#[test]
fn of_equal_keys_the_first_keeps_its_place_and_the_last_its_value() {
    assert_eq!(rewritten(r#"{"a": 1, "b": 2, "a": 3}"#), r#"{"a": 3, "b": 2}"#);
    assert_eq!(rewritten(r#"{"\ud800": 1, "\ud801": 2, "\ud800": 3}"#), r#"{"\ud800": 3, "\ud801": 2}"#);
    let fields = |last: u32| {
        let fields: Vec<String> = (0..40).map(|n| format!("\"k{n}\": {}", if n == 7 { last } else { n })).collect();
        fields.join(", ")
    };
    assert_eq!(rewritten(&format!("{{{}, \"k7\": 99}}", fields(7))), format!("{{{}}}", fields(99)));
    assert_eq!(rewritten(&format!("{{{}, \"k30\": 0, \"k30\": 30}}", fields(7))), format!("{{{}}}", fields(7)));
}

#[test]
fn strict_text_is_json_for_every_reader() {
    let value =
        Value::parse(br#"{"a\ud800": [NaN, Infinity, -Infinity, 1.5], "b": "\udfffx", "c": 1180591620717411303424}"#).unwrap();
    let strict = value.write_strict();
    assert_eq!(strict, r#"{"a\ufffd": [null, null, null, 1.5], "b": "\ufffdx", "c": 1180591620717411303424}"#);
    serde_json::from_str::<serde_json::Value>(&strict).unwrap();
}

#[test]
fn a_text_that_is_no_value_is_refused_with_the_place() {
    for (text, offset, what) in [
        ("", 0, "ends before"),
        ("  ", 2, "ends before"),
        ("[1", 2, "ends before"),
        ("{\"a\"", 4, "ends before"),
        ("\"ab", 3, "ends before"),
        ("\"ab\\", 4, "ends before"),
        ("nul", 0, "expected a value"),
        ("nan", 0, "expected a value"),
        ("-Inf", 0, "expected a value"),
        ("+1", 0, "expected a value"),
        (".5", 0, "expected a value"),
        ("[1,]", 3, "expected a value"),
        ("'a'", 0, "expected a value"),
        ("\u{feff}1", 0, "expected a value"),
        ("[1 2]", 3, "comma"),
        ("{\"a\": 1 \"b\"}", 8, "comma"),
        ("{a: 1}", 1, "key"),
        ("{\"a\": 1,}", 8, "key"),
        ("{1: 1}", 1, "key"),
        ("{\"a\" 1}", 5, "colon"),
        ("01", 1, "more after"),
        ("1 2", 2, "more after"),
        ("nullx", 4, "more after"),
        ("-x", 1, "digit"),
        ("1.x", 2, "digit"),
        ("1ex", 2, "digit"),
        ("1e+x", 3, "digit"),
        ("\"\\x\"", 1, "escape"),
        ("\"\\u12g4\"", 1, "hex"),
        ("\"\\u+123\"", 1, "hex"),
        ("\"a\nb\"", 2, "control"),
    ] {
        let error = Value::parse(text.as_bytes()).expect_err(text);
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(error.offset, offset, "{text}: {error}");
    }
    let error = Value::parse(b"[\"\xff\"]").unwrap_err();
    assert_eq!((error.offset, error.to_string().contains("UTF-8")), (2, true));
}

#[test]
fn nesting_is_bounded() {
    let nest = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(rewritten(&nest(READ_DEPTH as usize)), nest(READ_DEPTH as usize));
    let error = Value::parse(nest(READ_DEPTH as usize + 1).as_bytes()).unwrap_err();
    assert_eq!(error.offset, READ_DEPTH as usize);
    assert!(error.what.contains("128"));
    assert!(Value::parse("[".repeat(1_000_000).as_bytes()).is_err());
    let wide = format!("[{}]", vec!["[[1]]"; 1000].join(", "));
    assert_eq!(rewritten(&wide), wide);
}

#[test]
fn an_object_of_many_keys_costs_no_more_than_its_size() {
    let fields: Vec<String> = (0..60_000).map(|n| format!("\"k{n}\": {n}")).collect();
    let text = format!("{{{}}}", fields.join(", "));
    // Compared pairwise, the keys would take minutes.
    let begun = std::time::Instant::now();
    assert_eq!(rewritten(&text), text);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn parts_of_a_value_are_found_by_their_kind() {
    let value = Value::parse(br#"{"n": 5, "f": 1.5, "t": "x", "l": [true], "z": null, "big": 1180591620717411303424}"#).unwrap();
    assert_eq!(value.get("n").unwrap().as_i64(), Some(5));
    assert_eq!(value.get("n").unwrap().as_f64(), Some(5.0));
    assert_eq!(value.get("f").unwrap().as_f64(), Some(1.5));
    assert_eq!(value.get("f").unwrap().as_i64(), None);
    assert_eq!(value.get("big").unwrap().as_i64(), None);
    assert_eq!(value.get("t").unwrap().as_str(), Some("x"));
    assert_eq!(value.get("l").unwrap().as_list().unwrap()[0].as_bool(), Some(true));
    assert_eq!(value.get("z"), Some(&Value::Null));
    assert_eq!(value.get("y"), None);
    let kinds: Vec<_> = value.as_object().unwrap().iter().map(|(_, value)| value.kind()).collect();
    assert_eq!(kinds, ["an integer", "a float", "a text", "a list", "null", "an integer"]);
    assert_eq!(value.kind(), "an object");
}

/// The text of one string with any code units.
fn any_string() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![any::<u16>(), 0xd7f0u16..0xe010, 0x20u16..0x80], 0..12)
        .prop_map(|units| format!("\"{}\"", units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()))
}

fn any_scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        "0|-?[1-9][0-9]{0,60}".prop_map(Value::Int),
        any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
        "\\PC{0,8}".prop_map(|text| Value::Text(Text::from(text.as_str()))),
        any_string().prop_map(|text| Value::parse(text.as_bytes()).unwrap()),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            proptest::collection::hash_map("\\PC{0,6}", inner, 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, value)| (Text::from(key.as_str()), value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_written_so_that_it_is_read_back(value in any_value()) {
        let written = value.write();
        prop_assert!(written.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        prop_assert_eq!(rewritten(&written), written);
        let strict = value.write_strict();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&strict).is_ok(), "{}", strict);
        prop_assert_eq!(rewritten(&strict), strict);
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in "[\\[\\]{}\",:0-9eE.+\\\\u dNInaftlse-]{0,40}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            match Value::parse(bytes) {
                Ok(value) => prop_assert_eq!(rewritten(&value.write()), value.write()),
                Err(error) => prop_assert!(error.offset <= bytes.len()),
            }
        }
    }

    #[test]
    fn what_another_reader_takes_is_taken_and_means_the_same(
        text in prop_oneof![
            "[\\[\\]{}\",:0-9eE.+\\\\u bn-]{0,12}",
            "\\[[0-9.eE-]{1,5}(, ?[0-9]{1,5}){0,3}\\]",
            "\\{\"[ab]\":-?[1-9.e]{1,5}(,\"[ab]\" : \"[a\\\\nu0-9é]{0,7}\"){0,3}\\}",
        ]
    ) {
        // The other one has a negative zero among its integers and drops digits of large ones.
        prop_assume!(!text.contains("-0"));
        if let Ok(theirs) = serde_json::from_str::<serde_json::Value>(&text) {
            let ours = Value::parse(text.as_bytes());
            prop_assert!(ours.is_ok(), "{}", text);
            prop_assert_eq!(ours.unwrap().write_strict(), to_text(&theirs).unwrap());
        }
    }
}
