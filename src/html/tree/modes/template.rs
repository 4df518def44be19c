//! Templates: their tags, and the mode "in template" (WHATWG HTML 13.2.6.4.4, 13.2.6.4.18).
//!
//! Their content lies directly below the element. Declarative shadow roots are templates here: no script reads them.

use crate::html::names::NameId;
use crate::html::names::known::{
    BASE, BASEFONT, BGSOUND, CAPTION, COL, COLGROUP, LINK, META, NOFRAMES, SCRIPT, STYLE, TBODY, TD, TEMPLATE, TFOOT, TH, THEAD,
    TITLE, TR,
};
use crate::html::tokenizer::Tag;
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// 13.2.6.4.4 "in head": `<template>`.
    pub(super) fn start_template(&mut self, tag: Tag) {
        self.insert_html_element(tag);
        self.push_marker();
        self.frameset_ok = false;
        self.mode = Mode::InTemplate;
        self.template_modes.push(Mode::InTemplate);
    }

    /// 13.2.6.4.4 "in head": `</template>`.
    pub(super) fn end_template(&mut self) {
        if self.stack.count(TEMPLATE) == 0 {
            return;
        }
        self.generate_all_implied_end_tags_thoroughly();
        self.pop_until(TEMPLATE);
        self.clear_to_marker();
        self.template_modes.pop();
        self.reset_insertion_mode();
    }

    /// 13.2.6.4.18 "in template": a start tag. The first one says what kind of content the template has.
    pub(in crate::html::tree) fn start_in_template(&mut self, tag: Tag) -> Flow {
        let mode = match tag.name {
            BASE | BASEFONT | BGSOUND | LINK | META | NOFRAMES | SCRIPT | STYLE | TEMPLATE | TITLE => {
                return self.start_in_head(tag);
            }
            CAPTION | COLGROUP | TBODY | TFOOT | THEAD => Mode::InTable,
            COL => Mode::InColumnGroup,
            TR => Mode::InTableBody,
            TD | TH => Mode::InRow,
            _ => Mode::InBody,
        };
        self.template_modes.pop();
        self.template_modes.push(mode);
        self.mode = mode;
        Flow::Again
    }

    /// 13.2.6.4.18 "in template": an end tag.
    pub(in crate::html::tree) fn end_in_template(&mut self, name: NameId) -> Flow {
        if name == TEMPLATE { self.end_in_head(name) } else { Flow::Done }
    }
}
