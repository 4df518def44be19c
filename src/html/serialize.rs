//! Writes nodes as HTML (WHATWG HTML 13.3, serialising HTML fragments), with attributes in the order of the source.
//!
//! Linear in what it writes and without recursion: no page is too deep. Text in `noscript` is escaped, as where scripting
//! is off. The content of a `template` is written as what it is here: its children.

use super::arena::{Arena, Kind, Namespace, NodeId};
use super::document::{Document, NodeRef};
use super::names::known::{IFRAME, NOEMBED, NOFRAMES, PLAINTEXT, SCRIPT, STYLE, XMP};
use super::names::{VOID, category};

impl NodeRef<'_> {
    /// The node with all below it as HTML, attributes in the order of the source; a text is escaped, the page is all of it.
    #[must_use]
    pub fn html(self) -> String {
        let mut out = String::new();
        write_outer(self.document, self.id, &mut out);
        out
    }

    /// All below the node as HTML.
    #[must_use]
    pub fn inner_html(self) -> String {
        let mut out = String::new();
        for child in self.children() {
            write_outer(self.document, child.id, &mut out);
        }
        out
    }
}

/// Writes the node itself with all that is below it.
pub(crate) fn write_outer(document: &Document, top: NodeId, out: &mut String) {
    let arena = document.arena();
    let mut id = top;
    loop {
        open(document, id, out);
        let child = arena.first_child(id);
        if child.is_some() {
            id = child;
            continue;
        }
        loop {
            close(arena, id, out);
            if id == top {
                return;
            }
            let next = arena.next(id);
            if next.is_some() {
                id = next;
                break;
            }
            id = arena.parent(id);
            if id.is_none() {
                return;
            }
        }
    }
}

fn open(document: &Document, id: NodeId, out: &mut String) {
    let arena = document.arena();
    match arena.kind(id) {
        Kind::Element => {
            out.push('<');
            out.push_str(arena.name_text(arena.name(id)));
            for attr in arena.attrs(id) {
                out.push(' ');
                out.push_str(arena.name_text(attr.name()));
                out.push_str("=\"");
                push_escaped(arena.text(attr.value()), Place::Attribute, out);
                out.push('"');
            }
            out.push('>');
        }
        Kind::Text => {
            let text = arena.text(arena.data(id));
            if has_raw_text(arena, arena.parent(id)) {
                out.push_str(text);
            } else {
                push_escaped(text, Place::Text, out);
            }
        }
        Kind::Comment => out.extend(["<!--", arena.text(arena.data(id)), "-->"]),
        Kind::ProcessingInstruction => {
            out.extend(["<?", arena.name_text(arena.name(id)), " ", arena.text(arena.data(id)), ">"]);
        }
        Kind::Doctype => out.extend(["<!DOCTYPE ", document.doctype.map_or("", |doctype| arena.text(doctype.name)), ">"]),
        Kind::Document => {}
    }
}

fn close(arena: &Arena, id: NodeId, out: &mut String) {
    if arena.is_element(id) && !is_void(arena, id) {
        out.extend(["</", arena.name_text(arena.name(id)), ">"]);
    }
}

/// Where an escaped text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    Attribute,
}

/// Escapes a string (13.3). `<` and `>` are escaped in attributes too, as the standard asks since 2025.
fn push_escaped(text: &str, place: Place, out: &mut String) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let (entity, width) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' if place == Place::Attribute => ("&quot;", 1),
            // A no-break space in UTF-8.
            0xC2 if bytes.get(at + 1) == Some(&0xA0) => ("&nbsp;", 2),
            _ => continue,
        };
        out.push_str(text.get(written..at).unwrap_or_default());
        out.push_str(entity);
        written = at + width;
    }
    out.push_str(text.get(written..).unwrap_or_default());
}

/// Whether the text in an element is written as it is.
fn has_raw_text(arena: &Arena, id: NodeId) -> bool {
    arena.is_element(id)
        && arena.namespace(id) == Namespace::Html
        && [STYLE, SCRIPT, XMP, IFRAME, NOEMBED, NOFRAMES, PLAINTEXT].contains(&arena.name(id))
}

/// Whether an element has no content and no end tag.
fn is_void(arena: &Arena, id: NodeId) -> bool {
    arena.namespace(id) == Namespace::Html && category(arena.name(id)) & VOID != 0
}
