//! Runs a selector: one pass over the nodes in document order, below each root, until its steps are used up.

use std::ops::{ControlFlow, Range};

use selectors::Element as _;
use selectors::attr::CaseSensitivity;
use selectors::context::QuirksMode as Quirks;
use selectors::matching::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, SelectorCaches, matches_selector,
};

use super::compound::{Compound, Placed, Probe, Way, is_nth};
use super::element::{MATCHER, Search};
use super::lineage::Lineage;
use super::types::{Css, Name};
use super::{Arm, ArmTake, Compiled, Reach};
use crate::html::arena::NodeId;
use crate::html::document::{Document, QuirksMode};
use crate::html::hit::{self, Hit};
use crate::html::limits::{SELECTION_STEPS, SELECTION_STEPS_PER_BYTE};

/// What a selection found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// In document order, without doubles.
    pub(crate) hits: Vec<Hit>,
    /// Whether the selection stopped before its end: it had taken all steps it may take. What it found is right.
    pub(crate) exceeded: bool,
    /// Steps it took.
    pub(crate) steps: u64,
}

impl Compiled {
    /// All that is found in the roots and below them. Roots are elements or the document in document order, without
    /// doubles; other nodes contain nothing.
    pub(crate) fn select(&self, document: &Document, roots: &[NodeId], reach: Reach) -> Found {
        let mut hits = Vec::new();
        let (exceeded, steps) = self.each(document, roots, reach, |hit| {
            hits.push(hit);
            ControlFlow::Continue(())
        });
        if self.uses_scope && roots.len() > 1 {
            hit::sort(&mut hits, document);
        }
        Found { hits, exceeded, steps }
    }

    /// The first of what [`Compiled::select`] finds; stops there.
    pub(crate) fn first(&self, document: &Document, roots: &[NodeId], reach: Reach) -> Found {
        if self.uses_scope && roots.len() > 1 {
            let mut found = self.select(document, roots, reach);
            found.hits.truncate(1);
            return found;
        }
        let mut first = None;
        let (exceeded, steps) = self.each(document, roots, reach, |hit| {
            first = Some(hit);
            ControlFlow::Break(())
        });
        Found { hits: first.into_iter().collect(), exceeded: exceeded && first.is_none(), steps }
    }

    /// Gives each hit below each root, until `give` stops it. Gives whether the steps were not enough, and how many
    /// were taken.
    fn each(
        &self,
        document: &Document,
        roots: &[NodeId],
        reach: Reach,
        mut give: impl FnMut(Hit) -> ControlFlow<()>,
    ) -> (bool, u64) {
        let search = Search::new(document, self, self.limit(document, roots));
        let quirks = if document.quirks == QuirksMode::Quirks { Quirks::Quirks } else { Quirks::NoQuirks };
        let mut caches = SelectorCaches::default();
        let context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            &mut caches,
            quirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        let mut pass = Pass {
            search: &search,
            arms: &self.arms,
            context,
            case: quirks.classes_and_ids_case_sensitivity(),
            lineage: None,
            bound: NodeId::DOCUMENT,
            ends: vec![0; self.arms.len()],
            attrs: Vec::new(),
            open: Vec::new(),
            candidates: 0,
            last_placed: Placed::NONE,
        };
        let mut done_until = 0;
        for root in roots {
            let root_is_element = search.arena.is_element(*root);
            if !root_is_element && *root != NodeId::DOCUMENT {
                continue;
            }
            // In a tree out of order places are to be made first; not where nobody asks for them.
            let asks = search.arena.is_in_order() || roots.len() > 1 || reach == Reach::Subtree;
            let (start, end) = if asks { (document.place(*root), end_of(document, *root)) } else { (0, u32::MAX) };
            if !self.uses_scope && start < done_until {
                continue;
            }
            if self.uses_scope {
                pass.forget();
            }
            done_until = end;
            search.within.set((reach == Reach::Subtree).then_some((start, end)));
            pass.context.scope_element = root_is_element.then(|| search.element(*root).opaque());
            if reach == Reach::Subtree {
                pass.bound = *root;
                if let Some(lineage) = &mut pass.lineage {
                    lineage.start(&search, *root);
                }
            }
            if pass.run(*root, end, &mut give).is_break() {
                break;
            }
        }
        (search.is_over(), search.steps())
    }

    /// The steps a selection in these roots may take: of those for the bytes of the page, the share of the nodes searched.
    fn limit(&self, document: &Document, roots: &[NodeId]) -> u64 {
        let arena = document.arena();
        let all = arena.len() as u64;
        let nodes = match roots {
            [root] if arena.is_in_order() => u64::from(end_of(document, *root)).min(all).saturating_sub(root.index() as u64),
            _ => all,
        };
        SELECTION_STEPS + document.byte_count() * SELECTION_STEPS_PER_BYTE * nodes / all.max(1)
    }
}

/// The place of what follows a node and all below it.
fn end_of(document: &Document, id: NodeId) -> u32 {
    let next = document.arena().following_outside(id, NodeId::DOCUMENT);
    if next.is_some() { document.place(next) } else { u32::MAX }
}

/// A pass over the nodes below one root after another.
struct Pass<'a, 's> {
    search: &'s Search<'a>,
    arms: &'s [Arm],
    context: MatchingContext<'s, Css>,
    case: CaseSensitivity,
    /// Made when searching upwards and backwards turns out to cost much.
    lineage: Option<Lineage>,
    /// The node below which is searched; the document if what is outside counts.
    bound: NodeId,
    /// By arm: up to which place everything counts as matched.
    ends: Vec<u32>,
    /// Places of the attributes found on one element.
    attrs: Vec<u32>,
    /// The elements whose texts are hits, from the outside in; those that are closed go when the next text comes.
    open: Vec<NodeId>,
    candidates: u64,
    /// The last element whose place among its siblings was asked for.
    last_placed: Placed,
}

impl Pass<'_, '_> {
    /// Another scope: what was found out does not hold any more.
    fn forget(&mut self) {
        *self.context.selector_caches = SelectorCaches::default();
        self.search.has.borrow_mut().clear();
        self.lineage = None;
        self.ends.fill(0);
        self.open.clear();
    }

    fn run(&mut self, root: NodeId, end: u32, give: &mut impl FnMut(Hit) -> ControlFlow<()>) -> ControlFlow<()> {
        let arena = self.search.arena;
        let takes_text = self.arms.iter().any(|arm| matches!(arm.take, ArmTake::Text));
        if !arena.is_in_order() {
            let mut id = root;
            while id.is_some() {
                self.visit(id, takes_text, give)?;
                id = arena.following(id, root);
            }
            return ControlFlow::Continue(());
        }
        let ids = root.index()..arena.len().min(end as usize);
        match self.arms {
            [arm] if !takes_text && !arm.is_deep => self.run_one(arm, ids, give),
            _ => self.run_all(ids, takes_text, give),
        }
    }

    /// One selector that takes no texts, in a tree in order.
    fn run_one(&mut self, arm: &Arm, ids: Range<usize>, give: &mut impl FnMut(Hit) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(compound) = arm.compounds.last() else { return ControlFlow::Continue(()) };
        let probe = compound.probe(self.search, self.case);
        let mut ids = ids;
        while let Some(id) = self.search.find(probe, ids.clone()) {
            self.visit_one(arm, compound, id, give)?;
            ids.start = id.index() + 1;
        }
        ControlFlow::Continue(())
    }

    /// Any selectors, in a tree in order: goes from one element that one of them may match to the next, and through all that is
    /// below where that counts.
    fn run_all(&mut self, ids: Range<usize>, takes_text: bool, give: &mut impl FnMut(Hit) -> ControlFlow<()>) -> ControlFlow<()> {
        let (search, arms, case) = (self.search, self.arms, self.case);
        let next = |probe: Probe<'_>, start: usize| search.find(probe, start..ids.end).map_or(ids.end, NodeId::index);
        let probes = arms.iter().map(|arm| arm.compounds.last().map_or(Probe::Element, |compound| compound.probe(search, case)));
        let mut probes: Vec<(Probe<'_>, usize)> = probes.map(|probe| (probe, next(probe, ids.start))).collect();
        while let Some(at) = probes.iter().map(|(_, at)| *at).min().filter(|at| *at < ids.end) {
            let id = NodeId::at(at);
            self.visit_element(id, give)?;
            let mut done = at + 1;
            if takes_text && self.open.last() == Some(&id) {
                done = done.max(end_of(search.document, id) as usize);
            }
            if let Some(end) = self.ends.iter().max() {
                done = done.max(*end as usize);
            }
            let done = done.min(ids.end);
            for below in at + 1..done {
                self.visit(NodeId::at(below), takes_text, give)?;
            }
            self.open.clear();
            for (probe, at) in probes.iter_mut().filter(|(_, at)| *at < done) {
                *at = next(*probe, done);
            }
        }
        ControlFlow::Continue(())
    }

    /// An element, where there is only one selector and it takes no texts.
    #[inline]
    fn visit_one(
        &mut self,
        arm: &Arm,
        compound: &Compound,
        id: NodeId,
        give: &mut impl FnMut(Hit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let may_match = compound.may_match(self.search, id, self.case);
        let is_match = may_match && (arm.compounds.way == Way::Done || self.matches_fully(0, arm, id));
        if self.search.is_over() {
            return ControlFlow::Break(());
        }
        if !is_match {
            return ControlFlow::Continue(());
        }
        match &arm.take {
            ArmTake::Element => give(Hit::Node(id)),
            ArmTake::Attr(name) => {
                self.attr_place(id, name).map_or(ControlFlow::Continue(()), |place| give(Hit::Attr { owner: id, place }))
            }
            ArmTake::Text => ControlFlow::Continue(()),
        }
    }

    fn attr_place(&self, id: NodeId, name: &Name) -> Option<u32> {
        let name = self.search.name(name);
        let place = self.search.arena.attrs(id).position(|attr| attr.name() == name)?;
        u32::try_from(place).ok()
    }

    #[inline]
    fn visit(&mut self, id: NodeId, takes_text: bool, give: &mut impl FnMut(Hit) -> ControlFlow<()>) -> ControlFlow<()> {
        let search = self.search;
        if search.arena.is_element(id) {
            return self.visit_element(id, give);
        }
        if takes_text && search.arena.is_text(id) {
            let parent = search.arena.parent(id);
            while let Some(open) = self.open.last() {
                if *open == parent {
                    return give(Hit::Node(id));
                }
                if search.document.place(*open) < search.document.place(parent) {
                    break;
                }
                self.open.pop();
            }
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn visit_element(&mut self, id: NodeId, give: &mut impl FnMut(Hit) -> ControlFlow<()>) -> ControlFlow<()> {
        let (mut is_hit, mut has_text) = (false, false);
        let arms = self.arms;
        for (index, arm) in arms.iter().enumerate() {
            match &arm.take {
                ArmTake::Element if !is_hit => is_hit = self.matches(index, arm, id),
                ArmTake::Text if !has_text => has_text = self.matches(index, arm, id),
                ArmTake::Attr(name) if self.matches(index, arm, id) => {
                    self.attrs.extend(self.attr_place(id, name));
                }
                _ => {}
            }
        }
        if self.search.is_over() {
            return ControlFlow::Break(());
        }
        if has_text {
            self.open.push(id);
        }
        if is_hit {
            give(Hit::Node(id))?;
        }
        if !self.attrs.is_empty() {
            self.attrs.sort_unstable();
            self.attrs.dedup();
            for place in self.attrs.drain(..) {
                give(Hit::Attr { owner: id, place })?;
            }
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn matches(&mut self, index: usize, arm: &Arm, id: NodeId) -> bool {
        if !arm.is_deep {
            return self.matches_itself(index, arm, id);
        }
        let document = self.search.document;
        if self.ends.get(index).is_some_and(|end| *end > 0 && document.place(id) < *end) {
            return true;
        }
        let is_match = self.matches_itself(index, arm, id);
        if is_match && let Some(end) = self.ends.get_mut(index) {
            *end = end_of(document, id);
        }
        is_match
    }

    #[inline]
    fn matches_itself(&mut self, index: usize, arm: &Arm, id: NodeId) -> bool {
        let may_match = arm.compounds.last().is_none_or(|compound| compound.may_match(self.search, id, self.case));
        may_match && (arm.compounds.way == Way::Done || self.matches_fully(index, arm, id))
    }

    /// Looks at other elements too, or asks the matcher.
    fn matches_fully(&mut self, index: usize, arm: &Arm, id: NodeId) -> bool {
        let search = self.search;
        self.candidates += 1;
        search.step(1);
        if let Way::Nth(nth) = arm.compounds.way
            && let Some(answer) = is_nth(nth, search, id, &mut self.last_placed)
        {
            return answer;
        }
        if arm.compounds.has_combinators() {
            // Mostly it is not worth it: keeping track costs more than a few steps upwards.
            if self.lineage.is_none() && search.steps() > search.patience * (self.candidates + 128) {
                let mut lineage = Lineage::new(self.arms);
                lineage.start(search, self.bound);
                self.lineage = Some(lineage);
            }
            if let Some(lineage) = &mut self.lineage
                && let Some(answer) = lineage.matches(index, self.arms, id, search, &mut self.context)
            {
                return answer;
            }
        }
        if arm.compounds.way == Way::Climb {
            return arm.compounds.climb(&arm.selector, id, search, &mut self.context);
        }
        search.step(MATCHER);
        matches_selector(&arm.selector, 0, None, &search.element(id), &mut self.context)
    }
}
