//! Behind the content: "after body" and "after after body" (WHATWG HTML 13.2.6.4.19, 13.2.6.4.22).

use crate::html::names::NameId;
use crate::html::names::known::HTML;
use crate::html::tokenizer::Tag;
use crate::html::tree::{Builder, Flow, Mode};

impl Builder {
    /// 13.2.6.4.19 "after body": a start tag.
    pub(in crate::html::tree) fn start_after_body(&mut self, tag: Tag) -> Flow {
        if tag.name == HTML { self.start_in_body(tag) } else { self.other_after_body() }
    }

    /// 13.2.6.4.19 "after body": an end tag.
    pub(in crate::html::tree) fn end_after_body(&mut self, name: NameId) -> Flow {
        if name != HTML {
            return self.other_after_body();
        }
        if self.fragment.is_none() {
            self.mode = Mode::AfterAfterBody;
        }
        Flow::Done
    }

    /// 13.2.6.4.19 "after body", 13.2.6.4.22 "after after body": anything else.
    pub(in crate::html::tree) fn other_after_body(&mut self) -> Flow {
        self.mode = Mode::InBody;
        Flow::Again
    }

    /// 13.2.6.4.22 "after after body": a start tag.
    pub(in crate::html::tree) fn start_after_after_body(&mut self, tag: Tag) -> Flow {
        self.start_after_body(tag)
    }

    /// 13.2.6.4.22 "after after body": an end tag.
    pub(in crate::html::tree) fn end_after_after_body(&mut self, _name: NameId) -> Flow {
        self.other_after_body()
    }
}
