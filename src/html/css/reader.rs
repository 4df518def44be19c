//! Reads standard CSS selectors with the parser of the `selectors` crate, within bounds, and says where it failed.

use std::cell::Cell;
use std::fmt::Write as _;

use cssparser::{BasicParseErrorKind, CowRcStr, ParseError, ParseErrorKind, Parser as Input};
use selectors::parser::{Component, ParseRelative, Parser, Selector, SelectorList, SelectorParseErrorKind as Kind};

use super::error::CssError;
use super::has::Has;
use super::pseudo::{Pseudo, WITHIN};
use super::split::{self, Part};
use super::types::{Css, NoPseudoElement, Text, Url};

/// Brackets inside of brackets.
pub(super) const DEEPEST: u8 = 16;
/// Compounds of one selector, those of nested ones included: matching recurses over them.
const MOST_COMPOUNDS: usize = 128;
/// The most characters of a selector that a reason repeats.
const SHOWN: usize = 40;

type Error = ParseError<Kind>;

/// Whether [`Pseudo::Within`] is a pseudo-class: only where it was put in here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Allowed,
    Unknown,
}

/// What the parser asks back.
struct Reader<'t> {
    text: &'t str,
    bound: Bound,
    /// Where a name was read that means nothing.
    failed_at: Cell<Option<usize>>,
    is_in_has: Cell<bool>,
    has_slots: &'t Cell<u32>,
}

/// The selector of a part. `text` is the whole, which errors speak of; `has_slots` counts over all parts.
pub(super) fn read(text: &str, part: &Part<'_>, has_slots: &Cell<u32>) -> Result<Selector<Css>, CssError> {
    let mut own = part.subject.to_owned();
    if part.is_open {
        own.push('*');
    }
    // The leftmost compound has to be the node searched or below it.
    let before = has_slots.get();
    let with_bound = part.head.and_then(|head| part.subject.split_at_checked(head)).map(|(head, rest)| {
        let mut text = format!("{head}:{WITHIN}{rest}");
        if part.is_open {
            text.push('*');
        }
        text
    });
    if let Some(with_bound) = &with_bound
        && memchr::memmem::find(own.as_bytes(), WITHIN.as_bytes()).is_none()
        && let Ok(selector) = parse(with_bound, Bound::Allowed, has_slots)
    {
        return check(text, part, selector);
    }
    has_slots.set(before);
    match parse(&own, Bound::Unknown, has_slots) {
        Ok(selector) => check(text, part, selector),
        Err((position, reason)) => {
            let position = (part.start + position).min(text.len());
            let rest = text.get(position..).unwrap_or_default();
            let rest = rest.get(..(part.start + part.subject.len()).saturating_sub(position)).unwrap_or(rest).trim();
            let mut reason = reason.to_owned();
            if !rest.is_empty() {
                let shown: String = rest.chars().take(SHOWN).collect();
                let _ = write!(reason, ": {shown:?}");
            }
            Err(CssError::new(text, position, reason))
        }
    }
}

fn check(text: &str, part: &Part<'_>, selector: Selector<Css>) -> Result<Selector<Css>, CssError> {
    if compounds(&selector) > MOST_COMPOUNDS {
        return Err(CssError::new(text, part.start, format!("it has more than {MOST_COMPOUNDS} compounds in one selector")));
    }
    Ok(selector)
}

fn parse(text: &str, bound: Bound, has_slots: &Cell<u32>) -> Result<Selector<Css>, (usize, &'static str)> {
    let reader = Reader { text, bound, failed_at: Cell::new(None), is_in_has: Cell::new(false), has_slots };
    let mut input = Input::new(text);
    input.set_nested_block_limit(DEEPEST);
    match Selector::parse(&reader, &mut input) {
        Ok(selector) => {
            let position = input.position().byte_index();
            if input.is_exhausted() { Ok(selector) } else { Err((skip_blanks(text, position), "this was not expected here")) }
        }
        Err(error) => {
            let stop = input.position().byte_index();
            Err((reader.failed_at.get().unwrap_or_else(|| failed_at(text, stop, &error)), reason(&error)))
        }
    }
}

/// Where a parse failed that stopped at `stop`: there, or at the start of what was read last if that is complete. A bracket
/// is read to its end whatever is wrong inside.
fn failed_at(text: &str, stop: usize, error: &Error) -> usize {
    let before = text.get(..stop).unwrap_or_default();
    let is_prefix = error.kind == ParseErrorKind::Custom(Kind::ExpectedNamespace);
    if stop < text.len() && !before.ends_with([')', ']', '}']) && !is_prefix { stop } else { split::last_start(text, stop) }
}

fn skip_blanks(text: &str, position: usize) -> usize {
    let rest = text.get(position..).unwrap_or_default();
    position + (rest.len() - rest.trim_start().len())
}

/// How deep matching can recurse: the compounds of a selector, and of the deepest selectors in each.
fn compounds(selector: &Selector<Css>) -> usize {
    let of_all = |list: &[Selector<Css>]| list.iter().map(compounds).max().unwrap_or(0);
    let mut count = 1;
    let mut deepest = 0;
    for component in selector.iter_raw_match_order() {
        let nested = match component {
            Component::Combinator(_) => {
                count += 1;
                0
            }
            Component::Is(list) | Component::Where(list) | Component::Negation(list) => of_all(list.slice()),
            Component::NthOf(data) => of_all(data.selectors()),
            Component::NonTSPseudoClass(Pseudo::Has(has)) => has.selectors().map(compounds).max().unwrap_or(0),
            _ => 0,
        };
        deepest = deepest.max(nested);
    }
    count + deepest
}

impl Reader<'_> {
    /// Remembers where a name was read, with its colon. Names with escapes are copies: their place is not known.
    fn fail(&self, name: &str, kind: Kind) -> Error {
        let start = (name.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        if let Some(start) = start.filter(|start| *start <= self.text.len()) {
            let before = self.text.get(..start).unwrap_or_default();
            self.failed_at.set(Some(before.trim_end_matches(':').len()));
        }
        ParseError::custom(kind)
    }
}

impl<'i> Parser<'i> for Reader<'_> {
    type Impl = Css;
    type Error = Kind;

    fn parse_nth_child_of(&self) -> bool {
        true
    }

    fn parse_is_and_where(&self) -> bool {
        true
    }

    fn parse_non_ts_pseudo_class(&self, name: CowRcStr<'i>) -> Result<Pseudo, Error> {
        let pseudo = Pseudo::of_name(&name).filter(|pseudo| *pseudo != Pseudo::Within || self.bound == Bound::Allowed);
        pseudo.ok_or_else(|| self.fail(&name, Kind::UnsupportedPseudoClassOrElement))
    }

    fn parse_non_ts_functional_pseudo_class(&self, name: CowRcStr<'i>, input: &mut Input<'i>, _: bool) -> Result<Pseudo, Error> {
        if name.eq_ignore_ascii_case("has") {
            return self.has(&name, input);
        }
        if name.eq_ignore_ascii_case("lang") {
            let ranges = input.parse_comma_separated(|input| Ok::<_, Error>(Box::from(&**input.expect_ident_or_string()?)))?;
            return Ok(Pseudo::Lang(ranges.into()));
        }
        if name.eq_ignore_ascii_case("contains") {
            let text = input.expect_ident_or_string()?;
            return Ok(Pseudo::Contains((&**text).into()));
        }
        Err(self.fail(&name, Kind::UnsupportedPseudoClassOrElement))
    }

    fn parse_pseudo_element(&self, name: CowRcStr<'i>) -> Result<NoPseudoElement, Error> {
        Err(self.fail(&name, Kind::UnsupportedPseudoClassOrElement))
    }

    fn parse_functional_pseudo_element(&self, name: CowRcStr<'i>, _: &mut Input<'i>) -> Result<NoPseudoElement, Error> {
        Err(self.fail(&name, Kind::UnsupportedPseudoClassOrElement))
    }

    fn namespace_for_prefix(&self, prefix: &Text) -> Option<Url> {
        Url::of_prefix(&prefix.0)
    }
}

impl Reader<'_> {
    /// `:has()` must not contain another one (CSS Selectors 4, 4.5).
    fn has<'i>(&self, name: &str, input: &mut Input<'i>) -> Result<Pseudo, Error> {
        if self.is_in_has.replace(true) {
            return Err(self.fail(name, Kind::InvalidState));
        }
        let list = SelectorList::parse(self, input, ParseRelative::ForHas);
        self.is_in_has.set(false);
        let has = Has::new(&list?, self.has_slots.get());
        self.has_slots.set(self.has_slots.get().saturating_add(has.len()));
        Ok(Pseudo::Has(Box::new(has)))
    }
}

fn reason(error: &Error) -> &'static str {
    match &error.kind {
        ParseErrorKind::Basic(BasicParseErrorKind::EndOfInput) => "the selector ends too early",
        ParseErrorKind::Basic(BasicParseErrorKind::TooManyNestedBlocks) => "brackets are nested too deep, at most 16",
        ParseErrorKind::Basic(BasicParseErrorKind::UnexpectedToken) => "this was not expected here",
        ParseErrorKind::Basic(_) => "this is not css",
        ParseErrorKind::Custom(kind) => match kind {
            Kind::EmptySelector => "a selector is missing here",
            Kind::DanglingCombinator => "dangling combinator: a selector is missing behind it",
            Kind::UnsupportedPseudoClassOrElement => {
                "unsupported pseudo-class or element, known are :not, :is, :where, :has, :nth-…, :first-…, :last-…, :only-…, \
                 :empty, :root, :scope, :link, :lang, :checked, :disabled, :enabled, :contains, and :hover and its like, \
                 which match nothing"
            }
            Kind::ExpectedNamespace => "unknown namespace prefix, html, svg, math, xlink and xml are known",
            Kind::ClassNeedsIdent => "a class needs a name behind the dot",
            Kind::PseudoElementExpectedColon | Kind::PseudoElementExpectedIdent | Kind::NoIdentForPseudo => {
                "a pseudo-class needs a name behind the colon"
            }
            Kind::NoQualifiedNameInAttributeSelector
            | Kind::UnexpectedTokenInAttributeSelector
            | Kind::ExpectedBarInAttr
            | Kind::BadValueInAttr
            | Kind::InvalidQualNameInAttr => "this is no attribute selector, [name] or [name=\"value\"] is",
            Kind::InvalidState => "this is not allowed in this place",
            _ => "this was not expected here",
        },
    }
}
