//! The insertion modes (WHATWG HTML 13.2.6.4), by the part of a page they are for; here, which one a tag goes to.

mod after;
mod body_end;
mod body_start;
mod frameset;
mod head;
mod initial;
mod table;
mod table_parts;
mod template;
mod text;

use super::{Builder, Flow, Mode};
use crate::html::names::NameId;
use crate::html::tokenizer::Tag;

impl Builder {
    /// A start tag where "in body" is not the whole answer (13.2.6, the dispatcher).
    #[inline(never)]
    pub(super) fn dispatch_start(&mut self, tag: Tag) {
        if self.mode == Mode::InTableText {
            self.flush_table_text();
        }
        if self.may_be_foreign() && self.foreign_start(tag) == Some(Flow::Done) {
            return;
        }
        while self.start_in_mode(tag) == Flow::Again {}
    }

    fn start_in_mode(&mut self, tag: Tag) -> Flow {
        match self.mode {
            Mode::Initial => self.start_initial(tag),
            Mode::BeforeHtml => self.start_before_html(tag),
            Mode::BeforeHead => self.start_before_head(tag),
            Mode::InHead => self.start_in_head(tag),
            Mode::InHeadNoscript => self.start_in_head_noscript(tag),
            Mode::AfterHead => self.start_after_head(tag),
            Mode::InBody => self.start_in_body(tag),
            Mode::Text => self.start_in_text(),
            Mode::InTable => self.start_in_table(tag),
            Mode::InTableText => self.leave_table_text(),
            Mode::InCaption => self.start_in_caption(tag),
            Mode::InColumnGroup => self.start_in_column_group(tag),
            Mode::InTableBody => self.start_in_table_body(tag),
            Mode::InRow => self.start_in_row(tag),
            Mode::InCell => self.start_in_cell(tag),
            Mode::InTemplate => self.start_in_template(tag),
            Mode::AfterBody => self.start_after_body(tag),
            Mode::InFrameset => self.start_in_frameset(tag),
            Mode::AfterFrameset => self.start_after_frameset(tag),
            Mode::AfterAfterBody => self.start_after_after_body(tag),
            Mode::AfterAfterFrameset => self.start_after_after_frameset(tag),
        }
    }

    /// An end tag where "in body" is not the whole answer.
    #[inline(never)]
    pub(super) fn dispatch_end(&mut self, name: NameId) {
        if self.mode == Mode::InTableText {
            self.flush_table_text();
        }
        if self.may_be_foreign() && self.foreign_end(name) == Some(Flow::Done) {
            return;
        }
        while self.end_in_mode(name) == Flow::Again {}
    }

    fn end_in_mode(&mut self, name: NameId) -> Flow {
        match self.mode {
            Mode::Initial => self.end_initial(name),
            Mode::BeforeHtml => self.end_before_html(name),
            Mode::BeforeHead => self.end_before_head(name),
            Mode::InHead => self.end_in_head(name),
            Mode::InHeadNoscript => self.end_in_head_noscript(name),
            Mode::AfterHead => self.end_after_head(name),
            Mode::InBody => self.end_in_body(name),
            Mode::Text => self.end_in_text(),
            Mode::InTable => self.end_in_table(name),
            Mode::InTableText => self.leave_table_text(),
            Mode::InCaption => self.end_in_caption(name),
            Mode::InColumnGroup => self.end_in_column_group(name),
            Mode::InTableBody => self.end_in_table_body(name),
            Mode::InRow => self.end_in_row(name),
            Mode::InCell => self.end_in_cell(name),
            Mode::InTemplate => self.end_in_template(name),
            Mode::AfterBody => self.end_after_body(name),
            Mode::InFrameset => self.end_in_frameset(name),
            Mode::AfterFrameset => self.end_after_frameset(name),
            Mode::AfterAfterBody => self.end_after_after_body(name),
            Mode::AfterAfterFrameset => self.end_after_after_frameset(name),
        }
    }

    fn leave_table_text(&mut self) -> Flow {
        self.flush_table_text();
        Flow::Again
    }
}
