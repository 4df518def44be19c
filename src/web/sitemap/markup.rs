//! Attributes and references, read as sites write them: names in any case, quotes optional, a bare `&` is text.
//!
//! Only the five references of XML and those by number are resolved; entities that a document declares never are.

use quick_xml::events::BytesStart;

use super::MAX_FIELD_BYTES;

/// An attribute's value, white space around it removed; the name in lower case.
pub(super) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    attributes(start).find(|(key, _)| key == name).map(|(_, value)| value)
}

pub(super) fn attributes(start: &BytesStart<'_>) -> impl Iterator<Item = (String, String)> {
    let mut all = start.html_attributes();
    all.with_checks(false);
    all.filter_map(Result::ok)
        .filter(|attribute| attribute.value.len() <= MAX_FIELD_BYTES)
        .map(|attribute| (attribute.key.0.to_ascii_lowercase(), unescaped(attribute.value.trim())))
}

/// Resolves the references of a text; what is none stays as it is.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let found = after.split_once(';').and_then(|(name, after)| Some((resolved(name)?, after)));
        match found {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The character of a reference: one of the five of XML, or one by number.
pub(super) fn resolved(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|character| *character != '\0')
        }
    }
}
