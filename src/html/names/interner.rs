//! From text to id. Texts up to 16 bytes are their own key of two words; longer ones are compared by their bytes too.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;

use super::NameId;
use super::table::{COUNT, TEXTS};
use crate::html::span::Span;

/// Places of the table of known names; a power of two.
const PLACES: usize = 2048;
/// The most names of one page that have no fixed id; further ones are all the last of them, and the page is marked.
pub(crate) const MOST_NAMES: usize = 1 << 23;

/// A name in two words and its length: the whole name up to 16 bytes, a digest beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    head: u64,
    tail: u64,
    len: u32,
}

#[inline]
fn word(bytes: Option<&[u8; 8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Key {
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "spans have at most 31 bits")]
    fn of(text: &[u8], seed: Seed) -> Self {
        let len = text.len();
        let (head, tail) = if len > 16 {
            (digest(text, seed), word(text.last_chunk()))
        } else if len >= 8 {
            (word(text.first_chunk()), word(text.last_chunk()))
        } else if len >= 4 {
            let four = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
            (four(text.first_chunk()), four(text.last_chunk()))
        } else {
            let at = |place: usize| u64::from(text.get(place).copied().unwrap_or(0));
            (at(0) | at(len / 2) << 8, at(len.saturating_sub(1)))
        };
        Self { head, tail, len: len as u32 }
    }

    /// A folded product with secret words; knowing the names does not tell which of them collide.
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        let product = u128::from(self.head ^ seed.0) * u128::from(self.tail ^ seed.1 ^ (u64::from(self.len) << 56));
        #[allow(clippy::cast_possible_truncation, reason = "the low half")]
        let low = product as u64;
        low ^ (product >> 64) as u64
    }
}

/// All of a long text in a word: names that differ only in their middle must not share a place.
fn digest(text: &[u8], seed: Seed) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    words.iter().map(|bytes| u64::from_le_bytes(*bytes)).chain([last]).fold(seed.1, |digest, word| {
        let product = u128::from(digest ^ word) * u128::from(seed.0 | 1);
        #[allow(clippy::cast_possible_truncation, reason = "the low half")]
        let low = product as u64;
        low ^ (product >> 64) as u64 ^ word.rotate_left(32)
    })
}

/// The secret words of this process.
#[derive(Clone, Copy, Debug)]
struct Seed(u64, u64);

/// The known names, hashed by this process's seed.
struct Known {
    seed: Seed,
    /// Id + 1, or 0.
    places: Box<[u16; PLACES]>,
    keys: Box<[Key; COUNT]>,
}

fn known_names() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let state = RandomState::new();
        let seed = Seed(state.hash_one(1_u8), state.hash_one(2_u8));
        let mut places = Box::new([0_u16; PLACES]);
        let mut keys = Box::new([Key::default(); COUNT]);
        for ((id, text), key) in (1_u16..).zip(TEXTS.iter()).zip(keys.iter_mut()) {
            *key = Key::of(text.as_bytes(), seed);
            let mut place = place_of(key.hash(seed), PLACES);
            while places.get(place).is_some_and(|id| *id != 0) {
                place = (place + 1) & (PLACES - 1);
            }
            if let Some(free) = places.get_mut(place) {
                *free = id;
            }
        }
        Known { seed, places, keys }
    })
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "masked")]
fn place_of(hash: u64, places: usize) -> usize {
    hash as usize & (places - 1)
}

impl Known {
    #[inline]
    fn find(&self, key: Key, hash: u64) -> Option<NameId> {
        let mut place = place_of(hash, PLACES);
        loop {
            let id = self.places.get(place).copied().unwrap_or(0);
            if id == 0 {
                return None;
            }
            if self.keys.get(usize::from(id) - 1) == Some(&key) {
                return Some(NameId(u32::from(id) - 1));
            }
            place = (place + 1) & (PLACES - 1);
        }
    }
}

pub(super) fn known(text: &[u8]) -> Option<NameId> {
    if text.len() > 16 || text.is_empty() {
        return None;
    }
    let known = known_names();
    let key = Key::of(text, known.seed);
    known.find(key, key.hash(known.seed))
}

/// The names of one page that have no fixed id.
pub(crate) struct Interner {
    known: &'static Known,
    spans: Vec<Span>,
    keys: Vec<Key>,
    /// Place in `spans` + 1, or 0; empty or a power of two long, at most half full.
    places: Vec<u32>,
}

impl std::fmt::Debug for Interner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interner").field("names", &self.spans.len()).finish_non_exhaustive()
    }
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self { known: known_names(), spans: Vec::new(), keys: Vec::new(), places: Vec::new() }
    }

    /// The id of the name whose bytes are `text`, which lies at `span`. `bytes` gives what lies at another span.
    #[inline]
    pub(crate) fn intern<'b>(&mut self, text: &[u8], span: Span, bytes: impl Fn(Span) -> &'b [u8]) -> NameId {
        let key = Key::of(text, self.known.seed);
        let hash = key.hash(self.known.seed);
        match self.known.find(key, hash) {
            // A name of more than 16 bytes may have the key of a known one; none of those is as long.
            Some(id) if text.len() <= 16 => id,
            _ => self.intern_unknown(key, hash, text, span, bytes),
        }
    }

    #[inline(never)]
    #[allow(clippy::cast_possible_truncation, reason = "at most MOST_NAMES")]
    fn intern_unknown<'b>(&mut self, key: Key, hash: u64, text: &[u8], span: Span, bytes: impl Fn(Span) -> &'b [u8]) -> NameId {
        if self.places.len() < self.spans.len() * 2 + 2 {
            self.grow();
        }
        let places = self.places.len();
        let mut place = place_of(hash >> 7, places);
        loop {
            let id = self.places.get(place).copied().unwrap_or(0);
            if id == 0 {
                break;
            }
            let index = id as usize - 1;
            let is_same_key = self.keys.get(index) == Some(&key);
            if is_same_key && (text.len() <= 16 || self.spans.get(index).is_some_and(|other| bytes(*other) == text)) {
                return NameId(COUNT as u32 + id - 1);
            }
            place = (place + 1) & (places - 1);
        }
        if self.spans.len() >= MOST_NAMES {
            return NameId((COUNT + MOST_NAMES - 1) as u32);
        }
        self.spans.push(span);
        self.keys.push(key);
        if let Some(free) = self.places.get_mut(place) {
            *free = self.spans.len() as u32;
        }
        NameId((COUNT + self.spans.len() - 1) as u32)
    }

    #[allow(clippy::cast_possible_truncation, reason = "at most MOST_NAMES")]
    fn grow(&mut self) {
        let places = (self.places.len() * 2).max(64);
        let mut grown = vec![0_u32; places];
        for (id, key) in (1_u32..).zip(&self.keys) {
            let mut place = place_of(key.hash(self.known.seed) >> 7, places);
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
        let key = Key::of(text, self.known.seed);
        let hash = key.hash(self.known.seed);
        if text.len() <= 16
            && let Some(id) = self.known.find(key, hash)
        {
            return Some(id);
        }
        let places = self.places.len();
        if places == 0 {
            return None;
        }
        let mut place = place_of(hash >> 7, places);
        loop {
            let id = self.places.get(place).copied().unwrap_or(0);
            if id == 0 {
                return None;
            }
            let index = id as usize - 1;
            if self.keys.get(index) == Some(&key) && self.spans.get(index).is_some_and(|other| bytes(*other) == text) {
                #[allow(clippy::cast_possible_truncation, reason = "a small constant")]
                return Some(NameId(COUNT as u32 + id - 1));
            }
            place = (place + 1) & (places - 1);
        }
    }

    /// Where the text of an unknown name lies.
    pub(crate) fn span(&self, name: NameId) -> Option<Span> {
        self.spans.get((name.0 as usize).checked_sub(COUNT)?).copied()
    }

    /// How many names have an id, the known ones included.
    pub(crate) fn len(&self) -> usize {
        COUNT + self.spans.len()
    }

    /// Bytes of memory of the names that have no fixed id.
    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        let entries = self.spans.capacity() * size_of::<Span>() + self.keys.capacity() * size_of::<Key>();
        entries + self.places.capacity() * size_of::<u32>()
    }

    /// Whether the page has more names than have an id.
    pub(crate) fn is_full(&self) -> bool {
        self.spans.len() >= MOST_NAMES
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn known_names_are_found_by_their_text() {
        for (id, text) in (0_u32..).zip(TEXTS) {
            assert!(!text.is_empty() && text.len() <= 16, "{text}");
            assert_eq!(known(text.as_bytes()), Some(NameId(id)), "{text}");
        }
        assert_eq!(known(b"DIV"), None);
        assert_eq!(known(b""), None);
    }

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
                ids.push(interner.intern(text.as_bytes(), span, bytes));
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
