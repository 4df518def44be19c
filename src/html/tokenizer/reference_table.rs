//! The named character references (WHATWG HTML 13.5), and which of them a text begins with.
//!
//! They lie in `references.txt` as text, sorted, and are read into a table when a page first needs one that is not among the
//! most common.

use std::sync::OnceLock;

use super::find::count;

const FILE: &str = include_str!("references.txt");
/// How many there are; those with and without a semicolon count twice.
const COUNT: usize = 2_231;

/// A name and the one or two characters it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// Without the ampersand; with the semicolon, if it has one.
    pub(super) name: &'static [u8],
    pub(super) first: char,
    pub(super) second: Option<char>,
}

#[derive(Debug)]
struct Table {
    /// In byte order.
    names: Vec<Named>,
    /// By a name's first byte: where such names start, and where they end.
    places: [(usize, usize); 128],
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut names = Vec::with_capacity(COUNT);
        names.extend(FILE.lines().filter_map(named));
        let mut places = [(0, 0); 128];
        for (first, place) in (0_u8..).zip(&mut places) {
            let start = names.partition_point(|named| named.name.first() < Some(&first));
            *place = (start, names.partition_point(|named| named.name.first() <= Some(&first)));
        }
        Table { names, places }
    })
}

/// A line of the file: the name, then the code points in base 16. Others are remarks.
fn named(line: &'static str) -> Option<Named> {
    let mut parts = line.split(' ');
    let name = parts.next()?;
    let mut character = || char::from_u32(u32::from_str_radix(parts.next()?, 16).ok()?);
    (!name.starts_with('#')).then_some(())?;
    Some(Named { name: name.as_bytes(), first: character()?, second: character() })
}

/// The longest name that the text, which is behind an ampersand, begins with.
pub(super) fn longest(text: &[u8]) -> Option<&'static Named> {
    let table = table();
    let (start, end) = *table.places.get(usize::from(*text.first()?))?;
    // The names that begin with what was read so far: the shortest of them is the first.
    let mut names = table.names.get(start..end)?;
    let mut longest = None;
    for (place, byte) in text.iter().enumerate().skip(1) {
        count(1);
        let before = names.partition_point(|named| named.name.get(place) < Some(byte));
        names = names.get(before..)?;
        let same = names.partition_point(|named| named.name.get(place) <= Some(byte));
        names = names.get(..same)?;
        match names.first() {
            Some(named) if named.name.len() == place + 1 => longest = Some(named),
            Some(_) => {}
            None => break,
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn all_names_are_read_in_order() {
        let names = &table().names;
        assert_eq!(names.len(), COUNT);
        assert!(names.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(names.iter().all(|named| named.name.len() <= 32));
        assert_eq!(names.iter().filter(|named| named.second.is_some()).count(), 93);
        assert_eq!(names.iter().filter(|named| !named.name.ends_with(b";")).count(), 106);
    }

    #[test]
    fn each_name_is_the_longest_of_itself_whatever_follows() {
        for named in &table().names {
            for behind in ["", "\u{e9}", "!", "="] {
                let text = [named.name, behind.as_bytes()].concat();
                assert_eq!(longest(&text), Some(named), "{}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn the_longest_of_several_names_is_found() {
        for (text, expected) in [
            ("notit;", "not"),
            ("notin;", "notin;"),
            ("notinva", "not"),
            ("ampere", "amp"),
            ("amp;", "amp;"),
            ("CounterClockwiseContourIntegral;", "CounterClockwiseContourIntegral;"),
            ("profsurf;", "profsurf;"),
        ] {
            assert_eq!(longest(text.as_bytes()).map(|named| named.name), Some(expected.as_bytes()), "{text}");
        }
        for text in ["", "a", "am", "Zzz", "0", "\u{e9}", "profsur", "\0"] {
            assert_eq!(longest(text.as_bytes()), None, "{text}");
        }
    }
}
