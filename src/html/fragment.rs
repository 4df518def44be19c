//! Parts of pages: what a browser makes of `innerHTML` (WHATWG HTML 13.4, "parsing HTML fragments").
//!
//! What a text means depends on the element it is for: `<td>` is a cell in a row, and nothing in a paragraph.

use bytes::Bytes;

use super::arena::{Arena, AttrList, Namespace, NodeId};
use super::document::{Document, QuirksMode};
use super::names::known::{FORM, IFRAME, NOEMBED, NOFRAMES, NOSCRIPT, PLAINTEXT, SCRIPT, STYLE, TEMPLATE, TEXTAREA, TITLE, XMP};
use super::options::ParseOptions;
use super::parse::{bounded, normalised};
use super::span::Span;
use super::tokenizer::{self, Content};
use super::tree::{Builder, FragmentContext as Context, Mode};

/// The element a fragment is parsed for. It does not become part of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentContext {
    name: String,
    namespace: Namespace,
    attributes: Vec<(String, String)>,
    quirks: QuirksMode,
    is_in_form: bool,
}

impl FragmentContext {
    /// An HTML element by its name; `body` for what may stand anywhere.
    #[must_use]
    pub fn html(name: &str) -> Self {
        Self::foreign(Namespace::Html, &name.to_ascii_lowercase())
    }

    /// An element of any namespace by its name in the case it has there, as `foreignObject`.
    #[must_use]
    pub fn foreign(namespace: Namespace, name: &str) -> Self {
        Self { name: name.to_owned(), namespace, attributes: Vec::new(), quirks: QuirksMode::No, is_in_form: false }
    }

    /// Gives it an attribute. The only one that counts is the `encoding` of MathML's `annotation-xml`.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the mode of the page it is in; without this, [`QuirksMode::No`].
    #[must_use]
    pub fn quirks_mode(mut self, quirks: QuirksMode) -> Self {
        self.quirks = quirks;
        self
    }

    /// Says that it is in a `form`: forms in the fragment are left out, then, as forms are not nested. A `form` is in itself.
    #[must_use]
    pub fn in_form(mut self) -> Self {
        self.is_in_form = true;
        self
    }

    /// The context as the tree construction sees it.
    fn intern(&self, arena: &mut Arena) -> Context {
        let start = arena.attr_count();
        for (name, value) in &self.attributes {
            let name = arena.intern_text(name);
            let from = arena.side.len();
            arena.side.extend_from_slice(value.as_bytes());
            arena.push_attr(name, Span::of_side(from, arena.side.len()));
        }
        let attrs = arena.end_attrs(start);
        Context { name: arena.intern_text(&self.name), namespace: self.namespace, attrs }
    }
}

impl Default for FragmentContext {
    /// A `body`.
    fn default() -> Self {
        Self::html("body")
    }
}

impl Document {
    /// Parses a fragment: the nodes that a browser would put into an element when given this as its `innerHTML`. They are the
    /// children of the `html` element that is the only child of the page; there is no `head` or `body` but for an `html` as
    /// context. Copies the text.
    ///
    /// ```
    /// use dragline::html::{Document, FragmentContext, ParseOptions};
    ///
    /// let row = Document::fragment("<td>one<td>two", &FragmentContext::html("tr"), &ParseOptions::default());
    /// let cells: Vec<String> = row.document_element().unwrap().children().map(|cell| cell.text()).collect();
    /// assert_eq!(cells, ["one", "two"]);
    /// ```
    #[must_use]
    pub fn fragment(text: &str, context: &FragmentContext, options: &ParseOptions) -> Self {
        let (source, is_cut) = bounded(Bytes::copy_from_slice(text.as_bytes()));
        let mut arena = Arena::new(normalised(source));
        let element = context.intern(&mut arena);
        let mut builder = Builder::new(arena, options);
        builder.exceeded.length = is_cut;
        builder.quirks = context.quirks;
        builder.insert_root(AttrList::EMPTY);
        builder.fragment = Some(element);
        let is_html = element.namespace == Namespace::Html;
        if is_html && element.name == TEMPLATE {
            builder.template_modes.push(Mode::InTemplate);
        }
        builder.reset_insertion_mode();
        if context.is_in_form || is_html && element.name == FORM {
            // "The form element pointer": a form that is not in the tree, and that no end tag can close.
            builder.form = NodeId::DOCUMENT;
        }
        let content = if is_html { content_in(element, options) } else { Content::Data };
        // No start tag came before: an end tag of the context's name is text where only text is.
        tokenizer::run(&mut builder, content, None);
        builder.end();
        Self::from_builder(builder)
    }
}

/// The tokenizer's state to begin with (13.4).
fn content_in(context: Context, options: &ParseOptions) -> Content {
    match context.name {
        TITLE | TEXTAREA => Content::Rcdata,
        STYLE | XMP | IFRAME | NOEMBED | NOFRAMES => Content::Rawtext,
        NOSCRIPT if options.scripting => Content::Rawtext,
        SCRIPT => Content::Script,
        PLAINTEXT => Content::Plaintext,
        _ => Content::Data,
    }
}
