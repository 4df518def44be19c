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
    counted(text, memchr3(a, b, c, text))
}

/// The first place of a byte that `is_it` is true of.
#[inline]
pub(super) fn find_where(byte: u8, text: &[u8], is_it: impl FnMut(&usize) -> bool) -> Option<usize> {
    counted(text, memchr_iter(byte, text).find(is_it))
}

pub(super) fn find_text(sought: &[u8], text: &[u8]) -> Option<usize> {
    counted(text, memmem::find(text, sought))
}
