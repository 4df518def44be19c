//! A selector text cut into its comma list, each part with what it takes of its matches, and compiled by scraper.
//!
//! Scraper knows standard CSS only. The pseudo-elements of Scrapy and the rule that an inner search does not
//! look above its node are done here, by scanning the text for the few places that matter.

use std::cell::OnceCell;

use scraper::Selector;
use scraper::error::SelectorErrorKind;

use super::super::css::Reach;
use super::super::error::{SelectorError, SelectorKind};

/// The most characters of a selector that a reason repeats.
const SHOWN: usize = 40;

/// What is taken of a matched element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Element,
    /// Its text node children.
    Text,
    /// The value of the attribute with this name.
    Attr(Box<str>),
}

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
        let parts = split(text).into_iter().map(|range| part(text, range)).collect::<Result<Vec<_>, _>>()?;
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

/// Cuts one part into base and pseudo-element.
fn part(text: &str, (start, end): (usize, usize)) -> Result<Part, SelectorError> {
    let whole = text.get(start..end).unwrap_or_default();
    let trimmed = whole.trim_start();
    let start = start + (whole.len() - trimmed.len());
    let trimmed = trimmed.trim_end();
    if trimmed.is_empty() {
        return Err(error(text, start.min(text.len()), "a selector is missing here"));
    }
    let marks = scan(trimmed);
    let Some(cut) = marks.pseudo_element else {
        let base = Base { text: trimmed.to_owned(), head: marks.head };
        return Ok(Part { start, bases: vec![base], take: Take::Element });
    };
    let (before, pseudo) = trimmed.split_at_checked(cut).unwrap_or((trimmed, ""));
    let take = take(pseudo).map_err(|(offset, reason)| error(text, start + cut + offset, reason))?;
    let open = before.is_empty() || before.ends_with(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '+' | '~'));
    let subject = if open { format!("{before}*") } else { before.to_owned() };
    let marks = scan(&subject);
    let mut bases = Vec::with_capacity(2);
    if let Some(ancestor) = marks.any_below.and_then(|end| subject.get(..end)) {
        bases.push(Base { text: ancestor.to_owned(), head: scan(ancestor).head });
    }
    bases.push(Base { head: marks.head, text: subject });
    Ok(Part { start, bases, take })
}

/// Reads `::text` or `::attr(name)`; an error has its offset.
fn take(pseudo: &str) -> Result<Take, (usize, &'static str)> {
    const ALLOWED: &str = "only ::text and ::attr(name) may stand here, at the end of a selector";
    let name = pseudo.get(2..).unwrap_or_default();
    if name.eq_ignore_ascii_case("text") {
        return Ok(Take::Text);
    }
    let argument = name
        .get(..5)
        .filter(|head| head.eq_ignore_ascii_case("attr("))
        .and_then(|_| name.get(5..))
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or((0, ALLOWED))?
        .trim();
    let unquoted = ['"', '\''].into_iter().find_map(|quote| argument.strip_prefix(quote)?.strip_suffix(quote));
    let attribute = unquoted.unwrap_or(argument).replace('\\', "");
    let valid = !attribute.is_empty()
        && !attribute.starts_with(|c: char| c.is_ascii_digit())
        && attribute.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.') || !c.is_ascii());
    if valid { Ok(Take::Attr(attribute.into())) } else { Err((7, "::attr() takes the name of one attribute")) }
}

/// The places of a selector without commas that matter here; offsets in bytes.
#[derive(Default)]
struct Marks {
    /// End of the leftmost compound, if a combinator follows.
    head: Option<usize>,
    /// Start of the first `::` outside of brackets.
    pseudo_element: Option<usize>,
    /// For `x *`: the end of `x`.
    any_below: Option<usize>,
}

fn scan(text: &str) -> Marks {
    let mut marks = Marks::default();
    let mut compound_end = 0;
    let mut gap: Option<(usize, bool)> = None;
    for (offset, token) in Tokens::new(text) {
        match token {
            Token::Blank | Token::Combinator => {
                let explicit = token == Token::Combinator;
                gap = Some(gap.map_or((compound_end, explicit), |(end, was)| (end, was || explicit)));
            }
            Token::Comment => {}
            Token::PseudoElement | Token::Other(_) => {
                if token == Token::PseudoElement && marks.pseudo_element.is_none() {
                    marks.pseudo_element = Some(offset);
                }
                if let Some((end, explicit)) = gap.take()
                    && end > 0
                {
                    marks.head.get_or_insert(end);
                    let last = text.get(offset..) == Some("*");
                    marks.any_below = (last && !explicit).then_some(end);
                }
                compound_end = text.len().min(offset + token.len());
            }
        }
    }
    marks
}

/// The ranges between the commas outside of brackets and strings.
fn split(text: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::with_capacity(1);
    let mut start = 0;
    for (offset, token) in Tokens::new(text) {
        if let Token::Other(1) = token
            && text.as_bytes().get(offset) == Some(&b',')
        {
            ranges.push((start, offset));
            start = offset + 1;
        }
    }
    ranges.push((start, text.len()));
    ranges
}

/// What stands outside of brackets; a bracket with its content is one token. The value is a length in bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Blank,
    Combinator,
    Comment,
    PseudoElement,
    Other(usize),
}

impl Token {
    fn len(self) -> usize {
        match self {
            Self::Other(len) => len,
            Self::PseudoElement => 2,
            Self::Blank | Self::Combinator | Self::Comment => 0,
        }
    }
}

struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == quote {
                break;
            }
        }
    }

    fn skip_comment(&mut self) {
        self.at += 2;
        while self.peek(0).is_some() && !(self.peek(0) == Some(b'*') && self.peek(1) == Some(b'/')) {
            self.at += 1;
        }
        self.at += 2;
    }

    fn skip_bracket(&mut self) {
        let mut depth: usize = 0;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'\\' => self.at += 1,
                b'"' | b'\'' => {
                    self.skip_string(byte);
                    continue;
                }
                b'/' if self.peek(1) == Some(b'*') => {
                    self.skip_comment();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                break;
            }
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (usize, Token);

    fn next(&mut self) -> Option<(usize, Token)> {
        let start = self.at;
        let token = match self.peek(0)? {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => {
                self.at += 1;
                Token::Blank
            }
            b'>' | b'+' | b'~' => {
                self.at += 1;
                Token::Combinator
            }
            b'/' if self.peek(1) == Some(b'*') => {
                self.skip_comment();
                Token::Comment
            }
            b':' if self.peek(1) == Some(b':') => {
                self.at += 2;
                Token::PseudoElement
            }
            quote @ (b'"' | b'\'') => {
                self.skip_string(quote);
                Token::Other(self.at - start)
            }
            b'(' | b'[' | b'{' => {
                self.skip_bracket();
                Token::Other(self.at - start)
            }
            b'\\' => {
                self.at += 2;
                Token::Other(2)
            }
            _ => {
                self.at += 1;
                Token::Other(1)
            }
        };
        Some((start, token))
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
