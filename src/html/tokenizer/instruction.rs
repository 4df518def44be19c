//! Processing instructions (WHATWG HTML 13.2.5.72 to 76, of whatwg/html pull request 12118, merged on 25 June 2026).
//!
//! `<?target data>` or `<?target data?>`. A target is an ASCII letter or `_`, then letters, digits, `-` and `_`, and keeps its
//! case. What has no such target, or `xml` or `xml-stylesheet` as its target, is a comment that begins with `?`; both end at
//! the first `>`. One that the page ends in is dropped. U+0000 stays in the data. The cases of the web-platform tests'
//! `html/syntax/parsing/resources/processing-instructions.dat` are followed.

use super::class::{is_alphanumeric, is_letter, skip_white_space};
use super::find::{count, find};
use super::{Sink, Tokenizer};
use crate::html::span::Span;

impl<'s, S: Sink> Tokenizer<'s, S> {
    /// Processing instruction open state (13.2.5.72); `text` begins with the `?`.
    pub(super) fn processing_instruction(&mut self, text: &'s [u8]) {
        if !self.makes_processing_instructions {
            self.bogus_comment(text);
            return;
        }
        let behind = text.get(1..).unwrap_or_default();
        let (target, rest) = match target(behind) {
            Target::Valid(target, rest) => (target, rest),
            Target::Invalid => return self.bogus_comment(text),
            Target::Unfinished => return self.go_to_end(),
        };
        // After processing instruction target state, data state and questionable state (13.2.5.74 to 76).
        let rest = skip_white_space(rest);
        let Some(len) = find(b'>', rest) else { return self.go_to_end() };
        let start = self.place_of(rest);
        self.at = start + len + 1;
        let data = rest.get(..len).unwrap_or_default();
        let data = data.strip_suffix(b"?").unwrap_or(data);
        let target_start = self.place_of(behind);
        let target = self.sink.arena().intern(Span::of_source(target_start, target_start + target.len()));
        self.sink.processing_instruction(target, Span::of_source(start, start + data.len()));
    }
}

/// What begins behind `<?`.
enum Target<'t> {
    /// A target, and what is behind it.
    Valid(&'t [u8], &'t [u8]),
    Invalid,
    /// A target that the page ends in.
    Unfinished,
}

/// Processing instruction target state (13.2.5.73).
fn target(text: &[u8]) -> Target<'_> {
    match text.first() {
        Some(first) if is_letter(*first) || *first == b'_' => {}
        Some(_) => return Target::Invalid,
        None => return Target::Unfinished,
    }
    let is_part = |byte: u8| is_alphanumeric(byte) || matches!(byte, b'-' | b'_');
    let len = text.iter().take_while(|byte| is_part(**byte)).count();
    count(len);
    let Some((target, rest)) = text.split_at_checked(len) else { return Target::Unfinished };
    let is_reserved = target.eq_ignore_ascii_case(b"xml") || target.eq_ignore_ascii_case(b"xml-stylesheet");
    match rest.first() {
        None => Target::Unfinished,
        Some(b'\t' | b'\n' | b'\x0c' | b' ' | b'?' | b'>') if !is_reserved => Target::Valid(target, rest),
        Some(_) => Target::Invalid,
    }
}
