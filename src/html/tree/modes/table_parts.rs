//! Rows and cells: "in table body", "in row" and "in cell" (WHATWG HTML 13.2.6.4.13 to 13.2.6.4.15).

use crate::html::arena::Namespace;
use crate::html::names::NameId;
use crate::html::names::known::{BODY, CAPTION, COL, COLGROUP, HTML, TABLE, TBODY, TD, TEMPLATE, TFOOT, TH, THEAD, TR};
use crate::html::tokenizer::Tag;
use crate::html::tree::{Builder, Flow, Mode, Open};

/// "Clear the stack back to a table context" stops there (13.2.6.4.9).
pub(super) fn is_table_context(open: Open) -> bool {
    open.namespace == Namespace::Html && matches!(open.name, TABLE | TEMPLATE | HTML)
}

/// "Clear the stack back to a table body context" stops there (13.2.6.4.13).
fn is_table_body_context(open: Open) -> bool {
    open.namespace == Namespace::Html && matches!(open.name, TBODY | TFOOT | THEAD | TEMPLATE | HTML)
}

/// "Clear the stack back to a table row context" stops there (13.2.6.4.14).
fn is_table_row_context(open: Open) -> bool {
    open.namespace == Namespace::Html && matches!(open.name, TR | TEMPLATE | HTML)
}

impl Builder {
    /// 13.2.6.4.13 "in table body": a start tag.
    pub(in crate::html::tree) fn start_in_table_body(&mut self, tag: Tag) -> Flow {
        match tag.name {
            TR => {
                self.clear_to(is_table_body_context);
                self.insert_html_element(tag);
                self.mode = Mode::InRow;
                Flow::Done
            }
            TH | TD => {
                self.clear_to(is_table_body_context);
                self.insert_phantom(TR);
                self.mode = Mode::InRow;
                Flow::Again
            }
            CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD => self.close_table_body(),
            _ => self.start_in_table(tag),
        }
    }

    /// 13.2.6.4.13 "in table body": an end tag.
    pub(in crate::html::tree) fn end_in_table_body(&mut self, name: NameId) -> Flow {
        match name {
            TBODY | TFOOT | THEAD => {
                if self.has_in_table_scope(name) {
                    self.leave_table_body();
                }
                Flow::Done
            }
            TABLE => self.close_table_body(),
            BODY | CAPTION | COL | COLGROUP | HTML | TD | TH | TR => Flow::Done,
            _ => self.end_in_table(name),
        }
    }

    /// Ends the part of the table, if one is open here; only then is there something to do again.
    fn close_table_body(&mut self) -> Flow {
        // html5ever asks for a `table` in place of a `thead`.
        let head = if self.options.as_html5ever() { TABLE } else { THEAD };
        if !(self.has_in_table_scope(TBODY) || self.has_in_table_scope(head) || self.has_in_table_scope(TFOOT)) {
            return Flow::Done;
        }
        self.leave_table_body();
        Flow::Again
    }

    fn leave_table_body(&mut self) {
        self.clear_to(is_table_body_context);
        self.pop();
        self.mode = Mode::InTable;
    }

    /// 13.2.6.4.14 "in row": a start tag.
    pub(in crate::html::tree) fn start_in_row(&mut self, tag: Tag) -> Flow {
        match tag.name {
            TH | TD => {
                self.clear_to(is_table_row_context);
                self.insert_html_element(tag);
                self.mode = Mode::InCell;
                self.push_marker();
                Flow::Done
            }
            CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD | TR => self.close_row(),
            _ => self.start_in_table(tag),
        }
    }

    /// 13.2.6.4.14 "in row": an end tag.
    pub(in crate::html::tree) fn end_in_row(&mut self, name: NameId) -> Flow {
        match name {
            TR => {
                self.close_row();
                Flow::Done
            }
            TABLE => self.close_row(),
            TBODY | TFOOT | THEAD => {
                if self.has_in_table_scope(name) {
                    self.close_row()
                } else {
                    Flow::Done
                }
            }
            BODY | CAPTION | COL | COLGROUP | HTML | TD | TH => Flow::Done,
            _ => self.end_in_table(name),
        }
    }

    /// Ends the row, if one is open here; only then is there something to do again.
    fn close_row(&mut self) -> Flow {
        if !self.has_in_table_scope(TR) {
            return Flow::Done;
        }
        self.clear_to(is_table_row_context);
        self.pop();
        self.mode = Mode::InTableBody;
        Flow::Again
    }

    /// 13.2.6.4.15 "in cell": a start tag.
    pub(in crate::html::tree) fn start_in_cell(&mut self, tag: Tag) -> Flow {
        match tag.name {
            CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR => {
                if self.has_in_table_scope(TD) || self.has_in_table_scope(TH) {
                    self.close_cell();
                    Flow::Again
                } else {
                    Flow::Done
                }
            }
            _ => self.start_in_body(tag),
        }
    }

    /// 13.2.6.4.15 "in cell": an end tag.
    pub(in crate::html::tree) fn end_in_cell(&mut self, name: NameId) -> Flow {
        match name {
            TD | TH => {
                if self.has_in_table_scope(name) {
                    self.generate_implied_end_tags(None);
                    self.pop_until(name);
                    self.clear_to_marker();
                    self.mode = Mode::InRow;
                }
                Flow::Done
            }
            BODY | CAPTION | COL | COLGROUP | HTML => Flow::Done,
            TABLE | TBODY | TFOOT | THEAD | TR => {
                if self.has_in_table_scope(name) {
                    self.close_cell();
                    Flow::Again
                } else {
                    Flow::Done
                }
            }
            _ => self.end_in_body(name),
        }
    }

    /// 13.2.6.4.15 "close the cell".
    fn close_cell(&mut self) {
        self.generate_implied_end_tags(None);
        self.pop_until_any(|open| open.namespace == Namespace::Html && matches!(open.name, TD | TH));
        self.clear_to_marker();
        self.mode = Mode::InRow;
    }
}
