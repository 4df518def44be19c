//! From text to id. Names without a fixed id are kept by a seeded hash: a page cannot be made whose names fall on one place.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;

use super::table::COUNT;
use super::{NameId, fixed};
use crate::html::span::Span;

/// The most names of one page that have no fixed id; further ones are all the last of them, and the page is marked.
pub(crate) const MOST_NAMES: usize = 1 << 23;

/// The secret words of this process.
#[derive(Clone, Copy, Debug)]
struct Seed(u64, u64);

impl Seed {
    fn of_process() -> Self {
        static SEED: OnceLock<Seed> = OnceLock::new();
        *SEED.get_or_init(|| {
            let state = RandomState::new();
            Self(state.hash_one(1_u8), state.hash_one(2_u8))
        })
    }

    /// All of a text in a word, by folded products with the secret words; knowing the names does not tell which of them collide.
    #[allow(clippy::cast_possible_truncation, reason = "halves of a product, and a part of the hash")]
    fn hash(self, text: &[u8]) -> u32 {
        let (words, rest) = text.as_chunks::<8>();
        let last = rest.iter().fold(text.len() as u64, |word, byte| word << 8 | u64::from(*byte));
        let hash = words.iter().map(|bytes| u64::from_le_bytes(*bytes)).chain([last]).fold(self.1, |hash, word| {
            let product = u128::from(hash ^ word) * u128::from(self.0 | 1);
            product as u64 ^ (product >> 64) as u64 ^ word.rotate_left(32)
        });
        (hash ^ hash >> 32) as u32
    }
}

/// A name: where it lies, and its hash.
#[derive(Clone, Copy, Debug)]
struct Entry {
    span: Span,
    hash: u32,
}

/// The names of one page that have no fixed id.
pub(crate) struct Interner {
    seed: Seed,
    entries: Vec<Entry>,
    /// Place in `entries` + 1, or 0; empty or a power of two long, at most two thirds full.
    places: Vec<u32>,
}

impl std::fmt::Debug for Interner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interner").field("names", &self.entries.len()).finish_non_exhaustive()
    }
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self { seed: Seed::of_process(), entries: Vec::new(), places: Vec::new() }
    }

    /// The id of the name at `span`; `from` is what its buffer has from there on. `bytes` gives what lies at another span.
    #[inline]
    pub(crate) fn intern<'b>(&mut self, from: &[u8], span: Span, bytes: impl Fn(Span) -> &'b [u8]) -> NameId {
        match fixed::find(from, span.len()) {
            Some(id) => id,
            None => self.intern_unknown(from.get(..span.len()).unwrap_or_default(), span, bytes),
        }
    }

    #[inline(never)]
    #[allow(clippy::cast_possible_truncation, reason = "at most MOST_NAMES")]
    fn intern_unknown<'b>(&mut self, text: &[u8], span: Span, bytes: impl Fn(Span) -> &'b [u8]) -> NameId {
        if self.places.len() * 2 <= self.entries.len() * 3 {
            self.grow();
        }
        let hash = self.seed.hash(text);
        let place = match self.seek(text, hash, bytes) {
            Ok(name) => return name,
            Err(place) => place,
        };
        if self.entries.len() >= MOST_NAMES {
            return NameId((COUNT + MOST_NAMES - 1) as u32);
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 4 + 32);
        }
        self.entries.push(Entry { span, hash });
        if let Some(free) = self.places.get_mut(place) {
            *free = self.entries.len() as u32;
        }
        NameId((COUNT + self.entries.len() - 1) as u32)
    }

    /// The id of a name, or the place it would have.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "a small constant")]
    fn seek<'b>(&self, text: &[u8], hash: u32, bytes: impl Fn(Span) -> &'b [u8]) -> Result<NameId, usize> {
        let last = self.places.len().wrapping_sub(1);
        let mut place = hash as usize & last;
        loop {
            let id = self.places.get(place).copied().unwrap_or(0);
            if id == 0 {
                return Err(place);
            }
            let entry = self.entries.get(id as usize - 1);
            if entry.is_some_and(|entry| entry.hash == hash && bytes(entry.span) == text) {
                return Ok(NameId(COUNT as u32 + id - 1));
            }
            place = (place + 1) & last;
        }
    }

    /// Twice as many places.
    #[allow(clippy::cast_possible_truncation, reason = "at most MOST_NAMES")]
    fn grow(&mut self) {
        let places = (self.places.len() * 2).max(64);
        self.places = Vec::new();
        let mut grown = vec![0_u32; places];
        for (id, entry) in (1_u32..).zip(&self.entries) {
            let mut place = entry.hash as usize & (places - 1);
            while grown.get(place).is_some_and(|id| *id != 0) {
                place = (place + 1) & (places - 1);
            }
            if let Some(free) = grown.get_mut(place) {
                *free = id;
            }
        }
        self.places = grown;
    }

    /// The id of a name, if the page has it.
    pub(crate) fn find<'b>(&self, text: &[u8], bytes: impl Fn(Span) -> &'b [u8]) -> Option<NameId> {
        fixed::find(text, text.len()).or_else(|| self.seek(text, self.seed.hash(text), bytes).ok())
    }

    /// Where the text of an unknown name lies.
    pub(crate) fn span(&self, name: NameId) -> Option<Span> {
        Some(self.entries.get((name.0 as usize).checked_sub(COUNT)?)?.span)
    }

    /// How many names have an id, the known ones included.
    pub(crate) fn len(&self) -> usize {
        COUNT + self.entries.len()
    }

    /// Bytes of memory of the names that have no fixed id.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.places.capacity() * size_of::<u32>()
    }

    /// Whether the page has more names than have an id.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= MOST_NAMES
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_is_one_id_however_often_it_comes() {
        let texts: Vec<String> =
            (0..5_000).flat_map(|n| [format!("z{n}"), format!("a-name-of-more-than-sixteen-{n}-bytes")]).collect();
        let all: Vec<u8> = texts.concat().into_bytes();
        let bytes = |span: Span| all.get(span.start()..span.end()).unwrap();
        let mut interner = Interner::new();
        let mut ids = Vec::new();
        for _ in 0..2 {
            let mut at = 0;
            for text in &texts {
                let span = Span::of_source(at, at + text.len());
                ids.push(interner.intern(all.get(at..).unwrap(), span, bytes));
                at = span.end();
            }
        }
        let (first, second) = ids.split_at(texts.len());
        assert_eq!(first, second);
        assert_eq!(interner.len(), COUNT + texts.len());
        for (text, id) in texts.iter().zip(first) {
            assert_eq!(interner.find(text.as_bytes(), bytes), Some(*id));
            assert_eq!(bytes(interner.span(*id).unwrap()), text.as_bytes());
        }
        assert_eq!(interner.find(b"nowhere", bytes), None);
    }
}
