//! A parsed page, and its nodes as seen from outside.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;

use super::arena::{Arena, Kind, Namespace, NodeId};
use super::limits::Exceeded;
use super::span::Span;

/// A parsed page: owns its text and its tree, and can be shared between threads.
///
/// ```
/// use dragline::html::Document;
///
/// let page = Document::parse("<title>Tides &amp; tables</title><p>one<p id=2>two");
/// let body = page.body().unwrap();
/// let texts: Vec<String> = body.children().map(|child| child.text()).collect();
/// assert_eq!(texts, ["one", "two"]);
/// assert_eq!(body.last_child().unwrap().attr("id"), Some("2"));
/// ```
pub struct Document {
    pub(super) arena: Arena,
    pub(super) doctype: Option<Doctype>,
    pub(super) quirks: QuirksMode,
    pub(super) exceeded: Exceeded,
    pub(super) steps: u64,
    /// Controls and the forms they belong to, where those are not around them; ascending.
    pub(super) owners: Vec<(NodeId, NodeId)>,
    /// The place of each node in document order; made when first needed, and only for trees out of order.
    pub(super) order: OnceLock<Vec<u32>>,
    /// Bytes of memory that the parse took beside the tree.
    #[cfg(test)]
    pub(super) parse_bytes: usize,
}

/// The document type declaration, as written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doctype {
    pub(crate) name: Span,
    pub(crate) public_id: Option<Span>,
    pub(crate) system_id: Option<Span>,
}

/// Whether a page is laid out by old rules (WHATWG DOM, "quirks mode"); class names and ids of selectors do not depend on
/// letter case then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuirksMode {
    /// The standard's rules.
    #[default]
    No,
    /// The standard's rules but for tables.
    Limited,
    /// Old rules.
    Quirks,
}

impl Document {
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The document node, the parent of the doctype, of comments and of `html`.
    #[must_use]
    pub fn root(&self) -> NodeRef<'_> {
        NodeRef { document: self, id: NodeId::DOCUMENT }
    }

    /// The document element: `html` of a page.
    #[must_use]
    pub fn document_element(&self) -> Option<NodeRef<'_>> {
        self.root().children().find(NodeRef::is_element)
    }

    /// The `body` of a page, if it has one and no frames.
    #[must_use]
    pub fn body(&self) -> Option<NodeRef<'_>> {
        self.document_element()?.children().find(|child| child.name() == Some("body"))
    }

    /// The mode its doctype puts the page in.
    #[must_use]
    pub fn quirks_mode(&self) -> QuirksMode {
        self.quirks
    }

    /// The bounds the page has met.
    #[must_use]
    pub fn exceeded(&self) -> Exceeded {
        self.exceeded
    }

    /// Steps through lists of open elements that the parse took: what [`Limits::steps`](super::Limits::steps) bounds.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The nodes that were made, the document included.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.arena.len()
    }

    /// The text the page was parsed from, line ends normalised.
    #[must_use]
    pub fn source(&self) -> &Bytes {
        self.arena.source()
    }

    /// The bytes of the page, for what is bounded by its size. A tree without its source has two for each node, as few pages do.
    pub(crate) fn byte_count(&self) -> u64 {
        (self.arena.source().len() + self.arena.side.len()).max(2 * self.arena.len()) as u64
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<NodeRef<'_>> {
        id.is_some().then_some(NodeRef { document: self, id })
    }

    /// The place of a node in document order: comparable with that of any other node of the page.
    #[inline]
    pub(crate) fn place(&self, id: NodeId) -> u32 {
        if self.arena.is_in_order() {
            #[allow(clippy::cast_possible_truncation, reason = "at most 2³¹ nodes")]
            return id.index() as u32;
        }
        let order = self.order.get_or_init(|| {
            let mut order = vec![u32::MAX; self.arena.len()];
            let mut id = NodeId::DOCUMENT;
            let mut place = 0;
            while id.is_some() {
                if let Some(slot) = order.get_mut(id.index()) {
                    *slot = place;
                }
                place += 1;
                id = self.arena.following(id, NodeId::DOCUMENT);
            }
            order
        });
        order.get(id.index()).copied().unwrap_or(u32::MAX)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("nodes", &self.node_count()).field("exceeded", &self.exceeded).finish_non_exhaustive()
    }
}

/// What a node of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeKind {
    /// The page itself.
    Document,
    /// An element.
    Element,
    /// Text between tags.
    Text,
    /// A comment.
    Comment,
    /// `<?target data>`.
    ProcessingInstruction,
    /// `<!DOCTYPE …>`.
    Doctype,
}

/// A node of a page. Two are equal when they are the same node of the same page.
#[derive(Clone, Copy)]
pub struct NodeRef<'d> {
    pub(crate) document: &'d Document,
    pub(crate) id: NodeId,
}

impl<'d> NodeRef<'d> {
    fn at(self, id: NodeId) -> Option<Self> {
        self.document.node(id)
    }

    fn arena(self) -> &'d Arena {
        &self.document.arena
    }

    /// The page it is a node of.
    #[must_use]
    pub fn document(self) -> &'d Document {
        self.document
    }

    /// What it is.
    #[must_use]
    pub fn kind(self) -> NodeKind {
        match self.arena().kind(self.id) {
            Kind::Document => NodeKind::Document,
            Kind::Element => NodeKind::Element,
            Kind::Text => NodeKind::Text,
            Kind::Comment => NodeKind::Comment,
            Kind::ProcessingInstruction => NodeKind::ProcessingInstruction,
            Kind::Doctype => NodeKind::Doctype,
        }
    }

    /// Whether it is an element.
    #[must_use]
    pub fn is_element(&self) -> bool {
        self.arena().is_element(self.id)
    }

    /// The local name of an element, in lower case but for some of SVG; the target of a processing instruction.
    #[must_use]
    pub fn name(self) -> Option<&'d str> {
        matches!(self.kind(), NodeKind::Element | NodeKind::ProcessingInstruction)
            .then(|| self.arena().name_text(self.arena().name(self.id)))
    }

    /// The namespace of an element.
    #[must_use]
    pub fn namespace(self) -> Option<Namespace> {
        self.is_element().then(|| self.arena().namespace(self.id))
    }

    /// What it is in: the page for `html`, nothing for the page.
    #[must_use]
    pub fn parent(self) -> Option<Self> {
        self.at(self.arena().parent(self.id))
    }

    /// Its first child.
    #[must_use]
    pub fn first_child(self) -> Option<Self> {
        self.at(self.arena().first_child(self.id))
    }

    /// Its last child.
    #[must_use]
    pub fn last_child(self) -> Option<Self> {
        self.at(self.arena().last_child(self.id))
    }

    /// The sibling before it.
    #[must_use]
    pub fn prev_sibling(self) -> Option<Self> {
        self.at(self.arena().prev(self.id))
    }

    /// The sibling behind it.
    #[must_use]
    pub fn next_sibling(self) -> Option<Self> {
        self.at(self.arena().next(self.id))
    }

    /// Its children, in order. The content of a `template` counts as its children.
    pub fn children(self) -> impl Iterator<Item = NodeRef<'d>> + use<'d> {
        std::iter::successors(self.first_child(), |child| child.next_sibling())
    }

    /// What it is in, from the inside out.
    pub fn ancestors(self) -> impl Iterator<Item = NodeRef<'d>> + use<'d> {
        std::iter::successors(self.parent(), |node| node.parent())
    }

    /// All below it, in document order.
    pub fn descendants(self) -> impl Iterator<Item = NodeRef<'d>> + use<'d> {
        let next = move |node: Self| self.at(self.arena().following(node.id, self.id));
        std::iter::successors(next(self), move |node| next(*node))
    }

    /// The value of an attribute, by its name as the page has it (lower case in HTML).
    #[must_use]
    pub fn attr(self, name: &str) -> Option<&'d str> {
        let arena = self.arena();
        let name = arena.find_name(name)?;
        arena.attr(self.id, name).map(|value| arena.text(value))
    }

    /// Its attributes, names and values, in the order of the source.
    pub fn attrs(self) -> impl Iterator<Item = (&'d str, &'d str)> + use<'d> {
        let arena = self.arena();
        arena.attrs(self.id).map(|attr| (arena.name_text(attr.name()), arena.text(attr.value())))
    }

    /// The text of a text node, of a comment or of a processing instruction.
    #[must_use]
    pub fn data(self) -> Option<&'d str> {
        matches!(self.kind(), NodeKind::Text | NodeKind::Comment | NodeKind::ProcessingInstruction)
            .then(|| self.arena().text(self.arena().data(self.id)))
    }

    /// All text below it (of a text node its own), as it stands: the DOM's `textContent`.
    #[must_use]
    pub fn text(self) -> String {
        if let Some(data) = self.data() {
            return data.to_owned();
        }
        let mut text = String::new();
        for node in self.descendants().filter(|node| node.kind() == NodeKind::Text) {
            text.push_str(node.data().unwrap_or_default());
        }
        text
    }
}

impl PartialEq for NodeRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.document, other.document) && self.id == other.id
    }
}

impl Eq for NodeRef<'_> {}

impl fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.data()) {
            (Some(name), _) => write!(f, "<{name}>"),
            (None, Some(data)) => write!(f, "{data:?}"),
            (None, None) => write!(f, "{:?}", self.kind()),
        }
    }
}
