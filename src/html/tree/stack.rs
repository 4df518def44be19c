//! The stack of open elements (WHATWG HTML 13.2.4.2).
//!
//! Beside the elements it keeps how many HTML elements of each usual name are open, and all about the current one: most
//! questions are answered by one load. Of those deep down it has the node only, as a page can be made of start tags alone; what
//! they are is asked of the arena.

use super::Builder;
use crate::html::arena::{Arena, Namespace, NodeId};
use crate::html::names::{self, Category, NameId, known};
use crate::html::options::ParseOptions;

/// So many open elements, from the root on, are kept as they are; pages seldom go deeper.
const KEPT: usize = 64;

/// Names below this have a count; all names of the rules do. Of others the stack is asked.
const COUNTED: usize = 256;

/// What the standard's lists say of the MathML text integration points, of `annotation-xml`, and of the HTML integration
/// points of SVG.
const INTEGRATION: Category = names::SPECIAL | names::SCOPE | names::LIST_SCOPE | names::BUTTON_SCOPE;

/// An open element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::html) struct Open {
    pub(in crate::html) node: NodeId,
    pub(in crate::html) name: NameId,
    pub(in crate::html) namespace: Namespace,
    /// The standard's lists the element is in; those of SVG and MathML are in few.
    pub(in crate::html) category: Category,
}

impl Open {
    /// What is current when nothing is open: the page itself, which ends each search.
    const NOTHING: Self = Self {
        node: NodeId::DOCUMENT,
        name: known::HTML,
        namespace: Namespace::Html,
        category: INTEGRATION | names::TABLE_SCOPE,
    };

    #[inline]
    pub(in crate::html) fn new(node: NodeId, name: NameId, namespace: Namespace) -> Self {
        let category = if namespace == Namespace::Html { names::category(name) } else { foreign_category(name, namespace) };
        Self { node, name, namespace, category }
    }

    /// An HTML element.
    #[inline]
    pub(in crate::html) fn html(node: NodeId, name: NameId) -> Self {
        Self::new(node, name, Namespace::Html)
    }

    /// A node of the arena that is an element.
    #[inline]
    fn of(arena: &Arena, node: NodeId, as_html5ever: bool) -> Self {
        let open = Self::new(node, arena.name(node), arena.namespace(node));
        if as_html5ever { open.as_html5ever() } else { open }
    }

    /// In the lists that html5ever has it in: that lacks `search` in "special", and SVG and MathML too, and has `isindex`;
    /// `annotation-xml` ends no scope.
    #[inline(never)]
    fn as_html5ever(mut self) -> Self {
        if self.namespace != Namespace::Html || self.name == known::SEARCH {
            self.category &= !names::SPECIAL;
        }
        if self.is_html(known::ISINDEX) {
            self.category |= names::SPECIAL;
        }
        if self.namespace == Namespace::MathMl && self.name == known::ANNOTATION_XML {
            self.category = 0;
        }
        self
    }

    /// Whether it is the HTML element of this name.
    #[inline]
    pub(in crate::html) fn is_html(self, name: NameId) -> bool {
        self.name == name && self.namespace == Namespace::Html
    }

    /// Whether it is in one of the lists.
    #[inline]
    pub(in crate::html) const fn is(self, category: Category) -> bool {
        self.category & category != 0
    }
}

/// The lists an element of SVG or MathML is in.
fn foreign_category(name: NameId, namespace: Namespace) -> Category {
    use known::{ANNOTATION_XML, DESC, FOREIGNOBJECT, MI, MN, MO, MS, MTEXT, TITLE};
    let is_listed = match namespace {
        Namespace::Html => false,
        Namespace::Svg => matches!(name, FOREIGNOBJECT | DESC | TITLE),
        Namespace::MathMl => matches!(name, MI | MO | MN | MS | MTEXT | ANNOTATION_XML),
    };
    if is_listed { INTEGRATION } else { 0 }
}

/// The stack of open elements, the root first.
pub(in crate::html) struct Stack {
    nodes: Vec<NodeId>,
    /// The last of them; [`Open::NOTHING`] if there is none.
    current: Open,
    /// [`Open::NOTHING`], and the first of them as they are. Those that are not open any more mean nothing.
    kept: [Open; KEPT + 1],
    #[cfg(test)]
    as_html5ever: bool,
    counts: [u32; COUNTED],
}

impl Stack {
    pub(super) fn new(options: &ParseOptions) -> Self {
        #[cfg(not(test))]
        let _ = options;
        Self {
            nodes: Vec::with_capacity(64),
            current: Open::NOTHING,
            kept: [Open::NOTHING; KEPT + 1],
            #[cfg(test)]
            as_html5ever: options.as_html5ever(),
            counts: [0; COUNTED],
        }
    }

    /// Whether the lists are those of html5ever; always false outside of tests.
    #[inline]
    const fn as_html5ever(&self) -> bool {
        #[cfg(test)]
        return self.as_html5ever;
        #[cfg(not(test))]
        return false;
    }

    #[inline]
    pub(in crate::html) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The current node; the page itself if nothing is open.
    #[inline]
    pub(in crate::html) fn current(&self) -> Open {
        self.current
    }

    /// The node of the first one: `html`.
    #[inline]
    pub(in crate::html) fn root(&self) -> NodeId {
        self.nodes.first().copied().unwrap_or(NodeId::DOCUMENT)
    }

    /// The node at a place.
    #[inline]
    pub(in crate::html) fn node(&self, index: usize) -> Option<NodeId> {
        self.nodes.get(index).copied()
    }

    /// The nodes, the root first.
    #[inline]
    pub(in crate::html) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    #[inline]
    pub(in crate::html) fn get(&self, arena: &Arena, index: usize) -> Option<Open> {
        let node = *self.nodes.get(index)?;
        Some(self.kept.get(index + 1).copied().unwrap_or_else(|| Open::of(arena, node, self.as_html5ever())))
    }

    /// All, the root first.
    #[inline]
    pub(in crate::html) fn iter(&self, arena: &Arena) -> impl DoubleEndedIterator<Item = Open> + ExactSizeIterator {
        (0..self.nodes.len()).map(|index| self.get(arena, index).unwrap_or(Open::NOTHING))
    }

    /// How many HTML elements of a name of the rules are open.
    #[inline]
    pub(in crate::html) fn count(&self, name: NameId) -> u32 {
        self.counts.get(name.0 as usize).copied().unwrap_or(0)
    }

    /// Whether an HTML element of a name may be open; surely not if this says so.
    #[inline]
    pub(in crate::html) fn may_have(&self, name: NameId) -> bool {
        self.counts.get(name.0 as usize).is_none_or(|count| *count > 0)
    }

    #[inline]
    pub(super) fn push(&mut self, open: Open) {
        self.count_one(open, 1);
        if self.nodes.len() == self.nodes.capacity() {
            self.grow();
        }
        let open = if self.as_html5ever() { open.as_html5ever() } else { open };
        self.nodes.push(open.node);
        if let Some(kept) = self.kept.get_mut(self.nodes.len()) {
            *kept = open;
        }
        self.current = open;
    }

    #[inline]
    pub(super) fn pop(&mut self, arena: &Arena) -> Open {
        let open = self.current;
        if self.nodes.pop().is_some() {
            self.count_one(open, -1);
            self.current = match self.kept.get(self.nodes.len()) {
                Some(current) => *current,
                None => self.last(arena),
            };
        }
        open
    }

    pub(super) fn remove(&mut self, arena: &Arena, index: usize) -> Option<Open> {
        let open = self.get(arena, index)?;
        self.nodes.remove(index);
        self.count_one(open, -1);
        self.keep_from(arena, index);
        Some(open)
    }

    pub(super) fn insert(&mut self, arena: &Arena, index: usize, open: Open) {
        let index = index.min(self.nodes.len());
        self.nodes.insert(index, open.node);
        self.count_one(open, 1);
        self.keep_from(arena, index);
    }

    /// Puts another element of the same name in the place of one.
    pub(super) fn replace(&mut self, arena: &Arena, index: usize, node: NodeId) {
        if let Some(open) = self.nodes.get_mut(index) {
            *open = node;
        }
        self.keep_from(arena, index);
    }

    /// Asks the arena what those from a place on are.
    fn keep_from(&mut self, arena: &Arena, index: usize) {
        let as_html5ever = self.as_html5ever();
        for (node, kept) in self.nodes.iter().zip(self.kept.iter_mut().skip(1)).skip(index) {
            *kept = Open::of(arena, *node, as_html5ever);
        }
        self.current = self.last(arena);
    }

    #[inline(never)]
    fn last(&self, arena: &Arena) -> Open {
        self.nodes.last().map_or(Open::NOTHING, |node| Open::of(arena, *node, self.as_html5ever()))
    }

    /// Makes room for an eighth more: what has no use in the end should be little.
    #[cold]
    fn grow(&mut self) {
        self.nodes.reserve_exact(self.nodes.len() / 8 + 64);
    }

    /// Bytes of memory it takes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<NodeId>()
    }

    #[inline]
    fn count_one(&mut self, open: Open, by: i32) {
        if open.namespace == Namespace::Html
            && let Some(count) = self.counts.get_mut(open.name.0 as usize)
        {
            *count = count.wrapping_add_signed(by);
        }
    }
}

impl Builder {
    /// The current node.
    #[inline]
    pub(in crate::html) fn current(&self) -> Open {
        self.stack.current()
    }

    /// Whether the current node is the HTML element of this name.
    #[inline]
    pub(in crate::html) fn is_current(&self, name: NameId) -> bool {
        self.stack.current().is_html(name)
    }

    /// The context element of a fragment while only the root is open, else the current node (13.2.4.2).
    pub(in crate::html) fn adjusted_current(&self) -> Open {
        match &self.fragment {
            Some(context) if self.stack.len() <= 1 => Open::new(NodeId::NONE, context.name, context.namespace),
            _ => self.stack.current(),
        }
    }

    /// How many HTML elements of a name of the rules are open.
    #[inline]
    pub(in crate::html) fn count(&self, name: NameId) -> u32 {
        self.stack.count(name)
    }

    #[inline]
    pub(in crate::html) fn push(&mut self, open: Open) {
        self.stack.push(open);
    }

    /// The open element at a place, the root being the first.
    #[inline]
    pub(in crate::html) fn open_at(&self, index: usize) -> Option<Open> {
        self.stack.get(&self.arena, index)
    }

    /// All open elements, the root first.
    #[inline]
    pub(in crate::html) fn open_elements(&self) -> impl DoubleEndedIterator<Item = Open> + ExactSizeIterator {
        self.stack.iter(&self.arena)
    }

    #[inline]
    pub(in crate::html) fn pop(&mut self) -> Open {
        let open = self.stack.pop(&self.arena);
        self.note_popped(open);
        open
    }

    /// "When an `option` is popped off the stack of open elements" its text may have to be shown elsewhere.
    #[inline]
    fn note_popped(&mut self, open: Open) {
        if open.name == known::OPTION && open.namespace == Namespace::Html {
            self.option_popped(open.node);
        }
    }

    /// Pops elements until so many are left.
    pub(in crate::html) fn truncate(&mut self, len: usize) {
        while self.stack.len() > len {
            self.pop();
        }
    }

    /// Takes an element out of the stack, wherever it is; those above it stay.
    pub(in crate::html) fn remove(&mut self, index: usize) {
        // Those above move down, eight in the time of a step.
        self.step((self.stack.len().saturating_sub(index) / 8) as u64);
        if let Some(open) = self.stack.remove(&self.arena, index) {
            self.note_popped(open);
        }
    }

    /// Takes an element out of the stack if it is there.
    pub(in crate::html) fn remove_node(&mut self, node: NodeId) {
        if let Some(index) = self.position(node) {
            self.remove(index);
        }
    }

    /// Where a node is in the stack.
    pub(in crate::html) fn position(&mut self, node: NodeId) -> Option<usize> {
        let position = self.stack.nodes().iter().rposition(|open| *open == node);
        self.step((self.stack.len() - position.unwrap_or(0)) as u64);
        position
    }

    /// Pops elements until an HTML element of this name has been popped. The root stays.
    pub(in crate::html) fn pop_until(&mut self, name: NameId) {
        self.pop_until_any(|open| open.is_html(name));
    }

    /// Pops elements until one that `is_last` has been popped. The root stays.
    #[inline]
    pub(in crate::html) fn pop_until_any(&mut self, is_last: impl Fn(Open) -> bool) {
        while self.stack.len() > 1 {
            if is_last(self.pop()) {
                return;
            }
        }
    }

    /// "Clear the stack back to a … context" (13.2.6.4.9, 13.2.6.4.13, 13.2.6.4.14): pops elements until the current one
    /// `is_context`. The root stays.
    #[inline]
    pub(in crate::html) fn clear_to(&mut self, is_context: impl Fn(Open) -> bool) {
        while self.stack.len() > 1 && !is_context(self.stack.current()) {
            self.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::html::arena::AttrList;

    /// An element that is open, but not yet in a stack.
    fn open(arena: &mut Arena, name: NameId, namespace: Namespace) -> Open {
        let node = arena.new_element(name, namespace, AttrList::EMPTY);
        Open::new(node, name, namespace)
    }

    #[test]
    fn counts_and_the_current_node_follow_the_stack() {
        let mut arena = Arena::new(Bytes::new());
        let [html, p, svg_p, last, div, other] = [
            (known::HTML, Namespace::Html),
            (known::P, Namespace::Html),
            (known::P, Namespace::Svg),
            (known::P, Namespace::Html),
            (known::DIV, Namespace::Html),
            (known::P, Namespace::Html),
        ]
        .map(|(name, namespace)| open(&mut arena, name, namespace));
        let mut stack = Stack::new(&ParseOptions::default());
        [html, p, svg_p, last].into_iter().for_each(|open| stack.push(open));
        assert_eq!((stack.count(known::P), stack.current()), (2, last));
        assert_eq!(stack.remove(&arena, 1), Some(p));
        assert_eq!((stack.count(known::P), stack.len()), (1, 3));
        stack.insert(&arena, 1, div);
        stack.replace(&arena, 3, other.node);
        assert_eq!(stack.current(), other);
        assert_eq!(stack.pop(&arena), other);
        assert_eq!(stack.current(), svg_p);
        assert!(!stack.may_have(known::P) && stack.may_have(known::DIV));
        assert_eq!(stack.iter(&arena).collect::<Vec<_>>(), [html, div, svg_p]);
        stack.insert(&arena, 3, p);
        assert_eq!(stack.current(), p);
        stack.remove(&arena, 3);
        assert_eq!(stack.current(), svg_p);
    }

    #[test]
    fn an_empty_stack_answers_with_the_page() {
        let arena = Arena::new(Bytes::new());
        let mut stack = Stack::new(&ParseOptions::default());
        assert_eq!((stack.current().node, stack.root()), (NodeId::DOCUMENT, NodeId::DOCUMENT));
        assert_eq!(stack.pop(&arena).node, NodeId::DOCUMENT);
        assert!(stack.remove(&arena, 0).is_none());
    }

    #[test]
    fn names_of_the_rules_have_a_count() {
        for name in [known::A, known::XMP, known::SELECTEDCONTENT, known::ANNOTATION_XML, known::PATH] {
            assert!((name.0 as usize) < COUNTED, "{name:?}");
        }
    }

    #[test]
    fn foreign_elements_are_in_the_lists_of_their_namespace_only() {
        for (name, namespace, is_special) in [
            (known::TITLE, Namespace::Svg, true),
            (known::FOREIGNOBJECT, Namespace::Svg, true),
            (known::TITLE, Namespace::MathMl, false),
            (known::MI, Namespace::MathMl, true),
            (known::ANNOTATION_XML, Namespace::MathMl, true),
            (known::MI, Namespace::Svg, false),
            (known::TABLE, Namespace::Svg, false),
        ] {
            let open = Open::new(NodeId::at(1), name, namespace);
            assert_eq!(open.is(names::SPECIAL | names::SCOPE), is_special, "{open:?}");
            assert!(!open.is(names::IMPLIED_END | names::TABLE_CONTEXT | names::TABLE_SCOPE));
        }
    }
}
