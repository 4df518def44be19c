//! Names of elements and attributes, as numbers: the same name of one page is the same number.
//!
//! Known names have a fixed id ([`known`]); others get the next one in the order they come. Their hashing is seeded once
//! a process: a page cannot be made whose names all fall on one place.

mod category;
mod fixed;
mod interner;
mod table;

pub(crate) use category::*;
pub(crate) use interner::Interner;

/// The names with a fixed id.
pub(crate) mod known {
    pub(crate) use super::table::*;
}

/// A name of a page. Ids of different pages are comparable only if [`NameId::is_known`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NameId(pub(super) u32);

impl NameId {
    /// Whether the id is the same on every page.
    #[inline]
    pub(crate) const fn is_known(self) -> bool {
        (self.0 as usize) < table::COUNT
    }

    /// The id as a number below 2²⁴.
    #[inline]
    pub(crate) const fn to_bits(self) -> u32 {
        self.0
    }

    /// The fixed id of a name, if it has one. Exact, case included.
    pub(crate) fn of_known(text: &str) -> Option<Self> {
        fixed::find(text.as_bytes(), text.len())
    }

    /// The fixed id of a name of at most eight bytes, given as a little-endian number, if it has one.
    #[inline]
    pub(crate) fn of_known_word(bytes: u64) -> Option<Self> {
        fixed::find_word(bytes)
    }

    /// The text of a name with a fixed id.
    pub(crate) fn known_text(self) -> Option<&'static str> {
        table::TEXTS.get(self.0 as usize).copied()
    }
}
