//! What the tree construction may cost, as numbers of one page.
//!
//! Every walk through the stack or the list counts its steps. A page that is over ends between two tokens; the few loops that
//! a single token could keep busy ask in between.

use super::Builder;
use crate::html::limits::Limits;

/// The bounds of one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Elements open at once.
    pub(super) depth: usize,
    steps: u64,
    nodes: usize,
    repeats: u64,
}

impl Budget {
    pub(super) fn new(limits: &Limits, bytes: usize) -> Self {
        Self {
            depth: limits.depth,
            steps: limits.steps_for(bytes),
            nodes: limits.nodes.min(1 << 31),
            repeats: limits.repeats_for(bytes),
        }
    }
}

impl Builder {
    /// Counts steps of a walk.
    #[inline]
    pub(in crate::html) fn step(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Whether the page has met a bound that ends it.
    #[inline]
    pub(in crate::html) fn is_over_budget(&self) -> bool {
        self.steps > self.budget.steps || self.arena.len() > self.budget.nodes || self.repeats > self.budget.repeats
    }

    /// Counts an element made again; says whether there is no room for it.
    #[inline]
    pub(super) fn is_out_of_repeats(&mut self) -> bool {
        self.repeats += 1;
        self.is_over_budget()
    }

    /// Bytes of memory of the stack and the list of active formatting elements.
    #[cfg(test)]
    pub(in crate::html) fn heap_bytes(&self) -> usize {
        self.stack.heap_bytes() + self.formatting.heap_bytes()
    }

    /// Says which bounds were met.
    pub(super) fn mark_exceeded(&mut self) {
        self.exceeded.steps |= self.steps > self.budget.steps;
        self.exceeded.attributes |= self.arena.has_too_many_names();
        self.exceeded.nodes |= self.arena.len() > self.budget.nodes || self.repeats > self.budget.repeats;
    }
}
