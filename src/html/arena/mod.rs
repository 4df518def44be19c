//! The arena: the nodes of one page in one vector, linked by number; text and values as spans.
//!
//! Links are the tree construction's business; here they are only kept consistent. Nothing recurses, and dropping a page
//! drops a few vectors.

mod attrs;
mod links;
mod node;
mod scan;
mod text;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::names::{Interner, NameId};
use super::span::Span;

use node::{CHILD_IS_NEXT, Far, IS_FAR, IS_LONG, MOST_SHORT, NODE, NOWHERE, Node};

pub(crate) use attrs::{Attr, AttrList};
pub use node::Namespace;
pub(crate) use node::{Kind, NodeId};

/// Bytes of memory of a node.
pub(crate) const NODE_BYTES: usize = size_of::<Node>();

/// The nodes of a page, with what their spans point to.
#[derive(Debug)]
pub(crate) struct Arena {
    source: Bytes,
    /// Bytes that do not stand in the source as they are: decoded references, lower-cased names, joined texts.
    pub(crate) side: Vec<u8>,
    nodes: Vec<Node>,
    /// Of elements whose first child is not the node made right after them.
    far: Vec<Far>,
    /// Spans that their nodes have no room for: of processing instructions, of joined texts and of long ones.
    long: Vec<Span>,
    attrs: Vec<Attr>,
    names: Interner,
    /// Elements whose attributes were added to, with the room their list has: one `html` and one `body` at most.
    roomy: Vec<(NodeId, usize)>,
    /// How many bytes of the source were read.
    read: usize,
    /// From so many nodes on there is made room for few more at a time.
    many: usize,
    /// Whether ids ascend in document order, and every node is in the tree.
    in_order: bool,
}

impl Arena {
    /// An arena with the document node only. The source is UTF-8 and at most [`super::span::MOST_BYTES`] long.
    pub(crate) fn new(source: Bytes) -> Self {
        let mut nodes = Vec::with_capacity(source.len() / 20 + 16);
        nodes.push(Node { head: Kind::Document as u32, ..NODE });
        let attrs = Vec::with_capacity((source.len() / 32).min(64) + 8);
        let (side, far, long) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            source,
            side,
            nodes,
            far,
            long,
            attrs,
            names: Interner::new(),
            roomy: Vec::new(),
            read: 0,
            many: usize::MAX,
            in_order: true,
        }
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
        match self.node(id).head >> 4 & 3 {
            0 => Namespace::Html,
            1 => Namespace::Svg,
            _ => Namespace::MathMl,
        }
    }

    /// Whether the node is the HTML element of this name.
    #[inline]
    pub(crate) fn is_html(&self, id: NodeId, name: NameId) -> bool {
        self.node(id).head & !(CHILD_IS_NEXT | IS_FAR) == name.0 << 8 | (Namespace::Html as u32) << 4 | Kind::Element as u32
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
        match node.head & (CHILD_IS_NEXT | IS_FAR) {
            0 => NodeId::NONE,
            CHILD_IS_NEXT => NodeId(id.0.wrapping_add(1)),
            _ => self.far.get(node.data as usize).map_or(NodeId::NONE, |far| far.first),
        }
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
        let (far, long) = (self.far.capacity() * size_of::<Far>(), self.long.capacity() * size_of::<Span>());
        nodes + attrs + far + long + self.side.capacity() + self.names.heap_bytes()
    }

    /// Whether ids ascend in document order, and every node is in the tree.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// The id of the name that lies at `span`.
    #[inline]
    pub(crate) fn intern(&mut self, span: Span) -> NameId {
        let (source, side): (&[u8], &[u8]) = (&self.source, &self.side);
        let bytes = |span: Span| {
            let buffer = if span.is_side() { side } else { source };
            buffer.get(span.start()..span.end()).unwrap_or_default()
        };
        let buffer = if span.is_side() { side } else { source };
        self.names.intern(buffer.get(span.start()..).unwrap_or_default(), span, bytes)
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

    #[inline]
    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId::at(self.nodes.len());
        if self.nodes.len() == self.nodes.capacity() {
            self.grow();
        }
        self.nodes.push(node);
        id
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.nodes.len();
        let most = self.many.saturating_sub(len).max(len / 128 + 16);
        self.nodes.reserve_exact(self.more(len).min(most));
    }

    /// From so many nodes on there is to be made room for few more at a time.
    pub(crate) fn slow_down_at(&mut self, nodes: usize) {
        self.many = nodes;
    }

    /// Bytes of memory that the nodes may take beside those they have when they are next given room.
    pub(crate) fn next_growth(&self) -> usize {
        (self.nodes.len() / 128 + 16) * NODE_BYTES
    }

    /// How many more there should be room for, of something that there are `len` of: as many as there will be if the page goes on as
    /// it began, and twice as many as now at most. What has no use in the end should be little.
    fn more(&self, len: usize) -> usize {
        let expected = len.saturating_mul(self.source.len()) / self.read.max(1);
        (expected + expected / 64).saturating_sub(len).clamp(len / 16 + 16, len + 16)
    }

    /// Says how far the source was read; makes no difference but to how memory is asked for.
    #[inline]
    pub(crate) fn note_read(&mut self, bytes: usize) {
        self.read = bytes;
    }

    /// An element that is nowhere yet.
    #[inline]
    pub(crate) fn new_element(&mut self, name: NameId, namespace: Namespace, attrs: AttrList) -> NodeId {
        self.push(element(name, namespace, attrs))
    }

    /// A new element that is the last child of `parent`.
    #[inline]
    pub(crate) fn append_element(&mut self, parent: NodeId, name: NameId, namespace: Namespace, attrs: AttrList) -> NodeId {
        self.push_last(parent, element(name, namespace, attrs))
    }

    /// A text node, a comment or a processing instruction (with its target) that is nowhere yet.
    #[inline]
    pub(crate) fn new_data(&mut self, kind: Kind, target: NameId, data: Span) -> NodeId {
        let node = self.data_node(kind, target, data);
        self.push(node)
    }

    #[inline]
    fn data_node(&mut self, kind: Kind, target: NameId, data: Span) -> Node {
        if kind == Kind::ProcessingInstruction || data.len() > MOST_SHORT {
            return self.long_node(kind, target, data);
        }
        let (start, len) = data.raw();
        Node { data: start, head: len << 8 | kind as u32, ..NODE }
    }

    #[cold]
    fn long_node(&mut self, kind: Kind, target: NameId, data: Span) -> Node {
        let target = if kind == Kind::ProcessingInstruction { target.0 } else { 0 };
        let place = self.push_long(data);
        Node { data: place, head: target << 8 | IS_LONG | kind as u32, ..NODE }
    }

    /// A text node that is nowhere yet.
    #[inline]
    pub(crate) fn new_text(&mut self, data: Span) -> NodeId {
        self.new_data(Kind::Text, NameId(0), data)
    }

    /// A new text node that is the last child of `parent`.
    #[inline]
    pub(crate) fn append_text(&mut self, parent: NodeId, data: Span) -> NodeId {
        let node = self.data_node(Kind::Text, NameId(0), data);
        self.push_last(parent, node)
    }

    /// A doctype that is nowhere yet.
    pub(crate) fn new_doctype(&mut self) -> NodeId {
        self.push(Node { head: Kind::Doctype as u32, ..NODE })
    }
}

#[inline]
const fn element(name: NameId, namespace: Namespace, attrs: AttrList) -> Node {
    Node { data: attrs.0, head: name.to_bits() << 8 | (namespace as u32) << 4 | Kind::Element as u32, ..NODE }
}
