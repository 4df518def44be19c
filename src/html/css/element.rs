//! An element as the `selectors` crate sees it, and the search it is looked at in.
//!
//! Every move through the tree is counted: a selection has so many steps and no more, whatever page and selector are.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;

use selectors::OpaqueElement;
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::matching::{ElementSelectorFlags, MatchingContext};

use super::Compiled;
use super::compound::Probe;
use super::has::HasCache;
use super::pseudo::{self, Pseudo};
use super::types::{self, Css, Name, NoPseudoElement, Text, Url};
use crate::html::arena::{Arena, Kind, Namespace, NodeId};
use crate::html::document::Document;
use crate::html::names::{NameId, known};
use crate::html::span::Span;

/// Bytes of a value that are compared in one step.
const BYTES_A_STEP: usize = 16;

/// Steps of a move or a question of the matcher: it does more about each than our own loops.
pub(super) const MATCHER: usize = 3;

/// One run of one selector over a page.
pub(super) struct Search<'a> {
    pub(super) document: &'a Document,
    pub(super) arena: &'a Arena,
    /// The numbers of the selector's names on this page.
    names: Vec<NameId>,
    /// The places of the root and of what follows it, if what is outside does not count.
    pub(super) within: Cell<Option<(u32, u32)>>,
    /// Steps an ordinary question may take before it is prepared for being asked often.
    pub(super) patience: u64,
    steps: Cell<u64>,
    limit: u64,
    pub(super) has: RefCell<HasCache>,
}

impl<'a> Search<'a> {
    pub(super) fn new(document: &'a Document, compiled: &Compiled, limit: u64) -> Self {
        let arena = document.arena();
        Self {
            document,
            arena,
            names: types::on_page(&compiled.names, arena),
            patience: compiled.patience,
            within: Cell::new(None),
            steps: Cell::new(0),
            limit,
            has: RefCell::default(),
        }
    }

    #[inline]
    pub(super) fn step(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    #[inline]
    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Whether the selection has to stop: what is being matched is given up, and its answer means nothing.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.steps.get() > self.limit
    }

    /// How many steps are left.
    #[inline]
    pub(super) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.steps.get())
    }

    /// Whether a node is the one searched or below it, if that counts.
    #[inline]
    pub(super) fn is_within(&self, id: NodeId) -> bool {
        self.within.get().is_none_or(|(start, end)| (start..end).contains(&self.document.place(id)))
    }

    /// The number of a selector's name on this page.
    #[inline]
    pub(super) fn name(&self, name: &Name) -> NameId {
        name.on_page(&self.names)
    }

    #[inline]
    pub(super) fn element(&self, id: NodeId) -> Element<'_> {
        Element { search: self, id }
    }

    /// The value of an attribute without a namespace.
    #[inline]
    pub(super) fn attr(&self, id: NodeId, name: NameId) -> Option<Span> {
        let mut seen = 0;
        let found = self.arena.attrs(id).find(|attr| {
            seen += 1;
            attr.name() == name
        });
        if seen > 4 {
            self.step(seen / 4);
        }
        found.map(|attr| attr.value())
    }

    /// The bytes of a value, paid for.
    #[inline]
    pub(super) fn bytes(&self, value: Span) -> &'a [u8] {
        if value.len() >= BYTES_A_STEP {
            self.step(value.len() / BYTES_A_STEP);
        }
        self.arena.bytes(value)
    }

    #[inline]
    pub(super) fn has_id(&self, id: NodeId, wanted: &str, case: CaseSensitivity) -> bool {
        self.attr(id, known::ID).is_some_and(|value| {
            value.len() == wanted.len() && {
                let value = self.bytes(value);
                if case == CaseSensitivity::CaseSensitive {
                    value == wanted.as_bytes()
                } else {
                    case.eq(value, wanted.as_bytes())
                }
            }
        })
    }

    /// Whether an attribute has exactly this value.
    #[inline]
    pub(super) fn attr_equals(&self, id: NodeId, name: NameId, wanted: &[u8]) -> bool {
        self.attr(id, name).is_some_and(|value| value.len() == wanted.len() && self.bytes(value) == wanted)
    }

    #[inline]
    pub(super) fn has_class(&self, id: NodeId, wanted: &str, case: CaseSensitivity) -> bool {
        let Some(value) = self.attr(id, known::CLASS) else { return false };
        if case == CaseSensitivity::CaseSensitive {
            return self.has_word(value, wanted);
        }
        value.len() >= wanted.len() && classes(self.bytes(value)).any(|class| case.eq(class, wanted.as_bytes()))
    }

    /// Whether a name is one of those in a value.
    #[inline]
    fn has_word(&self, value: Span, wanted: &str) -> bool {
        value.len() >= wanted.len() && has_word(self.bytes(value), wanted.as_bytes())
    }

    /// The first element among `ids` that has what is looked for; any element if that took all steps there are.
    #[inline]
    pub(super) fn find(&self, probe: Probe<'_>, ids: Range<usize>) -> Option<NodeId> {
        let (mut steps, left) = (0, self.left());
        let found = match probe {
            Probe::Element => self.arena.find_element(ids),
            Probe::Name(types::NO_NAME) | Probe::Attr(types::NO_NAME) => None,
            Probe::Name(name) => self.arena.find_named(ids, name),
            Probe::Class(class) => {
                self.arena.find_with_attr(ids, known::CLASS, &mut steps, left, |value| self.has_word(value, class))
            }
            Probe::Attr(name) => self.arena.find_with_attr(ids, name, &mut steps, left, |_| true),
        };
        self.steps.set(self.steps.get() + steps);
        found
    }
}

/// Whether a name is one of those between the blanks of a value; faster than cutting the value up.
#[inline]
fn has_word(value: &[u8], name: &[u8]) -> bool {
    let Some(first) = name.first() else { return false };
    let mut rest = value;
    while rest.len() >= name.len() {
        if rest.first() == Some(first)
            && let Some(behind) = rest.strip_prefix(name)
            && behind.first().is_none_or(|byte| byte.is_ascii_whitespace())
        {
            // A name with an escaped blank is no name of a class.
            return !name.iter().any(|byte| byte.is_ascii_whitespace());
        }
        let Some(behind) = behind_blank(rest) else { return false };
        rest = behind;
    }
    false
}

/// What is behind the first blank. Looks at eight bytes at once.
#[inline]
fn behind_blank(text: &[u8]) -> Option<&[u8]> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let mut rest = text;
    while let Some((bytes, behind)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*bytes);
        // The high bit of each byte below 0x21; what is above the first such byte may be wrong.
        let low = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
        if low == 0 {
            rest = behind;
            continue;
        }
        let (_, from) = rest.split_at_checked(low.trailing_zeros() as usize / 8)?;
        let (byte, behind) = from.split_first()?;
        rest = behind;
        if byte.is_ascii_whitespace() {
            return Some(behind);
        }
    }
    let blank = rest.iter().position(|byte| *byte <= b' ' && byte.is_ascii_whitespace())?;
    rest.get(blank + 1..)
}

/// The names in a value of `class`.
#[inline]
fn classes(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| byte.is_ascii_whitespace()).filter(|class| !class.is_empty())
}

/// An element of a page in a search.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) id: NodeId,
}

impl fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

impl Element<'_> {
    #[inline]
    fn at(self, id: NodeId) -> Self {
        Self { id, ..self }
    }

    #[inline]
    pub(super) fn namespace(self) -> Namespace {
        self.search.arena.namespace(self.id)
    }

    /// The first element from `id` on along `next`.
    #[inline]
    fn seek(self, mut id: NodeId, next: impl Fn(&Arena, NodeId) -> NodeId) -> Option<Self> {
        let arena = self.search.arena;
        let mut steps = MATCHER;
        while id.is_some() && !arena.is_element(id) {
            id = next(arena, id);
            steps += 1;
        }
        self.search.step(steps);
        if id.is_none() || self.search.is_over() { None } else { Some(self.at(id)) }
    }
}

impl selectors::Element for Element<'_> {
    type Impl = Css;

    /// A number in the clothes of an address: nothing is ever read through it. The crate keeps tables of positions by it.
    #[inline]
    fn opaque(&self) -> OpaqueElement {
        self.search.step(MATCHER);
        OpaqueElement::from_non_null_ptr(NonNull::without_provenance(NonZeroUsize::MIN.saturating_add(self.id.index())))
    }

    #[inline]
    fn parent_element(&self) -> Option<Self> {
        let parent = self.search.arena.parent(self.id);
        self.search.step(MATCHER);
        if parent.is_none() || !self.search.arena.is_element(parent) || self.search.is_over() {
            return None;
        }
        Some(self.at(parent))
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    #[inline]
    fn prev_sibling_element(&self) -> Option<Self> {
        self.seek(self.search.arena.prev(self.id), Arena::prev)
    }

    #[inline]
    fn next_sibling_element(&self) -> Option<Self> {
        self.seek(self.search.arena.next(self.id), Arena::next)
    }

    #[inline]
    fn first_element_child(&self) -> Option<Self> {
        self.seek(self.search.arena.first_child(self.id), Arena::next)
    }

    #[inline]
    fn is_html_element_in_html_document(&self) -> bool {
        self.namespace() == Namespace::Html
    }

    #[inline]
    fn has_local_name(&self, name: &Name) -> bool {
        self.search.arena.name(self.id) == self.search.name(name)
    }

    #[inline]
    fn has_namespace(&self, url: &Url) -> bool {
        Url::of_element(self.namespace()) == *url
    }

    #[inline]
    fn is_same_type(&self, other: &Self) -> bool {
        let arena = self.search.arena;
        arena.name(self.id) == arena.name(other.id) && self.namespace() == other.namespace()
    }

    fn attr_matches(
        &self,
        namespace: &NamespaceConstraint<&Url>,
        local_name: &Name,
        operation: &AttrSelectorOperation<&Text>,
    ) -> bool {
        let search = self.search;
        if matches!(namespace, NamespaceConstraint::Specific(Url::None)) {
            let Some(value) = search.attr(self.id, search.name(local_name)) else { return false };
            let is_namespaced =
                local_name.text().contains(':') && Url::of_attr(local_name.text(), self.namespace()).0 != Url::None;
            return !is_namespaced && self.value_matches(value, operation);
        }
        let own = self.namespace();
        search.arena.attrs(self.id).any(|attr| {
            search.step(1);
            let (url, local) = Url::of_attr(search.arena.name_text(attr.name()), own);
            !matches!(*namespace, NamespaceConstraint::Specific(wanted) if *wanted != url)
                && local == local_name.text()
                && self.value_matches(attr.value(), operation)
        })
    }

    fn match_non_ts_pseudo_class(&self, pseudo: &Pseudo, context: &mut MatchingContext<'_, Css>) -> bool {
        pseudo::matches(*self, pseudo, context)
    }

    fn match_pseudo_element(&self, pseudo: &NoPseudoElement, _: &mut MatchingContext<'_, Css>) -> bool {
        match *pseudo {}
    }

    fn apply_selector_flags(&self, _: ElementSelectorFlags) {}

    /// For the crate this is about visited links only; `:link` is a pseudo-class of ours.
    #[inline]
    fn is_link(&self) -> bool {
        false
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    #[inline]
    fn has_id(&self, id: &Text, case: CaseSensitivity) -> bool {
        self.search.has_id(self.id, &id.0, case)
    }

    #[inline]
    fn has_class(&self, class: &Text, case: CaseSensitivity) -> bool {
        self.search.has_class(self.id, &class.0, case)
    }

    fn has_custom_state(&self, _: &Text) -> bool {
        false
    }

    fn imported_part(&self, _: &Text) -> Option<Text> {
        None
    }

    fn is_part(&self, _: &Text) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        let arena = self.search.arena;
        let mut child = arena.first_child(self.id);
        while child.is_some() {
            self.search.step(1);
            match arena.kind(child) {
                Kind::Element => return false,
                Kind::Text if !arena.data(child).is_empty() => return false,
                _ => child = arena.next(child),
            }
        }
        true
    }

    #[inline]
    fn is_root(&self) -> bool {
        self.search.arena.parent(self.id) == NodeId::DOCUMENT
    }

    /// For filters of the crate that this engine does without.
    fn add_element_unique_hashes(&self, _: &mut BloomFilter) -> bool {
        false
    }
}

impl Element<'_> {
    fn value_matches(self, value: Span, operation: &AttrSelectorOperation<&Text>) -> bool {
        let AttrSelectorOperation::WithValue { case_sensitivity, value: wanted, .. } = operation else { return true };
        let search = self.search;
        search.step(value.len() / BYTES_A_STEP);
        if *case_sensitivity != CaseSensitivity::CaseSensitive {
            // The crate compares at each place anew.
            search.step(value.len() / BYTES_A_STEP * (wanted.0.len() / 4));
        }
        !search.is_over() && operation.eval_str(search.arena.text(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_whole_word() {
        for (value, name, expected) in [
            ("a", "a", true),
            ("a b", "a", true),
            ("a b", "b", true),
            (" \n a\tb", "b", true),
            ("ab", "a", false),
            ("ba", "a", false),
            ("a-b b-a", "a", false),
            ("aa a", "a", true),
            ("a\u{b}", "a", false),
            ("a b", "a b", false),
            ("abcdefgh", "h", false),
            ("abcdefg h", "h", true),
            ("abcdefgh i", "i", true),
            ("abcdefghijk l mnopqrstuvw\tx", "x", true),
            ("abc\u{1}efg x", "x", true),
            ("abc\u{1}x efghijk", "x", false),
            ("\u{e9}\u{a0}\u{100}\u{20ac} y", "y", true),
            ("", "a", false),
            ("", "", false),
        ] {
            assert_eq!(has_word(value.as_bytes(), name.as_bytes()), expected, "{value:?} {name:?}");
        }
    }
}
