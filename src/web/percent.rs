//! Percent-encoding: escapes, form encoding and the character classes of RFC 3986.
//!
//! Works on bytes, so that escapes which are no UTF-8 survive.

/// Writes bytes, encoding those that are not literal.
pub(super) fn push_encoded(out: &mut String, bytes: &[u8], is_literal: impl Fn(u8) -> bool) {
    for &byte in bytes {
        if is_literal(byte) {
            out.push(char::from(byte));
        } else {
            push_escape(out, byte);
        }
    }
}

/// Reads the two hexadecimal digits after a `%`.
pub(super) fn escape(after_percent: &[u8]) -> Option<(u8, &[u8])> {
    let (&[high, low], rest) = after_percent.split_first_chunk::<2>()?;
    let value = char::from(high).to_digit(16)? * 16 + char::from(low).to_digit(16)?;
    Some((u8::try_from(value).ok()?, rest))
}

/// Writes one percent-escape with upper-case digits.
pub(super) fn push_escape(out: &mut String, byte: u8) {
    out.push('%');
    out.push(hex_digit(byte >> 4));
    out.push(hex_digit(byte & 15));
}

/// The upper-case digit of a number below 16.
pub(super) fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0').to_ascii_uppercase()
}

/// Unreserved characters of RFC 3986 2.3.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Delimiters of RFC 3986 2.2 that may stand inside a component.
pub(super) fn is_sub_delim(byte: u8) -> bool {
    matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

/// Characters that stand in a canonical path as they are.
pub(super) fn is_path_literal(byte: u8) -> bool {
    is_unreserved(byte) || is_sub_delim(byte) || matches!(byte, b'/' | b':' | b'@' | b'?' | b'[' | b']' | b'|')
}

/// Undoes the form encoding of a name or value; a bad escape stays as it is.
pub(super) fn form_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => out.push(b' '),
            b'%' => match escape(after) {
                Some((decoded, after_escape)) => {
                    out.push(decoded);
                    rest = after_escape;
                }
                None => out.push(b'%'),
            },
            other => out.push(other),
        }
    }
    out
}

/// Encodes a name or value as a form does.
pub(super) fn push_form_encoded(out: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b' ' => out.push('+'),
            other if is_unreserved(other) => out.push(char::from(other)),
            other => push_escape(out, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_value_survives_both_ways() {
        let mut out = String::new();
        push_form_encoded(&mut out, &form_decoded("a+b%2b%e9%zz~"));
        assert_eq!(out, "a+b%2B%E9%25zz~");
    }

    #[test]
    fn an_escape_needs_two_digits() {
        assert_eq!(escape(b"4Ax"), Some((b'J', &b"x"[..])));
        assert_eq!(escape(b"4"), None);
        assert_eq!(escape(b"+1"), None);
    }
}
