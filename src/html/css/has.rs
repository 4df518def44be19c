//! `:has()`: whether something below or behind an element matches, without recursion and without asking twice.

use std::fmt;

use cssparser::ToCss;
use selectors::Element as _;
use selectors::matching::{MatchingContext, matches_selector};
use selectors::parser::{Combinator, Component, Selector, SelectorList};

use super::compound::{Compound, Compounds};
use super::element::{Element, MATCHER, Search};
use super::types::Css;
use crate::html::arena::NodeId;

/// The argument of a `:has()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Has {
    relatives: Box<[Relative]>,
}

/// One selector of it, relative to the element asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Relative {
    selector: Selector<Css>,
    /// Its number among all of the whole selector.
    slot: u32,
    region: Region,
    /// Whether it is one compound: then each match says at once which elements have it.
    is_single: bool,
    /// That compound, if its tests are all there is.
    decides: Option<Compound>,
}

/// Where a match can be, seen from the element asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Below,
    Children,
    NextSibling,
    LaterSiblings,
    /// Later siblings and what is below them.
    Behind,
}

impl Has {
    /// `list` is parsed as relative to an anchor; its selectors get the numbers from `slot` on.
    pub(super) fn new(list: &SelectorList<Css>, slot: u32) -> Self {
        let relatives = list.slice().iter().zip(slot..).map(|(selector, slot)| Relative::new(selector.clone(), slot)).collect();
        Self { relatives }
    }

    pub(super) fn selectors(&self) -> impl Iterator<Item = &Selector<Css>> {
        self.relatives.iter().map(|relative| &relative.selector)
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.relatives.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn matches(&self, element: Element<'_>, context: &mut MatchingContext<'_, Css>) -> bool {
        self.relatives.iter().any(|relative| relative.matches(element, context))
    }
}

impl ToCss for Has {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        dest.write_str(":has(")?;
        for (index, selector) in self.selectors().enumerate() {
            if index > 0 {
                dest.write_str(", ")?;
            }
            selector.to_css(dest)?;
        }
        dest.write_char(')')
    }
}

impl Relative {
    fn new(selector: Selector<Css>, slot: u32) -> Self {
        // From right to left; the last one is what stands in front of the whole.
        let combinators: Vec<Combinator> = selector
            .iter_raw_match_order()
            .filter_map(|component| if let Component::Combinator(combinator) = component { Some(*combinator) } else { None })
            .collect();
        let (first, others) = combinators.split_last().map_or((Combinator::Descendant, [].as_slice()), |(l, r)| (*l, r));
        let goes_down = others.iter().any(|combinator| combinator.is_ancestor());
        let region = match first {
            Combinator::Child if !goes_down => Region::Children,
            Combinator::NextSibling if others.is_empty() => Region::NextSibling,
            Combinator::NextSibling | Combinator::LaterSibling if !goes_down => Region::LaterSiblings,
            Combinator::NextSibling | Combinator::LaterSibling => Region::Behind,
            _ => Region::Below,
        };
        let is_single = others.is_empty();
        let compounds = Compounds::of(&selector);
        let decides = compounds.last().filter(|compound| is_single && compound.decides()).cloned();
        Self { selector, slot, region, is_single, decides }
    }

    fn matches(&self, element: Element<'_>, context: &mut MatchingContext<'_, Css>) -> bool {
        let Element { search, id } = element;
        // Keeping answers costs more than moves do.
        search.step(8);
        if let Some(answer) = search.has.borrow().answer(self.slot, id) {
            return answer;
        }
        let answer = self.find(element, context);
        if search.has.borrow_mut().keep(self.slot, id, answer, search) && self.is_single {
            self.mark(search, context);
        }
        answer
    }

    /// Looks through the region of one element.
    fn find(&self, element: Element<'_>, context: &mut MatchingContext<'_, Css>) -> bool {
        let Element { search, id } = element;
        let arena = search.arena;
        let before = search.steps();
        let parent = arena.parent(id);
        let mut node =
            if matches!(self.region, Region::Below | Region::Children) { arena.first_child(id) } else { arena.next(id) };
        let mut found = false;
        while node.is_some() && !search.is_over() {
            search.step(1);
            if arena.is_element(node) {
                found = if self.is_single {
                    self.is_match(search, node, context)
                } else {
                    search.step(MATCHER);
                    context.nest_for_relative_selector(element.opaque(), |context| {
                        matches_selector(&self.selector, 0, None, &search.element(node), context)
                    })
                };
                if found || self.region == Region::NextSibling {
                    break;
                }
            }
            node = match self.region {
                Region::Below => arena.following(node, id),
                Region::Behind => arena.following(node, parent),
                Region::Children | Region::NextSibling | Region::LaterSiblings => arena.next(node),
            };
        }
        search.has.borrow_mut().spend(self.slot, search.steps() - before);
        found
    }

    /// Whether an element matches the one compound.
    #[inline]
    fn is_match(&self, search: &Search<'_>, id: NodeId, context: &mut MatchingContext<'_, Css>) -> bool {
        if let Some(compound) = &self.decides {
            return compound.may_match(search, id, context.classes_and_ids_case_sensitivity());
        }
        search.step(MATCHER);
        context.nest(|context| matches_selector(&self.selector, 0, None, &search.element(id), context))
    }

    /// Looks at the whole page once and marks every element that has a match.
    fn mark(&self, search: &Search<'_>, context: &mut MatchingContext<'_, Css>) {
        let arena = search.arena;
        let mut marked = Marks::new(arena.len());
        let mut node = NodeId::DOCUMENT;
        while node.is_some() && !search.is_over() {
            search.step(1);
            if arena.is_element(node) && self.is_match(search, node, context) {
                self.mark_owners(search, node, &mut marked);
            }
            node = arena.following(node, NodeId::DOCUMENT);
        }
        search.has.borrow_mut().keep_all(self.slot, marked);
    }

    /// Marks the elements that have `node` where they look.
    fn mark_owners(&self, search: &Search<'_>, node: NodeId, marked: &mut Marks) {
        let arena = search.arena;
        let next =
            |node| if matches!(self.region, Region::Below | Region::Children) { arena.parent(node) } else { arena.prev(node) };
        let is_one = matches!(self.region, Region::Children | Region::NextSibling);
        let mut owner = next(node);
        while owner.is_some() {
            search.step(1);
            // Of a marked one, those further on are marked already.
            if arena.is_element(owner) && (!marked.add(owner) || is_one) {
                return;
            }
            owner = next(owner);
        }
    }
}

/// The answers of one selection, by slot.
#[derive(Debug, Default)]
pub(super) struct HasCache(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    /// The elements asked about, how many they are, and those of them that have a match.
    asked: Marks,
    answers: u64,
    having: Marks,
    /// Steps spent on looking.
    spent: u64,
    /// All elements that have a match.
    all: Option<Marks>,
}

impl HasCache {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn slot(&mut self, slot: u32) -> Option<&mut Slot> {
        let place = slot as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, Slot::default);
        }
        self.0.get_mut(place)
    }

    fn answer(&self, slot: u32, id: NodeId) -> Option<bool> {
        let slot = self.0.get(slot as usize)?;
        match &slot.all {
            Some(all) => Some(all.has(id)),
            None => slot.asked.has(id).then(|| slot.having.has(id)),
        }
    }

    fn spend(&mut self, slot: u32, steps: u64) {
        if let Some(slot) = self.slot(slot) {
            slot.spent += steps;
        }
    }

    /// Keeps an answer. Gives whether so much was spent that looking at the whole page is cheaper from now on.
    fn keep(&mut self, slot: u32, id: NodeId, answer: bool, search: &Search<'_>) -> bool {
        let Some(slot) = self.slot(slot) else { return false };
        if slot.answers == 0 {
            slot.asked = Marks::new(search.arena.len());
            slot.having = Marks::new(search.arena.len());
        }
        slot.answers += u64::from(slot.asked.add(id));
        if answer {
            slot.having.add(id);
        }
        slot.spent > search.patience * (slot.answers + 128)
    }

    fn keep_all(&mut self, slot: u32, all: Marks) {
        if let Some(slot) = self.slot(slot) {
            slot.all = Some(all);
        }
    }
}

/// A set of nodes.
#[derive(Debug, Default)]
struct Marks(Vec<u64>);

impl Marks {
    fn new(nodes: usize) -> Self {
        Self(vec![0; nodes / 64 + 1])
    }

    fn has(&self, id: NodeId) -> bool {
        self.0.get(id.index() / 64).is_some_and(|word| word >> (id.index() % 64) & 1 != 0)
    }

    /// Whether it was not in there.
    fn add(&mut self, id: NodeId) -> bool {
        let Some(word) = self.0.get_mut(id.index() / 64) else { return false };
        let bit = 1 << (id.index() % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
