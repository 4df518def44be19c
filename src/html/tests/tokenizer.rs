//! The tokenizer against html5lib's tests (`tests/data/html_tokenizer.json`), on hostile input, and on anything at all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod conformance;
mod differential;
mod hostile;
mod instruction;
mod limits;
mod random;

use bytes::Bytes;

use crate::html::arena::Arena;
use crate::html::limits::Limits;
use crate::html::names::{NameId, known};
use crate::html::parse::normalised;
use crate::html::span::Span;
use crate::html::tokenizer::{self, Bound, Content, DoctypeToken, Sink, Tag};

/// What a tokenizer told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Name, attributes, whether self-closing.
    Start(String, Vec<(String, String)>, bool),
    End(String),
    /// Adjacent texts are one; U+0000 is in it.
    Text(String),
    Comment(String),
    Instruction(String, String),
    /// Name, public and system id, whether the force-quirks flag is set.
    Doctype(Option<String>, Option<String>, Option<String>, bool),
}

/// A sink that writes down what it is told.
struct Recorder {
    arena: Arena,
    tokens: Vec<Token>,
    limits: Limits,
    instructions: bool,
    cdata: bool,
    met: Vec<Bound>,
    /// What follows start tags; as for HTML elements if `None`.
    content: Option<Content>,
    /// How many calls there were.
    calls: usize,
    most_calls: usize,
}

impl Recorder {
    fn new(source: &str) -> Self {
        Self {
            arena: Arena::new(normalised(Bytes::copy_from_slice(source.as_bytes()))),
            tokens: Vec::new(),
            limits: Limits::NONE,
            instructions: true,
            cdata: false,
            met: Vec::new(),
            content: Some(Content::Data),
            calls: 0,
            most_calls: usize::MAX,
        }
    }

    fn run(mut self, content: Content, last_start: Option<&str>) -> Self {
        let last_start = last_start.map(|name| self.arena.intern_text(name));
        tokenizer::run(&mut self, content, last_start);
        self
    }

    fn string(&self, span: Span) -> String {
        let text = self.arena.text(span);
        assert_eq!(text.len(), span.len(), "a span that is not text");
        text.to_owned()
    }

    fn add_text(&mut self, more: &str) {
        self.calls += 1;
        match self.tokens.last_mut() {
            Some(Token::Text(text)) => text.push_str(more),
            _ => self.tokens.push(Token::Text(more.to_owned())),
        }
    }

    fn add(&mut self, token: Token) {
        self.calls += 1;
        self.tokens.push(token);
    }
}

impl Sink for Recorder {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    fn start_tag(&mut self, tag: Tag) -> Content {
        let attrs = self.arena.attrs_in(tag.attrs);
        let attrs = attrs.map(|attr| (self.arena.name_text(attr.name()).to_owned(), self.string(attr.value()))).collect();
        self.add(Token::Start(self.arena.name_text(tag.name).to_owned(), attrs, tag.self_closing));
        self.content.unwrap_or(match tag.name {
            known::TITLE | known::TEXTAREA => Content::Rcdata,
            known::STYLE | known::XMP | known::IFRAME | known::NOEMBED | known::NOFRAMES => Content::Rawtext,
            known::SCRIPT => Content::Script,
            known::PLAINTEXT => Content::Plaintext,
            _ => Content::Data,
        })
    }

    fn end_tag(&mut self, name: NameId) {
        self.add(Token::End(self.arena.name_text(name).to_owned()));
    }

    fn text(&mut self, text: Span) {
        assert!(!text.is_empty());
        let text = self.string(text);
        assert!(!text.contains('\0'));
        self.add_text(&text);
    }

    fn null(&mut self) {
        self.add_text("\0");
    }

    fn comment(&mut self, text: Span) {
        self.add(Token::Comment(self.string(text)));
    }

    fn processing_instruction(&mut self, target: NameId, data: Span) {
        self.add(Token::Instruction(self.arena.name_text(target).to_owned(), self.string(data)));
    }

    fn doctype(&mut self, DoctypeToken { doctype, has_name, force_quirks }: DoctypeToken) {
        let name = has_name.then(|| self.string(doctype.name));
        let id = |id: Option<Span>| id.map(|id| self.string(id));
        self.add(Token::Doctype(name, id(doctype.public_id), id(doctype.system_id), force_quirks));
    }

    fn allows_cdata(&self) -> bool {
        self.cdata
    }

    fn is_over(&self) -> bool {
        self.calls >= self.most_calls
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn makes_processing_instructions(&self) -> bool {
        self.instructions
    }

    fn meet(&mut self, bound: Bound) {
        if self.met.last() != Some(&bound) {
            self.met.push(bound);
        }
    }
}

/// The tokens of a page.
fn tokens(source: &str) -> Vec<Token> {
    Recorder::new(source).run(Content::Data, None).tokens
}
