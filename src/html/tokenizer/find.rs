//! Searches for bytes that end a run. Under test they count the bytes they look at: a page must not have them look at the same
//! ones again and again.

use memchr::{memchr, memchr_iter, memchr2, memchr3, memmem};

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many bytes this thread has looked at since it was last asked.
#[cfg(test)]
pub(crate) fn looked_at() -> usize {
    LOOKED_AT.take()
}

/// Counts bytes that were looked at.
#[inline]
pub(super) fn count(bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

#[inline]
fn counted(text: &[u8], found: Option<usize>) -> Option<usize> {
    count(found.map_or(text.len(), |place| place + 1));
    found
}

#[inline]
pub(super) fn find(byte: u8, text: &[u8]) -> Option<usize> {
    counted(text, memchr(byte, text))
}

/// The first of either byte.
#[inline]
pub(super) fn find_of_2(a: u8, b: u8, text: &[u8]) -> Option<usize> {
    counted(text, memchr2(a, b, text))
}

/// The first of any of three bytes.
#[inline]
pub(super) fn find_of_3(a: u8, b: u8, c: u8, text: &[u8]) -> Option<usize> {
    counted(text, find_near(a, b, c, text).unwrap_or_else(|| memchr3(a, b, c, text)))
}

/// How far a search looks by itself: most texts and values are short, and to begin a search of long ones takes longer than that.
const NEAR: usize = 16;

/// The same, among the first bytes of a text; `None` if it is to be searched for further on.
#[inline]
fn find_near(a: u8, b: u8, c: u8, text: &[u8]) -> Option<Option<usize>> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let near = text.first_chunk::<NEAR>()?;
    for (place, bytes) in near.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        // The lowest bit set is that of a zero; those above it need not be.
        let found = [a, b, c].map(|byte| zeros(word ^ (ONES * u64::from(byte)))).iter().fold(0, |all, zeros| all | zeros);
        if found != 0 {
            return Some(Some(place * 8 + found.trailing_zeros() as usize / 8));
        }
    }
    None
}

/// The first place of a byte that `is_it` is true of.
#[inline]
pub(super) fn find_where(byte: u8, text: &[u8], is_it: impl FnMut(&usize) -> bool) -> Option<usize> {
    counted(text, memchr_iter(byte, text).find(is_it))
}

pub(super) fn find_text(sought: &[u8], text: &[u8]) -> Option<usize> {
    counted(text, memmem::find(text, sought))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_three_bytes_is_found_wherever_it_is() {
        let others = [b'<' ^ 1, b'&' ^ 1, 1, 0x80, 0xff, b'<' | 0x80, b'a'];
        for len in 0..40 {
            for fill in others {
                let plain = vec![fill; len];
                assert_eq!(find_of_3(b'<', b'&', 0, &plain), None, "{plain:?}");
                for at in 0..len {
                    for sought in [b'<', b'&', 0] {
                        let mut text = plain.clone();
                        text.iter_mut().skip(at).for_each(|byte| *byte = sought);
                        assert_eq!(find_of_3(b'<', b'&', 0, &text), Some(at), "{text:?}");
                        text.iter_mut().skip(at + 1).for_each(|byte| *byte ^= 1);
                        assert_eq!(find_of_3(b'<', b'&', 0, &text), Some(at), "{text:?}");
                    }
                }
            }
        }
    }
}
