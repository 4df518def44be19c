//! The tokenizer (WHATWG HTML 13.2.5): text in, tags, texts, comments and doctypes out, each to the sink as it is found.
//!
//! Knows nothing of the tree. There is no token in between: attributes are written into the arena once, texts are spans.
//! The states of the standard are places of this code, not values: each piece of text is scanned once, as a run. Whatever
//! lacks its end takes the rest of the page, so nothing is searched for twice and the time grows with the source only.
//! Parse errors are not told: a crawler has no use for them.

mod class;
mod doctype;
pub(super) mod find;
mod instruction;
mod markup;
mod raw;
mod reference;
mod reference_table;
mod side;
mod tag;

use self::class::is_letter;
use self::find::find_of_3;
use self::reference::{Place, reference};
use self::side::Side;
use super::arena::{Arena, AttrList};
use super::document::Doctype;
use super::limits::Limits;
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

/// A bound that the tokenizer has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// [`Limits::attributes`] or [`Limits::attributes_per_element`]: an attribute was left out.
    Attributes,
    /// The side buffer has as many bytes as spans can tell: the page ends here.
    Length,
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
    /// Whether the page has met a bound and ends here. Asked before all that is no text.
    fn is_over(&self) -> bool;
    /// How many attributes may be kept. Asked once.
    fn limits(&self) -> Limits {
        Limits::default()
    }
    /// Whether `<?target data>` makes a processing instruction; otherwise it is a comment, as before June 2026. Asked once.
    fn makes_processing_instructions(&self) -> bool {
        true
    }
    /// A bound is met; it may be told more than once.
    fn meet(&mut self, bound: Bound) {
        let _ = bound;
    }
}

/// Reads the arena's whole source, beginning in the state of `content` (for Rcdata, Rawtext and Script with `last_start` as the last
/// start tag, for fragments and tests). Does not tell the sink of the end.
pub(crate) fn run<S: Sink>(sink: &mut S, content: Content, last_start: Option<NameId>) {
    let source = sink.arena().source().clone();
    let mut tokenizer = Tokenizer::new(sink, &source);
    if content != Content::Data {
        tokenizer.raw(content, last_start);
    }
    tokenizer.read();
}

/// Where a run is.
struct Tokenizer<'s, S> {
    source: &'s [u8],
    /// What is read next.
    at: usize,
    sink: &'s mut S,
    limits: Limits,
    makes_processing_instructions: bool,
    /// Whether the side buffer has no more room.
    is_full: bool,
    /// How many start tags were begun; marks the names of the attributes of the current one.
    tag: u32,
    /// By the name's number: the last start tag that has such an attribute.
    stamps: Vec<u32>,
}

impl<'s, S: Sink> Tokenizer<'s, S> {
    fn new(sink: &'s mut S, source: &'s [u8]) -> Self {
        let stamps = vec![0; sink.arena().name_count() + 64];
        let limits = sink.limits();
        let makes_processing_instructions = sink.makes_processing_instructions();
        Self { source, at: 0, sink, limits, makes_processing_instructions, is_full: false, tag: 0, stamps }
    }

    /// Data state (13.2.5.1), again and again.
    fn read(&mut self) {
        while let Some(first) = self.source.get(self.at) {
            // Behind a text there is always one of these: that is soon enough.
            if matches!(*first, b'<' | 0) && (self.is_full || self.sink.is_over()) {
                break;
            }
            if *first == b'<' {
                self.sink.arena().note_read(self.at);
                if !self.markup() {
                    self.text(1);
                }
            } else {
                self.text(0);
            }
        }
    }

    /// What is not read yet.
    #[inline]
    fn rest(&self) -> &'s [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// The place of a slice that goes to the end of the source.
    #[inline]
    fn place_of(&self, rest: &[u8]) -> usize {
        self.source.len() - rest.len()
    }

    #[inline]
    fn go_to_end(&mut self) {
        self.at = self.source.len();
    }

    /// Tag open state (13.2.5.6) and end tag open state (13.2.5.7). Gives whether it was markup: a `<` that opens nothing is text.
    #[inline]
    fn markup(&mut self) -> bool {
        let Some([_, behind @ ..]) = self.source.get(self.at..) else { return false };
        match behind {
            [first, ..] if is_letter(*first) => self.start_tag(behind),
            [b'/', behind @ ..] => match behind {
                [first, ..] if is_letter(*first) => self.end_tag(behind),
                [b'>', ..] => self.at += 3,
                [_, ..] => self.bogus_comment(behind),
                [] => return false,
            },
            [b'!', behind @ ..] => self.declaration(behind),
            [b'?', ..] => self.processing_instruction(behind),
            _ => return false,
        }
        true
    }

    /// Text up to the next markup or U+0000, of which the first `known` bytes are text whatever they are.
    #[inline]
    fn text(&mut self, known: usize) {
        let rest = self.rest();
        let mut len = known;
        loop {
            match next_in_text(rest, &mut len) {
                Some(b'<') if !opens_markup(rest, len) => len += 1,
                Some(b'&') => return self.text_with_references(rest, len),
                Some(0) if len == 0 => {
                    self.at += 1;
                    return self.sink.null();
                }
                _ => return self.source_text(rest, len),
            }
        }
    }

    /// Gives the first `len` bytes of what is not read yet to the sink.
    #[inline]
    fn source_text(&mut self, rest: &[u8], len: usize) {
        let start = self.place_of(rest);
        self.at = start + len;
        if len > 0 {
            self.sink.text(Span::of_source(start, start + len));
        }
    }

    /// The same with a reference behind the first `len` bytes: all of the text is written anew, to be one piece.
    fn text_with_references(&mut self, rest: &'s [u8], len: usize) {
        let mut side = Side::new(&mut self.sink.arena().side);
        let (plain, mut rest) = rest.split_at_checked(len).unwrap_or_default();
        side.put(plain);
        loop {
            let mut len = 0;
            match next_in_text(rest, &mut len) {
                Some(b'<') if !opens_markup(rest, len) => {
                    let (plain, behind) = rest.split_at_checked(len + 1).unwrap_or_default();
                    side.put(plain);
                    rest = behind;
                }
                Some(b'&') => {
                    let (plain, behind) = rest.split_at_checked(len).unwrap_or_default();
                    side.put(plain);
                    let behind = behind.get(1..).unwrap_or_default();
                    rest = behind.get(reference(behind, Place::Text, &mut side)..).unwrap_or_default();
                }
                _ => {
                    let (plain, behind) = rest.split_at_checked(len).unwrap_or_default();
                    side.put(plain);
                    rest = behind;
                    break;
                }
            }
        }
        self.at = self.source.len() - rest.len();
        let text = side.end();
        self.side_text(text);
    }

    /// Gives a text that was written into the side buffer to the sink.
    fn side_text(&mut self, text: side::Written) {
        let text = self.written(text);
        if !text.is_empty() {
            self.sink.text(text);
        }
    }

    /// The span of what was written, and notes whether there was room for it.
    #[inline]
    fn written(&mut self, written: side::Written) -> Span {
        if written.is_cut && !self.is_full {
            self.is_full = true;
            self.sink.meet(Bound::Length);
        }
        written.span
    }
}

/// Moves `len` on to the next byte that may end a text, and gives it.
#[inline]
fn next_in_text(text: &[u8], len: &mut usize) -> Option<u8> {
    let behind = text.get(*len..).unwrap_or_default();
    let found = find_of_3(b'<', b'&', 0, behind);
    *len += found.unwrap_or(behind.len());
    behind.get(found?).copied()
}

/// Whether the `<` at `place` is the start of a tag, a comment or the like.
#[inline]
fn opens_markup(text: &[u8], place: usize) -> bool {
    match text.get(place + 1..).unwrap_or_default() {
        [b'/', behind @ ..] => !behind.is_empty(),
        [b'!' | b'?', ..] => true,
        [first, ..] => is_letter(*first),
        [] => false,
    }
}
