//! Links between nodes: putting them in, taking them out, and whether ids still ascend in document order.

use super::node::Node;
use super::{Arena, CHILD_IS_NEXT, Far, IS_FAR, NodeId};

impl Arena {
    /// Makes `child`, which is nowhere, the last child of `parent`.
    #[inline]
    pub(crate) fn append(&mut self, parent: NodeId, child: NodeId) {
        self.note_order(parent, child);
        let first = self.first_child(parent);
        if first.is_none() {
            self.set_first(parent, child);
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

    /// Makes a new node the last child of `parent`.
    #[inline]
    pub(super) fn push_last(&mut self, parent: NodeId, node: Node) -> NodeId {
        let id = NodeId::at(self.nodes.len());
        let first = self.first_child(parent);
        let mut prev = id;
        if first.is_none() {
            self.set_first(parent, id);
        } else {
            self.edit(first, |node| prev = std::mem::replace(&mut node.prev, id));
            self.edit(prev, |node| node.next = id);
        }
        self.note_last(parent, id);
        self.push(Node { parent, prev, ..node })
    }

    /// Puts `child`, which is nowhere, before `sibling`.
    pub(crate) fn insert_before(&mut self, sibling: NodeId, child: NodeId) {
        self.in_order = false;
        let Node { parent, prev, .. } = *self.node(sibling);
        if self.first_child(parent) == sibling {
            self.set_first(parent, child);
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
        let first = self.first_child(parent);
        if first == id {
            self.set_first(parent, next);
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
        let first = self.first_child(from);
        self.in_order = false;
        self.set_first(from, NodeId::NONE);
        self.set_first(to, first);
        let mut moved = 0;
        let mut child = first;
        while child.is_some() {
            self.edit(child, |node| node.parent = to);
            child = self.node(child).next;
            moved += 1;
        }
        moved
    }

    /// Says what the first child of an element is, or that it has none.
    #[inline]
    fn set_first(&mut self, id: NodeId, child: NodeId) {
        let head = self.node(id).head;
        if head & IS_FAR == 0 && (child.is_none() || child.0 == id.0.wrapping_add(1)) {
            let bit = if child.is_some() { CHILD_IS_NEXT } else { 0 };
            self.edit(id, |node| node.head = head & !CHILD_IS_NEXT | bit);
        } else {
            self.set_far_first(id, child);
        }
    }

    #[inline(never)]
    #[allow(clippy::cast_possible_truncation, reason = "at most one for each node")]
    fn set_far_first(&mut self, id: NodeId, child: NodeId) {
        let node = *self.node(id);
        if node.head & IS_FAR != 0 {
            if let Some(far) = self.far.get_mut(node.data as usize) {
                far.first = child;
            }
            return;
        }
        if self.far.len() == self.far.capacity() {
            self.far.reserve_exact(self.more(self.far.len()));
        }
        let place = self.far.len() as u32;
        self.far.push(Far { first: child, attrs: node.data });
        self.edit(id, |node| {
            node.data = place;
            node.head = node.head & !CHILD_IS_NEXT | IS_FAR;
        });
    }

    /// Ids ascend in document order as long as each new node goes behind the one made before it.
    #[inline]
    fn note_order(&mut self, parent: NodeId, child: NodeId) {
        self.note_last(parent, child);
        self.in_order = self.in_order && child.index() + 1 == self.nodes.len();
    }

    /// The same of a node that is made only now.
    #[inline]
    fn note_last(&mut self, parent: NodeId, child: NodeId) {
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
    }
}
