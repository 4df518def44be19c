//! Character references (WHATWG HTML 13.2.5.77 to 84), in text and in attribute values.

use super::class::{is_alphanumeric, is_letter};
use super::find::{count, find_of_2};
use super::reference_table::longest;
use super::side::Side;

/// Where a reference stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    /// There a name without a semicolon counts only if nothing follows that looks like part of a query: `?a=b&copy=c`.
    Attribute,
}

/// The names that pages use most, and what they stand for.
const COMMON: [(&[u8], &[u8]); 5] =
    [(b"amp;", b"&"), (b"quot;", b"\""), (b"lt;", b"<"), (b"gt;", b">"), (b"nbsp;", "\u{a0}".as_bytes())];

/// What numbers of the C1 controls stand for, from 0x80 on: characters of windows-1252 (the table of 13.2.5.84), others themselves.
const C1: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2c6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}',
    '\u{2022}', '\u{2013}', '\u{2014}', '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

/// Writes a text with its references decoded and with U+FFFD for U+0000.
pub(super) fn decode(text: &[u8], place: Place, side: &mut Side<'_>) {
    let mut rest = text;
    while let Some((before, [special, behind @ ..])) = find_of_2(b'&', 0, rest).and_then(|at| rest.split_at_checked(at)) {
        side.put(before);
        rest = behind;
        if *special == 0 {
            side.put_replacement();
        } else {
            rest = behind.get(reference(behind, place, side)..).unwrap_or_default();
        }
    }
    side.put(rest);
}

/// Writes what stands for the reference whose text lies behind an ampersand, and gives how many bytes of it that takes: none if
/// the ampersand is only that.
pub(super) fn reference(behind: &[u8], place: Place, side: &mut Side<'_>) -> usize {
    for (name, text) in COMMON {
        if behind.starts_with(name) {
            side.put(text);
            return name.len();
        }
    }
    let taken = match behind {
        [b'#', number @ ..] => numeric(number, side).map(|len| len + 1),
        [first, ..] if is_letter(*first) => named(behind, place, side),
        _ => None,
    };
    taken.unwrap_or_else(|| {
        side.put(b"&");
        0
    })
}

/// Named character reference state (13.2.5.78).
fn named(text: &[u8], place: Place, side: &mut Side<'_>) -> Option<usize> {
    let named = longest(text)?;
    let len = named.name.len();
    if place == Place::Attribute && named.name.last() != Some(&b';') {
        let next = text.get(len);
        if next.is_some_and(|next| *next == b'=' || is_alphanumeric(*next)) {
            return None;
        }
    }
    side.put_char(named.first);
    if let Some(second) = named.second {
        side.put_char(second);
    }
    Some(len)
}

/// Numeric character reference state and following (13.2.5.80 to 84); `text` is behind the `#`.
fn numeric(text: &[u8], side: &mut Side<'_>) -> Option<usize> {
    let (radix, prefix) = match text {
        [b'x' | b'X', ..] => (16, 1),
        _ => (10, 0),
    };
    let digits = text.get(prefix..)?;
    let mut number = 0_u32;
    let mut len = 0;
    for digit in digits.iter().map_while(|byte| char::from(*byte).to_digit(radix)) {
        // Beyond all code points it stays there.
        number = number.saturating_mul(radix).saturating_add(digit);
        len += 1;
    }
    count(len);
    if len == 0 {
        return None;
    }
    let semicolon = usize::from(digits.get(len) == Some(&b';'));
    side.put_char(character(number));
    Some(prefix + len + semicolon)
}

/// Numeric character reference end state (13.2.5.84).
fn character(number: u32) -> char {
    match number {
        0 => '\u{fffd}',
        0x80..=0x9f => C1.get(number as usize - 0x80).copied().unwrap_or('\u{fffd}'),
        _ => char::from_u32(number).unwrap_or('\u{fffd}'),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn decoded(text: &str, place: Place) -> String {
        let mut bytes = Vec::new();
        let mut side = Side::new(&mut bytes);
        decode(text.as_bytes(), place, &mut side);
        assert!(!side.end().is_cut);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn references_mean_the_same_in_text_and_in_values() {
        for (text, expected) in [
            ("a &amp; b", "a & b"),
            ("&AMP;&AMP", "&&"),
            ("&quot;&lt;&gt;&nbsp;|", "\"<>\u{a0}|"),
            ("&notin;&notit;", "\u{2209}\u{ac}it;"),
            ("&#65;&#x41;&#X41;&#65&#x41!", "AAAAA!"),
            ("&#0;&#xD800;&#x110000;&#99999999999999999999;", "\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&#128;&#x9f;&#x81;&#13;", "\u{20ac}\u{178}\u{81}\r"),
            ("&NotEqualTilde;", "\u{2242}\u{338}"),
            ("&;&#;&#x;&#xg;& &&", "&;&#;&#x;&#xg;& &&"),
            ("&unknown;", "&unknown;"),
            ("\0x\0", "\u{fffd}x\u{fffd}"),
            ("&a", "&a"),
            ("\u{e9}&eacute;\u{e9}", "\u{e9}\u{e9}\u{e9}"),
        ] {
            if text != "&notin;&notit;" {
                assert_eq!(decoded(text, Place::Attribute), expected, "{text:?} in a value");
            }
            assert_eq!(decoded(text, Place::Text), expected, "{text:?} in text");
        }
    }

    #[test]
    fn a_query_is_no_reference_in_a_value() {
        for (text, value, plain) in [
            ("?a&copy=1", "?a&copy=1", "?a\u{a9}=1"),
            ("?a&copyx", "?a&copyx", "?a\u{a9}x"),
            ("?a&copy1", "?a&copy1", "?a\u{a9}1"),
            ("?a&copy", "?a\u{a9}", "?a\u{a9}"),
            ("?a&copy;=1", "?a\u{a9}=1", "?a\u{a9}=1"),
            ("?a&copy-", "?a\u{a9}-", "?a\u{a9}-"),
            ("&notit;", "&notit;", "\u{ac}it;"),
        ] {
            assert_eq!(decoded(text, Place::Attribute), value, "{text:?}");
            assert_eq!(decoded(text, Place::Text), plain, "{text:?}");
        }
    }
}
