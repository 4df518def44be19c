//! What a page may cost, and how it says that it would have cost more.
//!
//! The standard bounds nothing: half a megabyte of `<div>` keeps other parsers busy for seconds. A page that meets a
//! bound keeps what was parsed up to there.

/// Bounds of one parse. The default suits pages from the open web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Elements open at once; deeper ones become children of the parent of the deepest, as in Blink. 512.
    pub depth: usize,
    /// Steps through lists of open elements for each byte of the source; real pages need 0.11. 16.
    pub steps_per_byte: u64,
    /// Steps every page may take. 100,000.
    pub steps: u64,
    /// Nodes; at most 2³¹. 8 million.
    pub nodes: usize,
    /// Attributes of all elements; at most 2³¹. 8 million.
    pub attributes: usize,
    /// Attributes of one element; further ones are left out. 4,096.
    pub attributes_per_element: usize,
    /// Elements that the rules make again from an open one, as for each paragraph in an unclosed `<b>`, for each 32 bytes
    /// of the source, beside 1,000 of them. 1.
    pub repeats_per_32_bytes: u64,
    /// Bytes of memory that a page takes while it is parsed, for each byte of the source; 256 KiB always. Real pages need 3; what
    /// needs more than 8 is mostly tags of one letter with one letter between them. 8.
    pub memory_per_byte: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 512,
            steps_per_byte: 16,
            steps: 100_000,
            nodes: 8_000_000,
            attributes: 8_000_000,
            attributes_per_element: 4_096,
            repeats_per_32_bytes: 1,
            memory_per_byte: 8,
        }
    }
}

impl Limits {
    /// As the standard says: no bounds but those of the engine's numbers. For tests; hostile pages take for ever.
    pub const NONE: Self = Self {
        depth: usize::MAX,
        steps_per_byte: u64::MAX,
        steps: u64::MAX,
        nodes: 1 << 31,
        attributes: 1 << 31,
        attributes_per_element: usize::MAX,
        repeats_per_32_bytes: u64::MAX,
        memory_per_byte: usize::MAX,
    };

    /// Steps a source of so many bytes may take.
    pub(crate) fn steps_for(&self, bytes: usize) -> u64 {
        self.steps.saturating_add(self.steps_per_byte.saturating_mul(bytes as u64))
    }

    /// Elements the rules may make again for a source of so many bytes.
    pub(crate) fn repeats_for(&self, bytes: usize) -> u64 {
        self.repeats_per_32_bytes.saturating_mul(bytes as u64 / 32).saturating_add(1_000)
    }

    /// Bytes of memory a source of so many bytes may take.
    pub(crate) fn memory_for(&self, bytes: usize) -> usize {
        self.memory_per_byte.saturating_mul(bytes).max(256 * 1024)
    }
}

/// Steps a selection may take on any page, in CSS and in XPath; a step is a few nanoseconds.
pub(crate) const SELECTION_STEPS: u64 = 150_000;

/// Steps it may take for each byte of the page besides; real pages need a tenth of it.
pub(crate) const SELECTION_STEPS_PER_BYTE: u64 = 20;

/// Which bounds a page has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exceeded {
    /// Elements were nested deeper than [`Limits::depth`]: they are attached higher up.
    pub depth: bool,
    /// [`Limits::steps`]: the page ends where it was met.
    pub steps: bool,
    /// [`Limits::nodes`], or repeated elements: the page ends where it was met.
    pub nodes: bool,
    /// [`Limits::memory_per_byte`]: the page ends where it was met.
    pub memory: bool,
    /// Attributes were left out, of one element or of all from some place on.
    pub attributes: bool,
    /// The source is longer than 2 GiB, or what had to be written anew is: the rest was not read.
    pub length: bool,
}

impl Exceeded {
    /// Whether any was met.
    #[must_use]
    pub fn any(self) -> bool {
        self != Self::default()
    }

    /// Whether a part of the source was not parsed.
    #[must_use]
    pub fn is_cut(self) -> bool {
        self.steps || self.nodes || self.memory || self.length
    }
}
