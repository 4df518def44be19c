//! Cuts a selector text into its comma list, and each part into what selects and what is taken of it.
//!
//! Scrapy's pseudo-elements `::text` and `::attr(name)` are read here; the rest is standard CSS for the parser behind.

use super::error::CssError;

/// What is taken of a matched element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::html) enum Take {
    Element,
    /// Its text node children.
    Text,
    /// The attribute with this name.
    Attr(Box<str>),
}

/// One item of the comma list.
#[derive(Debug)]
pub(in crate::html) struct Part<'t> {
    /// Where it starts in the text, in bytes.
    pub(in crate::html) start: usize,
    /// What selects; empty for all elements.
    pub(in crate::html) subject: &'t str,
    /// Whether an implied `*` follows it, as in `ul > ::text`.
    pub(in crate::html) is_open: bool,
    /// End of the leftmost compound in the subject, if a combinator follows it.
    pub(in crate::html) head: Option<usize>,
    /// Whether all that is below a match counts as matched too, as in `x ::text`.
    pub(in crate::html) is_deep: bool,
    pub(in crate::html) take: Take,
}

/// The parts of a selector.
pub(in crate::html) fn parts(text: &str) -> Result<Vec<Part<'_>>, CssError> {
    let mut parts = Vec::with_capacity(1);
    let mut start = 0;
    for (offset, token) in Tokens::new(text) {
        if token == Token::Comma {
            parts.push(part(text, start, offset)?);
            start = offset + 1;
        }
    }
    parts.push(part(text, start, text.len())?);
    Ok(parts)
}

fn part(text: &str, start: usize, end: usize) -> Result<Part<'_>, CssError> {
    let whole = text.get(start..end).unwrap_or_default();
    let trimmed = whole.trim_ascii_start();
    let start = start + (whole.len() - trimmed.len());
    let trimmed = trim_end(trimmed);
    if trimmed.is_empty() {
        return Err(CssError::new(text, start.min(text.len()), "a selector is missing here"));
    }
    let marks = scan(trimmed);
    let Some(cut) = marks.pseudo_element else {
        let part = Part { start, subject: trimmed, is_open: false, head: marks.head, is_deep: false, take: Take::Element };
        return Ok(part);
    };
    let (before, pseudo) = trimmed.split_at_checked(cut).unwrap_or((trimmed, ""));
    let take = take(pseudo).map_err(|(offset, reason)| CssError::new(text, start + cut + offset, reason))?;
    let marks = scan(before);
    // `x ::text` and `x *::text` take from x itself too, as parsel does.
    if let Some(ancestor) = marks.any_below.and_then(|end| before.get(..end)) {
        let head = scan(ancestor).head;
        return Ok(Part { start, subject: ancestor, is_open: false, head, is_deep: true, take });
    }
    let is_open = before.is_empty() || marks.ends_with_combinator;
    Ok(Part { start, subject: before, is_open, head: marks.head, is_deep: false, take })
}

/// Without the white space at its end; a blank that an escape needs stays.
fn trim_end(text: &str) -> &str {
    let trimmed = text.trim_ascii_end();
    let escapes = trimmed.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if escapes % 2 == 1 && trimmed.len() < text.len() { text.get(..=trimmed.len()).unwrap_or(text) } else { trimmed }
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
#[derive(Debug, Default)]
struct Marks {
    /// End of the leftmost compound, if a combinator follows.
    head: Option<usize>,
    /// Start of the first `::` outside of brackets.
    pseudo_element: Option<usize>,
    /// For `x *` and `x ` with a blank at the end: the end of `x`.
    any_below: Option<usize>,
    ends_with_combinator: bool,
}

fn scan(text: &str) -> Marks {
    let mut marks = Marks::default();
    let mut compound_end = 0;
    // The end of the compound before a combinator, and whether that is more than blanks.
    let mut gap: Option<(usize, bool)> = None;
    for (offset, token) in Tokens::new(text) {
        match token {
            Token::Blank | Token::Combinator => {
                let explicit = token == Token::Combinator;
                gap = Some(gap.map_or((compound_end, explicit), |(end, was)| (end, was || explicit)));
            }
            Token::Comment => {}
            Token::Comma | Token::PseudoElement | Token::Other(_) => {
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
    if let Some((end, explicit)) = gap
        && end > 0
    {
        if explicit {
            marks.head.get_or_insert(end);
        } else {
            marks.any_below = Some(end);
        }
        marks.ends_with_combinator = explicit;
    } else if let Some((_, explicit)) = gap {
        marks.ends_with_combinator = explicit;
    }
    marks
}

/// Where the last simple selector or combinator outside of brackets starts that starts before `stop`.
pub(super) fn last_start(text: &str, stop: usize) -> usize {
    let mut last = 0;
    let mut is_inside = false;
    for (offset, token) in Tokens::new(text) {
        if offset >= stop {
            break;
        }
        let starts = match token {
            Token::Blank | Token::Comment => {
                is_inside = false;
                continue;
            }
            Token::Combinator | Token::Comma | Token::PseudoElement => true,
            // The brackets of a function belong to what is before them.
            Token::Other(len) => match text.as_bytes().get(offset) {
                Some(b'.' | b'#' | b'[' | b'*') => true,
                Some(b':') => !text.get(..offset).is_some_and(|before| before.ends_with(':')),
                Some(b'(') => false,
                _ => !is_inside && len > 0,
            },
        };
        if starts {
            last = offset;
        }
        is_inside = !matches!(token, Token::Combinator | Token::Comma);
    }
    last
}

/// The place of a bracket that has more than `most` others around it.
pub(super) fn too_deep(text: &str, most: usize) -> Option<usize> {
    let mut tokens = Tokens::new(text);
    let mut depth: usize = 0;
    while let Some(byte) = tokens.peek(0) {
        match byte {
            b'(' | b'[' | b'{' if depth >= most => return Some(tokens.at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\\' => tokens.at += 1,
            b'"' | b'\'' => {
                tokens.skip_string(byte);
                continue;
            }
            b'/' if tokens.peek(1) == Some(b'*') => {
                tokens.skip_comment();
                continue;
            }
            _ => {}
        }
        tokens.at += 1;
    }
    None
}

/// What stands outside of brackets; a bracket with its content is one token. The value is a length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Blank,
    Combinator,
    Comma,
    Comment,
    PseudoElement,
    Other(usize),
}

impl Token {
    fn len(self) -> usize {
        match self {
            Self::Other(len) => len,
            Self::PseudoElement => 2,
            Self::Comma => 1,
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
            blank if blank.is_ascii_whitespace() => {
                self.at += 1;
                Token::Blank
            }
            b'>' | b'+' | b'~' => {
                self.at += 1;
                Token::Combinator
            }
            b',' => {
                self.at += 1;
                Token::Comma
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_part_is_cut_where_scrapys_pseudo_elements_begin() {
        let attr = |name: &str| Take::Attr(name.into());
        for (text, subject, is_open, is_deep, take) in [
            ("a", "a", false, false, Take::Element),
            ("::text", "", true, false, Take::Text),
            ("a::text", "a", false, false, Take::Text),
            ("a ::TEXT", "a", false, true, Take::Text),
            ("a *::text", "a", false, true, Take::Text),
            ("a > ::attr(x)", "a > ", true, false, attr("x")),
            ("a >*::attr( 'x' )", "a >*", false, false, attr("x")),
            ("a b ::attr(x)", "a b", false, true, attr("x")),
            ("a[b='::text'] /* ::text */ i", "a[b='::text'] /* ::text */ i", false, false, Take::Element),
        ] {
            let parts = parts(text).unwrap();
            let part = &parts[0];
            assert_eq!((part.subject, part.is_open, part.is_deep, &part.take), (subject, is_open, is_deep, &take), "{text}");
        }
        assert_eq!(parts("a, b:is(c, d), 'x,y'").unwrap().len(), 3);
    }

    #[test]
    fn the_head_ends_where_a_combinator_follows() {
        for (text, head) in [("a", None), ("a b", Some(1)), ("a.b>c d", Some(3)), (":is(a b)", None), ("a /**/ > b", Some(1))] {
            assert_eq!(parts(text).unwrap()[0].head, head, "{text}");
        }
    }
}
