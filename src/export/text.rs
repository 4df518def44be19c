//! Rewrites JSON text without building values: escapes to characters, indentation, single strings.
//!
//! Input is JSON that was checked or made by us; anything else comes out as it went in, never as a panic.

use memchr::memchr;

/// Copies JSON text with `\uXXXX` escapes of characters outside of ASCII turned into the characters. Escapes of ASCII
/// and of lone surrogates stay. Escapes stand only inside strings, so the structure needs no attention.
pub(super) fn unescape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let (decoded, len) = match hex_escape(escape) {
            Some(unit) => decode_unit(unit, escape),
            None => (None, 2),
        };
        let (escape, after) = escape.split_at_checked(len).unwrap_or((escape, ""));
        match decoded.filter(|c| !c.is_ascii()) {
            Some(c) => out.push(c),
            None => out.push_str(escape),
        }
        rest = after;
    }
    out.push_str(rest);
}

/// The text of a JSON string token, quotes included in `raw`. A lone surrogate becomes U+FFFD.
pub(super) fn decode_string(raw: &str, out: &mut String) {
    let mut rest = raw.trim().trim_start_matches('"');
    rest = rest.strip_suffix('"').unwrap_or(rest);
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let (decoded, len) = match (hex_escape(escape), escape.as_bytes().get(1)) {
            (Some(unit), _) => decode_unit(unit, escape),
            (None, Some(b'n')) => (Some('\n'), 2),
            (None, Some(b't')) => (Some('\t'), 2),
            (None, Some(b'r')) => (Some('\r'), 2),
            (None, Some(b'b')) => (Some('\u{8}'), 2),
            (None, Some(b'f')) => (Some('\u{c}'), 2),
            (None, Some(&byte)) if byte.is_ascii() => (Some(char::from(byte)), 2),
            (None, _) => (None, 1),
        };
        out.push(decoded.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = escape.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// Writes a JSON string token, ASCII only.
pub(super) fn encode_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// Copies JSON text spread over lines, `width` blanks a level, as Python's `json.dumps(indent=width)` does.
pub(super) fn indent(text: &str, width: usize, out: &mut String) {
    let mut depth: usize = 0;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(depth * width, out);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(depth * width, out);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(depth * width, out);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
}

fn new_line(blanks: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', blanks));
}

/// The UTF-16 unit of a `\uXXXX` at the start of a text.
fn hex_escape(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

/// The character of an escape whose first unit is known, and the length of its text.
fn decode_unit(unit: u16, escape: &str) -> (Option<char>, usize) {
    if let Some(c) = char::from_u32(u32::from(unit)) {
        return (Some(c), 6);
    }
    let pair = escape.get(6..).and_then(hex_escape).and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
    if pair.is_some() { (pair, 12) } else { (None, 6) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn unescaped(text: &str) -> String {
        let mut out = String::new();
        unescape(text, &mut out);
        out
    }

    #[test]
    fn escapes_above_ascii_become_characters_and_others_stay() {
        for (text, expected) in [
            (r#"{"a": "caf\u00e9"}"#, r#"{"a": "café"}"#),
            (r#""\ud83d\ude00!""#, r#""😀!""#),
            (r#""\ud83d""#, r#""\ud83d""#),
            (r#""\ud83d\ud83d\ude00""#, "\"\\ud83d😀\""),
            (r#""\ude00\ud83d""#, r#""\ude00\ud83d""#),
            (r#""\\u00e9""#, r#""\\u00e9""#),
            (r#""\\\u00e9""#, r#""\\é""#),
            (r#""\u0000\u001f\u0022\n\"""#, r#""\u0000\u001f\u0022\n\"""#),
            (r#""\u00E9\u20AC""#, "\"é€\""),
            (r#""\u00"#, r#""\u00"#),
            (r#""\"#, r#""\"#),
            ("\"\\é\"", "\"\\é\""),
        ] {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }

    #[test]
    fn indentation_is_that_of_python() {
        let mut out = String::new();
        indent(r#"{"a": [1, 2], "b": {}, "c": [], "d": "x, [y]: \"{\\"}"#, 2, &mut out);
        assert_eq!(out, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": [],\n  \"d\": \"x, [y]: \\\"{\\\\\"\n}");
    }

    proptest! {
        #[test]
        fn a_string_survives_every_form(text in any::<String>()) {
            let mut ascii = String::new();
            encode_string(&text, &mut ascii);
            prop_assert!(ascii.is_ascii());
            prop_assert_eq!(&serde_json::from_str::<String>(&ascii).unwrap(), &text);
            prop_assert_eq!(&serde_json::from_str::<String>(&unescaped(&ascii)).unwrap(), &text);
            let mut back = String::new();
            decode_string(&ascii, &mut back);
            prop_assert_eq!(&back, &text);
        }

        #[test]
        fn nothing_panics_on_any_text(text in any::<String>(), escapes in r#"(\\|u|[0-9a-f]|"|é){0,20}"#) {
            for text in [text, escapes] {
                let mut out = String::new();
                unescape(&text, &mut out);
                decode_string(&text, &mut out);
                indent(&text, 3, &mut out);
            }
        }
    }
}
