//! What the ancestors of an element have, in a Bloom filter: in deep trees most searches upwards need not begin.
//!
//! It follows the search in document order; each element goes in and out once.

use selectors::bloom::BloomFilter;
use selectors::matching::selector_may_match;
use selectors::parser::AncestorHashes;

use super::element::Search;
use crate::html::arena::NodeId;

/// The ancestors of the element that was looked at last.
#[derive(Debug, Default)]
pub(super) struct Ancestors {
    filter: Box<BloomFilter>,
    stack: Vec<NodeId>,
    pending: Vec<NodeId>,
}

impl Ancestors {
    /// Goes on to an element behind the last one.
    pub(super) fn enter(&mut self, search: &Search<'_>, id: NodeId) {
        let place = |id: NodeId| search.document.place(id);
        let mut ancestor = search.arena.parent(id);
        while search.arena.is_element(ancestor) {
            // The last entry may be below or beside this ancestor, this one, or one above.
            while let Some(last) = self.stack.last().copied()
                && place(last) > place(ancestor)
            {
                self.stack.pop();
                search.element(last).each_hash(|hash| self.filter.remove_hash(hash));
            }
            if self.stack.last() == Some(&ancestor) {
                break;
            }
            search.step(1);
            self.pending.push(ancestor);
            ancestor = search.arena.parent(ancestor);
        }
        if !search.arena.is_element(ancestor) {
            while let Some(last) = self.stack.pop() {
                search.element(last).each_hash(|hash| self.filter.remove_hash(hash));
            }
        }
        while let Some(ancestor) = self.pending.pop() {
            search.element(ancestor).each_hash(|hash| self.filter.insert_hash(hash));
            self.stack.push(ancestor);
        }
    }

    /// Whether what a selector wants of ancestors is there.
    pub(super) fn may_match(&self, hashes: &AncestorHashes) -> bool {
        selector_may_match(hashes, &self.filter)
    }
}
