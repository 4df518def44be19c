//! Pages of frames: "in frameset", "after frameset" and "after after frameset" (WHATWG HTML 13.2.6.4.20, 13.2.6.4.21,
//! 13.2.6.4.23).
//!
//! All text but white space is dropped there.

use crate::html::names::NameId;
use crate::html::names::known::{FRAME, FRAMESET, HTML, NOFRAMES};
use crate::html::tokenizer::Tag;
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// 13.2.6.4.20 "in frameset": a start tag.
    pub(in crate::html::tree) fn start_in_frameset(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => self.start_in_body(tag),
            FRAMESET => {
                self.insert_html_element(tag);
                Flow::Done
            }
            FRAME => {
                self.insert_void(tag);
                Flow::Done
            }
            NOFRAMES => self.start_in_head(tag),
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.20 "in frameset": an end tag.
    pub(in crate::html::tree) fn end_in_frameset(&mut self, name: NameId) -> Flow {
        // The root is the current node only in a fragment.
        if name == FRAMESET && self.stack.len() > 1 {
            self.pop();
            if self.fragment.is_none() && !self.is_current(FRAMESET) {
                self.mode = Mode::AfterFrameset;
            }
        }
        Flow::Done
    }

    /// 13.2.6.4.21 "after frameset": a start tag.
    pub(in crate::html::tree) fn start_after_frameset(&mut self, tag: Tag) -> Flow {
        match tag.name {
            HTML => self.start_in_body(tag),
            NOFRAMES => self.start_in_head(tag),
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.21 "after frameset": an end tag.
    pub(in crate::html::tree) fn end_after_frameset(&mut self, name: NameId) -> Flow {
        if name == HTML {
            self.mode = Mode::AfterAfterFrameset;
        }
        Flow::Done
    }

    /// 13.2.6.4.23 "after after frameset": a start tag; as "after frameset".
    pub(in crate::html::tree) fn start_after_after_frameset(&mut self, tag: Tag) -> Flow {
        self.start_after_frameset(tag)
    }

    /// 13.2.6.4.23 "after after frameset": an end tag.
    pub(in crate::html::tree) fn end_after_after_frameset(&mut self, _name: NameId) -> Flow {
        Flow::Done
    }
}
