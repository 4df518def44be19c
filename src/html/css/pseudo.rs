//! Pseudo-classes beyond the tree's structure: links, form controls, languages, contained text, `:has()`.
//!
//! A page that was fetched has no pointer, no focus and no history: `:hover` and its like are valid and match nothing.

use std::fmt;

use cssparser::ToCss;
use selectors::matching::MatchingContext;
use selectors::parser::NonTSPseudoClass;

use super::element::{Element, Search};
use super::has::Has;
use super::types::Css;
use crate::html::arena::{Kind, Namespace, NodeId};
use crate::html::names::{NameId, known};

/// The name of [`Pseudo::Within`]: what is read in front of it is the leftmost compound of a selector.
pub(super) const WITHIN: &str = "-dragline-within";

/// A pseudo-class that the `selectors` crate does not know itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pseudo {
    /// `:link`, `:any-link`.
    Link,
    Checked,
    Disabled,
    Enabled,
    /// `:lang()`: language ranges.
    Lang(Box<[Box<str>]>),
    /// `:contains()` of cssselect: a text anywhere below.
    Contains(Box<str>),
    Has(Box<Has>),
    /// The node searched or below it; everything if the whole page is searched.
    Within,
    /// A state no page here is in.
    Never(&'static str),
}

impl Pseudo {
    /// The pseudo-class of a name without brackets.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        const NEVER: [&str; 7] = ["visited", "hover", "active", "focus", "focus-within", "focus-visible", "target"];
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("link") || is("any-link") {
            return Some(Self::Link);
        }
        [("checked", Self::Checked), ("disabled", Self::Disabled), ("enabled", Self::Enabled), (WITHIN, Self::Within)]
            .into_iter()
            .find_map(|(other, pseudo)| is(other).then_some(pseudo))
            .or_else(|| NEVER.into_iter().find(|other| is(other)).map(Self::Never))
    }
}

impl NonTSPseudoClass for Pseudo {
    fn is_active_or_hover(&self) -> bool {
        matches!(self, Self::Never("hover" | "active"))
    }

    fn is_user_action_state(&self) -> bool {
        matches!(self, Self::Never(name) if *name != "visited" && *name != "target")
    }
}

impl ToCss for Pseudo {
    fn to_css<W: fmt::Write>(&self, dest: &mut W) -> fmt::Result {
        match self {
            Self::Link => dest.write_str(":any-link"),
            Self::Checked => dest.write_str(":checked"),
            Self::Disabled => dest.write_str(":disabled"),
            Self::Enabled => dest.write_str(":enabled"),
            Self::Lang(ranges) => write!(dest, ":lang({})", ranges.join(", ")),
            Self::Contains(text) => {
                dest.write_str(":contains(")?;
                cssparser::serialize_string(text, dest)?;
                dest.write_char(')')
            }
            Self::Has(has) => has.to_css(dest),
            Self::Within => write!(dest, ":{WITHIN}"),
            Self::Never(name) => write!(dest, ":{name}"),
        }
    }
}

pub(super) fn matches(element: Element<'_>, pseudo: &Pseudo, context: &mut MatchingContext<'_, Css>) -> bool {
    let Element { search, id } = element;
    match pseudo {
        Pseudo::Link => is_link(search, id),
        Pseudo::Checked => is_checked(search, id),
        Pseudo::Disabled => can_be_disabled(search, id) && is_disabled(search, id),
        Pseudo::Enabled => can_be_disabled(search, id) && !is_disabled(search, id),
        Pseudo::Lang(ranges) => {
            language(search, id).is_some_and(|language| ranges.iter().any(|range| is_in_range(&language, range)))
        }
        Pseudo::Contains(text) => contains(search, id, text),
        Pseudo::Has(has) => has.matches(element, context),
        Pseudo::Within => search.is_within(id),
        Pseudo::Never(_) => false,
    }
}

fn has(search: &Search<'_>, id: NodeId, name: NameId) -> bool {
    search.attr(id, name).is_some()
}

fn is(search: &Search<'_>, id: NodeId, names: &[NameId]) -> bool {
    search.arena.namespace(id) == Namespace::Html && names.contains(&search.arena.name(id))
}

/// WHATWG HTML 4.6.1: `a` and `area` with `href`; of SVG `a`, with `xlink:href` as well.
fn is_link(search: &Search<'_>, id: NodeId) -> bool {
    if search.arena.namespace(id) == Namespace::Svg {
        return search.arena.name(id) == known::A && (has(search, id, known::HREF) || has(search, id, known::XLINK_HREF));
    }
    is(search, id, &[known::A, known::AREA]) && has(search, id, known::HREF)
}

/// WHATWG HTML 4.16.3, as the markup says it: nobody has clicked.
fn is_checked(search: &Search<'_>, id: NodeId) -> bool {
    if is(search, id, &[known::OPTION]) {
        return has(search, id, known::SELECTED);
    }
    is(search, id, &[known::INPUT])
        && has(search, id, known::CHECKED)
        && search.attr(id, known::TYPE).is_some_and(|value| {
            let value = search.bytes(value);
            value.eq_ignore_ascii_case(b"checkbox") || value.eq_ignore_ascii_case(b"radio")
        })
}

fn can_be_disabled(search: &Search<'_>, id: NodeId) -> bool {
    const CONTROLS: [NameId; 7] =
        [known::BUTTON, known::INPUT, known::SELECT, known::TEXTAREA, known::OPTGROUP, known::OPTION, known::FIELDSET];
    is(search, id, &CONTROLS)
}

/// WHATWG HTML 4.15 ("actually disabled") for an element that [`can_be_disabled`].
fn is_disabled(search: &Search<'_>, id: NodeId) -> bool {
    if has(search, id, known::DISABLED) {
        return true;
    }
    let arena = search.arena;
    if is(search, id, &[known::OPTION]) {
        let parent = arena.parent(id);
        return is(search, parent, &[known::OPTGROUP]) && has(search, parent, known::DISABLED);
    }
    if is(search, id, &[known::OPTGROUP]) {
        return false;
    }
    // In a disabled fieldset, but not in its first legend.
    let (mut child, mut ancestor) = (id, arena.parent(id));
    while ancestor.is_some() && !search.is_over() {
        search.step(1);
        if is(search, ancestor, &[known::FIELDSET]) && has(search, ancestor, known::DISABLED) {
            let is_legend = is(search, child, &[known::LEGEND]);
            if !is_legend || first_legend(search, ancestor) != child {
                return true;
            }
        }
        (child, ancestor) = (ancestor, arena.parent(ancestor));
    }
    false
}

fn first_legend(search: &Search<'_>, fieldset: NodeId) -> NodeId {
    let mut child = search.arena.first_child(fieldset);
    while child.is_some() && !is(search, child, &[known::LEGEND]) {
        search.step(1);
        child = search.arena.next(child);
    }
    child
}

/// The language of a node (WHATWG HTML 3.2.6.2): the nearest `lang` from the inside out.
fn language<'a>(search: &Search<'a>, id: NodeId) -> Option<std::borrow::Cow<'a, str>> {
    let arena = search.arena;
    let mut id = id;
    while id.is_some() && !search.is_over() {
        search.step(1);
        let is_foreign = arena.namespace(id) != Namespace::Html;
        let in_xml = if is_foreign { search.attr(id, known::XML_LANG) } else { None };
        if let Some(value) = in_xml.or_else(|| search.attr(id, known::LANG)) {
            return Some(String::from_utf8_lossy(search.bytes(value)));
        }
        id = arena.parent(id);
    }
    None
}

/// Extended filtering (RFC 4647, 3.3.2), which CSS Selectors 4 asks for.
fn is_in_range(language: &str, range: &str) -> bool {
    if range.is_empty() || language.is_empty() {
        return range.is_empty() && language.is_empty();
    }
    let mut tags = language.split('-');
    let mut wanted = range.split('-');
    let (Some(first), Some(want)) = (tags.next(), wanted.next()) else { return false };
    if want != "*" && !want.eq_ignore_ascii_case(first) {
        return false;
    }
    for want in wanted.filter(|want| *want != "*") {
        loop {
            match tags.next() {
                Some(tag) if tag.eq_ignore_ascii_case(want) => break,
                // A single letter begins an extension: what follows says something else.
                Some(tag) if tag.len() > 1 => {}
                _ => return false,
            }
        }
    }
    true
}

/// Whether a text stands in what is below a node, over the borders of text nodes.
fn contains(search: &Search<'_>, id: NodeId, wanted: &str) -> bool {
    let arena = search.arena;
    let wanted = wanted.as_bytes();
    // To prepare the search is worth several moves.
    search.step(8);
    let finder = memchr::memmem::Finder::new(wanted);
    // The end of what was read, as long as a match may begin in it.
    let mut tail: Vec<u8> = Vec::new();
    let mut node = arena.following(id, id);
    if wanted.is_empty() {
        return true;
    }
    while node.is_some() && !search.is_over() {
        search.step(1);
        if arena.kind(node) == Kind::Text {
            let text = search.bytes(arena.data(node));
            if finder.find(text).is_some() {
                return true;
            }
            let most = wanted.len() - 1;
            let (head, _) = text.split_at_checked(most).unwrap_or((text, &[]));
            tail.extend_from_slice(head);
            search.step(2 + tail.len() / 16);
            if finder.find(&tail).is_some() {
                return true;
            }
            if text.len() > most {
                tail.clear();
                tail.extend_from_slice(text.get(text.len() - most..).unwrap_or_default());
            } else {
                let gone = tail.len().saturating_sub(most);
                tail.drain(..gone);
            }
        }
        node = arena.following(node, id);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_ranges_match_as_rfc_4647_says() {
        for (language, range, expected) in [
            ("en", "en", true),
            ("En-us", "EN", true),
            ("en-US", "en-us", true),
            ("eng", "en", false),
            ("en", "en-US", false),
            ("de-Latn-CH", "de-CH", true),
            ("de-Latn-CH", "*-ch", true),
            ("de-x-CH", "de-CH", false),
            ("", "", true),
            ("en", "", false),
            ("", "*", false),
        ] {
            assert_eq!(is_in_range(language, range), expected, "{language} {range}");
        }
    }
}
