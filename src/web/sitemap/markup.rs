//! Attributes and references, read as sites write them: names in any case, quotes optional, a bare `&` is text.
//!
//! Only the five references of XML and those by number are resolved; entities that a document declares never are.

use quick_xml::events::BytesStart;
use quick_xml::events::attributes::Attribute;

use super::MAX_FIELD_BYTES;

/// Bytes between the `&` and the `;` of a reference: enough for each of the five and for every number without many zeros.
const MAX_REFERENCE_BYTES: usize = 12;

/// The value of the attribute of this name, which is in lower case.
pub(super) fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    attributes(start).find(|attribute| attribute.key.0.eq_ignore_ascii_case(name)).map(|attribute| value(&attribute))
}

/// The attributes whose value is not too long, as they are written.
pub(super) fn attributes<'a>(start: &'a BytesStart<'_>) -> impl Iterator<Item = Attribute<'a>> {
    let mut all = start.html_attributes();
    all.with_checks(false);
    all.filter_map(Result::ok).filter(|attribute| attribute.value.len() <= MAX_FIELD_BYTES)
}

/// An attribute's value, white space around it removed.
pub(super) fn value(attribute: &Attribute<'_>) -> String {
    unescaped(attribute.value.trim())
}

/// Resolves the references of a text; what is none stays as it is.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        match reference(after) {
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

/// The reference that begins behind this `&`, and what comes behind it. Only so many bytes are looked at as one may have.
fn reference(after: &str) -> Option<(char, &str)> {
    let end = after.bytes().take(MAX_REFERENCE_BYTES + 1).position(|byte| byte == b';')?;
    let (name, rest) = after.split_at_checked(end)?;
    Some((resolved(name)?, rest.strip_prefix(';')?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_looked_for_no_further_than_one_reaches() {
        assert_eq!(reference("#x0010FFFF;x"), Some(('\u{10FFFF}', "x")));
        assert_eq!(reference("#00000000065;x"), Some(('A', "x")));
        // The semicolon comes a byte too late to be looked at.
        assert_eq!(reference("#000000000065;x"), None);
        assert_eq!(reference("éééééé;"), None);
        assert_eq!(reference(""), None);
    }

    #[test]
    fn ampersands_alone_are_text() {
        for text in ["&".repeat(5_000), "&a".repeat(5_000) + ";", "&éé".repeat(5_000)] {
            assert_eq!(unescaped(&text), text);
        }
        assert_eq!(unescaped(&("&".repeat(5_000) + "lt;")), "&".repeat(4_999) + "<");
    }

    #[test]
    fn the_name_of_an_attribute_is_read_in_any_case() {
        let start = BytesStart::from_content("a HREF=' x&amp;y ' rel=alternate", 1);
        assert_eq!(attribute(&start, "href").as_deref(), Some("x&y"));
        assert_eq!(attribute(&start, "rel").as_deref(), Some("alternate"));
        assert_eq!(attribute(&start, "hre"), None);
    }
}
