//! The tokenizer (WHATWG HTML 13.2.5): text in, tags, texts, comments and doctypes out, each to the sink as it is found.
//!
//! Knows nothing of the tree. There is no token in between: attributes are written into the arena once, texts are spans.
//! Parse errors are not told: a crawler has no use for them.

use super::arena::{Arena, AttrList};
use super::document::Doctype;
use super::names::NameId;
use super::span::Span;

/// A start tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    /// Its name, in lower case.
    pub(crate) name: NameId,
    /// Its attributes, the first of each name.
    pub(crate) attrs: AttrList,
    /// Whether it ends with `/>`.
    pub(crate) self_closing: bool,
}

/// What kind of text follows a start tag: the state the tree construction puts the tokenizer in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Markup (13.2.5.1).
    Data,
    /// Text with references, up to the end tag (13.2.5.2).
    Rcdata,
    /// Text up to the end tag (13.2.5.3).
    Rawtext,
    /// A script, up to the end tag that is not in its escaped part (13.2.5.4).
    Script,
    /// Text up to the end of the page (13.2.5.5).
    Plaintext,
}

/// A doctype as it stands (13.2.5.53 and following).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoctypeToken {
    /// Name and ids; the name in lower case.
    pub(crate) doctype: Doctype,
    /// Whether it has a name (an empty one has none).
    pub(crate) has_name: bool,
    /// The standard's force-quirks flag.
    pub(crate) force_quirks: bool,
}

/// Whoever takes what is found: the tree construction, or a test.
pub(crate) trait Sink {
    /// Where names, attributes and decoded texts go.
    fn arena(&mut self) -> &mut Arena;
    /// A start tag; says what follows it.
    fn start_tag(&mut self, tag: Tag) -> Content;
    /// An end tag.
    fn end_tag(&mut self, name: NameId);
    /// Text: never empty, without U+0000 where that is not U+FFFD already. White space is not told apart.
    fn text(&mut self, text: Span);
    /// U+0000 in markup or in a CDATA section; whoever takes it says what becomes of it.
    fn null(&mut self);
    /// A comment.
    fn comment(&mut self, text: Span);
    /// A processing instruction (whatwg/html 12118, June 2026).
    fn processing_instruction(&mut self, target: NameId, data: Span);
    /// A doctype.
    fn doctype(&mut self, doctype: DoctypeToken);
    /// Whether `<![CDATA[` begins a section here: the adjusted current node is not in the HTML namespace (13.2.5.42).
    fn allows_cdata(&self) -> bool;
    /// Whether the page has met a bound and ends here. Asked between tokens.
    fn is_over(&self) -> bool;
}

/// Reads the arena's whole source, beginning in the state of `content` (for Rcdata, Rawtext and Script with `last_start` as the last
/// start tag, for fragments and tests). Does not tell the sink of the end.
pub(crate) fn run<S: Sink>(sink: &mut S, content: Content, last_start: Option<NameId>) {
    let _ = (sink, content, last_start);
}
