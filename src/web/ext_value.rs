//! Extended values of header parameters (RFC 8187): a character set, a language, percent-encoded bytes.

use super::percent::escape;

/// Reads a value such as `UTF-8'en'%e2%82%ac`, in UTF-8 or ISO-8859-1. `None` for another character set, a `%` without its
/// two digits, and bytes that are no text.
pub(super) fn decoded(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_language, encoded) = rest.split_once('\'')?;
    let bytes = undone(encoded)?;
    if ["utf-8", "utf8"].iter().any(|name| charset.eq_ignore_ascii_case(name)) {
        String::from_utf8(bytes).ok()
    } else if charset.eq_ignore_ascii_case("iso-8859-1") {
        Some(bytes.into_iter().map(char::from).collect())
    } else {
        None
    }
}

fn undone(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (value, beyond) = escape(after)?;
            out.push(value);
            rest = beyond;
        } else {
            out.push(*byte);
        }
    }
    Some(out)
}
