//! The stack of open elements (WHATWG HTML 13.2.4.2).
//!
//! Beside the elements it keeps how many HTML elements of each usual name are open: most questions about scopes are
//! answered by one load. It knows nothing of the tree. An entry takes eight bytes, as a page can be made of start tags alone.

use super::Builder;
use crate::html::arena::{Namespace, NodeId};
use crate::html::names::{self, Category, NameId, known};

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

/// An open element as the stack keeps it; the lists it is in are looked up again.
#[derive(Clone, Copy)]
struct Entry {
    node: NodeId,
    /// Its namespace (low 4 bits) and what differs from its lists (next 4) below its name.
    bits: u32,
}

/// It is in no list, or in those of its name but for "special": as html5ever has it, for comparison.
const IN_NO_LIST: u32 = 1 << 4;
const SPECIAL_FLIPPED: u32 = 1 << 5;

impl Entry {
    #[inline]
    fn of(open: Open) -> Self {
        let usual = Open::new(open.node, open.name, open.namespace).category;
        let differs = match open.category {
            category if category == usual => 0,
            0 => IN_NO_LIST,
            _ => SPECIAL_FLIPPED,
        };
        Self { node: open.node, bits: open.name.to_bits() << 8 | differs | open.namespace as u32 }
    }

    #[inline]
    fn open(self) -> Open {
        let namespace = match self.bits & 0xf {
            0 => Namespace::Html,
            1 => Namespace::Svg,
            _ => Namespace::MathMl,
        };
        let mut open = Open::new(self.node, NameId::from_bits(self.bits >> 8), namespace);
        if self.bits & (IN_NO_LIST | SPECIAL_FLIPPED) != 0 {
            open.category = if self.bits & IN_NO_LIST != 0 { 0 } else { open.category ^ names::SPECIAL };
        }
        open
    }
}

/// The stack of open elements, the root first.
pub(in crate::html) struct Stack {
    entries: Vec<Entry>,
    counts: [u32; COUNTED],
}

impl Stack {
    pub(super) fn new() -> Self {
        Self { entries: Vec::with_capacity(64), counts: [0; COUNTED] }
    }

    #[inline]
    pub(in crate::html) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The current node; the page itself if nothing is open.
    #[inline]
    pub(in crate::html) fn current(&self) -> Open {
        self.entries.last().map_or(Open::NOTHING, |entry| entry.open())
    }

    /// The first one: `html`.
    #[inline]
    pub(in crate::html) fn root(&self) -> Open {
        self.entries.first().map_or(Open::NOTHING, |entry| entry.open())
    }

    #[inline]
    pub(in crate::html) fn get(&self, index: usize) -> Option<Open> {
        self.entries.get(index).map(|entry| entry.open())
    }

    /// All, the root first.
    #[inline]
    pub(in crate::html) fn iter(&self) -> impl DoubleEndedIterator<Item = Open> + ExactSizeIterator {
        self.entries.iter().map(|entry| entry.open())
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
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        self.entries.push(Entry::of(open));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Open {
        match self.entries.pop() {
            Some(entry) => {
                let open = entry.open();
                self.count_one(open, -1);
                open
            }
            None => Open::NOTHING,
        }
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Open> {
        let open = self.get(index)?;
        self.entries.remove(index);
        self.count_one(open, -1);
        Some(open)
    }

    pub(super) fn insert(&mut self, index: usize, open: Open) {
        self.entries.insert(index.min(self.entries.len()), Entry::of(open));
        self.count_one(open, 1);
    }

    /// Puts another element of the same name in the place of one.
    pub(super) fn replace(&mut self, index: usize, node: NodeId) {
        if let Some(open) = self.entries.get_mut(index) {
            open.node = node;
        }
    }

    /// Makes room for an eighth more: what has no use in the end should be little.
    #[cold]
    fn grow(&mut self) {
        self.entries.reserve_exact(self.entries.len() / 8 + 64);
    }

    /// Bytes of memory it takes.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
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
        let mut open = open;
        if self.options.as_html5ever() {
            // It lacks `search` in the list "special", and SVG and MathML too, and has `isindex`; `annotation-xml` ends no
            // scope.
            if open.namespace != Namespace::Html || open.name == known::SEARCH {
                open.category &= !names::SPECIAL;
            }
            if open.is_html(known::ISINDEX) {
                open.category |= names::SPECIAL;
            }
            if open.namespace == Namespace::MathMl && open.name == known::ANNOTATION_XML {
                open.category = 0;
            }
        }
        self.stack.push(open);
    }

    #[inline]
    pub(in crate::html) fn pop(&mut self) -> Open {
        let open = self.stack.pop();
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
        if let Some(open) = self.stack.remove(index) {
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
        let position = self.stack.iter().rposition(|open| open.node == node);
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn open(node: usize, name: NameId) -> Open {
        Open::new(NodeId::at(node), name, Namespace::Html)
    }

    #[test]
    fn counts_follow_the_stack() {
        let mut stack = Stack::new();
        stack.push(open(1, known::HTML));
        stack.push(open(2, known::P));
        stack.push(Open::new(NodeId::at(3), known::P, Namespace::Svg));
        stack.push(open(4, known::P));
        assert_eq!(stack.count(known::P), 2);
        assert_eq!(stack.remove(1).unwrap().node, NodeId::at(2));
        assert_eq!((stack.count(known::P), stack.len()), (1, 3));
        stack.insert(1, open(5, known::DIV));
        stack.replace(3, NodeId::at(9));
        assert_eq!(stack.pop(), open(9, known::P));
        assert!(!stack.may_have(known::P) && stack.may_have(known::DIV));
        assert_eq!(stack.iter().map(|open| open.node.index()).collect::<Vec<_>>(), [1, 5, 3]);
    }

    #[test]
    fn an_empty_stack_answers_with_the_page() {
        let mut stack = Stack::new();
        assert_eq!(stack.current().node, NodeId::DOCUMENT);
        assert_eq!(stack.pop().node, NodeId::DOCUMENT);
        assert!(stack.remove(0).is_none());
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
