//! Writes nodes as HTML (WHATWG HTML 13.3, serialising HTML fragments), with attributes in the order of the source.
//!
//! Linear in what it writes and without recursion: no page is too deep. Text in `noscript` is escaped, as where scripting
//! is off.

use ego_tree::iter::Edge;
use html5ever::{QualName, local_name, ns};
use scraper::Node;
use scraper::node::Element;

use super::source_order::{Pair, SourceOrder};

type NodeRef<'p> = ego_tree::NodeRef<'p, Node>;

/// The node itself with all that is below it.
pub(super) fn outer_html(top: NodeRef<'_>, order: &SourceOrder) -> String {
    let mut out = String::new();
    let mut in_source_order = Vec::new();
    for edge in top.traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Element(element) => {
                    out.push('<');
                    out.push_str(element.name());
                    order.of(node.id(), element, &mut in_source_order);
                    if in_source_order.is_empty() {
                        element.attrs.iter().for_each(|pair| push_attribute(pair, &mut out));
                    } else {
                        in_source_order.iter().for_each(|(_, pair)| push_attribute(pair, &mut out));
                    }
                    out.push('>');
                }
                Node::Text(text) => {
                    let is_raw = node.parent().and_then(|parent| parent.value().as_element()).is_some_and(has_raw_text);
                    if is_raw { out.push_str(text) } else { push_escaped(text, Place::Text, &mut out) }
                }
                Node::Comment(text) => out.extend(["<!--", &**text, "-->"]),
                Node::Doctype(doctype) => out.extend(["<!DOCTYPE ", doctype.name(), ">"]),
                Node::ProcessingInstruction(pi) => out.extend(["<?", &*pi.target, " ", &**pi, ">"]),
                Node::Document | Node::Fragment => {}
            },
            Edge::Close(node) => {
                if let Node::Element(element) = node.value()
                    && !is_void(&element.name)
                {
                    out.extend(["</", element.name(), ">"]);
                }
            }
        }
    }
    out
}

/// Where an escaped text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    Attribute,
}

fn push_attribute((name, value): &Pair, out: &mut String) {
    let prefix = match name.ns {
        ns!(xml) => "xml:",
        ns!(xmlns) if name.local != local_name!("xmlns") => "xmlns:",
        ns!(xlink) => "xlink:",
        _ => "",
    };
    out.extend([" ", prefix, &name.local, "=\""]);
    push_escaped(value, Place::Attribute, out);
    out.push('"');
}

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
fn has_raw_text(element: &Element) -> bool {
    element.name.ns == ns!(html)
        && matches!(
            element.name.local,
            local_name!("style")
                | local_name!("script")
                | local_name!("xmp")
                | local_name!("iframe")
                | local_name!("noembed")
                | local_name!("noframes")
                | local_name!("plaintext")
        )
}

/// Whether an element has no content and no end tag.
fn is_void(name: &QualName) -> bool {
    name.ns == ns!(html)
        && matches!(
            name.local,
            local_name!("area")
                | local_name!("base")
                | local_name!("basefont")
                | local_name!("bgsound")
                | local_name!("br")
                | local_name!("col")
                | local_name!("embed")
                | local_name!("frame")
                | local_name!("hr")
                | local_name!("img")
                | local_name!("input")
                | local_name!("keygen")
                | local_name!("link")
                | local_name!("meta")
                | local_name!("param")
                | local_name!("source")
                | local_name!("track")
                | local_name!("wbr")
        )
}
