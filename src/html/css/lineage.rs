//! What the ancestors of an element and the siblings before it have matched, so that nothing is searched upwards or
//! backwards again and again: deep and flat pages cost no more than others.
//!
//! It follows a selection in document order and decides selectors from left to right, one compound after the other. An
//! element goes in and out once.

use selectors::matching::{CompoundSelectorMatchingResult, MatchingContext, matches_compound_selector_from};
use selectors::parser::{Combinator, Component, Selector};

use super::Arm;
use super::element::Search;
use super::types::Css;
use crate::html::arena::NodeId;

/// Compounds of a [`Line`]: one bit each.
const MOST_COMPOUNDS: usize = u64::BITS as usize;

/// The way from the top to the element that was looked at last.
#[derive(Debug)]
pub(super) struct Lineage {
    /// By arm; `None` for one with too many compounds.
    lines: Vec<Option<Line>>,
    /// Whether siblings count for any of them.
    has_siblings: bool,
    /// The first child of the top that counts, if not all of them do.
    first: NodeId,
    levels: Vec<Level>,
    /// For each level, by arm.
    states: Vec<State>,
    pending: Vec<NodeId>,
}

/// A selector as compounds, from left to right.
#[derive(Debug)]
struct Line {
    /// Where a compound starts, and what stands before it; for the first one that means nothing.
    compounds: Vec<(usize, Combinator)>,
}

/// An ancestor.
#[derive(Clone, Copy, Debug)]
struct Level {
    node: NodeId,
    /// The last child that was looked at.
    child: NodeId,
}

/// Which beginnings of a line were matched, as bits by their last compound.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// By the ancestor itself.
    itself: u64,
    /// By it or an ancestor of it.
    any: u64,
    /// By the last child that was looked at.
    child: u64,
    /// By it or a child before it.
    children: u64,
}

impl Lineage {
    pub(super) fn new(arms: &[Arm]) -> Self {
        let lines: Vec<Option<Line>> = arms.iter().map(|arm| Line::of(&arm.selector)).collect();
        let has_siblings = lines.iter().flatten().any(|line| line.compounds.iter().any(|(_, before)| before.is_sibling()));
        Self { lines, has_siblings, first: NodeId::NONE, levels: Vec::new(), states: Vec::new(), pending: Vec::new() }
    }

    /// Begins anew. What is outside of `root` does not count, unless that is the document.
    pub(super) fn start(&mut self, search: &Search<'_>, root: NodeId) {
        let parent = search.arena.parent(root);
        let (top, first) = if parent.is_some() { (parent, root) } else { (NodeId::DOCUMENT, NodeId::NONE) };
        self.first = first;
        self.levels.clear();
        self.states.clear();
        self.levels.push(Level { node: top, child: NodeId::NONE });
        self.states.resize(self.lines.len(), State::default());
    }

    /// Whether the selector of an arm matches an element that does not lie before the last one; `None` if the matcher has
    /// to be asked.
    pub(super) fn matches(
        &mut self,
        index: usize,
        arms: &[Arm],
        id: NodeId,
        search: &Search<'_>,
        context: &mut MatchingContext<'_, Css>,
    ) -> Option<bool> {
        let line = self.lines.get(index)?.as_ref()?;
        let last = line.compounds.len() - 1;
        self.enter(arms, id, search, context);
        Some(self.innermost(index).child >> last & 1 != 0)
    }

    fn innermost(&self, index: usize) -> State {
        let start = self.states.len().saturating_sub(self.lines.len());
        self.states.get(start + index).copied().unwrap_or_default()
    }

    /// Makes the levels those of an element, and looks at it.
    fn enter(&mut self, arms: &[Arm], id: NodeId, search: &Search<'_>, context: &mut MatchingContext<'_, Css>) {
        let place = |id: NodeId| search.document.place(id);
        let mut ancestor = search.arena.parent(id);
        while ancestor.is_some() {
            // The last level may be below or beside this ancestor, this one, or above it.
            while self.levels.len() > 1 && self.levels.last().is_some_and(|last| place(last.node) > place(ancestor)) {
                self.levels.pop();
                self.states.truncate(self.levels.len() * self.lines.len());
            }
            if self.levels.last().is_some_and(|last| last.node == ancestor) {
                break;
            }
            search.step(1);
            self.pending.push(ancestor);
            ancestor = search.arena.parent(ancestor);
        }
        while let Some(ancestor) = self.pending.pop() {
            self.look(arms, ancestor, search, context);
            let above = self.states.len().saturating_sub(self.lines.len());
            for index in above..above + self.lines.len() {
                let State { any, child, .. } = self.states.get(index).copied().unwrap_or_default();
                self.states.push(State { itself: child, any: child | any, ..State::default() });
            }
            self.levels.push(Level { node: ancestor, child: NodeId::NONE });
        }
        self.look(arms, id, search, context);
    }

    /// Looks at a child of the innermost level, and at those before it that were not looked at if siblings count.
    fn look(&mut self, arms: &[Arm], id: NodeId, search: &Search<'_>, context: &mut MatchingContext<'_, Css>) {
        let is_top = self.levels.len() == 1;
        let Some(level) = self.levels.last_mut() else { return };
        if level.child == id {
            return;
        }
        let mut child = if !self.has_siblings {
            id
        } else if level.child.is_some() {
            search.arena.next(level.child)
        } else if is_top && self.first.is_some() {
            self.first
        } else {
            search.arena.first_child(level.node)
        };
        level.child = id;
        let start = self.states.len().saturating_sub(self.lines.len());
        while child.is_some() && !search.is_far_over() {
            if search.arena.is_element(child) {
                let states = self.states.get_mut(start..).unwrap_or_default();
                for ((line, arm), state) in self.lines.iter().zip(arms).zip(states) {
                    if let Some(line) = line {
                        state.child = line.matched(arm, *state, child, search, context);
                        state.children |= state.child;
                    }
                }
            }
            if child == id {
                return;
            }
            search.step(1);
            child = search.arena.next(child);
        }
    }
}

impl Line {
    fn of(selector: &Selector<Css>) -> Option<Self> {
        let mut compounds = vec![(0, Combinator::Descendant)];
        for (offset, component) in selector.iter_raw_parse_order_from(0).enumerate() {
            if let Component::Combinator(combinator) = component {
                compounds.push((offset + 1, *combinator));
            }
        }
        (compounds.len() <= MOST_COMPOUNDS).then_some(Self { compounds })
    }

    /// Which beginnings an element matches; `state` is that of its parent, up to the child before it.
    fn matched(&self, arm: &Arm, state: State, id: NodeId, search: &Search<'_>, context: &mut MatchingContext<'_, Css>) -> u64 {
        let element = search.element(id);
        let mut matched = 0;
        let case = context.classes_and_ids_case_sensitivity();
        for (index, ((offset, combinator), compound)) in self.compounds.iter().zip(arm.compounds.left_to_right()).enumerate() {
            let before = match combinator {
                Combinator::Child => state.itself,
                Combinator::NextSibling => state.child,
                Combinator::LaterSibling => state.children,
                _ => state.any,
            };
            if index > 0 && before >> (index - 1) & 1 == 0 {
                continue;
            }
            search.step(1);
            let ask = |context| matches_compound_selector_from(&arm.selector, *offset, context, &element);
            if compound.may_match(search, id, case)
                && (compound.decides || !matches!(ask(context), CompoundSelectorMatchingResult::NotMatched))
            {
                matched |= 1 << index;
            }
        }
        matched
    }
}
