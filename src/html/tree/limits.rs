//! What the tree construction may cost, as numbers of one page.
//!
//! Every walk through the stack or the list counts its steps. A page that is over ends between two tokens; the few loops that
//! a single token could keep busy ask in between.

use super::Builder;
use crate::html::arena;
use crate::html::limits::Limits;
use crate::html::span::MOST_BYTES;

/// Bytes of memory that the tokenizer takes, for the names that every page may use.
const OF_THE_TOKENIZER: usize = 4096;

/// The bounds of one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Elements open at once.
    pub(super) depth: usize,
    steps: u64,
    nodes: usize,
    /// Bytes of memory of the tree, the stack and the list, with what they would grow by next.
    memory: usize,
    /// As many nodes as are surely within both bounds above.
    few: usize,
    repeats: u64,
    /// Bytes in the side buffer: spans tell no more.
    side: usize,
}

impl Budget {
    pub(super) fn new(limits: &Limits, bytes: usize) -> Self {
        let nodes = limits.nodes.min(1 << 31);
        let memory = limits.memory_for(bytes).saturating_sub(OF_THE_TOKENIZER);
        Self {
            depth: limits.depth,
            steps: limits.steps_for(bytes),
            nodes,
            memory,
            few: nodes.min(memory / (2 * arena::NODE_BYTES)),
            repeats: limits.repeats_for(bytes),
            side: MOST_BYTES,
        }
    }

    /// As many nodes as there may be by the memory they take alone, less an eighth of it.
    pub(super) fn many_nodes(&self) -> usize {
        self.memory / 8 * 7 / arena::NODE_BYTES
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
        self.steps > self.budget.steps
            || self.arena.len() > self.budget.few && (self.has_too_many_nodes() || self.takes_too_much())
            || self.repeats > self.budget.repeats
            || self.is_side_full()
    }

    fn has_too_many_nodes(&self) -> bool {
        self.arena.len() > self.budget.nodes
    }

    /// Whether what is kept takes more memory than it may.
    #[inline(never)]
    fn takes_too_much(&self) -> bool {
        self.arena.heap_bytes() + self.arena.next_growth() + self.heap_bytes() > self.budget.memory
    }

    /// Whether joined texts have filled the side buffer.
    #[inline]
    fn is_side_full(&self) -> bool {
        self.arena.side.len() > self.budget.side
    }

    /// Counts an element made again; says whether there is no room for it.
    #[inline]
    pub(super) fn is_out_of_repeats(&mut self) -> bool {
        self.repeats += 1;
        self.is_over_budget()
    }

    /// Bytes of memory of the stack, the list of active formatting elements and what is noted of forms.
    pub(in crate::html) fn heap_bytes(&self) -> usize {
        self.stack.heap_bytes() + self.formatting.heap_bytes() + self.owners_bytes()
    }

    /// Says which bounds were met.
    pub(super) fn mark_exceeded(&mut self) {
        self.exceeded.steps |= self.steps > self.budget.steps;
        self.exceeded.length |= self.is_side_full();
        self.exceeded.attributes |= self.arena.has_too_many_names();
        self.exceeded.nodes |= self.has_too_many_nodes() || self.repeats > self.budget.repeats;
        self.exceeded.memory |= self.arena.len() > self.budget.few && self.takes_too_much();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::arena::Arena;
    use crate::html::options::ParseOptions;
    use crate::html::tokenizer::{self, Content};

    #[test]
    fn a_page_ends_when_its_joined_texts_fill_the_side_buffer() {
        for page in ["<svg>".to_owned() + &"\0".repeat(2_000), "<table>".to_owned() + &"x\0".repeat(2_000) + "<tr><td>y"] {
            let parse = |side: usize| {
                let mut builder = Builder::new(Arena::new(page.clone().into()), &ParseOptions::default());
                builder.budget.side = side;
                tokenizer::run(&mut builder, Content::Data, None);
                builder.end();
                builder
            };
            let cut = parse(100);
            assert!(cut.exceeded.length && cut.exceeded.is_cut(), "{page:.20}");
            assert!(cut.arena.side.len() <= 600, "{page:.20}: {} bytes", cut.arena.side.len());
            assert!(!parse(MOST_BYTES).exceeded.any(), "{page:.20}");
        }
    }
}
