//! Spans: where the bytes of a text or a value lie, in the source of a page or in the buffer beside it.
//!
//! A span owns nothing and is only meaningful for the arena it was made by.

/// The bit of `start` that says "in the side buffer".
const SIDE: u32 = 1 << 31;
/// The most bytes of a source, and of a side buffer: positions are 31 bits.
pub(crate) const MOST_BYTES: usize = (SIDE - 1) as usize;

/// A range of bytes of the source or of the side buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

#[allow(clippy::cast_possible_truncation, reason = "positions are at most MOST_BYTES, which the parser keeps to")]
impl Span {
    /// No bytes.
    pub(crate) const EMPTY: Self = Self { start: 0, len: 0 };

    /// Bytes `start..end` of the source.
    #[inline]
    pub(crate) const fn of_source(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: end.saturating_sub(start) as u32 }
    }

    /// Bytes `start..end` of the side buffer.
    #[inline]
    pub(crate) const fn of_side(start: usize, end: usize) -> Self {
        Self { start: start as u32 | SIDE, len: end.saturating_sub(start) as u32 }
    }

    #[inline]
    pub(super) const fn from_raw(start: u32, len: u32) -> Self {
        Self { start, len }
    }

    #[inline]
    pub(super) const fn raw(self) -> (u32, u32) {
        (self.start, self.len)
    }

    #[inline]
    pub(crate) const fn is_side(self) -> bool {
        self.start & SIDE != 0
    }

    /// Where it starts in its buffer.
    #[inline]
    pub(crate) const fn start(self) -> usize {
        (self.start & !SIDE) as usize
    }

    /// Where it ends in its buffer.
    #[inline]
    pub(crate) const fn end(self) -> usize {
        self.start() + self.len as usize
    }

    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// What is left behind the first `bytes` bytes.
    #[inline]
    pub(crate) const fn after(self, bytes: usize) -> Self {
        let bytes = if bytes as u32 > self.len { self.len } else { bytes as u32 };
        Self { start: self.start + bytes, len: self.len - bytes }
    }

    /// The first `bytes` bytes.
    #[inline]
    pub(crate) const fn first(self, bytes: usize) -> Self {
        Self { start: self.start, len: if bytes as u32 > self.len { self.len } else { bytes as u32 } }
    }
}
