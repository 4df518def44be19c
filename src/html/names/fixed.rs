//! The names with a fixed id, found by their text: a table made by the compiler. A page cannot change it, so it needs no seed;
//! the longest search in it is short, whatever is asked for.

use super::NameId;
use super::table::{COUNT, TEXTS};

/// The longest name that is in the table, in bytes.
pub(super) const LONGEST: usize = 16;
/// Places of the table; a power of two.
const PLACES: usize = 1024;
/// Id of a place that is free.
const FREE: u16 = u16::MAX;

/// A name of at most 16 bytes: its first eight bytes, its last eight if it is longer, and its length.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    head: u64,
    tail: u64,
    len: u16,
    id: u16,
}

static FIXED: [Fixed; PLACES] = table();

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "evaluated by the compiler")]
const fn table() -> [Fixed; PLACES] {
    let mut table = [Fixed { head: 0, tail: 0, len: 0, id: FREE }; PLACES];
    let mut id = 0;
    while id < COUNT {
        let text = TEXTS[id].as_bytes();
        let (mut head, mut tail) = (0, 0);
        let mut at = 0;
        while at < text.len() {
            if at < 8 {
                head |= (text[at] as u64) << (8 * at);
            }
            if text.len() > 8 && at >= text.len() - 8 {
                tail |= (text[at] as u64) << (8 * (at + 8 - text.len()));
            }
            at += 1;
        }
        let mut place = place_of(head, tail);
        while table[place].id != FREE {
            place = (place + 1) % PLACES;
        }
        table[place] = Fixed { head, tail, len: text.len() as u16, id: id as u16 };
        id += 1;
    }
    table
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "ten bits are left")]
const fn place_of(head: u64, tail: u64) -> usize {
    let mixed = (head ^ tail.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 54) as usize
}

/// The id of the name in the first `len` bytes of `from`, if it is a fixed one. What is behind them is loaded with them where
/// there is enough of it: that saves asking how long the name is.
#[inline]
pub(super) fn find(from: &[u8], len: usize) -> Option<NameId> {
    if len > LONGEST {
        return None;
    }
    let head = match from.first_chunk() {
        Some(bytes) if len < 8 => u64::from_le_bytes(*bytes) & ((1 << (8 * len)) - 1),
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => from.get(..len)?.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)),
    };
    let tail = if len > 8 { u64::from_le_bytes(*from.get(..len)?.last_chunk()?) } else { 0 };
    let mut place = place_of(head, tail);
    loop {
        let fixed = FIXED.get(place % PLACES)?;
        if fixed.head == head && fixed.tail == tail && usize::from(fixed.len) == len {
            return (len > 0).then_some(NameId(u32::from(fixed.id)));
        }
        if fixed.id == FREE {
            return None;
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
        let mut longest = 0;
        let mut run = 0;
        for fixed in FIXED.iter().chain(&FIXED) {
            run = if fixed.id == FREE { 0 } else { run + 1 };
            longest = longest.max(run);
        }
        assert!(longest <= 12, "{longest}");
    }
}
