//! What the ancestors of an element and the siblings before it have matched, so that nothing is searched upwards or
//! backwards again and again: deep and flat pages cost no more than others.
//!
//! It follows a selection in document order and decides selectors from left to right, one compound after the other. An
//! element goes in and out once.

use selectors::matching::MatchingContext;
use selectors::parser::Combinator;

use super::Arm;
use super::element::Search;
use super::types::Css;
use crate::html::arena::NodeId;

/// Compounds of a selector that is decided here: one bit each.
const MOST_COMPOUNDS: usize = u64::BITS as usize;

/// The way from the top to the element that was looked at last.
#[derive(Debug)]
pub(super) struct Lineage {
    /// How many selectors there are.
    arms: usize,
    /// Whether siblings count for any of them.
    has_siblings: bool,
    /// The first child of the top that counts, if not all of them do.
    first: NodeId,
    levels: Vec<Level>,
    /// For each level, by arm.
    states: Vec<State>,
    pending: Vec<NodeId>,
}

/// An ancestor.
#[derive(Clone, Copy, Debug)]
struct Level {
    node: NodeId,
    /// The last child that was looked at.
    child: NodeId,
}

/// Which beginnings of a selector were matched, as bits by their last compound.
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
        let mut compounds = arms.iter().flat_map(|arm| arm.compounds.left_to_right());
        let has_siblings = compounds.any(|compound| compound.combinator.is_some_and(|before| before.is_sibling()));
        Self { arms: arms.len(), has_siblings, first: NodeId::NONE, levels: Vec::new(), states: Vec::new(), pending: Vec::new() }
    }

    /// Begins anew. What is outside of `root` does not count, unless that is the document.
    pub(super) fn start(&mut self, search: &Search<'_>, root: NodeId) {
        let parent = search.arena.parent(root);
        let (top, first) = if parent.is_some() { (parent, root) } else { (NodeId::DOCUMENT, NodeId::NONE) };
        self.first = first;
        self.levels.clear();
        self.states.clear();
        self.levels.push(Level { node: top, child: NodeId::NONE });
        self.states.resize(self.arms, State::default());
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
        let compounds = arms.get(index)?.compounds.len();
        if compounds > MOST_COMPOUNDS {
            return None;
        }
        self.enter(arms, id, search, context);
        Some(self.innermost(index).child >> (compounds - 1) & 1 != 0)
    }

    fn innermost(&self, index: usize) -> State {
        let start = self.states.len().saturating_sub(self.arms);
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
                self.states.truncate(self.levels.len() * self.arms);
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
            let above = self.states.len().saturating_sub(self.arms);
            for index in above..above + self.arms {
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
        let start = self.states.len().saturating_sub(self.arms);
        while child.is_some() && !search.is_over() {
            if search.arena.is_element(child) {
                let states = self.states.get_mut(start..).unwrap_or_default();
                for (arm, state) in arms.iter().zip(states).filter(|(arm, _)| arm.compounds.len() <= MOST_COMPOUNDS) {
                    state.child = matched(arm, *state, child, search, context);
                    state.children |= state.child;
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

/// Which beginnings of a selector an element matches; `state` is that of its parent, up to the child before it.
fn matched(arm: &Arm, state: State, id: NodeId, search: &Search<'_>, context: &mut MatchingContext<'_, Css>) -> u64 {
    let mut matched = 0;
    for (index, compound) in arm.compounds.left_to_right().enumerate() {
        let before = match compound.combinator {
            Some(Combinator::Child) => state.itself,
            Some(Combinator::NextSibling) => state.child,
            Some(Combinator::LaterSibling) => state.children,
            _ => state.any,
        };
        if index > 0 && before >> (index - 1) & 1 == 0 {
            continue;
        }
        search.step(1);
        if compound.matches(&arm.selector, id, search, context) {
            matched |= 1 << index;
        }
    }
    matched
}
