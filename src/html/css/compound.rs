//! The compounds of a selector as tests that need no matcher: most elements fail those of the rightmost one, and for many
//! selectors they decide alone.

use selectors::attr::{AttrSelectorOperator, CaseSensitivity, ParsedCaseSensitivity};
use selectors::matching::{CompoundSelectorMatchingResult, MatchingContext, matches_compound_selector_from};
use selectors::parser::{AnPlusB, Combinator, Component, LocalName, NthType, Selector, SelectorList};

use super::element::{MATCHER, Search};
use super::pseudo::Pseudo;
use super::types::{Css, Name, Text};
use crate::html::arena::{Namespace, NodeId};
use crate::html::names::{NameId, known};

/// All compounds of a selector.
#[derive(Debug)]
pub(super) struct Compounds {
    /// From right to left.
    all: Box<[Compound]>,
    /// Whether the tests decide without the matcher.
    pub(super) way: Way,
}

/// How a selector is decided for an element that passes the tests of the rightmost compound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It matches: there is nothing else to ask.
    Done,
    /// By its place among its siblings.
    Nth(AnPlusB),
    /// By what its ancestors are, each compound on its own.
    Climb,
    /// By the matcher.
    Matcher,
}

/// What an element must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compound {
    name: Option<LocalName<Css>>,
    /// Whether the name has upper-case letters: it is another one in HTML.
    is_mixed: bool,
    tests: Vec<Test>,
    /// `:nth-child()` and the like.
    nth: Option<AnPlusB>,
    /// Whether the tests and `nth` are all there is.
    is_known: bool,
    /// What stands before it.
    pub(super) combinator: Option<Combinator>,
    /// Where it starts among the components of the selector as written.
    start: usize,
}

/// What may match, as something that is found fast: no less than matches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Probe<'a> {
    /// Any element.
    Element,
    /// Elements of a name.
    Name(NameId),
    /// Elements with a class; letter case counts.
    Class(&'a str),
    /// Elements with an attribute.
    Attr(NameId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Class(Text),
    Id(Text),
    /// An attribute, by its name in SVG and MathML and by that in HTML.
    Has(Name, Name),
    /// An attribute that is the same everywhere, with a value the matcher asks for.
    Valued(Name),
    /// The same with the value itself; letter case counts.
    Equals(Name, Text),
    /// None of these is true.
    Not(Box<[Compound]>),
    /// [`Pseudo::Within`].
    Within,
}

/// Siblings that are looked at for the place of an element; of one further on the matcher knows how to keep it.
const NEAR_SIBLINGS: usize = 32;

impl Compounds {
    pub(super) fn of(selector: &Selector<Css>) -> Self {
        let mut all = vec![Compound::default()];
        for component in selector.iter_raw_match_order() {
            let Some(compound) = all.last_mut() else { break };
            if let Component::Combinator(combinator) = component {
                compound.combinator = Some(*combinator);
                all.push(Compound::default());
            } else {
                compound.add(component);
            }
        }
        let mut start = selector.len();
        for (compound, part) in all.iter_mut().zip(selector.iter_raw_match_order().as_slice().split(Component::is_combinator)) {
            start = start.saturating_sub(part.len());
            compound.start = start;
            start = start.saturating_sub(1);
        }
        let upwards = all.iter().all(|compound| compound.combinator.is_none_or(|combinator| combinator.is_ancestor()));
        let way = match all.len() {
            1 if all.iter().all(Compound::decides) => Way::Done,
            1 if all.iter().all(|compound| compound.is_known) => {
                all.iter().find_map(|compound| compound.nth).map_or(Way::Matcher, Way::Nth)
            }
            2..=64 if upwards => Way::Climb,
            _ => Way::Matcher,
        };
        Self { all: all.into(), way }
    }

    /// The rightmost one.
    #[inline]
    pub(super) fn last(&self) -> Option<&Compound> {
        self.all.first()
    }

    /// In the order they are written in.
    pub(super) fn left_to_right(&self) -> impl Iterator<Item = &Compound> {
        self.all.iter().rev()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn has_combinators(&self) -> bool {
        self.all.len() > 1
    }

    /// Whether an element matches that passes the tests of the rightmost compound, for [`Way::Climb`]. Looks at each
    /// ancestor once: the compounds it may be are bits.
    pub(super) fn climb(
        &self,
        selector: &Selector<Css>,
        id: NodeId,
        search: &Search<'_>,
        context: &mut MatchingContext<'_, Css>,
    ) -> bool {
        if self.last().is_some_and(|compound| !compound.decides() && !compound.ask(selector, id, search, context)) {
            return false;
        }
        // What the very next ancestor may be, and what any further one may be.
        let (mut child, mut descendant) = (0_u64, 0_u64);
        let add = |index: usize, child: &mut u64, descendant: &mut u64| {
            let combinator = self.all.get(index).and_then(|compound| compound.combinator);
            let set = if combinator == Some(Combinator::Child) { child } else { descendant };
            *set |= 1 << (index + 1);
        };
        add(0, &mut child, &mut descendant);
        let case = context.classes_and_ids_case_sensitivity();
        let mut ancestor = search.arena.parent(id);
        while search.arena.is_element(ancestor) {
            search.step(1);
            let mut wanted = child | descendant;
            child = 0;
            while wanted != 0 {
                let index = wanted.trailing_zeros() as usize;
                wanted &= wanted - 1;
                let Some(compound) = self.all.get(index) else { return false };
                if compound.may_match(search, ancestor, case)
                    && (compound.decides() || compound.ask(selector, ancestor, search, context))
                {
                    if index + 1 == self.all.len() {
                        return true;
                    }
                    add(index, &mut child, &mut descendant);
                }
            }
            if child | descendant == 0 {
                return false;
            }
            ancestor = search.arena.parent(ancestor);
        }
        false
    }
}

impl Default for Compound {
    fn default() -> Self {
        Self { name: None, is_mixed: false, tests: Vec::new(), nth: None, is_known: true, combinator: None, start: 0 }
    }
}

impl Compound {
    fn add(&mut self, component: &Component<Css>) {
        match component {
            Component::LocalName(name) => {
                self.is_mixed = name.name != name.lower_name;
                self.name = Some(name.clone());
            }
            Component::Class(class) => self.tests.push(Test::Class(class.clone())),
            Component::ID(id) => self.tests.push(Test::Id(id.clone())),
            Component::AttributeInNoNamespaceExists { local_name, local_name_lower } if !local_name.text().contains(':') => {
                self.tests.push(Test::Has(local_name.clone(), local_name_lower.clone()));
            }
            Component::AttributeInNoNamespace {
                local_name,
                operator: AttrSelectorOperator::Equal,
                value,
                case_sensitivity: ParsedCaseSensitivity::CaseSensitive | ParsedCaseSensitivity::ExplicitCaseSensitive,
            } if !local_name.text().contains(':') => self.tests.push(Test::Equals(local_name.clone(), value.clone())),
            Component::AttributeInNoNamespace { local_name, .. } => {
                self.tests.push(Test::Valued(local_name.clone()));
                self.is_known = false;
            }
            Component::Negation(list) => match none_of(list) {
                Some(compounds) => self.tests.push(Test::Not(compounds)),
                None => self.is_known = false,
            },
            Component::Nth(nth) if nth.ty == NthType::Child && self.nth.is_none() => self.nth = Some(nth.an_plus_b),
            Component::NonTSPseudoClass(Pseudo::Within) => self.tests.push(Test::Within),
            Component::ExplicitUniversalType | Component::ExplicitAnyNamespace => {}
            _ => self.is_known = false,
        }
    }

    /// Whether the tests are all there is.
    pub(super) fn decides(&self) -> bool {
        self.is_known && self.nth.is_none()
    }

    /// What all that may match have, to be looked for in a row.
    pub(super) fn probe(&self, search: &Search<'_>, case: CaseSensitivity) -> Probe<'_> {
        if let Some(name) = self.name.as_ref().filter(|_| !self.is_mixed) {
            return Probe::Name(search.name(&name.name));
        }
        let of = |test: &'_ Test| match test {
            Test::Class(_) | Test::Id(_) | Test::Not(_) | Test::Within => None,
            Test::Has(name, lower) => (name == lower).then(|| Probe::Attr(search.name(name))),
            Test::Valued(name) | Test::Equals(name, _) => Some(Probe::Attr(search.name(name))),
        };
        let classes = self.tests.iter().filter(|_| case == CaseSensitivity::CaseSensitive);
        let mut ids = self.tests.iter().filter(|test| matches!(test, Test::Id(_)));
        ids.next()
            .map(|_| Probe::Attr(known::ID))
            .or_else(|| {
                classes.filter_map(|test| if let Test::Class(name) = test { Some(Probe::Class(&name.0)) } else { None }).next()
            })
            .or_else(|| self.tests.iter().find_map(of))
            .unwrap_or(Probe::Element)
    }

    /// Whether an element matches this compound of the selector.
    pub(super) fn matches(
        &self,
        selector: &Selector<Css>,
        id: NodeId,
        search: &Search<'_>,
        context: &mut MatchingContext<'_, Css>,
    ) -> bool {
        self.may_match(search, id, context.classes_and_ids_case_sensitivity())
            && (self.decides() || self.ask(selector, id, search, context))
    }

    /// Asks the matcher about this compound alone.
    fn ask(&self, selector: &Selector<Css>, id: NodeId, search: &Search<'_>, context: &mut MatchingContext<'_, Css>) -> bool {
        search.step(MATCHER);
        let result = matches_compound_selector_from(selector, self.start, context, &search.element(id));
        !matches!(result, CompoundSelectorMatchingResult::NotMatched)
    }

    /// Whether an element passes the tests.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the inner loop of every selection")]
    pub(super) fn may_match(&self, search: &Search<'_>, id: NodeId, case: CaseSensitivity) -> bool {
        if let Some(name) = &self.name {
            let is_lower = !self.is_mixed || search.arena.namespace(id) == Namespace::Html;
            if search.arena.name(id) != search.name(if is_lower { &name.lower_name } else { &name.name }) {
                return false;
            }
        }
        // Mostly there is one test, which is worth being compiled in.
        match self.tests.as_slice() {
            [] => true,
            [test] => test.passes(search, id, case),
            tests => tests.iter().all(|test| test.passes(search, id, case)),
        }
    }
}

impl Test {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the inner loop of every selection")]
    fn passes(&self, search: &Search<'_>, id: NodeId, case: CaseSensitivity) -> bool {
        match self {
            Self::Class(class) => search.has_class(id, &class.0, case),
            Self::Id(wanted) => search.has_id(id, &wanted.0, case),
            Self::Has(name, lower) => {
                let is_html = search.arena.namespace(id) == Namespace::Html;
                search.attr(id, search.name(if is_html { lower } else { name })).is_some()
            }
            Self::Valued(name) => search.attr(id, search.name(name)).is_some(),
            Self::Equals(name, wanted) => search.attr_equals(id, search.name(name), wanted.0.as_bytes()),
            Self::Not(compounds) => is_none_of(compounds, search, id, case),
            Self::Within => search.is_within(id),
        }
    }
}

/// The compounds of `:not()`, if they can be told by their tests.
fn none_of(list: &SelectorList<Css>) -> Option<Box<[Compound]>> {
    let compounds = list.slice().iter().map(|selector| {
        let Compounds { all, way } = Compounds::of(selector);
        if way == Way::Done { all.into_iter().next() } else { None }
    });
    compounds.collect()
}

#[inline(never)]
fn is_none_of(compounds: &[Compound], search: &Search<'_>, id: NodeId, case: CaseSensitivity) -> bool {
    search.step(compounds.len().saturating_sub(1));
    !compounds.iter().any(|compound| compound.may_match(search, id, case))
}

/// An element with its place among its siblings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    id: NodeId,
    place: i32,
}

impl Placed {
    pub(super) const NONE: Self = Self { id: NodeId::NONE, place: 0 };
}

/// Whether an element is at such a place among its siblings; `None` if that is not seen from the nearest ones, of which one may
/// be that of the last answer.
pub(super) fn is_nth(nth: AnPlusB, search: &Search<'_>, id: NodeId, last: &mut Placed) -> Option<bool> {
    let arena = search.arena;
    let mut place = 1;
    let mut sibling = arena.prev(id);
    for looked_at in 0..NEAR_SIBLINGS {
        if sibling.is_none() || sibling == last.id {
            search.step(looked_at / 4);
            if sibling.is_some() {
                place += last.place;
            }
            *last = Placed { id, place };
            return Some(nth.matches_index(place));
        }
        place += i32::from(arena.is_element(sibling));
        sibling = arena.prev(sibling);
    }
    search.step(NEAR_SIBLINGS / 4);
    None
}
