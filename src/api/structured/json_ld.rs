//! JSON-LD: the scripts of a page that hold it, read with the mistakes forgiven that search engines forgive.

use serde_json::Value;

use super::is_of_type;
use crate::api::selector::{NodeRef, Page};

const MEDIA_TYPE: &str = "application/ld+json";

/// The values of a page, and how many scripts could not be read.
pub(super) fn read(page: &Page) -> (Vec<Value>, usize) {
    let (mut values, mut broken) = (Vec::new(), 0);
    for script in page.css("script[type]").nodes().filter(|script| is_json_ld(*script)) {
        let text = script.text();
        match parse(&text) {
            Some(Value::Array(list)) => values.extend(list),
            Some(value) => values.push(value),
            None if text.trim().is_empty() => {}
            None => broken += 1,
        }
    }
    (values, broken)
}

/// Every object of a type, in the order of the text.
pub(super) fn of_type<'a>(values: &'a [Value], name: &'a str) -> impl Iterator<Item = &'a Value> {
    let mut open: Vec<&Value> = values.iter().rev().collect();
    std::iter::from_fn(move || {
        loop {
            let value = open.pop()?;
            match value {
                Value::Array(list) => open.extend(list.iter().rev()),
                Value::Object(members) => {
                    open.extend(members.values().rev());
                    let types = members.get("@type");
                    let is_it = |value: &Value| value.as_str().is_some_and(|full| is_of_type(full, name));
                    if types.is_some_and(|types| is_it(types) || types.as_array().is_some_and(|list| list.iter().any(is_it))) {
                        return Some(value);
                    }
                }
                _ => {}
            }
        }
    })
}

fn is_json_ld(script: NodeRef<'_>) -> bool {
    let kind = script.attr("type").unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(MEDIA_TYPE)
}

fn parse(text: &str) -> Option<Value> {
    let text = unwrapped(text);
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&forgiven(text))).ok()
}

/// The text without what is put around scripts for programs of long ago.
fn unwrapped(text: &str) -> &str {
    let mut text = text;
    loop {
        let before = text.len();
        text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | ';'));
        for mark in ["<!--", "//<![CDATA[", "// <![CDATA[", "/*<![CDATA[*/", "<![CDATA["] {
            text = text.strip_prefix(mark).unwrap_or(text);
        }
        for mark in ["-->", "//]]>", "// ]]>", "/*]]>*/", "]]>", "//"] {
            text = text.strip_suffix(mark).unwrap_or(text);
        }
        if text.len() == before {
            return text;
        }
    }
}

/// The text without comments and stray commas, with control characters and needless escapes in texts put right.
fn forgiven(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_text = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                in_text = !in_text;
                out.push(c);
            }
            '\\' if in_text => push_escape(chars.next(), &mut out),
            '\n' if in_text => out.push_str("\\n"),
            '\t' if in_text => out.push_str("\\t"),
            '\r' if in_text => {}
            c if in_text => out.push(if c < ' ' { ' ' } else { c }),
            '/' if chars.peek() == Some(&'/') => {
                let _ = chars.by_ref().find(|c| matches!(c, '\n' | '\r'));
            }
            '/' if chars.peek() == Some(&'*') => {
                let mut before = '\0';
                chars.next();
                let _ = chars.by_ref().find(|c| std::mem::replace(&mut before, *c) == '*' && *c == '/');
            }
            ']' | '}' => {
                let end = out.trim_end_matches(|c: char| c.is_whitespace() || c == ',').len();
                out.truncate(end);
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn push_escape(escaped: Option<char>, out: &mut String) {
    match escaped {
        Some(c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u')) => out.extend(['\\', c]),
        // `\'`, and a line that goes on.
        Some(c) if c >= ' ' => out.push(c),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn common_mistakes_are_forgiven() {
        for (text, expected) in [
            (r#"{"a": 1}"#, json!({"a": 1})),
            ("\u{feff} <!-- {\"a\": 1} --> ;", json!({"a": 1})),
            ("//<![CDATA[\n[1, 2]\n//]]>", json!([1, 2])),
            ("{\"a\": \"x\ny\tz\u{1}\"}", json!({"a": "x\ny\tz "})),
            ("{\"a\": [1, 2, ], /* , */ }", json!({"a": [1, 2]})),
            ("{ // a comment\n \"u\": \"http://a.test//b\" /**/ }", json!({"u": "http://a.test//b"})),
            (r#"{"a": "it\'s \"q\" é", }"#, json!({"a": "it's \"q\" é"})),
        ] {
            assert_eq!(parse(text), Some(expected), "{text:?}");
        }
        for text in ["", "{", "{'a': 1}", "a", "{\"a\": 1} {\"b\": 2}", "\"\\", "/*", "//", "<!--"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn objects_of_a_type_are_found_wherever_they_stand() {
        let values = [
            json!([{"@graph": [{"@type": ["Thing", "https://schema.org/Product"], "n": 1}]}]),
            json!({
                "@type": "schema:Product", "n": 2, "offers": [{"@type": "Offer", "for": {"@type": "Product", "n": 3}}]
            }),
        ];
        let found = |name: &'static str| of_type(&values, name).map(|value| value["n"].clone()).collect::<Vec<_>>();
        assert_eq!(found("Product"), [json!(1), json!(2), json!(3)]);
        assert_eq!(found("duct").len() + found("product").len(), 0);
        assert_eq!(found("Offer").len(), 1);
    }

    proptest! {
        #[test]
        fn what_is_valid_stays_as_it_is_and_nothing_panics(text in "[\\[\\]{}\",:\\\\/*a1\n ]{0,40}") {
            let strict = serde_json::from_str::<Value>(&text).ok();
            let found = parse(&text);
            prop_assert!(strict.is_none() || found == strict);
            prop_assert!(forgiven(&text).len() <= text.len() * 2);
        }
    }
}
