//! Characters (WHATWG HTML 13.2.6): what each insertion mode does with them, in runs; and comments, by the mode.

use super::{Builder, Flow, Mode};
use crate::html::arena::{Namespace, NodeId};
use crate::html::names::{self, known};
use crate::html::span::Span;

/// The white space of the tree construction: tab, line feed, form feed, carriage return, blank.
#[inline]
const fn is_white_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

impl Builder {
    /// "If the next token is a U+000A LINE FEED character token, then ignore that token".
    #[inline(never)]
    pub(super) fn without_newline(&mut self, text: Span) -> Span {
        self.ignore_newline = false;
        if self.options.as_html5ever() && self.follows_empty_end_tag(text) {
            return text;
        }
        if self.arena.bytes(text).first() == Some(&b'\n') { text.after(1) } else { text }
    }

    /// Whether `</>` is before a text of the source; for html5ever that is a token that the line feed is not next to.
    fn follows_empty_end_tag(&self, text: Span) -> bool {
        !text.is_side() && self.arena.source().get(..text.start()).is_some_and(|before| before.ends_with(b"</>"))
    }

    /// Characters in "in body" (13.2.6.4.7).
    #[inline]
    pub(super) fn text_in_body(&mut self, text: Span) {
        self.reconstruct_formatting();
        if self.frameset_ok {
            self.frameset_ok = self.is_blank(text);
        }
        self.insert_text(text);
    }

    #[inline]
    fn is_blank(&self, text: Span) -> bool {
        self.arena.bytes(text).iter().all(|byte| is_white_space(*byte))
    }

    /// Characters wherever "in body" is not the whole answer.
    #[inline(never)]
    pub(super) fn dispatch_text(&mut self, text: Span) {
        if self.may_be_foreign() && self.is_foreign_for_text() {
            self.frameset_ok = self.frameset_ok && self.is_blank(text);
            self.insert_text(text);
            return;
        }
        let mut text = text;
        while !text.is_empty() {
            match self.mode {
                Mode::InBody | Mode::InCaption | Mode::InCell | Mode::InTemplate => return self.text_in_body(text),
                Mode::Text => return self.insert_text(text),
                Mode::InTable | Mode::InTableBody | Mode::InRow => return self.text_in_table(text),
                Mode::InTableText => return self.pending_text.push(text),
                _ => text = self.text_outside(text),
            }
        }
    }

    /// Characters in a mode that tells white space apart; gives those that are left.
    fn text_outside(&mut self, text: Span) -> Span {
        let bytes = self.arena.bytes(text);
        let blanks = bytes.iter().position(|byte| !is_white_space(*byte)).unwrap_or(bytes.len());
        if blanks > 0 {
            self.blanks_outside(text.first(blanks));
            return text.after(blanks);
        }
        if self.text_else() == Flow::Again {
            return text;
        }
        // Ignored, and so are those behind it up to white space.
        let others = bytes_before_blank(self.arena.bytes(text));
        text.after(others)
    }

    fn blanks_outside(&mut self, blanks: Span) {
        match self.mode {
            Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead => {}
            Mode::AfterBody | Mode::AfterAfterBody | Mode::AfterAfterFrameset => self.text_in_body(blanks),
            _ => self.insert_text(blanks),
        }
    }

    /// The "anything else" step of the mode for a character or the end of the file: whether it is to be looked at again, in
    /// another mode.
    fn text_else(&mut self) -> Flow {
        match self.mode {
            Mode::Initial => self.other_initial(),
            Mode::BeforeHtml => self.other_before_html(),
            Mode::BeforeHead => self.other_before_head(),
            Mode::InHead => self.other_in_head(),
            Mode::InHeadNoscript => self.other_in_head_noscript(),
            Mode::AfterHead => self.other_after_head(),
            Mode::InColumnGroup => self.other_in_column_group(),
            Mode::AfterBody | Mode::AfterAfterBody => {
                self.mode = Mode::InBody;
                Flow::Again
            }
            _ => Flow::Done,
        }
    }

    /// Characters in "in table", "in table body" and "in row" (13.2.6.4.9).
    fn text_in_table(&mut self, text: Span) {
        let open = self.current();
        // html5ever does not list `template` here.
        if open.is(names::TABLE_CONTEXT) || open.is_html(known::TEMPLATE) && !self.options.as_html5ever() {
            self.original_mode = self.mode;
            self.mode = Mode::InTableText;
            self.pending_text.push(text);
        } else {
            self.foster_parenting = true;
            self.text_in_body(text);
            self.foster_parenting = false;
        }
    }

    /// "Anything else" of "in table text" (13.2.6.4.10): the pending characters go where they belong.
    #[inline(never)]
    pub(super) fn flush_table_text(&mut self) {
        self.mode = self.original_mode;
        let mut pending = std::mem::take(&mut self.pending_text);
        let is_blank = pending.iter().all(|text| self.is_blank(*text));
        for text in &pending {
            if self.is_over_budget() {
                break;
            }
            if is_blank {
                self.insert_text(*text);
            } else {
                self.foster_parenting = true;
                self.text_in_body(*text);
                self.foster_parenting = false;
            }
        }
        pending.clear();
        self.pending_text = pending;
    }

    /// U+0000: U+FFFD in foreign content, else nothing; but it may be what ends the head.
    pub(super) fn dispatch_null(&mut self) {
        if self.may_be_foreign() && self.is_foreign_for_text() {
            let start = self.arena.side.len();
            self.arena.side.extend_from_slice("\u{fffd}".as_bytes());
            self.insert_text(Span::of_side(start, start + 3));
            return;
        }
        // "In body" and the modes of tables ignore it.
        while self.text_else() == Flow::Again {}
    }

    /// What a comment, a doctype or a processing instruction does before anything else.
    pub(super) fn before_markup(&mut self) {
        self.ignore_newline = false;
        if self.mode == Mode::InTableText {
            self.flush_table_text();
        }
    }

    /// What comments are put into if not at the appropriate place.
    pub(super) fn parent_of_comments(&self) -> Option<NodeId> {
        if self.current().namespace != Namespace::Html {
            return None;
        }
        match self.mode {
            Mode::Initial | Mode::BeforeHtml | Mode::AfterAfterBody | Mode::AfterAfterFrameset => Some(NodeId::DOCUMENT),
            Mode::AfterBody => Some(self.stack.root()),
            _ => None,
        }
    }

    /// The end of the file (13.2.6.4).
    pub(super) fn end_of_file(&mut self) {
        loop {
            match self.mode {
                Mode::Text => {
                    self.pop();
                    self.mode = self.original_mode;
                }
                Mode::InTableText => self.flush_table_text(),
                Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead | Mode::InHead | Mode::InHeadNoscript | Mode::AfterHead => {
                    if self.text_else() == Flow::Done {
                        return;
                    }
                }
                _ => {
                    if self.template_modes.is_empty() || self.stack.count(known::TEMPLATE) == 0 {
                        return;
                    }
                    self.pop_until(known::TEMPLATE);
                    self.clear_to_marker();
                    self.template_modes.pop();
                    self.reset_insertion_mode();
                }
            }
        }
    }
}

fn bytes_before_blank(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| is_white_space(*byte)).unwrap_or(bytes.len()).max(1)
}

#[cfg(test)]
mod tests {
    use crate::html::Document;

    fn dump(page: &str) -> String {
        let dump = Document::parse(page).dump();
        dump.lines().map(str::trim_start).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn white_space_is_told_apart_where_the_mode_says_so() {
        for (page, expected) in [
            // Left out before the head, kept behind it.
            (" <html> <head> <title>t</title> </head> <body>", r#"<html> <head> " " <title> "t" " " " " <body>"#),
            (" x y", r#"<html> <head> <body> "x y""#),
            ("<html>\n x", r#"<html> <head> <body> "x""#),
            ("<head> x", r#"<html> <head> " " <body> "x""#),
            ("</body> </html> x", r#"<html> <head> <body> "  x""#),
            ("<frameset> a b </frameset> c d", r#"<html> <head> <frameset> "   " "  ""#),
            ("<table><colgroup> x <col>", r#"<html> <head> <body> "x " <table> <colgroup> " " <colgroup> <col>"#),
        ] {
            assert_eq!(dump(page), expected, "{page:?}");
        }
    }

    #[test]
    fn text_of_a_table_goes_before_it_unless_it_is_white_space() {
        for (page, expected) in [
            ("<table> <tr> x</table>", r#"<html> <head> <body> " x" <table> " " <tbody> <tr>"#),
            ("<table> &amp; <tr>", r#"<html> <head> <body> " & " <table> <tbody> <tr>"#),
            ("a<table>b<td>", r#"<html> <head> <body> "ab" <table> <tbody> <tr> <td>"#),
            ("<table><!--c--> x", r#"<html> <head> <body> " x" <table> <!-- c -->"#),
        ] {
            assert_eq!(dump(page), expected, "{page:?}");
        }
    }

    #[test]
    fn the_first_line_feed_of_preformatted_text_is_left_out() {
        for (page, expected) in [
            ("<pre>\n\nx", "\nx"),
            ("<pre>&#10;x", "x"),
            ("<listing>\nx", "x"),
            ("<textarea>\n\nx", "\nx"),
            ("<pre> \nx", " \nx"),
            ("<pre><!---->\nx", "\nx"),
            ("<pre></b>\nx", "\nx"),
            ("<pre></>\nx", "x"),
            ("<p>\nx", "\nx"),
        ] {
            assert_eq!(Document::parse(page).root().text(), expected, "{page:?}");
        }
    }

    #[test]
    fn nulls_are_left_out_of_html_and_shown_in_foreign_content() {
        for (page, expected) in [
            ("a\0b", "ab"),
            ("<table>\0<tr>\0", ""),
            ("<svg>a\0b", "a\u{fffd}b"),
            ("<svg><title>a\0b", "ab"),
            ("<frameset>\0", ""),
            ("<script>\0", "\u{fffd}"),
        ] {
            assert_eq!(Document::parse(page).root().text(), expected, "{page:?}");
        }
        assert!(Document::parse("<head>\0<base>").dump().contains("<body>\n    <base>"));
    }
}
