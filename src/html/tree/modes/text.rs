//! "Text" (WHATWG HTML 13.2.6.4.8) and the way into it (13.2.6.2): elements whose content is text up to their end tag.

use crate::html::tokenizer::{Content, Tag};
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// "The generic raw text element parsing algorithm", that for RCDATA, and what scripts do: inserts the element, and has the
    /// tokenizer read its text.
    pub(in crate::html) fn parse_raw(&mut self, tag: Tag, content: Content) {
        self.insert_html_element(tag);
        self.content = content;
        self.original_mode = self.mode;
        self.mode = Mode::Text;
    }

    /// An end tag: that of the element, as the tokenizer gives no other one.
    pub(super) fn end_in_text(&mut self) -> Flow {
        self.pop();
        self.mode = self.original_mode;
        Flow::Done
    }

    /// The tokenizer gives no start tag in text; whoever does ends the element.
    pub(super) fn start_in_text(&mut self) -> Flow {
        self.end_in_text();
        Flow::Again
    }
}
