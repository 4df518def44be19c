//! What begins with `<!`: comments and CDATA sections, and what is only read as a comment (WHATWG HTML 13.2.5.41 to 52, 69 to 71).

use super::find::{find, find_text, find_where};
use super::side::Side;
use super::{Sink, Tokenizer};
use crate::html::span::Span;

impl<'s, S: Sink> Tokenizer<'s, S> {
    /// Markup declaration open state (13.2.5.42); `behind` is behind `<!`.
    pub(super) fn declaration(&mut self, behind: &'s [u8]) {
        if let Some(comment) = behind.strip_prefix(b"--") {
            self.read_comment(comment);
            return;
        }
        if let Some((b"[CDATA[", section)) = behind.split_at_checked(7)
            && self.sink.allows_cdata()
        {
            self.cdata_section(section);
            return;
        }
        match behind.split_at_checked(7) {
            Some((word, behind)) if word.eq_ignore_ascii_case(b"doctype") => self.read_doctype(behind),
            _ => self.bogus_comment(behind),
        }
    }

    /// Bogus comment state (13.2.5.41): all of `text` up to the next `>`.
    pub(super) fn bogus_comment(&mut self, text: &'s [u8]) {
        let len = find(b'>', text).unwrap_or(text.len());
        self.comment(text, len, len + 1);
    }

    /// Comment start state (13.2.5.43) and following; `text` is behind `<!--`.
    fn read_comment(&mut self, text: &'s [u8]) {
        match text {
            [b'>', ..] => return self.comment(text, 0, 1),
            [b'-', b'>', ..] => return self.comment(text, 0, 2),
            _ => {}
        }
        // The comment ends with the first `>` behind `--` or `--!`.
        let comment_before = |end: usize| {
            let before = text.get(..end)?;
            before.strip_suffix(b"--").or_else(|| before.strip_suffix(b"--!"))
        };
        if let Some(end) = find_where(b'>', text, |end| comment_before(*end).is_some()) {
            let comment = comment_before(end).unwrap_or_default();
            return self.comment(text, comment.len(), end + 1);
        }
        // At the end of the page a part of that end belongs to it, too.
        let endings: [&[u8]; 3] = [b"--!", b"--", b"-"];
        let comment = endings.iter().find_map(|ending| text.strip_suffix(*ending)).unwrap_or(text);
        self.comment(text, comment.len(), text.len());
    }

    /// Gives the first `len` bytes of `text`, which goes to the end of the source, to the sink as a comment; `read` bytes of it are read.
    fn comment(&mut self, text: &'s [u8], len: usize, read: usize) {
        let start = self.place_of(text);
        self.at = (start + read).min(self.source.len());
        let span = self.without_nulls(start, start + len);
        self.sink.comment(span);
    }

    /// CDATA section state and following (13.2.5.69 to 71).
    fn cdata_section(&mut self, text: &'s [u8]) {
        let len = find_text(b"]]>", text).unwrap_or(text.len());
        let end = self.place_of(text) + len;
        let mut rest = text.get(..len).unwrap_or_default();
        while !rest.is_empty() && !self.is_full && !self.sink.is_over() {
            let len = find(0, rest).unwrap_or(rest.len());
            let start = end - rest.len();
            if len > 0 {
                self.sink.text(Span::of_source(start, start + len));
            } else {
                self.sink.null();
            }
            rest = rest.get(len.max(1)..).unwrap_or_default();
        }
        self.at = (end + 3).min(self.source.len());
    }

    /// The span of a part of the source, or of a copy with U+FFFD for U+0000.
    pub(super) fn without_nulls(&mut self, start: usize, end: usize) -> Span {
        let text = self.source.get(start..end).unwrap_or_default();
        if find(0, text).is_none() {
            return Span::of_source(start, end);
        }
        let mut side = Side::new(&mut self.sink.arena().side);
        side.put_without_nulls(text);
        let copy = side.end();
        self.written(copy)
    }
}
