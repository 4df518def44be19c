//! The modes before there is an `html` element: "initial" and "before html" (WHATWG HTML 13.2.6.4.1, 13.2.6.4.2).

use crate::html::arena::{AttrList, Namespace, NodeId};
use crate::html::document::QuirksMode;
use crate::html::names::NameId;
use crate::html::names::known::{BODY, BR, HEAD, HTML};
use crate::html::tokenizer::{DoctypeToken, Tag};
use crate::html::tree::quirks;
use crate::html::tree::{Builder, Flow, Mode, Open};

impl Builder {
    /// 13.2.6.4.1 "initial": a DOCTYPE token. Those of all other modes are ignored.
    pub(in crate::html::tree) fn doctype_in_initial(&mut self, token: DoctypeToken) {
        self.quirks = quirks::mode_of(&self.arena, &token);
        self.doctype = Some(token.doctype);
        let node = self.arena.new_doctype();
        self.arena.append(NodeId::DOCUMENT, node);
        self.mode = Mode::BeforeHtml;
    }

    /// 13.2.6.4.1 "initial": anything but white space, comments and a doctype.
    pub(in crate::html::tree) fn other_initial(&mut self) -> Flow {
        self.quirks = QuirksMode::Quirks;
        self.mode = Mode::BeforeHtml;
        Flow::Again
    }

    pub(in crate::html::tree) fn start_initial(&mut self, _tag: Tag) -> Flow {
        self.other_initial()
    }

    pub(in crate::html::tree) fn end_initial(&mut self, _name: NameId) -> Flow {
        self.other_initial()
    }

    /// 13.2.6.4.2 "before html": a start tag.
    pub(in crate::html::tree) fn start_before_html(&mut self, tag: Tag) -> Flow {
        if tag.name == HTML {
            self.insert_root(tag.attrs);
            self.mode = Mode::BeforeHead;
            return Flow::Done;
        }
        self.other_before_html()
    }

    /// 13.2.6.4.2 "before html": an end tag.
    pub(in crate::html::tree) fn end_before_html(&mut self, name: NameId) -> Flow {
        match name {
            HEAD | BODY | HTML | BR => self.other_before_html(),
            _ => Flow::Done,
        }
    }

    /// 13.2.6.4.2 "before html": anything else.
    pub(in crate::html::tree) fn other_before_html(&mut self) -> Flow {
        self.insert_root(AttrList::EMPTY);
        self.mode = Mode::BeforeHead;
        Flow::Again
    }

    /// Makes the `html` element, below the document and first on the stack.
    pub(in crate::html) fn insert_root(&mut self, attrs: AttrList) -> NodeId {
        let node = self.arena.new_element(HTML, Namespace::Html, attrs);
        self.arena.append(NodeId::DOCUMENT, node);
        self.push(Open::html(node, HTML));
        node
    }
}
