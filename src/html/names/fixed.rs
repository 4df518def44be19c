//! The names with a fixed id, found by their text: tables made by the compiler. A page cannot change them, so they need no seed;
//! the longest search in them is short, whatever is asked for.

use super::NameId;
use super::table::{COUNT, TEXTS};

/// The longest name that is in the table, in bytes.
pub(super) const LONGEST: usize = 16;
/// Places for names of at most eight bytes; a power of two.
const PLACES: usize = 1024;
/// Places for longer ones; a power of two.
const PLACES_OF_LONG: usize = 256;
/// Id of a place that is free.
const FREE: u16 = u16::MAX;

/// A name of nine to sixteen bytes: its first eight bytes, its last eight, and its length.
#[derive(Clone, Copy, Debug)]
struct Long {
    head: u64,
    tail: u64,
    len: u16,
    id: u16,
}

/// A name of one to eight bytes, by its bytes. Names have no NUL, so that its length is known with them.
#[derive(Clone, Copy, Debug)]
struct Short {
    bytes: u64,
    id: u16,
}

static SHORT: [Short; PLACES] = short_names();
static LONG: [Long; PLACES_OF_LONG] = long_names();

/// Eight bytes of a text from a place on, or as many as there are, as a number that begins with the last of them.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn word(text: &[u8], from: usize) -> u64 {
    let mut word = 0;
    let mut at = from;
    while at < text.len() && at < from + 8 {
        word |= (text[at] as u64) << (8 * (at - from));
        at += 1;
    }
    word
}

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "evaluated by the compiler")]
const fn short_names() -> [Short; PLACES] {
    let mut table = [Short { bytes: 0, id: FREE }; PLACES];
    let mut id = 0;
    while id < COUNT {
        let text = TEXTS[id].as_bytes();
        if text.len() <= 8 {
            let bytes = word(text, 0);
            let mut place = place_of(bytes);
            while table[place].id != FREE {
                place = (place + 1) % PLACES;
            }
            table[place] = Short { bytes, id: id as u16 };
        }
        id += 1;
    }
    table
}

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "evaluated by the compiler")]
const fn long_names() -> [Long; PLACES_OF_LONG] {
    let mut table = [Long { head: 0, tail: 0, len: 0, id: FREE }; PLACES_OF_LONG];
    let mut id = 0;
    while id < COUNT {
        let text = TEXTS[id].as_bytes();
        if text.len() > 8 {
            let (head, tail) = (word(text, 0), word(text, text.len() - 8));
            let mut place = place_of_long(head, tail);
            while table[place].id != FREE {
                place = (place + 1) % PLACES_OF_LONG;
            }
            table[place] = Long { head, tail, len: text.len() as u16, id: id as u16 };
        }
        id += 1;
    }
    table
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "ten bits are left")]
const fn place_of(bytes: u64) -> usize {
    (bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

#[inline]
const fn place_of_long(head: u64, tail: u64) -> usize {
    place_of(head ^ tail.rotate_left(29)) % PLACES_OF_LONG
}

/// The id of the name in the first `len` bytes of `from`, if it is a fixed one. What is behind them is loaded with them where
/// there is enough of it: that saves asking how long the name is.
#[inline]
pub(super) fn find(from: &[u8], len: usize) -> Option<NameId> {
    if len.wrapping_sub(1) >= 8 {
        return find_long(from.get(..len)?);
    }
    let bytes = match from.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes) & (u64::MAX >> (64 - 8 * len)),
        None => from.get(..len)?.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    // A NUL at the end does not show in the number: no name has one.
    find_word(bytes).filter(|_| bytes >> (8 * (len - 1)) != 0)
}

/// The id of a name of at most eight bytes: as a number that begins with its last byte.
#[inline]
pub(super) fn find_word(bytes: u64) -> Option<NameId> {
    let mut place = place_of(bytes);
    loop {
        let short = SHORT.get(place % PLACES)?;
        if short.bytes == bytes {
            return (short.id != FREE).then_some(NameId(u32::from(short.id)));
        }
        if short.id == FREE {
            return None;
        }
        place += 1;
    }
}

#[inline(never)]
fn find_long(text: &[u8]) -> Option<NameId> {
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let (head, tail) = (u64::from_le_bytes(*text.first_chunk()?), u64::from_le_bytes(*text.last_chunk()?));
    let mut place = place_of_long(head, tail);
    loop {
        let long = LONG.get(place % PLACES_OF_LONG)?;
        if long.id == FREE {
            return None;
        }
        if long.head == head && long.tail == tail && usize::from(long.len) == text.len() {
            return Some(NameId(u32::from(long.id)));
        }
        place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_and_without_text_behind_them() {
        for (id, text) in (0_u32..).zip(TEXTS) {
            assert!(!text.is_empty() && text.len() <= LONGEST, "{text}");
            for behind in ["", "=", " class=\"x\">"] {
                let text_and_more = format!("{text}{behind}");
                assert_eq!(find(text_and_more.as_bytes(), text.len()), Some(NameId(id)), "{text_and_more}");
            }
            assert_ne!(find(format!("{text}\0").as_bytes(), text.len() + 1), Some(NameId(id)));
        }
        for text in ["", "DIV", "\0", "xlink:hre", "aria-describedbyy", "bbbbbbbbb"] {
            assert_eq!(find(text.as_bytes(), text.len()), None, "{text}");
        }
    }

    #[test]
    fn no_search_is_long() {
        let longest_run = |ids: Vec<u16>| {
            let mut longest = 0;
            let mut run = 0;
            for id in ids.iter().chain(&ids) {
                run = if *id == FREE { 0 } else { run + 1 };
                longest = longest.max(run);
            }
            longest
        };
        let short = longest_run(SHORT.iter().map(|short| short.id).collect());
        let long = longest_run(LONG.iter().map(|long| long.id).collect());
        let longest = short.max(long);
        assert!(longest <= 12, "{longest}");
    }
}
