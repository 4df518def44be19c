//! The types the `selectors` crate is told to use: names, values and namespaces of selectors.
//!
//! Names that every page knows are numbers from the start. Others are numbered by their place in the selector, and
//! looked up once for each selection ([`collect_names`], [`super::element::Search`]).

use std::cell::RefCell;
use std::fmt;

use cssparser::ToCss;
use precomputed_hash::PrecomputedHash;
use selectors::parser::{PseudoElement, SelectorImpl};

use super::pseudo::Pseudo;
use crate::html::arena::{Arena, Namespace};
use crate::html::names::NameId;

/// No name of any page.
pub(super) const NO_NAME: NameId = NameId(u32::MAX);

/// Selectors as this engine has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Css;

impl SelectorImpl for Css {
    type ExtraMatchingData<'a> = ();
    type AttrValue = Text;
    type Identifier = Text;
    type LocalName = Name;
    type NamespaceUrl = Url;
    type NamespacePrefix = Text;
    type BorrowedNamespaceUrl = Url;
    type BorrowedLocalName = Name;
    type NonTSPseudoClass = Pseudo;
    type PseudoElement = NoPseudoElement;
}

thread_local! {
    /// The unknown names of the selector that is being parsed on this thread.
    static COLLECTED: RefCell<Vec<Box<str>>> = const { RefCell::new(Vec::new()) };
}

/// Runs a parse and gives the unknown names it met; the slot of a [`Name`] is its place among them.
pub(super) fn collect_names<T>(parse: impl FnOnce() -> T) -> (T, Box<[Box<str>]>) {
    COLLECTED.with_borrow_mut(Vec::clear);
    let parsed = parse();
    (parsed, COLLECTED.take().into())
}

/// The name of an element or an attribute.
#[derive(Clone, Debug)]
pub(super) struct Name {
    /// [`NO_NAME`] if it is not the same on every page.
    known: NameId,
    slot: u32,
    hash: u32,
    text: Box<str>,
}

impl Name {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number of the name on a page; `slots` are the numbers of the names [`collect_names`] gave.
    #[inline]
    pub(super) fn on_page(&self, slots: &[NameId]) -> NameId {
        if self.known == NO_NAME { slots.get(self.slot as usize).copied().unwrap_or(NO_NAME) } else { self.known }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        let hash = hash(text.as_bytes());
        if let Some(known) = NameId::of_known(text) {
            return Self { known, slot: u32::MAX, hash, text: text.into() };
        }
        let slot = COLLECTED.with_borrow_mut(|names| {
            names.push(text.into());
            u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
        });
        Self { known: NO_NAME, slot, hash, text: text.into() }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

impl PrecomputedHash for Name {
    fn precomputed_hash(&self) -> u32 {
        self.hash
    }
}

impl ToCss for Name {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        cssparser::serialize_identifier(&self.text, dest)
    }
}

/// A class, an id, a value or a namespace prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) Box<str>);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PrecomputedHash for Text {
    fn precomputed_hash(&self) -> u32 {
        hash(self.0.as_bytes())
    }
}

impl ToCss for Text {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        cssparser::serialize_string(&self.0, dest)
    }
}

/// A namespace a selector can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Url {
    /// No namespace: that of most attributes and of no element.
    #[default]
    None,
    Html,
    Svg,
    MathMl,
    XLink,
    Xml,
    XmlNs,
}

impl Url {
    /// The prefixes that need no declaration.
    pub(super) fn of_prefix(prefix: &str) -> Option<Self> {
        Some(match prefix {
            "html" => Self::Html,
            "svg" => Self::Svg,
            "math" | "mathml" => Self::MathMl,
            "xlink" => Self::XLink,
            "xml" => Self::Xml,
            "xmlns" => Self::XmlNs,
            _ => return None,
        })
    }

    pub(super) fn of_element(namespace: Namespace) -> Self {
        match namespace {
            Namespace::Html => Self::Html,
            Namespace::Svg => Self::Svg,
            Namespace::MathMl => Self::MathMl,
        }
    }

    /// The namespace and the local part of an attribute's name as the arena has it.
    pub(super) fn of_attr(name: &str, owner: Namespace) -> (Self, &str) {
        if owner == Namespace::Html || !crate::html::dump::has_namespace(name) {
            return (Self::None, name);
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        (Self::of_prefix(prefix).unwrap_or_default(), local)
    }
}

impl PrecomputedHash for Url {
    fn precomputed_hash(&self) -> u32 {
        (*self as u32 + 1).wrapping_mul(0x9e37_79b1)
    }
}

/// No pseudo-element matches anything: `::text` and `::attr()` are read before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPseudoElement {}

impl PseudoElement for NoPseudoElement {}

impl ToCss for NoPseudoElement {
    fn to_css<W: fmt::Write>(&self, _: &mut W) -> fmt::Result {
        match *self {}
    }
}

/// What filters of the crate know a name, an id or a class by.
fn hash(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The numbers of names on a page, in their order.
pub(super) fn on_page(names: &[Box<str>], arena: &Arena) -> Vec<NameId> {
    names.iter().map(|name| arena.find_name(name).unwrap_or(NO_NAME)).collect()
}
