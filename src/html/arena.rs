//! The arena: the nodes of one page in one vector, linked by number; text and values as spans.
//!
//! Links are the tree construction's business; here they are only kept consistent. Nothing recurses, and dropping a page
//! drops a few vectors.

use bytes::Bytes;

use super::names::{Interner, NameId};
use super::span::Span;

/// A node of a page, by its place in the arena. The document itself is [`NodeId::DOCUMENT`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// No node.
    pub(crate) const NONE: Self = Self(u32::MAX);
    /// The root of every tree.
    pub(crate) const DOCUMENT: Self = Self(0);

    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// `None` for [`NodeId::NONE`].
    #[inline]
    pub(crate) const fn some(self) -> Option<Self> {
        if self.is_some() { Some(self) } else { None }
    }

    /// The place in the arena.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "an arena has at most as many nodes as its source and its limits allow")]
    pub(crate) const fn at(index: usize) -> Self {
        Self(index as u32)
    }
}

impl std::fmt::Debug for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_some() { write!(f, "#{}", self.0) } else { f.write_str("#-") }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Document,
    Element,
    Text,
    Comment,
    ProcessingInstruction,
    Doctype,
}

/// The namespace of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Namespace {
    /// `http://www.w3.org/1999/xhtml`.
    #[default]
    Html,
    /// `http://www.w3.org/2000/svg`.
    Svg,
    /// `http://www.w3.org/1998/Math/MathML`.
    MathMl,
}

/// The attributes of a tag: where their list starts in the arena. Elements may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttrList(u32);

impl AttrList {
    /// No attributes.
    pub(crate) const EMPTY: Self = Self(u32::MAX);

    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == u32::MAX
    }
}

/// The bit of an attribute's name that says "the last of its list".
const LAST: u32 = 1 << 31;

/// An attribute: 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attr {
    name: u32,
    value: Span,
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

/// A node: 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: NodeId,
    /// The sibling before; of a first child the last child of its parent.
    prev: NodeId,
    next: NodeId,
    /// Document and element: the first child. Others: start of the span.
    first: u32,
    /// Element: where its attributes start. Others: length of the span.
    second: u32,
    /// Kind (low 4 bits) and namespace (next 4) below the name of an element or target (24 bits); of a text the room
    /// it has in the side buffer, as a power of two.
    head: u32,
}

const NODE: Node = Node {
    parent: NodeId::NONE,
    prev: NodeId::NONE,
    next: NodeId::NONE,
    first: u32::MAX,
    second: u32::MAX,
    head: Kind::Comment as u32,
};
static NOWHERE: Node = NODE;

impl Node {
    #[inline]
    const fn kind(&self) -> Kind {
        match self.head & 0xf {
            0 => Kind::Document,
            1 => Kind::Element,
            2 => Kind::Text,
            3 => Kind::Comment,
            4 => Kind::ProcessingInstruction,
            _ => Kind::Doctype,
        }
    }

    #[inline]
    const fn has_children(&self) -> bool {
        self.head & 0xf <= Kind::Element as u32
    }
}

/// The nodes of a page, with what their spans point to.
#[derive(Debug)]
pub(crate) struct Arena {
    source: Bytes,
    /// Bytes that do not stand in the source as they are: decoded references, lower-cased names, joined texts.
    pub(crate) side: Vec<u8>,
    nodes: Vec<Node>,
    attrs: Vec<Attr>,
    names: Interner,
    /// Elements whose attributes were added to, with the room their list has: one `html` and one `body` at most.
    roomy: Vec<(NodeId, usize)>,
    /// Whether ids ascend in document order, and every node is in the tree.
    in_order: bool,
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
    /// An arena with the document node only. The source is UTF-8 and at most [`super::span::MOST_BYTES`] long.
    pub(crate) fn new(source: Bytes) -> Self {
        let mut nodes = Vec::with_capacity(source.len() / 20 + 16);
        nodes.push(Node { head: Kind::Document as u32, ..NODE });
        let attrs = Vec::with_capacity(source.len() / 32 + 8);
        Self { source, side: Vec::new(), nodes, attrs, names: Interner::new(), roomy: Vec::new(), in_order: true }
    }

    /// The source as the spans see it. Cheap to clone.
    #[inline]
    pub(crate) fn source(&self) -> &Bytes {
        &self.source
    }

    #[inline]
    fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&NOWHERE)
    }

    #[inline]
    fn edit(&mut self, id: NodeId, edit: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            edit(node);
        }
    }

    // Reading.

    /// How many nodes were made, those included that are not in the tree any more.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub(crate) fn kind(&self, id: NodeId) -> Kind {
        self.node(id).kind()
    }

    #[inline]
    pub(crate) fn is_element(&self, id: NodeId) -> bool {
        self.node(id).head & 0xf == Kind::Element as u32
    }

    #[inline]
    pub(crate) fn is_text(&self, id: NodeId) -> bool {
        self.node(id).head & 0xf == Kind::Text as u32
    }

    /// The name of an element or the target of a processing instruction.
    #[inline]
    pub(crate) fn name(&self, id: NodeId) -> NameId {
        NameId(self.node(id).head >> 8)
    }

    #[inline]
    pub(crate) fn namespace(&self, id: NodeId) -> Namespace {
        match self.node(id).head >> 4 & 0xf {
            0 => Namespace::Html,
            1 => Namespace::Svg,
            _ => Namespace::MathMl,
        }
    }

    /// Whether the node is the HTML element of this name.
    #[inline]
    pub(crate) fn is_html(&self, id: NodeId, name: NameId) -> bool {
        self.node(id).head == name.0 << 8 | (Namespace::Html as u32) << 4 | Kind::Element as u32
    }

    #[inline]
    pub(crate) fn parent(&self, id: NodeId) -> NodeId {
        self.node(id).parent
    }

    #[inline]
    pub(crate) fn next(&self, id: NodeId) -> NodeId {
        self.node(id).next
    }

    /// The sibling before.
    #[inline]
    pub(crate) fn prev(&self, id: NodeId) -> NodeId {
        let prev = self.node(id).prev;
        if self.node(prev).next.is_some() { prev } else { NodeId::NONE }
    }

    #[inline]
    pub(crate) fn first_child(&self, id: NodeId) -> NodeId {
        let node = self.node(id);
        if node.has_children() { NodeId(node.first) } else { NodeId::NONE }
    }

    #[inline]
    pub(crate) fn last_child(&self, id: NodeId) -> NodeId {
        self.node(self.first_child(id)).prev
    }

    /// The node that follows in document order below `root`: its first child, else the next one that is not below it.
    #[inline]
    pub(crate) fn following(&self, id: NodeId, root: NodeId) -> NodeId {
        let child = self.first_child(id);
        if child.is_some() { child } else { self.following_outside(id, root) }
    }

    /// The node that follows in document order below `root` and not below `id`.
    #[inline]
    pub(crate) fn following_outside(&self, id: NodeId, root: NodeId) -> NodeId {
        let mut id = id;
        while id != root && id.is_some() {
            let node = self.node(id);
            if node.next.is_some() {
                return node.next;
            }
            id = node.parent;
        }
        NodeId::NONE
    }

    /// The text of a text node, a comment or a processing instruction; empty for others.
    #[inline]
    pub(crate) fn data(&self, id: NodeId) -> Span {
        let node = self.node(id);
        match node.kind() {
            Kind::Text | Kind::Comment | Kind::ProcessingInstruction => Span::from_raw(node.first, node.second),
            Kind::Document | Kind::Element | Kind::Doctype => Span::EMPTY,
        }
    }

    /// The attribute list of an element.
    #[inline]
    pub(crate) fn attr_list(&self, id: NodeId) -> AttrList {
        let node = self.node(id);
        if node.kind() == Kind::Element { AttrList(node.second) } else { AttrList::EMPTY }
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

    #[inline]
    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        let buffer: &[u8] = if span.is_side() { &self.side } else { &self.source };
        buffer.get(span.start()..span.end()).unwrap_or_default()
    }

    /// The bytes of a span as text.
    #[inline]
    pub(crate) fn text(&self, span: Span) -> &str {
        // Spans start and end between characters, so this cannot fail; the check is what safe code costs.
        std::str::from_utf8(self.bytes(span)).unwrap_or_default()
    }

    /// The text of a name.
    pub(crate) fn name_text(&self, name: NameId) -> &str {
        name.known_text().unwrap_or_else(|| self.names.span(name).map_or("", |span| self.text(span)))
    }

    /// The id of a name, if the page has it.
    pub(crate) fn find_name(&self, text: &str) -> Option<NameId> {
        self.names.find(text.as_bytes(), |span| self.bytes(span))
    }

    /// How many names have an id.
    pub(crate) fn name_count(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn has_too_many_names(&self) -> bool {
        self.names.is_full()
    }

    /// Bytes of memory the page takes beside its source.
    pub(crate) fn heap_bytes(&self) -> usize {
        let (nodes, attrs) = (self.nodes.capacity() * size_of::<Node>(), self.attrs.capacity() * size_of::<Attr>());
        nodes + attrs + self.side.capacity() + self.names.heap_bytes()
    }

    /// Whether ids ascend in document order, and every node is in the tree.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    // Making.

    /// The id of the name that lies at `span`.
    #[inline]
    pub(crate) fn intern(&mut self, span: Span) -> NameId {
        let (source, side): (&[u8], &[u8]) = (&self.source, &self.side);
        let bytes = |span: Span| {
            let buffer = if span.is_side() { side } else { source };
            buffer.get(span.start()..span.end()).unwrap_or_default()
        };
        self.names.intern(bytes(span), span, bytes)
    }

    /// The id of a name that stands nowhere in the source; it is copied beside it.
    pub(crate) fn intern_text(&mut self, text: &str) -> NameId {
        if let Some(name) = self.find_name(text) {
            return name;
        }
        let start = self.side.len();
        self.side.extend_from_slice(text.as_bytes());
        self.intern(Span::of_side(start, self.side.len()))
    }

    /// Adds an attribute to the list being written, which starts at `start` (what [`Arena::attr_count`] was then).
    #[inline]
    pub(crate) fn push_attr(&mut self, name: NameId, value: Span) {
        self.attrs.push(Attr { name: name.0, value });
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
        self.edit(id, |node| node.second = start);
        Added { compared: compared + len, is_cut }
    }

    fn end_attrs_at(&mut self, last: usize) {
        if let Some(attr) = self.attrs.get_mut(last) {
            attr.name |= LAST;
        }
    }

    #[inline]
    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId::at(self.nodes.len());
        if self.nodes.len() == self.nodes.capacity() {
            self.grow();
        }
        self.nodes.push(node);
        id
    }

    /// Makes room for half as many nodes again: the last growth of a large page should not double its memory.
    #[cold]
    fn grow(&mut self) {
        self.nodes.reserve_exact(self.nodes.len() / 2 + 16);
    }

    /// An element that is nowhere yet.
    #[inline]
    pub(crate) fn new_element(&mut self, name: NameId, namespace: Namespace, attrs: AttrList) -> NodeId {
        let head = name.0 << 8 | (namespace as u32) << 4 | Kind::Element as u32;
        self.push(Node { second: attrs.0, head, ..NODE })
    }

    /// A text node, a comment or a processing instruction (with its target) that is nowhere yet.
    #[inline]
    pub(crate) fn new_data(&mut self, kind: Kind, target: NameId, data: Span) -> NodeId {
        let (first, second) = data.raw();
        self.push(Node { first, second, head: target.0 << 8 | kind as u32, ..NODE })
    }

    /// A text node that is nowhere yet.
    #[inline]
    pub(crate) fn new_text(&mut self, data: Span) -> NodeId {
        self.new_data(Kind::Text, NameId(0), data)
    }

    /// A doctype that is nowhere yet.
    pub(crate) fn new_doctype(&mut self) -> NodeId {
        self.push(Node { head: Kind::Doctype as u32, ..NODE })
    }

    // Linking.

    /// Makes `child`, which is nowhere, the last child of `parent`.
    #[inline]
    pub(crate) fn append(&mut self, parent: NodeId, child: NodeId) {
        self.note_order(parent, child);
        let first = NodeId(self.node(parent).first);
        if first.is_none() {
            self.edit(parent, |node| node.first = child.0);
            self.edit(child, |node| {
                node.parent = parent;
                node.prev = child;
            });
            return;
        }
        let last = self.node(first).prev;
        self.edit(last, |node| node.next = child);
        self.edit(first, |node| node.prev = child);
        self.edit(child, |node| {
            node.parent = parent;
            node.prev = last;
        });
    }

    /// Puts `child`, which is nowhere, before `sibling`.
    pub(crate) fn insert_before(&mut self, sibling: NodeId, child: NodeId) {
        self.in_order = false;
        let Node { parent, prev, .. } = *self.node(sibling);
        let is_first = NodeId(self.node(parent).first) == sibling;
        if is_first {
            self.edit(parent, |node| node.first = child.0);
        } else {
            self.edit(prev, |node| node.next = child);
        }
        self.edit(sibling, |node| node.prev = child);
        self.edit(child, |node| {
            node.parent = parent;
            node.prev = prev;
            node.next = sibling;
        });
    }

    /// Takes a node out of the tree with all below it.
    pub(crate) fn detach(&mut self, id: NodeId) {
        let Node { parent, prev, next, .. } = *self.node(id);
        if parent.is_none() {
            return;
        }
        self.in_order = false;
        let first = NodeId(self.node(parent).first);
        if first == id {
            self.edit(parent, |node| node.first = next.0);
            // The new first child takes over the link to the last one.
            self.edit(next, |node| node.prev = prev);
        } else {
            self.edit(prev, |node| node.next = next);
            let behind = if next.is_some() { next } else { first };
            self.edit(behind, |node| node.prev = prev);
        }
        self.edit(id, |node| {
            node.parent = NodeId::NONE;
            node.prev = NodeId::NONE;
            node.next = NodeId::NONE;
        });
    }

    /// Moves all children of a node to the end of another one, which has none of its own. Gives how many.
    pub(crate) fn move_children(&mut self, from: NodeId, to: NodeId) -> usize {
        let first = self.node(from).first;
        self.in_order = false;
        self.edit(from, |node| node.first = u32::MAX);
        self.edit(to, |node| node.first = first);
        let mut moved = 0;
        let mut child = NodeId(first);
        while child.is_some() {
            self.edit(child, |node| node.parent = to);
            child = self.node(child).next;
            moved += 1;
        }
        moved
    }

    /// Adds to the text of a text node. In all it costs no more than a small multiple of what is added.
    pub(crate) fn add_text(&mut self, id: NodeId, more: Span) {
        let data = self.data(id);
        let is_adjoining = data.end() == more.start() && data.is_side() == more.is_side();
        let room = self.node(id).head >> 8;
        if is_adjoining && room == 0 {
            self.set_data(id, data, data.len() + more.len(), 0);
            return;
        }
        let len = data.len() + more.len();
        if data.is_side() && room == 0 && data.end() == self.side.len() {
            self.copy_aside(more);
            self.set_data(id, data, len, 0);
            return;
        }
        if room > 0 && len <= 1 << room {
            let bytes = self.bytes(more).to_vec();
            if let Some(place) = self.side.get_mut(data.end()..data.end() + bytes.len()) {
                place.copy_from_slice(&bytes);
                self.set_data(id, data, len, room);
            }
            return;
        }
        // Elsewhere: with as much room again if it had to move before, so that it seldom has to.
        let start = self.side.len();
        self.copy_aside(data);
        self.copy_aside(more);
        let room = if data.is_side() { (len * 2).next_power_of_two().trailing_zeros() } else { 0 };
        if room > 0 {
            self.side.resize(start + (1 << room), b' ');
        }
        self.set_data(id, Span::of_side(start, start), len, room);
    }

    fn set_data(&mut self, id: NodeId, at: Span, len: usize, room: u32) {
        #[allow(clippy::cast_possible_truncation, reason = "at most MOST_BYTES")]
        let (start, len) = (at.raw().0, len as u32);
        self.edit(id, |node| {
            node.first = start;
            node.second = len;
            node.head = room << 8 | Kind::Text as u32;
        });
    }

    /// Copies the bytes of a span to the end of the side buffer.
    pub(crate) fn copy_aside(&mut self, span: Span) {
        if span.is_side() {
            if span.end() <= self.side.len() {
                self.side.extend_from_within(span.start()..span.end());
            }
        } else {
            self.side.extend_from_slice(self.source.get(span.start()..span.end()).unwrap_or_default());
        }
    }

    /// Ids ascend in document order as long as each new node goes behind the one made before it.
    #[inline]
    fn note_order(&mut self, parent: NodeId, child: NodeId) {
        if !self.in_order {
            return;
        }
        let before = NodeId(child.0.wrapping_sub(1));
        let mut id = before;
        // Each step leaves an element that nothing will be added to while the order holds: no more steps than elements.
        while id != parent {
            if id.is_none() {
                self.in_order = false;
                return;
            }
            id = self.node(id).parent;
        }
        self.in_order = child.index() + 1 == self.nodes.len();
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

#[cfg(test)]
mod tests {
    use super::super::names::known;
    use super::*;

    fn arena() -> Arena {
        Arena::new(Bytes::from_static(b"onetwothree"))
    }

    fn children(arena: &Arena, id: NodeId) -> Vec<NodeId> {
        let mut all = Vec::new();
        let mut child = arena.first_child(id);
        while child.is_some() {
            assert_eq!(arena.parent(child), id);
            assert_eq!(arena.prev(child), all.last().copied().unwrap_or(NodeId::NONE));
            all.push(child);
            child = arena.next(child);
        }
        assert_eq!(arena.last_child(id), all.last().copied().unwrap_or(NodeId::NONE));
        all
    }

    #[test]
    fn links_stay_consistent() {
        let mut arena = arena();
        let top = arena.new_element(known::DIV, Namespace::Html, AttrList::EMPTY);
        arena.append(NodeId::DOCUMENT, top);
        let made: Vec<NodeId> = (0..4).map(|_| arena.new_element(known::P, Namespace::Html, AttrList::EMPTY)).collect();
        let [a, b, c, d] = made[..] else { unreachable!() };
        arena.append(top, a);
        arena.append(top, b);
        assert_eq!(children(&arena, top), [a, b]);
        arena.insert_before(a, c);
        arena.insert_before(b, d);
        assert_eq!(children(&arena, top), [c, a, d, b]);
        for gone in [c, b, d, a] {
            arena.detach(gone);
            assert!(!children(&arena, top).contains(&gone));
            assert!(arena.parent(gone).is_none());
        }
        assert_eq!(children(&arena, top), []);
        arena.append(top, b);
        assert_eq!(children(&arena, top), [b]);
        let other = arena.new_element(known::UL, Namespace::Html, AttrList::EMPTY);
        assert_eq!(arena.move_children(top, other), 1);
        assert_eq!((children(&arena, top), children(&arena, other)), (vec![], vec![b]));
    }

    #[test]
    fn order_holds_until_a_node_goes_elsewhere() {
        let mut arena = arena();
        let html = arena.new_element(known::HTML, Namespace::Html, AttrList::EMPTY);
        arena.append(NodeId::DOCUMENT, html);
        let head = arena.new_element(known::HEAD, Namespace::Html, AttrList::EMPTY);
        arena.append(html, head);
        let body = arena.new_element(known::BODY, Namespace::Html, AttrList::EMPTY);
        arena.append(html, body);
        assert!(arena.is_in_order());
        let late = arena.new_element(known::META, Namespace::Html, AttrList::EMPTY);
        arena.append(head, late);
        assert!(!arena.is_in_order());
    }

    #[test]
    fn joined_texts_cost_no_more_than_a_small_multiple() {
        let mut arena = arena();
        let text = arena.new_text(Span::of_source(0, 3));
        arena.append(NodeId::DOCUMENT, text);
        arena.add_text(text, Span::of_source(3, 6));
        assert_eq!((arena.text(arena.data(text)), arena.side.len()), ("onetwo", 0));
        let mut expected = "onetwo".to_owned();
        for n in 0..10_000 {
            let start = arena.side.len();
            arena.side.extend_from_slice(b"&");
            let one = Span::of_side(start, start + 1);
            arena.add_text(text, if n % 2 == 0 { one } else { Span::of_source(0, 3) });
            expected.push_str(if n % 2 == 0 { "&" } else { "one" });
        }
        assert_eq!(arena.text(arena.data(text)), expected);
        assert!(arena.side.len() < 20 * expected.len(), "{}", arena.side.len());
    }

    #[test]
    fn attributes_end_with_their_list() {
        let mut arena = arena();
        arena.push_attr(known::ID, Span::of_source(0, 3));
        arena.push_attr(known::CLASS, Span::of_source(3, 6));
        let list = arena.end_attrs(0);
        arena.push_attr(known::HREF, Span::of_source(6, 11));
        let other = arena.end_attrs(2);
        assert!(arena.end_attrs(3).is_empty());
        let id = arena.new_element(known::A, Namespace::Html, list);
        assert_eq!(arena.attrs(id).map(|a| a.name()).collect::<Vec<_>>(), [known::ID, known::CLASS]);
        arena.add_attrs(id, other, 9);
        assert_eq!(arena.attrs(id).map(|a| arena.text(a.value())).collect::<Vec<_>>(), ["one", "two", "three"]);
        let third = arena.attr_count();
        for name in [known::HREF, known::ALT, known::SRC, known::REL] {
            arena.push_attr(name, Span::of_source(0, 3));
        }
        let list = arena.end_attrs(third);
        assert!(arena.add_attrs(id, list, 5).is_cut);
        let names: Vec<_> = arena.attrs(id).map(|a| a.name()).collect();
        assert_eq!(names, [known::ID, known::CLASS, known::HREF, known::ALT, known::SRC]);
        arena.rename_attr(arena.attr_list(id), 1, known::TITLE);
        assert_eq!(arena.attr(id, known::TITLE), Some(Span::of_source(3, 6)));
        assert_eq!(arena.attrs(id).count(), 5);
    }
}
