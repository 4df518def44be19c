//! Writing a piece of text that does not stand in the source as it is: into the buffer beside it.
//!
//! What is written is at most three times what was read (U+0000 becomes U+FFFD), and never more than spans can tell.

use super::find::find;
use crate::html::span::{MOST_BYTES, Span};

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// A piece being written at the end of the side buffer.
#[derive(Debug)]
pub(super) struct Side<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
    most: usize,
    is_cut: bool,
}

/// A piece that was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) span: Span,
    /// Whether a part of it had no room.
    pub(super) is_cut: bool,
}

impl<'a> Side<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self::with_room(bytes, MOST_BYTES)
    }

    /// A piece in a buffer of at most so many bytes.
    #[inline]
    fn with_room(bytes: &'a mut Vec<u8>, most: usize) -> Self {
        let start = bytes.len();
        Self { bytes, start, most, is_cut: false }
    }

    /// Adds bytes that start and end between characters.
    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if self.is_cut || self.bytes.len() + bytes.len() > self.most {
            self.is_cut = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(super) fn put_char(&mut self, character: char) {
        self.put(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    pub(super) fn put_replacement(&mut self) {
        self.put(REPLACEMENT);
    }

    /// Adds a text with U+FFFD for U+0000.
    pub(super) fn put_without_nulls(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some((before, [_, behind @ ..])) = find(0, rest).and_then(|null| rest.split_at_checked(null)) {
            self.put(before);
            self.put_replacement();
            rest = behind;
        }
        self.put(rest);
    }

    /// Adds a name: in lower case, U+FFFD for U+0000.
    pub(super) fn put_name(&mut self, name: &[u8]) {
        let start = self.bytes.len();
        self.put_without_nulls(name);
        if let Some(added) = self.bytes.get_mut(start..) {
            added.make_ascii_lowercase();
        }
    }

    #[inline]
    pub(super) fn end(self) -> Written {
        Written { span: Span::of_side(self.start, self.bytes.len()), is_cut: self.is_cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_left_out_with_all_behind_it() {
        let mut bytes = b"<>".to_vec();
        let mut side = Side::with_room(&mut bytes, 7);
        side.put(b"abc");
        side.put(b"def");
        side.put(b"g");
        let written = side.end();
        assert!(written.is_cut);
        assert_eq!((written.span.start(), written.span.end()), (2, 5));
        assert_eq!(bytes, b"<>abc");
    }

    #[test]
    fn names_are_written_in_lower_case() {
        let mut bytes = Vec::new();
        let mut side = Side::new(&mut bytes);
        side.put_name("DiV\0\u{c9}".as_bytes());
        assert!(!side.end().is_cut);
        assert_eq!(bytes, "div\u{fffd}\u{c9}".as_bytes());
    }
}
