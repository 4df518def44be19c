//! Tree construction (WHATWG HTML 13.2.6): tags and texts in, a tree out.
//!
//! The tokenizer hands each token to the [`Builder`], which is its sink. `stack`, `scope`, `formatting`, `adoption`, `place` and
//! `reset` are the algorithms that the insertion modes share; `modes` has the modes themselves, `text` the characters.

mod adoption;
mod foreign;
mod foreign_names;
mod formatting;
mod limits;
mod modes;
mod owners;
mod place;
mod quirks;
mod reset;
mod scope;
mod selectedcontent;
mod stack;
mod text;

use super::arena::{Arena, AttrList, Namespace, NodeId};
use super::document::Doctype;
use super::document::QuirksMode;
use super::limits::{Exceeded, Limits};
use super::names::NameId;
use super::options::ParseOptions;
use super::span::Span;
use super::tokenizer::{Bound, Content, DoctypeToken, Sink, Tag};
use formatting::Formatting;
use limits::Budget;
use selectedcontent::Customizations;
pub(in crate::html) use stack::{Open, Stack};

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

/// The context element of a fragment (13.4).
#[derive(Clone, Copy, Debug)]
pub(in crate::html) struct FragmentContext {
    pub(in crate::html) name: NameId,
    pub(in crate::html) namespace: Namespace,
    pub(in crate::html) attrs: AttrList,
}

/// The state of the tree construction.
pub(crate) struct Builder {
    pub(crate) arena: Arena,
    pub(crate) doctype: Option<Doctype>,
    pub(crate) quirks: QuirksMode,
    pub(crate) exceeded: Exceeded,
    /// Steps of walks through the stack and the list of active formatting elements.
    pub(crate) steps: u64,
    pub(in crate::html) options: ParseOptions,
    pub(in crate::html) mode: Mode,
    /// The mode that Text and InTableText lead back to.
    pub(in crate::html) original_mode: Mode,
    /// The stack of template insertion modes.
    pub(in crate::html) template_modes: Vec<Mode>,
    pub(in crate::html) stack: Stack,
    pub(in crate::html) formatting: Formatting,
    /// The head element pointer.
    pub(in crate::html) head: NodeId,
    /// The form element pointer.
    pub(in crate::html) form: NodeId,
    /// Controls and their forms, where those are not around them; controls in the order they were made.
    pub(in crate::html) owners: Vec<(NodeId, NodeId)>,
    /// The frameset-ok flag.
    pub(in crate::html) frameset_ok: bool,
    pub(in crate::html) foster_parenting: bool,
    /// Whether a line feed is left out if it is the next token.
    pub(in crate::html) ignore_newline: bool,
    /// The pending table character tokens.
    pub(in crate::html) pending_text: Vec<Span>,
    /// Set for fragments.
    pub(in crate::html) fragment: Option<FragmentContext>,
    /// What the tokenizer reads next: the answer to a start tag.
    pub(in crate::html) content: Content,
    /// Elements made again from an entry of the list of active formatting elements, or copied.
    pub(in crate::html) repeats: u64,
    budget: Budget,
    customizations: Customizations,
}

impl Builder {
    pub(crate) fn new(arena: Arena, options: &ParseOptions) -> Self {
        let budget = Budget::new(&options.limits, arena.source().len());
        let mut arena = arena;
        arena.slow_down_at(budget.many_nodes());
        Self {
            arena,
            doctype: None,
            quirks: QuirksMode::No,
            exceeded: Exceeded::default(),
            steps: 0,
            options: *options,
            mode: Mode::Initial,
            original_mode: Mode::InBody,
            template_modes: Vec::new(),
            stack: Stack::new(options),
            formatting: Formatting::default(),
            head: NodeId::NONE,
            form: NodeId::NONE,
            owners: Vec::new(),
            frameset_ok: true,
            foster_parenting: false,
            ignore_newline: false,
            pending_text: Vec::new(),
            fragment: None,
            content: Content::Data,
            repeats: 0,
            budget,
            customizations: Customizations::default(),
        }
    }

    /// The end of the page: what the modes do at the end of the file, then "stop parsing" (13.2.7).
    pub(crate) fn end(&mut self) {
        self.ignore_newline = false;
        self.end_of_file();
        self.truncate(0);
        self.mark_exceeded();
    }

    /// Whether the rules for foreign content may apply to a token: all tokens ask this first (13.2.6).
    #[inline]
    fn may_be_foreign(&self) -> bool {
        self.stack.current().namespace != Namespace::Html
            || self.stack.len() == 1 && self.fragment.is_some_and(|context| context.namespace != Namespace::Html)
    }
}

impl Sink for Builder {
    #[inline]
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    #[inline]
    fn start_tag(&mut self, tag: Tag) -> Content {
        self.content = Content::Data;
        self.ignore_newline = false;
        if self.mode != Mode::InBody || self.may_be_foreign() || self.start_in_body(tag) == Flow::Again {
            self.dispatch_start(tag);
        }
        self.content
    }

    #[inline]
    fn end_tag(&mut self, name: NameId) {
        self.ignore_newline = false;
        if self.mode != Mode::InBody || self.may_be_foreign() || self.end_in_body(name) == Flow::Again {
            self.dispatch_end(name);
        }
    }

    #[inline]
    fn text(&mut self, text: Span) {
        let text = if self.ignore_newline { self.without_newline(text) } else { text };
        if text.is_empty() {
            return;
        }
        match self.mode {
            Mode::InBody | Mode::InCell if !self.may_be_foreign() => self.text_in_body(text),
            Mode::Text => self.insert_text(text),
            _ => self.dispatch_text(text),
        }
    }

    fn null(&mut self) {
        self.ignore_newline = false;
        self.dispatch_null();
    }

    fn comment(&mut self, text: Span) {
        self.before_markup();
        match self.parent_of_comments() {
            Some(parent) => self.insert_comment_in(parent, text),
            None => self.insert_comment(text),
        }
    }

    fn processing_instruction(&mut self, target: NameId, data: Span) {
        self.before_markup();
        match self.parent_of_comments() {
            Some(parent) => self.insert_pi_in(parent, target, data),
            None => self.insert_pi(target, data),
        }
    }

    fn doctype(&mut self, doctype: DoctypeToken) {
        if self.options.as_html5ever() && self.mode == Mode::InTableText {
            // It leaves the pending table characters pending.
            self.ignore_newline = false;
            return;
        }
        self.before_markup();
        if self.mode == Mode::Initial {
            self.doctype_in_initial(doctype);
        }
    }

    #[inline]
    fn allows_cdata(&self) -> bool {
        self.may_be_foreign() && self.adjusted_current().namespace != Namespace::Html
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.is_over_budget()
    }

    fn limits(&self) -> Limits {
        self.options.limits
    }

    fn makes_processing_instructions(&self) -> bool {
        !self.options.as_html5ever()
    }

    fn meet(&mut self, bound: Bound) {
        match bound {
            Bound::Attributes => self.exceeded.attributes = true,
            Bound::Length => self.exceeded.length = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// A builder with these HTML elements open, each in the one before.
    pub(super) fn builder(open: &[NameId]) -> Builder {
        let options = ParseOptions::default();
        let mut builder = Builder::new(Arena::new(Bytes::from_static(b"0123456789")), &options);
        for name in open {
            builder.insert_phantom(*name);
        }
        builder
    }
}
