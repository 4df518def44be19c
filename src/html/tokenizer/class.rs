//! What a byte may be in a tag, as bits, by a table of all 256.

use super::find::count;

/// A set of the bits below.
pub(super) type Class = u8;

/// White space as the tokenizer knows it: tab, line feed, form feed, space. A carriage return came in by a reference only, so
/// it is never seen here.
pub(super) const WHITE_SPACE: Class = 1;
/// Ends the name of a tag (13.2.5.8).
pub(super) const ENDS_TAG_NAME: Class = 1 << 1;
/// Ends the name of an attribute (13.2.5.33).
pub(super) const ENDS_ATTRIBUTE_NAME: Class = 1 << 2;
/// Ends a value without quotes (13.2.5.38).
pub(super) const ENDS_VALUE: Class = 1 << 3;
/// Is written otherwise in a name: upper case and U+0000.
pub(super) const CHANGES_IN_NAME: Class = 1 << 4;
/// Is written otherwise in a value: `&` and U+0000.
pub(super) const CHANGES_IN_VALUE: Class = 1 << 5;
/// ASCII letter.
pub(super) const LETTER: Class = 1 << 6;
/// ASCII digit.
pub(super) const DIGIT: Class = 1 << 7;

static CLASSES: [Class; 256] = classes();

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn classes() -> [Class; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'\t' | b'\n' | b'\x0c' | b' ' => WHITE_SPACE | ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE,
            b'/' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME,
            b'>' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | ENDS_VALUE,
            b'=' => ENDS_ATTRIBUTE_NAME,
            b'&' => CHANGES_IN_VALUE,
            0 => CHANGES_IN_NAME | CHANGES_IN_VALUE,
            b'A'..=b'Z' => LETTER | CHANGES_IN_NAME,
            b'a'..=b'z' => LETTER,
            b'0'..=b'9' => DIGIT,
            _ => 0,
        };
        if byte == u8::MAX {
            return classes;
        }
        byte += 1;
    }
}

#[inline]
pub(super) fn class(byte: u8) -> Class {
    // Never out of the table: the check is left out by the compiler.
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

#[inline]
pub(super) fn is_letter(byte: u8) -> bool {
    class(byte) & LETTER != 0
}

#[inline]
pub(super) fn is_white_space(byte: u8) -> bool {
    class(byte) & WHITE_SPACE != 0
}

#[inline]
pub(super) fn is_alphanumeric(byte: u8) -> bool {
    class(byte) & (LETTER | DIGIT) != 0
}

/// How many bytes come before the first one of `ends`, and what they are in all.
#[inline]
pub(super) fn scan(bytes: &[u8], ends: Class) -> (usize, Class) {
    let mut all = 0;
    for (len, byte) in bytes.iter().enumerate() {
        let class = class(*byte);
        if class & ends != 0 {
            count(len);
            return (len, all);
        }
        all |= class;
    }
    count(bytes.len());
    (bytes.len(), all)
}

/// How many of the eight bytes of a number, the lowest first, come before the first that is no lower-case letter.
#[inline]
pub(super) const fn letters(word: u64) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let low = word & !HIGH;
    // The highest bit of each byte: whether it is at least `a`, whether it is beyond `z`.
    let from_a = low + ONES * (0x80 - b'a' as u64);
    let beyond_z = low + ONES * (0x7f - b'z' as u64);
    ((!from_a | beyond_z | word) & HIGH).trailing_zeros() as usize / 8
}

/// What is left behind white space.
#[inline]
pub(super) fn skip_white_space(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, behind @ ..] = rest
        && is_white_space(*first)
    {
        rest = behind;
    }
    count(bytes.len() - rest.len());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_end_at_any_other_byte() {
        for other in 0..=u8::MAX {
            for place in 0..8 {
                for fill in *b"az" {
                    let mut bytes = [fill; 8];
                    bytes.iter_mut().skip(place).for_each(|byte| *byte = other);
                    let expected = if other.is_ascii_lowercase() { 8 } else { place };
                    assert_eq!(letters(u64::from_le_bytes(bytes)), expected, "{bytes:?}");
                }
            }
        }
    }
}
