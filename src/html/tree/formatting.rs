//! The list of active formatting elements (WHATWG HTML 13.2.4.3): what is opened again when a paragraph ends before its `b`.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::sync::OnceLock;

use super::Builder;
use crate::html::arena::{Attr, AttrList, Namespace, NodeId};
use crate::html::names::{NameId, known};
use crate::html::tokenizer::Tag;

/// An entry: an element made for a tag, or a marker. 16 bytes; the attributes of the tag are those of the element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// None for a marker.
    pub(super) node: NodeId,
    pub(super) name: NameId,
    /// Where in the stack it was pushed; it may have moved or gone since.
    place: u32,
    /// Of its set of attributes, once that was needed.
    digest: Option<NonZeroU32>,
}

impl Entry {
    const MARKER: Self = Self { node: NodeId::NONE, name: known::HTML, place: 0, digest: None };

    pub(super) const fn is_marker(&self) -> bool {
        self.node.is_none()
    }
}

/// The list of active formatting elements, the latest last.
#[derive(Debug, Default)]
pub(in crate::html) struct Formatting {
    entries: Vec<Entry>,
}

impl Formatting {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<Entry> {
        self.entries.get(index).copied()
    }

    pub(super) fn insert(&mut self, index: usize, entry: Entry) {
        self.entries.insert(index.min(self.entries.len()), entry);
    }

    pub(super) fn remove(&mut self, index: usize) {
        if index < self.entries.len() {
            self.entries.remove(index);
        }
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 8 + 16);
        }
        self.entries.push(entry);
    }

    /// Bytes of memory it takes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Puts an element made for the same tag in the place of one.
    pub(super) fn replace(&mut self, index: usize, node: NodeId) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.node = node;
        }
    }

    /// Takes the last entry off if it is this node.
    #[inline]
    pub(super) fn pop_if(&mut self, node: NodeId) -> bool {
        let is_last = self.entries.last().is_some_and(|entry| entry.node == node);
        if is_last {
            self.entries.pop();
        }
        is_last
    }
}

impl Builder {
    /// "Insert a marker at the end of the list".
    pub(in crate::html) fn push_marker(&mut self) {
        self.formatting.push(Entry::MARKER);
    }

    /// "Clear the list up to the last marker".
    pub(in crate::html) fn clear_to_marker(&mut self) {
        while let Some(entry) = self.formatting.entries.pop() {
            if entry.is_marker() {
                return;
            }
        }
    }

    /// Where a node is in the list.
    pub(super) fn formatting_position(&mut self, node: NodeId) -> Option<usize> {
        let position = self.formatting.entries.iter().rposition(|entry| entry.node == node);
        self.step((self.formatting.len() - position.unwrap_or(0)) as u64);
        position
    }

    /// The last entry of a name behind the last marker.
    pub(super) fn last_formatting(&mut self, name: NameId) -> Option<usize> {
        let mut steps = 0;
        let mut found = None;
        for (index, entry) in self.formatting.entries.iter().enumerate().rev() {
            steps += 1;
            if entry.is_marker() {
                break;
            }
            if entry.name == name {
                found = Some(index);
                break;
            }
        }
        self.step(steps);
        found
    }

    /// Inserts an HTML element for a tag and "pushes it onto the list of active formatting elements".
    pub(in crate::html) fn insert_formatting_element(&mut self, tag: Tag) {
        let digest = self.spare_three_alike(tag);
        let place = place_of(self.stack.len());
        let node = self.insert_html_element(tag);
        self.formatting.push(Entry { node, name: tag.name, place, digest });
    }

    /// The Noah's Ark clause: of elements alike behind the last marker the list keeps three, the new one included.
    #[inline]
    fn spare_three_alike(&mut self, tag: Tag) -> Option<NonZeroU32> {
        let mut steps = 0;
        let mut same_name = 0;
        for entry in self.formatting.entries.iter().rev() {
            steps += 1;
            if entry.is_marker() {
                break;
            }
            same_name += usize::from(entry.name == tag.name);
        }
        self.step(steps);
        if same_name < 3 { None } else { Some(self.remove_fourth(tag)) }
    }

    #[inline(never)]
    fn remove_fourth(&mut self, tag: Tag) -> NonZeroU32 {
        let digest = self.digest(tag.attrs);
        let mut alike = 0;
        let mut earliest = None;
        for index in (0..self.formatting.len()).rev() {
            let Some(entry) = self.formatting.get(index) else { break };
            if entry.is_marker() {
                break;
            }
            if entry.name != tag.name {
                continue;
            }
            let attrs = self.arena.attr_list(entry.node);
            let own = entry.digest.unwrap_or_else(|| self.digest(attrs));
            if let Some(kept) = self.formatting.entries.get_mut(index) {
                kept.digest = Some(own);
            }
            if own == digest && self.has_same_attrs(attrs, tag.attrs) {
                alike += 1;
                earliest = Some(index);
            }
        }
        if alike >= 3
            && let Some(index) = earliest
        {
            self.formatting.remove(index);
        }
        digest
    }

    /// A number that is the same for the same set of attributes, and that a page cannot foresee.
    fn digest(&mut self, attrs: AttrList) -> NonZeroU32 {
        static HASHER: OnceLock<RandomState> = OnceLock::new();
        let hasher = HASHER.get_or_init(RandomState::new);
        let mut steps = 1;
        let mut digest = 0_u64;
        for attr in self.arena.attrs_in(attrs) {
            let value = self.arena.bytes(attr.value());
            steps += 1 + value.len() as u64 / 32;
            digest = digest.wrapping_add(hasher.hash_one((attr.name().0, value)));
        }
        self.step(steps);
        #[allow(clippy::cast_possible_truncation, reason = "a part of it will do: what is alike by it is compared")]
        let part = (digest ^ digest >> 32) as u32;
        NonZeroU32::MIN | part
    }

    fn has_same_attrs(&mut self, one: AttrList, other: AttrList) -> bool {
        if one == other {
            return true;
        }
        let sorted = |list| {
            let mut all: Vec<Attr> = self.arena.attrs_in(list).collect();
            all.sort_unstable_by_key(|attr| attr.name());
            all
        };
        let (one, other) = (sorted(one), sorted(other));
        let is_same = one.len() == other.len()
            && one.iter().zip(&other).all(|(one, other)| {
                one.name() == other.name() && self.arena.bytes(one.value()) == self.arena.bytes(other.value())
            });
        self.step(one.len() as u64);
        is_same
    }

    /// "Reconstruct the active formatting elements".
    #[inline]
    pub(in crate::html) fn reconstruct_formatting(&mut self) {
        if let Some(last) = self.formatting.entries.last().copied()
            && !last.is_marker()
            && !self.is_open(last)
        {
            self.reconstruct_closed();
        }
    }

    /// Whether an entry is on the stack of open elements.
    #[inline]
    fn is_open(&mut self, entry: Entry) -> bool {
        if self.stack.node(entry.place as usize) == Some(entry.node) {
            return true;
        }
        self.stack.count(entry.name) > 0 && self.position(entry.node).is_some()
    }

    #[inline(never)]
    fn reconstruct_closed(&mut self) {
        // Rewind to behind the last entry that is a marker or open, then make all again from there on.
        let mut first = self.formatting.len().saturating_sub(1);
        while let Some(before) = first.checked_sub(1)
            && let Some(entry) = self.formatting.get(before)
            && !entry.is_marker()
            && !self.is_open(entry)
        {
            self.step(1);
            first = before;
        }
        for index in first..self.formatting.len() {
            if self.is_out_of_repeats() {
                return;
            }
            let Some(entry) = self.formatting.get(index) else { return };
            let (place, attrs) = (place_of(self.stack.len()), self.arena.attr_list(entry.node));
            let node = self.insert_html_element(Tag { name: entry.name, attrs, self_closing: false });
            if let Some(kept) = self.formatting.entries.get_mut(index) {
                (kept.node, kept.place) = (node, place);
            }
        }
    }

    /// "Create an element for the token" of an entry: the element is nowhere yet.
    pub(super) fn repeat(&mut self, entry: Entry) -> NodeId {
        self.repeats += 1;
        self.arena.new_element(entry.name, Namespace::Html, self.arena.attr_list(entry.node))
    }
}

/// Where the next element goes in a stack of this length.
#[allow(clippy::cast_possible_truncation, reason = "no more open elements than nodes")]
const fn place_of(len: usize) -> u32 {
    len as u32
}

#[cfg(test)]
mod tests {
    use super::super::tests::builder;
    use super::*;
    use crate::html::arena::Arena;
    use crate::html::span::Span;
    use known::*;

    fn attrs(arena: &mut Arena, pairs: &[(NameId, &str)]) -> AttrList {
        let start = arena.attr_count();
        for (name, value) in pairs {
            let from = arena.side.len();
            arena.side.extend_from_slice(value.as_bytes());
            arena.push_attr(*name, Span::of_side(from, from + value.len()));
        }
        arena.end_attrs(start)
    }

    fn tag(attrs: AttrList) -> Tag {
        Tag { name: B, attrs, self_closing: false }
    }

    #[test]
    fn of_elements_alike_three_are_kept() {
        let mut builder = builder(&[HTML, BODY]);
        for _ in 0..5 {
            let one = attrs(&mut builder.arena, &[(ID, "x"), (CLASS, "y")]);
            let other = attrs(&mut builder.arena, &[(CLASS, "y"), (ID, "x")]);
            builder.insert_formatting_element(tag(one));
            builder.insert_formatting_element(tag(other));
        }
        assert_eq!(builder.formatting.len(), 3);
        for value in ["1", "2", "3"] {
            let one = attrs(&mut builder.arena, &[(ID, value)]);
            builder.insert_formatting_element(tag(one));
        }
        assert_eq!(builder.formatting.len(), 6);
        builder.push_marker();
        let again = attrs(&mut builder.arena, &[(ID, "x"), (CLASS, "y")]);
        builder.insert_formatting_element(tag(again));
        assert_eq!(builder.formatting.len(), 8);
        builder.clear_to_marker();
        assert_eq!(builder.formatting.len(), 6);
    }

    #[test]
    fn closed_elements_are_made_again_from_the_first_closed_one_on() {
        let mut builder = builder(&[HTML, BODY]);
        builder.insert_formatting_element(tag(AttrList::EMPTY));
        builder.insert_phantom(P);
        builder.insert_formatting_element(Tag { name: I, attrs: AttrList::EMPTY, self_closing: false });
        builder.insert_formatting_element(Tag { name: U, attrs: AttrList::EMPTY, self_closing: false });
        builder.pop_until(P);
        builder.reconstruct_formatting();
        let names: Vec<NameId> = builder.open_elements().map(|open| open.name).collect();
        assert_eq!(names, [HTML, BODY, B, I, U]);
        let made = builder.arena.len();
        builder.reconstruct_formatting();
        assert_eq!(builder.arena.len(), made);
        assert_eq!(builder.repeats, 2);
    }
}
