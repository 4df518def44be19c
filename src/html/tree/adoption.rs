//! The adoption agency algorithm (WHATWG HTML 13.2.6.4.7): end tags of formatting elements that are not the innermost open one.

use super::formatting::Entry;
use super::{Builder, Open};
use crate::html::arena::NodeId;
use crate::html::names::{self, NameId};

impl Builder {
    /// Runs the algorithm for an end tag of this name.
    pub(in crate::html) fn adoption_agency(&mut self, name: NameId) {
        let current = self.current();
        if current.is_html(name) {
            // Mostly the last formatting element is what ends: nothing is to be adopted.
            if self.formatting.pop_if(current.node) || self.formatting_position(current.node).is_none() {
                self.pop();
                return;
            }
        }
        for _ in 0..8 {
            if self.is_over_budget() || !self.adopt_once(name) {
                return;
            }
        }
    }

    /// One turn of the outer loop; whether there is another one.
    fn adopt_once(&mut self, name: NameId) -> bool {
        let Some((entry_at, entry)) = self.last_formatting(name).and_then(|at| Some((at, self.formatting.get(at)?))) else {
            self.any_other_end_tag(name);
            return false;
        };
        let Some(at) = self.position(entry.node) else {
            self.formatting.remove(entry_at);
            return false;
        };
        if !self.has_node_in_scope(entry.node) {
            return false;
        }
        let mut block = self.furthest_block(at);
        if block.is_some() && self.stack.len() > self.budget.depth {
            // Elements are beside each other there; adopting would nest them ever deeper.
            self.exceeded.depth = true;
            block = None;
        }
        let (Some((block_at, block)), Some(ancestor)) = (block, at.checked_sub(1).and_then(|above| self.open_at(above))) else {
            self.truncate(at);
            self.formatting.remove(entry_at);
            return false;
        };
        let (last, bookmark) = self.rebuild_between(at, block_at, block.node);
        self.arena.detach(last);
        self.insert_node_at(ancestor, last);
        let made = self.repeat(entry);
        let moved = self.arena.move_children(block.node, made);
        self.step(moved as u64);
        self.arena.append(block.node, made);
        self.put_at_bookmark(entry, made, bookmark);
        self.remove_node(entry.node);
        if let Some(block_at) = self.position(block.node) {
            self.stack.insert(&self.arena, block_at + 1, Open::html(made, entry.name));
        }
        true
    }

    /// The topmost special element above the formatting element's place in the stack.
    fn furthest_block(&mut self, at: usize) -> Option<(usize, Open)> {
        let found = self.open_elements().enumerate().skip(at).find(|(_, open)| open.is(names::SPECIAL));
        self.step((found.map_or(self.stack.len(), |(found, _)| found) - at) as u64);
        found
    }

    /// The inner loop: makes the formatting elements between the furthest block and the formatting element again, each
    /// around the one before. Gives the outermost, and the one behind which the bookmark is (none: where it was).
    fn rebuild_between(&mut self, at: usize, block_at: usize, block: NodeId) -> (NodeId, Option<NodeId>) {
        let mut last = block;
        let mut bookmark = None;
        for (turn, index) in (at + 1..block_at).rev().enumerate() {
            if self.is_over_budget() {
                break;
            }
            self.step(1);
            let Some(open) = self.open_at(index) else { break };
            let mut listed = self.formatting_position(open.node);
            if turn >= 3
                && let Some(place) = listed.take()
            {
                self.formatting.remove(place);
            }
            let Some((place, entry)) = listed.and_then(|place| Some((place, self.formatting.get(place)?))) else {
                self.remove(index);
                continue;
            };
            let made = self.repeat(entry);
            self.stack.replace(&self.arena, index, made);
            self.formatting.replace(place, made);
            if last == block {
                bookmark = Some(made);
            }
            self.arena.detach(last);
            self.arena.append(made, last);
            last = made;
        }
        (last, bookmark)
    }

    /// Moves the entry of the formatting element to the bookmark, for the element made in its place.
    fn put_at_bookmark(&mut self, entry: Entry, made: NodeId, bookmark: Option<NodeId>) {
        let behind = bookmark.and_then(|node| self.formatting_position(node));
        let Some(old) = self.formatting_position(entry.node) else { return };
        match behind {
            Some(behind) => {
                let mut kept = entry;
                kept.node = made;
                self.formatting.insert(behind + 1, kept);
                self.formatting.remove(if old > behind { old + 1 } else { old });
            }
            None => self.formatting.replace(old, made),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::html::{Document, NodeKind, NodeRef};

    /// The elements below `body` in brackets, texts as they are.
    fn outline(page: &str) -> String {
        fn write(node: NodeRef<'_>, out: &mut String) {
            if node.kind() == NodeKind::Text {
                out.push_str(node.data().unwrap_or_default());
                return;
            }
            out.push_str(node.name().unwrap_or_default());
            out.push('(');
            node.children().for_each(|child| write(child, out));
            out.push(')');
        }
        let page = Document::parse(page);
        let mut out = String::new();
        page.body().into_iter().flat_map(NodeRef::children).for_each(|child| write(child, &mut out));
        out
    }

    #[test]
    fn blocks_are_taken_out_of_the_elements_that_end_in_them() {
        for (page, expected) in [
            ("<b>1<i>2</b>3", "b(1i(2))i(3)"),
            ("<b>1<p>2</b>3", "b(1)p(b(2)3)"),
            ("<a>1<div>2<div>3</a>4", "a(1)div(a(2)div(a(3)4))"),
            ("<b>1<i>2<p>3</b>4", "b(1i(2))i(p(b(3)4))"),
            // More than three in between: the outer ones are not made again.
            ("<b><i><u><s><tt><p>1</b>2", "b(i(u(s(tt()))))u(s(tt(p(b(1)2))))"),
            // An element in between that does not format is left.
            ("<b><span><p>1</b>2", "b(span())p(b(1)2)"),
            // Not in scope, not open any more, not there at all.
            ("<b><table><td></b>1", "b(table(tbody(tr(td(1)))))"),
            ("<p><b></p></b>1", "p(b())1"),
            ("1</b>2", "12"),
            ("<p><b><b><b><b>1</p>2", "p(b(b(b(b(1)))))b(b(b(2)))"),
            ("<a>1<a>2", "a(1)a(2)"),
            // Eight blocks at a time; the text behind is in the last element made, and joined with what it has.
            (
                "<a><div><div><div><div><div><div><div><div>1</a>2",
                "a()div(a()div(a()div(a()div(a()div(a()div(a()div(a()div(a(12)))))))))",
            ),
        ] {
            assert_eq!(outline(page), expected, "{page}");
        }
    }
}
