//! Tree construction (WHATWG HTML 13.2.6): tags and texts in, a tree out.

mod modes;

use super::arena::{Arena, NodeId};
use super::document::Doctype;
use super::document::QuirksMode;
use super::limits::Exceeded;
use super::names::NameId;
use super::options::ParseOptions;
use super::span::Span;
use super::tokenizer::{Content, DoctypeToken, Sink, Tag};

/// The insertion mode (13.2.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Initial,
    BeforeHtml,
    BeforeHead,
    InHead,
    InHeadNoscript,
    AfterHead,
    InBody,
    Text,
    InTable,
    InTableText,
    InCaption,
    InColumnGroup,
    InTableBody,
    InRow,
    InCell,
    InTemplate,
    AfterBody,
    InFrameset,
    AfterFrameset,
    AfterAfterBody,
    AfterAfterFrameset,
}

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// It is dealt with.
    Done,
    /// "Reprocess the token" in the mode that is set now.
    Again,
}

/// The state of the tree construction.
pub(crate) struct Builder {
    pub(crate) arena: Arena,
    pub(crate) doctype: Option<Doctype>,
    pub(crate) quirks: QuirksMode,
    pub(crate) exceeded: Exceeded,
    pub(crate) steps: u64,
    options: ParseOptions,
    mode: Mode,
}

impl Builder {
    pub(crate) fn new(arena: Arena, options: &ParseOptions) -> Self {
        Self {
            arena,
            doctype: None,
            quirks: QuirksMode::No,
            exceeded: Exceeded::default(),
            steps: 0,
            options: *options,
            mode: Mode::Initial,
        }
    }

    /// The end of the page (13.2.6.4, "an end-of-file token").
    pub(crate) fn end(&mut self) {}
}

impl Sink for Builder {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }
    fn start_tag(&mut self, _tag: Tag) -> Content {
        Content::Data
    }
    fn end_tag(&mut self, _name: NameId) {}
    fn text(&mut self, _text: Span) {}
    fn null(&mut self) {}
    fn comment(&mut self, _text: Span) {}
    fn processing_instruction(&mut self, _target: NameId, _data: Span) {}
    fn doctype(&mut self, _doctype: DoctypeToken) {}
    fn allows_cdata(&self) -> bool {
        false
    }
    fn is_over(&self) -> bool {
        false
    }
}
