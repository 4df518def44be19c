//! A selector text cut into its comma list, each part with what it takes of its matches, and compiled by scraper.
//!
//! Scraper knows standard CSS only. The pseudo-elements of Scrapy are cut off as for our own engine; the rule that an inner
//! search does not look above its node is done here, by a selector of its own.

use std::cell::OnceCell;

use scraper::Selector;
use scraper::error::SelectorErrorKind;

use super::super::css::Reach;
use super::super::css::split::{self, Take};
use super::super::error::{SelectorError, SelectorKind};

/// The most characters of a selector that a reason repeats.
const SHOWN: usize = 40;

/// Parts of a comma list that take the same, as one selector of the engine.
pub(super) struct Group {
    pub(super) selector: Selector,
    pub(super) take: Take,
    /// Whether `:scope` may make an inner root find what an outer one does not.
    pub(super) uses_scope: bool,
}

/// A compiled selector text.
pub(crate) struct Compiled {
    parts: Vec<Part>,
    document: Vec<Group>,
    /// The form for searches below a node; built when first used.
    subtree: OnceCell<Vec<Group>>,
}

/// One item of the comma list. Positions are in bytes of the whole text.
struct Part {
    start: usize,
    /// The selectors for the engine: one, or two for `x ::text`, which also takes from `x` itself.
    bases: Vec<Base>,
    take: Take,
}

struct Base {
    text: String,
    /// End of the leftmost compound, if a combinator follows it.
    head: Option<usize>,
}

impl Compiled {
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let parts = split::parts(text).map_err(|error| SelectorError::of_css(&error))?;
        let parts: Vec<Part> = parts.into_iter().map(Part::of).collect();
        for part in &parts {
            for base in &part.bases {
                if let Err(kind) = Selector::parse(&base.text) {
                    let valid = (part.start + longest_valid_prefix(&base.text)).min(text.len());
                    let rest = text.get(valid..).unwrap_or_default();
                    let position = valid + (rest.len() - rest.trim_start().len());
                    let rest = rest.trim();
                    let reason = reason(&kind);
                    let shown: String = rest.chars().take(SHOWN).collect();
                    let reason = if rest.is_empty() { reason } else { format!("{reason}: {shown:?}") };
                    return Err(error(text, position, reason));
                }
            }
        }
        let document = groups(&parts, |base| base.text.clone()).map_err(|kind| error(text, 0, reason(&kind)))?;
        Ok(Self { parts, document, subtree: OnceCell::new() })
    }

    pub(super) fn groups(&self, reach: Reach) -> &[Group] {
        let same = self.parts.iter().flat_map(|part| &part.bases).all(|base| base.head.is_none());
        if reach == Reach::Document || same {
            return &self.document;
        }
        let subtree = self.subtree.get_or_init(|| {
            groups(&self.parts, |base| {
                match base.head.and_then(|head| base.text.split_at_checked(head)) {
                    // The leftmost compound has to be the node itself or below it.
                    Some((head, rest)) => format!("{head}:is(:scope, :scope *){rest}"),
                    None => base.text.clone(),
                }
            })
            .unwrap_or_default()
        });
        if subtree.is_empty() { &self.document } else { subtree }
    }
}

fn groups(parts: &[Part], text: impl Fn(&Base) -> String) -> Result<Vec<Group>, SelectorErrorKind> {
    let mut joined: Vec<(&Take, String)> = Vec::new();
    for part in parts {
        for base in &part.bases {
            match joined.iter_mut().find(|(take, _)| *take == &part.take) {
                Some((_, list)) => {
                    list.push_str(", ");
                    list.push_str(&text(base));
                }
                None => joined.push((&part.take, text(base))),
            }
        }
    }
    let uses_scope = parts.iter().flat_map(|part| &part.bases).any(|base| base.text.contains(":scope"));
    joined
        .into_iter()
        .map(|(take, list)| Ok(Group { selector: Selector::parse(&list)?, take: take.clone(), uses_scope }))
        .collect()
}

impl Part {
    fn of(part: split::Part<'_>) -> Self {
        let split::Part { start, subject, is_open, head, is_deep, take } = part;
        let mut bases = vec![Base { text: if is_open { format!("{subject}*") } else { subject.to_owned() }, head }];
        if is_deep {
            bases.push(Base { text: format!("{subject} *"), head: head.or(Some(subject.len())) });
        }
        Self { start, bases, take }
    }
}

fn error(text: &str, position: usize, reason: impl Into<String>) -> SelectorError {
    SelectorError::new(SelectorKind::Css, text, position, reason)
}

/// The engine does not say where it stopped; the longest beginning it accepts does. Long texts are not searched.
fn longest_valid_prefix(text: &str) -> usize {
    const LONGEST: usize = 512;
    if text.len() > LONGEST {
        return 0;
    }
    text.char_indices()
        .rev()
        .filter_map(|(end, _)| text.get(..end))
        .find(|prefix| Selector::parse(prefix).is_ok())
        .map_or(0, |prefix| prefix.trim_end().len())
}

fn reason(kind: &SelectorErrorKind) -> String {
    match kind {
        SelectorErrorKind::UnexpectedToken => "this was not expected here".to_owned(),
        SelectorErrorKind::EndOfLine => "the selector ends too early".to_owned(),
        SelectorErrorKind::TooManyNestedBlocks => "brackets are nested too deep".to_owned(),
        SelectorErrorKind::UnexpectedSelectorParseError(inner) => {
            // The variant's name says it; spelled out as words.
            let mut words = String::new();
            for c in format!("{inner:?}").chars() {
                if c.is_ascii_uppercase() {
                    if !words.is_empty() && !words.ends_with(['(', '"', ' ']) {
                        words.push(' ');
                    }
                    words.push(c.to_ascii_lowercase());
                } else {
                    words.push(c);
                }
            }
            words
        }
        _ => "this is not css".to_owned(),
    }
}
