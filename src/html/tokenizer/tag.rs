//! Tags (WHATWG HTML 13.2.5.8 and 13.2.5.32 to 40): names, attributes, values. A tag that the page ends in is none.

use super::class::{
    CHANGES_IN_NAME, CHANGES_IN_VALUE, Class, ENDS_ATTRIBUTE_NAME, ENDS_TAG_NAME, ENDS_VALUE, class, letters, scan,
    skip_white_space,
};
use super::find::{count, find, find_of_3};
use super::reference::{Place, decode};
use super::side::Side;
use super::{Bound, Content, Sink, Tag, Tokenizer};
use crate::html::names::NameId;
use crate::html::span::Span;

/// What becomes of the attributes of a tag.
const KEPT: bool = true;
const DROPPED: bool = false;

/// A name as it stands in the source.
#[derive(Clone, Copy)]
struct RawName<'s> {
    /// From its first byte to the end of the source.
    from: &'s [u8],
    len: usize,
    class: Class,
}

/// A name that was read.
#[derive(Clone, Copy)]
enum Name<'s> {
    Known(NameId),
    Other(RawName<'s>),
}

/// The name that a text begins with and its length, if it is up to seven lower-case letters that every page may use. Most are.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lowest byte")]
fn known_name(text: &[u8], ends: Class) -> Option<(NameId, usize)> {
    let word = u64::from_le_bytes(*text.first_chunk()?);
    let len = letters(word);
    if len == 0 || len == 8 || class((word >> (8 * len)) as u8) & ends == 0 {
        return None;
    }
    let name = NameId::of_known_word(word & !(u64::MAX << (8 * len)))?;
    count(len);
    Some((name, len))
}

/// A value as it stands in the source.
#[derive(Clone, Copy)]
struct RawValue<'s> {
    start: usize,
    text: &'s [u8],
    /// Whether it has a reference or U+0000.
    changes: bool,
}

impl<'s, S: Sink> Tokenizer<'s, S> {
    /// A start tag; `behind` begins with its name.
    #[inline]
    pub(super) fn start_tag(&mut self, behind: &'s [u8]) {
        let (name, rest) = Self::name(behind, ENDS_TAG_NAME);
        let name = self.intern(name);
        self.tag += 1;
        let start = self.sink.arena().attr_count();
        let found = match rest {
            [b'>', rest @ ..] => Some((rest, false)),
            _ => self.attributes::<KEPT>(rest, start),
        };
        let Some((rest, self_closing)) = found else {
            self.sink.arena().drop_attrs(start);
            self.go_to_end();
            return;
        };
        self.at = self.place_of(rest);
        let attrs = self.sink.arena().end_attrs(start);
        let content = self.sink.start_tag(Tag { name, attrs, self_closing });
        if content != Content::Data && !self.is_full && !self.sink.is_over() {
            self.raw(content, Some(name));
        }
    }

    /// An end tag; `behind` begins with its name. Attributes of it mean nothing.
    #[inline]
    pub(super) fn end_tag(&mut self, behind: &'s [u8]) {
        let (name, rest) = Self::name(behind, ENDS_TAG_NAME);
        let rest = match rest {
            [b'>', rest @ ..] => Some(rest),
            _ => self.attributes::<DROPPED>(rest, 0).map(|(rest, _)| rest),
        };
        let Some(rest) = rest else {
            self.go_to_end();
            return;
        };
        let name = self.intern(name);
        self.at = self.place_of(rest);
        self.sink.end_tag(name);
    }

    /// Tag name state or attribute name state: the name, and what follows it.
    #[inline]
    fn name(text: &'s [u8], ends: Class) -> (Name<'s>, &'s [u8]) {
        let (name, len) = match known_name(text, ends) {
            Some((name, len)) => (Name::Known(name), len),
            None => {
                let (len, class) = scan(text, ends);
                (Name::Other(RawName { from: text, len, class }), len)
            }
        };
        (name, text.get(len..).unwrap_or_default())
    }

    /// What follows the name of a tag, up to its `>`: gives what is behind that, and whether there is a `/` before it. The
    /// attributes of the tag are those of the arena from `start` on. `None` if the page ends.
    #[inline]
    fn attributes<const KEEP: bool>(&mut self, text: &'s [u8], start: usize) -> Option<(&'s [u8], bool)> {
        let mut rest = text;
        loop {
            rest = skip_white_space(rest);
            // Before attribute name state (13.2.5.32), self-closing start tag state (13.2.5.40).
            let (first, behind) = rest.split_first()?;
            match (first, behind) {
                (b'>', _) => return Some((behind, false)),
                (b'/', [b'>', behind @ ..]) => return Some((behind, true)),
                (b'/', _) => {
                    rest = behind;
                    continue;
                }
                _ => {}
            }
            // Attribute name state (13.2.5.33). Whatever comes first is part of the name, `=` too.
            let (name, behind) = match known_name(rest, ENDS_ATTRIBUTE_NAME) {
                Some((name, len)) => (Name::Known(name), rest.get(len..).unwrap_or_default()),
                None => {
                    let (more, all) = scan(behind, ENDS_ATTRIBUTE_NAME);
                    let name = RawName { from: rest, len: more + 1, class: all | class(*first) };
                    (Name::Other(name), behind.get(more..).unwrap_or_default())
                }
            };
            rest = skip_white_space(behind);
            let value = if let [b'=', behind @ ..] = rest {
                let (value, behind) = self.value(skip_white_space(behind))?;
                rest = behind;
                value
            } else {
                RawValue { start: 0, text: &[], changes: false }
            };
            if KEEP {
                self.keep(name, value, start);
            }
        }
    }

    /// Before attribute value state (13.2.5.35) and following: the value, and what is behind it. `None` if the page ends.
    #[inline]
    fn value(&self, text: &'s [u8]) -> Option<(RawValue<'s>, &'s [u8])> {
        match text.split_first()? {
            (quote @ (b'"' | b'\''), inner) => {
                let start = self.place_of(inner);
                let found = find_of_3(*quote, b'&', 0, inner)?;
                let (before, behind) = inner.split_at_checked(found)?;
                if let [first, rest @ ..] = behind
                    && first == quote
                {
                    return Some((RawValue { start, text: before, changes: false }, rest));
                }
                let len = found + find(*quote, behind)?;
                let (text, behind) = inner.split_at_checked(len)?;
                Some((RawValue { start, text, changes: true }, behind.get(1..)?))
            }
            (b'>', _) => Some((RawValue { start: 0, text: &[], changes: false }, text)),
            _ => {
                let (len, all) = scan(text, ENDS_VALUE);
                let start = self.place_of(text);
                let (text, behind) = text.split_at_checked(len)?;
                (!behind.is_empty()).then_some((RawValue { start, text, changes: all & CHANGES_IN_VALUE != 0 }, behind))
            }
        }
    }

    /// Writes an attribute into the arena, unless the tag has one of this name. Those of the tag begin at `start`.
    #[inline]
    fn keep(&mut self, name: Name<'s>, value: RawValue<'s>, start: usize) {
        let most = self.limits.attributes.min(start.saturating_add(self.limits.attributes_per_element));
        if self.sink.arena().attr_count() >= most {
            self.sink.meet(Bound::Attributes);
            return;
        }
        let name = self.intern(name);
        if !self.is_first(name) {
            return;
        }
        let value = if value.changes {
            let mut side = Side::new(&mut self.sink.arena().side);
            decode(value.text, Place::Attribute, &mut side);
            let value = side.end();
            self.written(value)
        } else {
            Span::of_source(value.start, value.start + value.text.len())
        };
        self.sink.arena().push_attr(name, value);
    }

    /// Whether it is the first attribute of its name of this tag: the name has no stamp of this tag yet.
    #[inline]
    fn is_first(&mut self, name: NameId) -> bool {
        let place = name.0 as usize;
        if place >= self.stamps.len() {
            let more = place + 1 - self.stamps.len();
            self.stamps.reserve_exact(more + place / 4);
            self.stamps.resize(self.stamps.capacity(), 0);
        }
        let Some(stamp) = self.stamps.get_mut(place) else { return false };
        std::mem::replace(stamp, self.tag) != self.tag
    }

    #[inline]
    fn intern(&mut self, name: Name<'s>) -> NameId {
        match name {
            Name::Known(name) => name,
            Name::Other(name) => self.intern_other(name),
        }
    }

    #[inline(never)]
    fn intern_other(&mut self, name: RawName<'s>) -> NameId {
        if name.class & CHANGES_IN_NAME == 0 {
            let start = self.place_of(name.from);
            return self.sink.arena().intern(Span::of_source(start, start + name.len));
        }
        self.intern_lowered(name)
    }

    fn intern_lowered(&mut self, name: RawName<'s>) -> NameId {
        let text = name.from.get(..name.len).unwrap_or_default();
        let arena = self.sink.arena();
        let (start, names) = (arena.side.len(), arena.name_count());
        let mut side = Side::new(&mut arena.side);
        side.put_name(text);
        let lowered = side.end();
        let span = self.written(lowered);
        let arena = self.sink.arena();
        let name = arena.intern(span);
        if arena.name_count() == names {
            // It was known: nothing points to the copy.
            arena.side.truncate(start);
        }
        name
    }
}
