//! From text to page.

use std::str::Utf8Error;
use std::sync::OnceLock;

use bytes::Bytes;

use super::arena::Arena;
use super::document::Document;
use super::options::ParseOptions;
use super::span::MOST_BYTES;
use super::tokenizer::{self, Content};
use super::tree::Builder;

impl Document {
    /// Parses a page as a browser without scripting does; any text is a page. Copies the text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::parse_with(text, &ParseOptions::default())
    }

    /// Parses a page with options. Copies the text.
    #[must_use]
    pub fn parse_with(text: &str, options: &ParseOptions) -> Self {
        Self::from_checked(Bytes::copy_from_slice(text.as_bytes()), options)
    }

    /// Parses a page from bytes that it keeps as they are, without a copy (but where line ends are CR). A byte order mark is skipped.
    ///
    /// # Errors
    /// When the bytes are not UTF-8.
    pub fn from_utf8(body: Bytes, options: &ParseOptions) -> Result<Self, Utf8Error> {
        if simdutf8::basic::from_utf8(&body).is_err() {
            std::str::from_utf8(&body)?;
        }
        let body = if body.starts_with(b"\xEF\xBB\xBF") { body.slice(3..) } else { body };
        Ok(Self::from_checked(body, options))
    }

    /// Parses bytes that are known to be UTF-8. Others do no harm, but texts of theirs come out empty.
    pub(crate) fn from_checked(source: Bytes, options: &ParseOptions) -> Self {
        let (source, is_cut) = bounded(source);
        let mut builder = Builder::new(Arena::new(normalised(source)), options);
        builder.exceeded.length = is_cut;
        tokenizer::run(&mut builder, Content::Data, None);
        builder.end();
        Self::from_builder(builder)
    }

    pub(super) fn from_builder(builder: Builder) -> Self {
        #[cfg(test)]
        let parse_bytes = builder.heap_bytes();
        let Builder { arena, doctype, quirks, exceeded, steps, owners, .. } = builder;
        Self {
            arena,
            doctype,
            quirks,
            exceeded,
            steps,
            owners,
            order: OnceLock::new(),
            #[cfg(test)]
            parse_bytes,
        }
    }
}

/// What the engine's numbers have room for, and whether that is not all.
pub(super) fn bounded(source: Bytes) -> (Bytes, bool) {
    first_bytes(source, MOST_BYTES)
}

/// The first `most` bytes, less a character that does not end there, and whether that is not all.
fn first_bytes(source: Bytes, most: usize) -> (Bytes, bool) {
    if source.len() <= most {
        return (source, false);
    }
    let least = most.saturating_sub(3);
    let end = (least..=most).rev().find(|end| source.get(*end).is_some_and(|byte| byte & 0xc0 != 0x80));
    (source.slice(..end.unwrap_or(least)), true)
}

/// The source with each CR LF and each other CR as LF (13.2.3.5). Copies only if there is one.
pub(super) fn normalised(source: Bytes) -> Bytes {
    let Some(first) = memchr::memchr(b'\r', &source) else { return source };
    let mut out = Vec::with_capacity(source.len());
    let mut rest: &[u8] = &source;
    let mut next = Some(first);
    while let Some(at) = next {
        let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        out.extend_from_slice(before);
        out.push(b'\n');
        rest = behind.strip_prefix(b"\r\n").or_else(|| behind.strip_prefix(b"\r")).unwrap_or(behind);
        next = memchr::memchr(b'\r', rest);
    }
    out.extend_from_slice(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_cut_between_characters() {
        for (text, most, expected, is_cut) in [
            ("abc", 3, "abc", false),
            ("abcd", 3, "abc", true),
            ("a\u{e9}b", 2, "a", true),
            ("a\u{e9}b", 3, "a\u{e9}", true),
            ("ab\u{1f600}", 5, "ab", true),
            ("ab\u{1f600}c", 6, "ab\u{1f600}", true),
        ] {
            assert_eq!(first_bytes(Bytes::from(text), most), (Bytes::from(expected), is_cut), "{text} to {most}");
        }
    }

    #[test]
    fn line_ends_are_line_feeds() {
        for (text, expected) in
            [("a\r\nb\rc\nd", "a\nb\nc\nd"), ("\r\r\n\r", "\n\n\n"), ("", ""), ("\r", "\n"), ("ab", "ab"), ("\n\r\n", "\n\n")]
        {
            assert_eq!(normalised(Bytes::from(text)), expected, "{text:?}");
        }
    }
}
