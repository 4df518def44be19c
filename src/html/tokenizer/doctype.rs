//! Doctypes (WHATWG HTML 13.2.5.53 to 68).
//!
//! A `>` ends a doctype wherever it stands, in quotes too: the doctype is cut out first, and then taken to pieces.

use std::ops::Range;

use super::class::{is_white_space, skip_white_space};
use super::find::find;
use super::side::Side;
use super::{DoctypeToken, Sink, Tokenizer};
use crate::html::document::Doctype;
use crate::html::span::Span;

/// What is found in a doctype: parts of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    name: Range<usize>,
    public_id: Option<Range<usize>>,
    system_id: Option<Range<usize>>,
    /// Whether it lacks something, or has what does not belong there.
    is_wrong: bool,
    /// Whether what follows the parts means nothing (bogus DOCTYPE state); that the page ends in it means nothing then either.
    is_bogus: bool,
}

impl<'s, S: Sink> Tokenizer<'s, S> {
    /// DOCTYPE state (13.2.5.53); `behind` is behind `<!DOCTYPE`.
    pub(super) fn read_doctype(&mut self, behind: &'s [u8]) {
        let start = self.place_of(behind);
        let end = find(b'>', behind);
        let text = behind.get(..end.unwrap_or(behind.len())).unwrap_or_default();
        self.at = (start + text.len() + 1).min(self.source.len());
        let parts = Parts::of(text);
        let has_name = !parts.name.is_empty();
        let name = self.doctype_name(start + parts.name.start, start + parts.name.end);
        let mut id = |part: Range<usize>| self.without_nulls(start + part.start, start + part.end);
        let doctype = Doctype { name, public_id: parts.public_id.map(&mut id), system_id: parts.system_id.map(id) };
        let force_quirks = parts.is_wrong || (end.is_none() && !parts.is_bogus);
        self.sink.doctype(DoctypeToken { doctype, has_name, force_quirks });
    }

    /// DOCTYPE name state (13.2.5.55): in lower case.
    fn doctype_name(&mut self, start: usize, end: usize) -> Span {
        let name = self.source.get(start..end).unwrap_or_default();
        if !name.iter().any(|byte| *byte == 0 || byte.is_ascii_uppercase()) {
            return Span::of_source(start, end);
        }
        let mut side = Side::new(&mut self.sink.arena().side);
        side.put_name(name);
        let lowered = side.end();
        self.written(lowered)
    }
}

/// What follows a keyword or an id.
enum Id<'t> {
    /// An id in quotes, and what is behind it.
    Whole(Range<usize>, &'t [u8]),
    /// An id whose quote does not end.
    Open(Range<usize>),
    /// Nothing.
    None,
    /// Something else.
    Other,
}

impl Parts {
    /// Takes the text between `<!DOCTYPE` and `>` to pieces.
    fn of(text: &[u8]) -> Self {
        let mut parts = Self::default();
        let rest = skip_white_space(text);
        let len = rest.iter().position(|byte| is_white_space(*byte)).unwrap_or(rest.len());
        let start = text.len() - rest.len();
        parts.name = start..start + len;
        parts.is_wrong = len == 0;
        // After DOCTYPE name state (13.2.5.56).
        let rest = skip_white_space(rest.get(len..).unwrap_or_default());
        match rest.split_at_checked(6) {
            Some((word, rest)) if word.eq_ignore_ascii_case(b"public") => parts.read_public(text, rest),
            Some((word, rest)) if word.eq_ignore_ascii_case(b"system") => parts.read_system(text, rest, true),
            _ if rest.is_empty() => {}
            _ => parts.break_off(),
        }
        parts
    }

    /// After DOCTYPE public keyword state (13.2.5.57) to between DOCTYPE public and system identifiers state (13.2.5.62).
    fn read_public(&mut self, text: &[u8], rest: &[u8]) {
        match id(text, rest) {
            Id::Whole(id, behind) => {
                self.public_id = Some(id);
                self.read_system(text, behind, false);
            }
            Id::Open(id) => {
                self.public_id = Some(id);
                self.is_wrong = true;
            }
            Id::None => self.is_wrong = true,
            Id::Other => self.break_off(),
        }
    }

    /// After DOCTYPE system keyword state (13.2.5.63) to after DOCTYPE system identifier state (13.2.5.67).
    fn read_system(&mut self, text: &[u8], rest: &[u8], is_needed: bool) {
        match id(text, rest) {
            Id::Whole(id, behind) => {
                self.system_id = Some(id);
                // What follows is skipped, and no reason for quirks.
                self.is_bogus = !skip_white_space(behind).is_empty();
            }
            Id::Open(id) => {
                self.system_id = Some(id);
                self.is_wrong = true;
            }
            Id::None => self.is_wrong |= is_needed,
            Id::Other => self.break_off(),
        }
    }

    fn break_off(&mut self) {
        self.is_wrong = true;
        self.is_bogus = true;
    }
}

/// Reads an id in quotes, as a range of `text`, which ends with `rest`.
fn id<'t>(text: &[u8], rest: &'t [u8]) -> Id<'t> {
    match skip_white_space(rest) {
        [quote @ (b'"' | b'\''), inner @ ..] => {
            let start = text.len() - inner.len();
            match find(*quote, inner) {
                Some(len) => Id::Whole(start..start + len, inner.get(len + 1..).unwrap_or_default()),
                None => Id::Open(start..text.len()),
            }
        }
        [] => Id::None,
        _ => Id::Other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_doctype_is_taken_to_pieces() {
        for (text, name, public_id, system_id, is_wrong) in [
            (" html", "html", None, None, false),
            ("html", "html", None, None, false),
            ("", "", None, None, true),
            (" \n", "", None, None, true),
            (" html PUBLIC \"a\" 'b'", "html", Some("a"), Some("b"), false),
            (" html public'a'\"b\"", "html", Some("a"), Some("b"), false),
            (" html PUBLIC \"a\"", "html", Some("a"), None, false),
            (" html PUBLIC \"a\" x", "html", Some("a"), None, true),
            (" html PUBLIC", "html", None, None, true),
            (" html PUBLIC \"a", "html", Some("a"), None, true),
            (" html PUBLIC a", "html", None, None, true),
            (" html SYSTEM \"b\" x", "html", None, Some("b"), false),
            (" html SYSTEM 'b", "html", None, Some("b"), true),
            (" html SYSTEM \n", "html", None, None, true),
            (" html SYSTEM b", "html", None, None, true),
            (" html SYSTEM ''", "html", None, Some(""), false),
            (" html strict", "html", None, None, true),
        ] {
            let parts = Parts::of(text.as_bytes());
            assert_eq!(&text[parts.name.clone()], name, "{text:?}");
            assert_eq!(parts.public_id.clone().map(|id| &text[id]), public_id, "{text:?}");
            assert_eq!(parts.system_id.clone().map(|id| &text[id]), system_id, "{text:?}");
            assert_eq!(parts.is_wrong, is_wrong, "{text:?}");
        }
    }
}
