//! The axes (XPath 1.0, 2.2) from one node, and the node tests (2.3). Attributes are nodes whose parent is their element; the
//! doctype is no node here, and the namespace axis is empty.

use super::ast::Axis;
use super::eval::{Eval, Res};
use super::plan::{Name, Test};
use crate::html::arena::{Arena, Kind, Namespace, NodeId};
use crate::html::hit::Hit;
use crate::html::names::NameId;

/// The name no node has.
const NO_NAME: NameId = NameId(u32::MAX);

/// A node test with the names of this page.
#[derive(Clone, Copy, Debug)]
pub(super) enum Check {
    Any,
    Parent,
    Namespace(Namespace),
    Element(NameId),
    ElementOfCase(NameId, NameId),
    ElementIn(Namespace, NameId),
    Node,
    Text,
    Comment,
    Instruction,
    InstructionOf(NameId),
    Nothing,
}

impl Check {
    #[inline]
    pub(super) fn holds(self, arena: &Arena, id: NodeId) -> bool {
        match self {
            Self::Element(name) => arena.is_element(id) && arena.name(id) == name,
            Self::Any => arena.is_element(id),
            Self::Node => arena.kind(id) != Kind::Doctype,
            Self::Text => arena.is_text(id),
            Self::ElementOfCase(html, other) => {
                let name = if arena.namespace(id) == Namespace::Html { html } else { other };
                arena.is_element(id) && arena.name(id) == name
            }
            Self::Namespace(namespace) => arena.is_element(id) && arena.namespace(id) == namespace,
            Self::ElementIn(namespace, name) => {
                arena.is_element(id) && arena.name(id) == name && arena.namespace(id) == namespace
            }
            Self::Comment => arena.kind(id) == Kind::Comment,
            Self::Instruction => arena.kind(id) == Kind::ProcessingInstruction,
            Self::InstructionOf(target) => arena.kind(id) == Kind::ProcessingInstruction && arena.name(id) == target,
            Self::Parent => arena.first_child(id).is_some(),
            Self::Nothing => false,
        }
    }
}

impl<'e> Eval<'e> {
    fn name(&self, name: Name) -> NameId {
        match name {
            Name::Known(id) => id,
            Name::Listed(place) => self.names.get(place).copied().flatten().unwrap_or(NO_NAME),
        }
    }

    /// The test of nodes that are no attributes.
    pub(super) fn check(&self, test: Test) -> Check {
        match test {
            Test::Any => Check::Any,
            Test::Parent => Check::Parent,
            Test::Namespace(namespace) => Check::Namespace(namespace),
            Test::Element(name) => Check::Element(self.name(name)),
            Test::ElementOfCase(html, other) => Check::ElementOfCase(self.name(html), self.name(other)),
            Test::ElementIn(namespace, name) => Check::ElementIn(namespace, self.name(name)),
            Test::Node => Check::Node,
            Test::Text => Check::Text,
            Test::Comment => Check::Comment,
            Test::Instruction => Check::Instruction,
            Test::InstructionOf(name) => Check::InstructionOf(self.name(name)),
            Test::Attr(_) | Test::AttrOfCase(..) | Test::Nothing => Check::Nothing,
        }
    }

    /// The name a test of attributes asks for on this element; the outer `None` is any name.
    pub(super) fn attr_name(&self, test: Test, owner: NodeId) -> Option<NameId> {
        match test {
            Test::Any | Test::Node => None,
            Test::Attr(name) => Some(self.name(name)),
            Test::AttrOfCase(html, other) => {
                Some(self.name(if self.arena.namespace(owner) == Namespace::Html { html } else { other }))
            }
            _ => Some(NO_NAME),
        }
    }

    /// Calls `found` with the nodes of an axis that pass the test, in the order of the axis (2.4), until it gives `false`.
    #[inline]
    pub(super) fn axis(&self, axis: Axis, test: Test, from: Hit, mut found: impl FnMut(Hit) -> Res<bool>) -> Res<()> {
        let node = match from {
            Hit::Node(node) => node,
            Hit::Attr { owner, .. } => return self.axis_of_attr(axis, test, from, owner, &mut found),
        };
        let arena = self.arena;
        match axis {
            Axis::Attribute => self.attributes(test, node, &mut found),
            Axis::Child => self.chain(test, arena.first_child(node), |id| arena.next(id), found),
            Axis::Descendant => self.descendants(test, node, arena.following(node, node), found),
            Axis::DescendantOrSelf => self.descendants(test, node, node, found),
            Axis::Itself => self.chain(test, node, |_| NodeId::NONE, found),
            Axis::Parent => self.chain(test, arena.parent(node), |_| NodeId::NONE, found),
            Axis::Ancestor => self.chain(test, arena.parent(node), |id| arena.parent(id), found),
            Axis::AncestorOrSelf => self.chain(test, node, |id| arena.parent(id), found),
            Axis::FollowingSibling => self.chain(test, arena.next(node), |id| arena.next(id), found),
            Axis::PrecedingSibling => self.chain(test, arena.prev(node), |id| arena.prev(id), found),
            Axis::Following => self.onwards(test, self.behind(node)?, found),
            Axis::Preceding => self.preceding(test, node, found),
            Axis::Namespace => Ok(()),
        }
    }

    /// The axes from an attribute: it has a parent and a place in document order, but neither children nor siblings.
    fn axis_of_attr(&self, axis: Axis, test: Test, from: Hit, owner: NodeId, found: &mut dyn FnMut(Hit) -> Res<bool>) -> Res<()> {
        let arena = self.arena;
        match axis {
            Axis::Itself | Axis::DescendantOrSelf | Axis::AncestorOrSelf => {
                self.charge(1)?;
                // Elements are the principal type of these axes, so only node() holds.
                let goes_on = test != Test::Node || found(from)?;
                if goes_on && axis == Axis::AncestorOrSelf {
                    return self.chain(test, owner, |id| arena.parent(id), found);
                }
                Ok(())
            }
            Axis::Parent => self.chain(test, owner, |_| NodeId::NONE, found),
            Axis::Ancestor => self.chain(test, owner, |id| arena.parent(id), found),
            Axis::Following => self.onwards(test, arena.following(owner, NodeId::DOCUMENT), found),
            Axis::Preceding => self.preceding(test, owner, found),
            Axis::Attribute
            | Axis::Child
            | Axis::Descendant
            | Axis::FollowingSibling
            | Axis::PrecedingSibling
            | Axis::Namespace => Ok(()),
        }
    }

    fn attributes(&self, test: Test, owner: NodeId, found: &mut impl FnMut(Hit) -> Res<bool>) -> Res<()> {
        let wanted = self.attr_name(test, owner);
        let mut visited = 1;
        for (place, attr) in (0_u32..).zip(self.arena.attrs(owner)) {
            visited += 1;
            if wanted.is_none_or(|wanted| attr.name() == wanted) && !found(Hit::Attr { owner, place })? {
                break;
            }
        }
        self.charge(visited)
    }

    /// From link to link.
    #[inline]
    fn chain(
        &self,
        test: Test,
        first: NodeId,
        next: impl Fn(NodeId) -> NodeId,
        mut found: impl FnMut(Hit) -> Res<bool>,
    ) -> Res<()> {
        let check = self.check(test);
        let mut id = first;
        while id.is_some() {
            self.charge(1)?;
            if check.holds(self.arena, id) && !found(Hit::Node(id))? {
                break;
            }
            id = next(id);
        }
        Ok(())
    }

    /// `first` and all that follows it below `root`.
    #[inline]
    fn descendants(&self, test: Test, root: NodeId, first: NodeId, found: impl FnMut(Hit) -> Res<bool>) -> Res<()> {
        if first.is_none() {
            return Ok(());
        }
        if !self.arena.is_in_order() {
            return self.chain(test, first, |id| self.arena.following(id, root), found);
        }
        self.scan(test, first, root, found)
    }

    /// The node that follows in document order and is not below this one.
    pub(super) fn behind(&self, node: NodeId) -> Res<NodeId> {
        let mut id = node;
        while id.is_some() {
            self.charge(1)?;
            let next = self.arena.next(id);
            if next.is_some() {
                return Ok(next);
            }
            id = self.arena.parent(id);
        }
        Ok(NodeId::NONE)
    }

    /// `first` and all that follows it.
    pub(super) fn onwards(&self, test: Test, first: NodeId, found: impl FnMut(Hit) -> Res<bool>) -> Res<()> {
        self.descendants(test, NodeId::DOCUMENT, first, found)
    }

    /// The ids from `first` on below `root`, of a tree whose ids ascend in document order.
    #[inline]
    fn scan(&self, test: Test, first: NodeId, root: NodeId, found: impl FnMut(Hit) -> Res<bool>) -> Res<()> {
        let arena = self.arena;
        // The usual tests get loops of their own.
        match self.check(test) {
            Check::Element(name) => self.scan_for(|id| arena.name(id) == name && arena.is_element(id), first, root, found),
            Check::Text => self.scan_for(|id| arena.is_text(id), first, root, found),
            Check::Any => self.scan_for(|id| arena.is_element(id), first, root, found),
            check => self.scan_for(|id| check.holds(arena, id), first, root, found),
        }
    }

    #[inline]
    fn scan_for(
        &self,
        holds: impl Fn(NodeId) -> bool,
        first: NodeId,
        root: NodeId,
        mut found: impl FnMut(Hit) -> Res<bool>,
    ) -> Res<()> {
        // Charged for piece by piece: a step is only a comparison here.
        const PIECE: usize = 1_024;
        let arena = self.arena;
        let is_whole = root == NodeId::DOCUMENT;
        let end = arena.len();
        let mut at = first.index();
        while at < end {
            let stop = end.min(at + PIECE);
            for index in at..stop {
                let id = NodeId::at(index);
                // The first node behind a subtree is also the first whose parent comes before its root.
                let is_outside = !is_whole && id != root && arena.parent(id) < root;
                if is_outside || (holds(id) && !found(Hit::Node(id))?) {
                    return self.charge(index - at + 1);
                }
            }
            self.charge(stop - at)?;
            at = stop;
        }
        Ok(())
    }

    /// All before a node that is not above it, from the nearest on.
    fn preceding(&self, test: Test, node: NodeId, mut found: impl FnMut(Hit) -> Res<bool>) -> Res<()> {
        let (arena, check) = (self.arena, self.check(test));
        if arena.is_in_order() {
            let mut above = arena.parent(node);
            for id in (0..node.index()).rev().map(NodeId::at) {
                self.charge(1)?;
                if id == above {
                    above = arena.parent(above);
                } else if check.holds(arena, id) && !found(Hit::Node(id))? {
                    return Ok(());
                }
            }
            return Ok(());
        }
        let mut above = node;
        while above.is_some() {
            let parent = arena.parent(above);
            // The subtrees of the siblings before, each from its last node back.
            let mut sibling = arena.prev(above);
            while sibling.is_some() {
                let mut id = self.last_below(sibling)?;
                loop {
                    self.charge(1)?;
                    if check.holds(arena, id) && !found(Hit::Node(id))? {
                        return Ok(());
                    }
                    if id == sibling {
                        break;
                    }
                    let prev = arena.prev(id);
                    id = if prev.is_some() { self.last_below(prev)? } else { arena.parent(id) };
                }
                sibling = arena.prev(sibling);
            }
            self.charge(1)?;
            above = parent;
        }
        Ok(())
    }

    /// The last node of a subtree.
    fn last_below(&self, root: NodeId) -> Res<NodeId> {
        let mut id = root;
        loop {
            let last = self.arena.last_child(id);
            if last.is_none() {
                return Ok(id);
            }
            self.charge(1)?;
            id = last;
        }
    }
}
