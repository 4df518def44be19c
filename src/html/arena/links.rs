//! Links between nodes: putting them in, taking them out, and whether ids still ascend in document order.

use super::node::Node;
use super::{Arena, NodeId};

impl Arena {
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
