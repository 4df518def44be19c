//! The modes around `head`: "before head", "in head", "in head noscript" and "after head" (WHATWG HTML 13.2.6.4.3 to
//! 13.2.6.4.6).

use crate::html::names::NameId;
use crate::html::names::known::{
    BASE, BASEFONT, BGSOUND, BODY, BR, FRAMESET, HEAD, HTML, LINK, META, NOFRAMES, NOSCRIPT, SCRIPT, STYLE, TEMPLATE, TITLE,
};
use crate::html::tokenizer::{Content, Tag};
use crate::html::tree::{Builder, Flow, Mode, Open};

impl Builder {
    /// 13.2.6.4.3 "before head": a start tag.
    pub(in crate::html::tree) fn start_before_head(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => self.start_in_body(tag),
            HEAD => {
                self.head = self.insert_html_element(tag);
                self.mode = Mode::InHead;
                Flow::Done
            }
            _ => self.other_before_head(),
        }
    }

    /// 13.2.6.4.3 "before head": an end tag.
    pub(in crate::html::tree) fn end_before_head(&mut self, name: NameId) -> Flow {
        match name {
            HEAD | BODY | HTML | BR => self.other_before_head(),
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.3 "before head": anything else.
    pub(in crate::html::tree) fn other_before_head(&mut self) -> Flow {
        self.head = self.insert_phantom(HEAD);
        self.mode = Mode::InHead;
        Flow::Again
    }

    /// 13.2.6.4.4 "in head": a start tag. Other modes send theirs of the head here.
    pub(in crate::html::tree) fn start_in_head(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => return self.start_in_body(tag),
            BASE | BASEFONT | BGSOUND | LINK | META => {
                self.insert_void(tag);
            }
            TITLE => self.parse_raw(tag, Content::Rcdata),
            NOFRAMES | STYLE => self.parse_raw(tag, Content::Rawtext),
            NOSCRIPT if self.options.scripting => self.parse_raw(tag, Content::Rawtext),
            NOSCRIPT => {
                self.insert_html_element(tag);
                self.mode = Mode::InHeadNoscript;
            }
            SCRIPT => self.parse_raw(tag, Content::Script),
            TEMPLATE => self.start_template(tag),
            HEAD => {}
            _ => return self.other_in_head(),
        }
        Flow::Done
    }

    /// 13.2.6.4.4 "in head": an end tag. Other modes send `</template>` here.
    pub(in crate::html::tree) fn end_in_head(&mut self, name: NameId) -> Flow {
        match name {
            HEAD => {
                self.other_in_head();
                Flow::Done
            }
            BODY | HTML | BR => self.other_in_head(),
            TEMPLATE => {
                self.end_template();
                Flow::Done
            }
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.4 "in head": anything else.
    pub(in crate::html::tree) fn other_in_head(&mut self) -> Flow {
        self.pop();
        self.mode = Mode::AfterHead;
        Flow::Again
    }

    /// 13.2.6.4.5 "in head noscript": a start tag.
    pub(in crate::html::tree) fn start_in_head_noscript(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => self.start_in_body(tag),
            BASEFONT | BGSOUND | LINK | META | NOFRAMES | STYLE => self.start_in_head(tag),
            HEAD | NOSCRIPT => Flow::Done,
            _ => self.other_in_head_noscript(),
        }
    }

    /// 13.2.6.4.5 "in head noscript": an end tag.
    pub(in crate::html::tree) fn end_in_head_noscript(&mut self, name: NameId) -> Flow {
        match name {
            NOSCRIPT => {
                self.other_in_head_noscript();
                Flow::Done
            }
            BR => self.other_in_head_noscript(),
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.5 "in head noscript": anything else.
    pub(in crate::html::tree) fn other_in_head_noscript(&mut self) -> Flow {
        self.pop();
        self.mode = Mode::InHead;
        Flow::Again
    }

    /// 13.2.6.4.6 "after head": a start tag.
    pub(in crate::html::tree) fn start_after_head(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => self.start_in_body(tag),
            BODY => {
                self.insert_html_element(tag);
                self.frameset_ok = false;
                self.mode = Mode::InBody;
                Flow::Done
            }
            FRAMESET => {
                self.insert_html_element(tag);
                self.mode = Mode::InFrameset;
                Flow::Done
            }
            BASE | BASEFONT | BGSOUND | LINK | META | NOFRAMES | SCRIPT | STYLE | TEMPLATE | TITLE => {
                let head = self.head;
                self.push(Open::html(head, HEAD));
                let flow = self.start_in_head(tag);
                self.remove_node(head);
                flow
            }
            HEAD => Flow::Done,
            _ => self.other_after_head(),
        }
    }

    /// 13.2.6.4.6 "after head": an end tag.
    pub(in crate::html::tree) fn end_after_head(&mut self, name: NameId) -> Flow {
        match name {
            TEMPLATE => self.end_in_head(name),
            BODY | HTML | BR => self.other_after_head(),
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.6 "after head": anything else.
    pub(in crate::html::tree) fn other_after_head(&mut self) -> Flow {
        self.insert_phantom(BODY);
        self.mode = Mode::InBody;
        Flow::Again
    }
}
