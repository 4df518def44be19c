//! End tags in "in body" (WHATWG HTML 13.2.6.4.7).

use crate::html::arena::{AttrList, NodeId};
use crate::html::names::{self, NameId, known::*};
use crate::html::tokenizer::Tag;
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// An end tag in "in body".
    pub(in crate::html) fn end_in_body(&mut self, name: NameId) -> Flow {
        match name {
            ADDRESS | ARTICLE | ASIDE | BLOCKQUOTE | BUTTON | CENTER | DETAILS | DIALOG | DIR | DIV | DL | FIELDSET
            | FIGCAPTION | FIGURE | FOOTER | HEADER | HGROUP | LISTING | MAIN | MENU | NAV | OL | PRE | SEARCH | SECTION
            | SELECT | SUMMARY | UL => self.end_block(name),
            A | B | BIG | CODE | EM | FONT | I | NOBR | S | SMALL | STRIKE | STRONG | TT | U => self.end_formatting(name),
            P => {
                if !self.has_in_button_scope(P) {
                    self.insert_phantom(P);
                }
                self.close_open_p();
            }
            LI => {
                if self.has_in_list_scope(LI) {
                    self.generate_implied_end_tags(Some(LI));
                    self.pop_until(LI);
                }
            }
            DD | DT => {
                if self.has_in_scope(name) {
                    self.generate_implied_end_tags(Some(name));
                    self.pop_until(name);
                }
            }
            H1 | H2 | H3 | H4 | H5 | H6 => {
                if self.has_heading_in_scope() {
                    self.generate_implied_end_tags(None);
                    self.pop_until_any(|open| open.is(names::HEADING));
                }
            }
            TEMPLATE => return self.end_in_head(name),
            BODY | HTML => {
                if self.has_in_scope(BODY) {
                    self.mode = Mode::AfterBody;
                    if name == HTML {
                        return Flow::Again;
                    }
                }
            }
            FORM => self.end_form(),
            APPLET | MARQUEE | OBJECT => {
                if self.has_in_scope(name) {
                    self.generate_implied_end_tags(None);
                    self.pop_until(name);
                    self.clear_to_marker();
                }
            }
            // As if it were a start tag without attributes.
            BR => return self.start_in_body(Tag { name: BR, attrs: AttrList::EMPTY, self_closing: false }),
            _ => self.end_other(name),
        }
        Flow::Done
    }

    #[inline]
    fn end_block(&mut self, name: NameId) {
        if self.is_current(name) {
            self.pop();
        } else if self.has_in_scope(name) {
            self.generate_implied_end_tags(None);
            self.pop_until(name);
        }
    }

    #[inline]
    fn end_formatting(&mut self, name: NameId) {
        let current = self.current();
        if current.is_html(name) && self.formatting.pop_if(current.node) {
            self.pop();
        } else {
            self.adoption_agency(name);
        }
    }

    /// Mostly the current node's end tag.
    #[inline]
    fn end_other(&mut self, name: NameId) {
        if self.is_current(name) {
            self.pop();
        } else {
            self.any_other_end_tag(name);
        }
    }

    #[inline(never)]
    fn end_form(&mut self) {
        if self.count(TEMPLATE) > 0 {
            if self.has_in_scope(FORM) {
                self.generate_implied_end_tags(None);
                self.pop_until(FORM);
            }
            return;
        }
        let form = std::mem::replace(&mut self.form, NodeId::NONE);
        if form.is_some() && self.has_node_in_scope(form) {
            self.generate_implied_end_tags(None);
            self.remove_node(form);
        }
    }
}
