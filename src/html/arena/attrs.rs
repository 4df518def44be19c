//! Attributes: lists in one vector, each ended by a mark, so that an element only says where its list starts.

use super::super::names::NameId;
use super::super::span::Span;
use super::{Arena, IS_FAR, Kind, Node, NodeId};

/// The attributes of a tag: where their list starts in the arena. Elements may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttrList(pub(super) u32);

impl AttrList {
    /// No attributes.
    pub(crate) const EMPTY: Self = Self(u32::MAX);

    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == u32::MAX
    }
}

/// The bit of an attribute's name that says "the last of its list".
pub(super) const LAST: u32 = 1 << 31;

/// An attribute: 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attr {
    pub(super) name: u32,
    pub(super) value: Span,
}

impl Attr {
    #[inline]
    pub(crate) const fn name(self) -> NameId {
        NameId(self.name & !LAST)
    }

    #[inline]
    pub(crate) const fn value(self) -> Span {
        self.value
    }

    #[inline]
    const fn is_last(self) -> bool {
        self.name & LAST != 0
    }
}

/// What came of [`Arena::add_attrs`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    /// How many attributes were looked at.
    pub(crate) compared: usize,
    /// Whether some were left out.
    pub(crate) is_cut: bool,
}

impl Arena {
    /// The attribute list of an element.
    #[inline]
    pub(crate) fn attr_list(&self, id: NodeId) -> AttrList {
        let node = self.node(id);
        if node.head & 0xf == Kind::Element as u32 { self.list_of(node) } else { AttrList::EMPTY }
    }

    /// The attribute list of a node that is an element.
    #[inline]
    pub(super) fn list_of(&self, node: &Node) -> AttrList {
        if node.head & IS_FAR == 0 {
            return AttrList(node.data);
        }
        self.far.get(node.data as usize).map_or(AttrList::EMPTY, |far| AttrList(far.attrs))
    }

    /// The attributes of a list, in the order of the source.
    #[inline]
    pub(crate) fn attrs_in(&self, list: AttrList) -> Attrs<'_> {
        let rest = if list.is_empty() { &[] } else { self.attrs.get(list.0 as usize..).unwrap_or_default() };
        Attrs { rest }
    }

    /// The attributes of an element.
    #[inline]
    pub(crate) fn attrs(&self, id: NodeId) -> Attrs<'_> {
        self.attrs_in(self.attr_list(id))
    }

    /// The attribute at a place of the list of an element that is as long.
    #[inline]
    pub(crate) fn attr_at(&self, id: NodeId, place: u32) -> Option<Attr> {
        let list = self.attr_list(id);
        if list.is_empty() { None } else { self.attrs.get(list.0 as usize + place as usize).copied() }
    }

    /// The value of an attribute of a list.
    #[inline]
    pub(crate) fn attr_in(&self, list: AttrList, name: NameId) -> Option<Span> {
        self.attrs_in(list).find(|attr| attr.name() == name).map(Attr::value)
    }

    /// The value of an attribute of an element.
    #[inline]
    pub(crate) fn attr(&self, id: NodeId, name: NameId) -> Option<Span> {
        self.attr_in(self.attr_list(id), name)
    }

    /// How many attributes are kept in all.
    #[inline]
    pub(crate) fn attr_count(&self) -> usize {
        self.attrs.len()
    }

    /// Adds an attribute to the list being written, which starts at `start` (what [`Arena::attr_count`] was then).
    #[inline]
    pub(crate) fn push_attr(&mut self, name: NameId, value: Span) {
        if self.attrs.len() == self.attrs.capacity() {
            self.grow_attrs();
        }
        self.attrs.push(Attr { name: name.0, value });
    }

    #[cold]
    fn grow_attrs(&mut self) {
        self.attrs.reserve_exact(self.more(self.attrs.len()));
    }

    /// Ends the list that starts at `start`.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most one attribute for two bytes of source")]
    pub(crate) fn end_attrs(&mut self, start: usize) -> AttrList {
        if self.attrs.len() <= start {
            return AttrList::EMPTY;
        }
        if let Some(last) = self.attrs.last_mut() {
            last.name |= LAST;
        }
        AttrList(start as u32)
    }

    /// Forgets the attributes from `start` on: their tag is not used.
    #[inline]
    pub(crate) fn drop_attrs(&mut self, start: usize) {
        self.attrs.truncate(start);
    }

    /// Gives an attribute of a list another name.
    pub(crate) fn rename_attr(&mut self, list: AttrList, place: usize, name: NameId) {
        if !list.is_empty()
            && let Some(attr) = self.attrs.get_mut(list.0 as usize + place)
        {
            attr.name = name.0 | attr.name & LAST;
        }
    }

    /// Adds to an element the attributes of a list that it does not have, as long as it has fewer than `most`. In all it takes
    /// no more memory than a small multiple of what is added.
    pub(crate) fn add_attrs(&mut self, id: NodeId, list: AttrList, most: usize) -> Added {
        let old = self.attr_list(id);
        let count = self.attrs_in(old).count();
        let mut added: Vec<Attr> = self.attrs_in(list).filter(|attr| self.attr_in(old, attr.name()).is_none()).collect();
        let compared = count.saturating_mul(self.attrs_in(list).count());
        let fitting = most.saturating_sub(count).min(added.len());
        let is_cut = fitting < added.len();
        added.truncate(fitting);
        if added.is_empty() {
            return Added { compared, is_cut };
        }
        let len = count + added.len();
        let known = self.roomy.iter().position(|(element, _)| *element == id);
        let room = known.and_then(|place| self.roomy.get(place)).map_or(0, |(_, room)| *room);
        let mut start = old.0 as usize;
        if len > room {
            // Elsewhere, with as much room again.
            start = self.attrs.len();
            let kept: Vec<Attr> = self.attrs_in(old).collect();
            self.attrs.extend(kept);
            self.attrs.resize(start + 2 * len, Attr { name: LAST, value: Span::EMPTY });
            known.map(|place| self.roomy.swap_remove(place));
            self.roomy.push((id, 2 * len));
        }
        if let Some(list) = self.attrs.get_mut(start..start + len) {
            for (place, attr) in list.iter_mut().skip(count).zip(added) {
                *place = attr;
            }
            list.iter_mut().for_each(|attr| attr.name &= !LAST);
        }
        self.end_attrs_at(start + len - 1);
        #[allow(clippy::cast_possible_truncation, reason = "at most one attribute for two bytes of source, and room for as many")]
        let start = start as u32;
        let node = *self.node(id);
        if node.head & IS_FAR == 0 {
            self.edit(id, |node| node.data = start);
        } else if let Some(far) = self.far.get_mut(node.data as usize) {
            far.attrs = start;
        }
        Added { compared: compared + len, is_cut }
    }

    fn end_attrs_at(&mut self, last: usize) {
        if let Some(attr) = self.attrs.get_mut(last) {
            attr.name |= LAST;
        }
    }
}

/// The attributes of an element, in the order of the source.
#[derive(Clone, Debug)]
pub(crate) struct Attrs<'a> {
    rest: &'a [Attr],
}

impl Iterator for Attrs<'_> {
    type Item = Attr;

    #[inline]
    fn next(&mut self) -> Option<Attr> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = if first.is_last() { &[] } else { rest };
        Some(*first)
    }
}
