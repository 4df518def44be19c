//! Tables: "in table", "in caption" and "in column group" (WHATWG HTML 13.2.6.4.9, 13.2.6.4.11, 13.2.6.4.12).
//!
//! Content that may not stand in a table goes before it: foster parenting. Text in tables is taken by the text rules.

use super::table_parts::is_table_context;
use crate::html::names::NameId;
use crate::html::names::known::{
    BODY, CAPTION, COL, COLGROUP, FORM, HTML, INPUT, SCRIPT, STYLE, TABLE, TBODY, TD, TEMPLATE, TFOOT, TH, THEAD, TR, TYPE,
};
use crate::html::tokenizer::Tag;
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// 13.2.6.4.9 "in table": a start tag.
    pub(in crate::html::tree) fn start_in_table(&mut self, tag: Tag) -> Flow {
        match tag.name {
            CAPTION => {
                self.clear_to(is_table_context);
                self.push_marker();
                self.insert_html_element(tag);
                self.mode = Mode::InCaption;
            }
            COLGROUP => {
                self.clear_to(is_table_context);
                self.insert_html_element(tag);
                self.mode = Mode::InColumnGroup;
            }
            COL => {
                self.clear_to(is_table_context);
                self.insert_phantom(COLGROUP);
                self.mode = Mode::InColumnGroup;
                return Flow::Again;
            }
            TBODY | TFOOT | THEAD => {
                self.clear_to(is_table_context);
                self.insert_html_element(tag);
                self.mode = Mode::InTableBody;
            }
            TD | TH | TR => {
                self.clear_to(is_table_context);
                self.insert_phantom(TBODY);
                self.mode = Mode::InTableBody;
                return Flow::Again;
            }
            TABLE => {
                if self.has_in_table_scope(TABLE) {
                    self.pop_until(TABLE);
                    self.reset_insertion_mode();
                    return Flow::Again;
                }
            }
            STYLE | SCRIPT | TEMPLATE => return self.start_in_head(tag),
            INPUT if self.is_hidden_input(tag) => {
                let input = self.insert_void(tag);
                self.note_owner(input);
            }
            FORM => {
                if self.form.is_none() && self.stack.count(TEMPLATE) == 0 {
                    self.form = self.insert_void(tag);
                }
            }
            _ => return self.start_misplaced(tag),
        }
        Flow::Done
    }

    /// 13.2.6.4.9 "in table": an end tag.
    pub(in crate::html::tree) fn end_in_table(&mut self, name: NameId) -> Flow {
        match name {
            TABLE => {
                if self.has_in_table_scope(TABLE) {
                    self.pop_until(TABLE);
                    self.reset_insertion_mode();
                }
                Flow::Done
            }
            BODY | CAPTION | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR => Flow::Done,
            TEMPLATE => self.end_in_head(name),
            _ => {
                self.foster_parenting = true;
                let flow = self.end_in_body(name);
                self.foster_parenting = false;
                flow
            }
        }
    }

    /// 13.2.6.4.9 "in table": any other start tag.
    fn start_misplaced(&mut self, tag: Tag) -> Flow {
        self.foster_parenting = true;
        let flow = self.start_in_body(tag);
        self.foster_parenting = false;
        flow
    }

    pub(super) fn is_hidden_input(&self, tag: Tag) -> bool {
        self.arena.attr_in(tag.attrs, TYPE).is_some_and(|value| self.arena.bytes(value).eq_ignore_ascii_case(b"hidden"))
    }

    /// 13.2.6.4.11 "in caption": a start tag.
    pub(in crate::html::tree) fn start_in_caption(&mut self, tag: Tag) -> Flow {
        match tag.name {
            CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR => self.close_caption(),
            _ => self.start_in_body(tag),
        }
    }

    /// 13.2.6.4.11 "in caption": an end tag.
    pub(in crate::html::tree) fn end_in_caption(&mut self, name: NameId) -> Flow {
        match name {
            CAPTION => {
                self.close_caption();
                Flow::Done
            }
            TABLE => self.close_caption(),
            BODY | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR => Flow::Done,
            _ => self.end_in_body(name),
        }
    }

    /// Ends the caption, if one is open here; only then is there something to do again.
    fn close_caption(&mut self) -> Flow {
        if !self.has_in_table_scope(CAPTION) {
            return Flow::Done;
        }
        self.generate_implied_end_tags(None);
        self.pop_until(CAPTION);
        self.clear_to_marker();
        self.mode = Mode::InTable;
        Flow::Again
    }

    /// 13.2.6.4.12 "in column group": a start tag.
    pub(in crate::html::tree) fn start_in_column_group(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => self.start_in_body(tag),
            COL => {
                self.insert_void(tag);
                Flow::Done
            }
            TEMPLATE => self.start_in_head(tag),
            _ => self.other_in_column_group(),
        }
    }

    /// 13.2.6.4.12 "in column group": an end tag.
    pub(in crate::html::tree) fn end_in_column_group(&mut self, name: NameId) -> Flow {
        match name {
            COLGROUP => {
                self.other_in_column_group();
                Flow::Done
            }
            COL => Flow::Done,
            TEMPLATE => self.end_in_head(name),
            _ => self.other_in_column_group(),
        }
    }

    /// 13.2.6.4.12 "in column group": anything else. Ignored in a fragment or a template, where no `colgroup` is open.
    pub(in crate::html::tree) fn other_in_column_group(&mut self) -> Flow {
        if !self.is_current(COLGROUP) {
            return Flow::Done;
        }
        self.pop();
        self.mode = Mode::InTable;
        Flow::Again
    }
}
