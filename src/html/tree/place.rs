//! Creating and inserting nodes (WHATWG HTML 13.2.6.1): the appropriate place, foster parenting, and joined texts.

use super::{Builder, Open};
use crate::html::arena::{AttrList, Kind, Namespace, NodeId};
use crate::html::names::{self, NameId, known};
use crate::html::span::Span;
use crate::html::tokenizer::Tag;

/// Where a node goes: to the end of a node, or before one of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) parent: NodeId,
    /// None: to the end.
    pub(super) before: NodeId,
}

impl Place {
    const fn end_of(parent: NodeId) -> Self {
        Self { parent, before: NodeId::NONE }
    }
}

impl Builder {
    /// Inserts an HTML element for a start tag; it is current now.
    #[inline]
    pub(in crate::html) fn insert_html_element(&mut self, tag: Tag) -> NodeId {
        let node = self.insert_void(tag);
        self.push(Open::html(node, tag.name));
        node
    }

    /// Inserts an HTML element for a start tag and pops it at once.
    #[inline]
    pub(in crate::html) fn insert_void(&mut self, tag: Tag) -> NodeId {
        self.insert_element(tag, Namespace::Html)
    }

    /// Inserts an HTML element "for a start tag token with no attributes"; it is current now.
    pub(in crate::html) fn insert_phantom(&mut self, name: NameId) -> NodeId {
        self.insert_html_element(Tag { name, attrs: AttrList::EMPTY, self_closing: false })
    }

    /// Inserts an element of SVG or MathML for a tag whose names are adjusted; it is current now.
    pub(in crate::html) fn insert_foreign(&mut self, tag: Tag, namespace: Namespace) -> NodeId {
        let node = self.insert_element(tag, namespace);
        self.push(Open::new(node, tag.name, namespace));
        node
    }

    /// "Insert a comment".
    pub(in crate::html) fn insert_comment(&mut self, text: Span) {
        let node = self.new_comment(text);
        self.insert_node(node);
    }

    /// "Insert a comment" as the last child of a node.
    pub(in crate::html) fn insert_comment_in(&mut self, parent: NodeId, text: Span) {
        let node = self.new_comment(text);
        self.arena.append(parent, node);
    }

    pub(super) fn new_comment(&mut self, text: Span) -> NodeId {
        self.arena.new_data(Kind::Comment, NameId(0), text)
    }

    /// Inserts a processing instruction as a comment is inserted (whatwg/html 12118, June 2026).
    pub(in crate::html) fn insert_pi(&mut self, target: NameId, data: Span) {
        let node = self.arena.new_data(Kind::ProcessingInstruction, target, data);
        self.insert_node(node);
    }

    /// Inserts a processing instruction as the last child of a node.
    pub(in crate::html) fn insert_pi_in(&mut self, parent: NodeId, target: NameId, data: Span) {
        let node = self.arena.new_data(Kind::ProcessingInstruction, target, data);
        self.arena.append(parent, node);
    }

    /// "Insert a character", for a run of them: joined with the text before that place.
    #[inline]
    pub(in crate::html) fn insert_text(&mut self, text: Span) {
        if self.foster_parenting {
            return self.insert_fostered_text(text);
        }
        let parent = self.stack.current().node;
        let last = self.arena.last_child(parent);
        if self.arena.is_text(last) {
            self.arena.add_text(last, text);
        } else if parent != NodeId::DOCUMENT {
            self.arena.append_text(parent, text);
        }
    }

    fn insert_fostered_text(&mut self, text: Span) {
        let place = self.appropriate_place(self.stack.current());
        let beside = match place.before.some() {
            Some(before) => self.arena.prev(before),
            None => self.arena.last_child(place.parent),
        };
        if self.arena.is_text(beside) {
            self.arena.add_text(beside, text);
        } else if place.parent != NodeId::DOCUMENT {
            let node = self.arena.new_text(text);
            self.insert_at(place, node);
        }
    }

    /// Makes an element at the appropriate place.
    #[inline]
    fn insert_element(&mut self, tag: Tag, namespace: Namespace) -> NodeId {
        if self.has_place_elsewhere() {
            let node = self.arena.new_element(tag.name, namespace, tag.attrs);
            self.insert_node_elsewhere(node);
            return node;
        }
        self.arena.append_element(self.stack.current().node, tag.name, namespace, tag.attrs)
    }

    /// Whether the appropriate place may be another one than the end of the current node.
    #[inline]
    fn has_place_elsewhere(&self) -> bool {
        self.foster_parenting || self.stack.len() > self.budget.depth
    }

    /// Puts a node at the appropriate place.
    #[inline]
    pub(super) fn insert_node(&mut self, node: NodeId) {
        if self.has_place_elsewhere() {
            self.insert_node_elsewhere(node);
        } else {
            self.arena.append(self.stack.current().node, node);
        }
    }

    #[inline(never)]
    fn insert_node_elsewhere(&mut self, node: NodeId) {
        let mut place = self.appropriate_place(self.stack.current());
        if self.stack.len() > self.budget.depth && place.before.is_none() {
            // As in Blink: beside the current node, not in it; the stack stays as it is. Text still goes into it.
            self.exceeded.depth = true;
            place.parent = self.arena.parent(place.parent).some().unwrap_or(place.parent);
        }
        self.insert_at(place, node);
    }

    /// Puts a node at the appropriate place "with an override target".
    pub(super) fn insert_node_at(&mut self, target: Open, node: NodeId) {
        let place = self.appropriate_place(target);
        self.insert_at(place, node);
    }

    fn insert_at(&mut self, place: Place, node: NodeId) {
        match place.before.some() {
            Some(before) => self.arena.insert_before(before, node),
            None => self.arena.append(place.parent, node),
        }
    }

    /// "The appropriate place for inserting a node". The content of a template is its children here.
    pub(super) fn appropriate_place(&mut self, target: Open) -> Place {
        if !self.foster_parenting || !target.is(names::TABLE_CONTEXT) {
            return Place::end_of(target.node);
        }
        if self.stack.count(known::TABLE) == 0 && self.stack.count(known::TEMPLATE) == 0 {
            return Place::end_of(self.stack.root());
        }
        let mut steps = 0;
        let mut found = Place::end_of(self.stack.root());
        for (index, open) in self.open_elements().enumerate().rev() {
            steps += 1;
            if open.is_html(known::TEMPLATE) {
                found = Place::end_of(open.node);
                break;
            }
            if open.is_html(known::TABLE) {
                let parent = self.arena.parent(open.node);
                found = match parent.some() {
                    Some(parent) => Place { parent, before: open.node },
                    None => Place::end_of(index.checked_sub(1).and_then(|above| self.stack.node(above)).unwrap_or(parent)),
                };
                break;
            }
        }
        self.step(steps);
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::super::tests::builder;
    use super::*;
    use known::*;

    fn node_of(builder: &Builder, index: usize) -> NodeId {
        builder.stack.node(index).unwrap_or(NodeId::NONE)
    }

    #[test]
    fn misplaced_content_of_a_table_goes_before_it() {
        let mut builder = builder(&[HTML, BODY, TABLE, TBODY]);
        let table = node_of(&builder, 2);
        let target = builder.current();
        assert_eq!(builder.appropriate_place(target), Place::end_of(target.node));
        builder.foster_parenting = true;
        let body = node_of(&builder, 1);
        assert_eq!(builder.appropriate_place(target), Place { parent: body, before: table });
        builder.arena.detach(table);
        assert_eq!(builder.appropriate_place(target), Place::end_of(body));
    }

    #[test]
    fn a_template_keeps_misplaced_content() {
        let mut builder = builder(&[HTML, BODY, TABLE, TEMPLATE, TBODY]);
        builder.foster_parenting = true;
        let template = node_of(&builder, 3);
        assert_eq!(builder.appropriate_place(builder.current()), Place::end_of(template));
    }

    #[test]
    fn without_a_table_misplaced_content_goes_into_the_root() {
        let mut builder = builder(&[HTML, TBODY]);
        builder.foster_parenting = true;
        let root = node_of(&builder, 0);
        assert_eq!(builder.appropriate_place(builder.current()), Place::end_of(root));
    }

    #[test]
    fn texts_side_by_side_are_one() {
        let mut builder = builder(&[HTML, BODY, TABLE]);
        let body = node_of(&builder, 1);
        for (start, fostered) in [(0, true), (1, true), (2, false), (3, true)] {
            builder.foster_parenting = fostered;
            builder.insert_text(Span::of_source(start, start + 1));
        }
        let text = builder.arena.first_child(body);
        assert_eq!(builder.arena.text(builder.arena.data(text)), "012"[..2].to_owned() + "3");
        let inner = builder.arena.first_child(node_of(&builder, 2));
        assert_eq!(builder.arena.text(builder.arena.data(inner)), "2");
    }

    #[test]
    fn deep_elements_are_beside_the_current_one() {
        let mut builder = builder(&[HTML, BODY]);
        builder.budget.depth = 4;
        let made: Vec<NodeId> = (0..5).map(|_| builder.insert_phantom(DIV)).collect();
        let parents: Vec<NodeId> = made.iter().map(|node| builder.arena.parent(*node)).collect();
        assert_eq!(parents, [node_of(&builder, 1), made[0], made[1], made[1], made[1]]);
        assert!(builder.exceeded.depth && builder.stack.len() == 7);
    }
}
