//! The tree of scraper as one of ours: what `HTML_ENGINE = "scraper"` reads, and what ours is compared with.

use std::sync::OnceLock;

use bytes::Bytes;
use ego_tree::NodeId as ScraperId;
use scraper::{Html, Node};

use super::arena::{Arena, AttrList, Kind, Namespace, NodeId};
use super::by_scraper::{Pair, SourceOrder};
use super::document::{Doctype, Document, QuirksMode};
use super::limits::Exceeded;
use super::span::Span;

/// A tree of ours with, for each node by its place, the node of scraper it stands for.
pub(crate) struct Converted {
    pub(crate) document: Document,
    /// By the index of our node; a template's fragment has none.
    pub(crate) nodes: Vec<ScraperId>,
}

/// Makes a tree of ours from one of scraper. The content of a template becomes its children.
#[cfg(test)]
pub(crate) fn from_scraper(html: &Html) -> Converted {
    convert(html, &SourceOrder::default())
}

/// The same, with attributes in the order that was noted when the page was parsed.
pub(crate) fn convert(html: &Html, order: &SourceOrder) -> Converted {
    let mut made =
        Making { arena: Arena::new(Bytes::new()), doctype: None, nodes: vec![html.tree.root().id()], order, places: Vec::new() };
    let mut parent = NodeId::DOCUMENT;
    for edge in html.tree.root().traverse().skip(1) {
        match edge {
            ego_tree::iter::Edge::Open(node) => {
                if let Some(id) = made.node(node.value(), node.id()) {
                    made.arena.append(parent, id);
                    parent = id;
                }
            }
            ego_tree::iter::Edge::Close(node) => {
                if !matches!(node.value(), Node::Fragment | Node::Document) {
                    parent = made.arena.parent(parent);
                }
            }
        }
    }
    let quirks = match html.quirks_mode {
        html5ever::tree_builder::QuirksMode::Quirks => QuirksMode::Quirks,
        html5ever::tree_builder::QuirksMode::LimitedQuirks => QuirksMode::Limited,
        html5ever::tree_builder::QuirksMode::NoQuirks => QuirksMode::No,
    };
    let Making { arena, doctype, nodes, .. } = made;
    let document = Document {
        arena,
        doctype,
        quirks,
        exceeded: Exceeded::default(),
        steps: 0,
        owners: Vec::new(),
        order: OnceLock::new(),
        #[cfg(test)]
        parse_bytes: 0,
    };
    Converted { document, nodes }
}

struct Making<'h> {
    arena: Arena,
    doctype: Option<Doctype>,
    nodes: Vec<ScraperId>,
    order: &'h SourceOrder,
    /// The attributes of an element in the order of the source; kept for its room.
    places: Vec<(u32, &'h Pair)>,
}

impl<'h> Making<'h> {
    fn copy(&mut self, text: &str) -> Span {
        let start = self.arena.side.len();
        self.arena.side.extend_from_slice(text.as_bytes());
        Span::of_side(start, self.arena.side.len())
    }

    fn node(&mut self, node: &'h Node, id: ScraperId) -> Option<NodeId> {
        let made = match node {
            Node::Document | Node::Fragment => return None,
            Node::Doctype(doctype) => {
                let public_id = self.copy(doctype.public_id());
                let system_id = self.copy(doctype.system_id());
                let has_ids = !public_id.is_empty() || !system_id.is_empty();
                let name = self.copy(doctype.name());
                self.doctype =
                    Some(Doctype { name, public_id: has_ids.then_some(public_id), system_id: has_ids.then_some(system_id) });
                self.arena.new_doctype()
            }
            Node::Text(text) => {
                let data = self.copy(text);
                self.arena.new_text(data)
            }
            Node::Comment(comment) => {
                let data = self.copy(comment);
                let none = self.arena.intern_text("html");
                self.arena.new_data(Kind::Comment, none, data)
            }
            Node::ProcessingInstruction(instruction) => {
                let data = self.copy(&instruction.data);
                let target = self.arena.intern_text(&instruction.target);
                self.arena.new_data(Kind::ProcessingInstruction, target, data)
            }
            Node::Element(element) => {
                let namespace = match &*element.name.ns {
                    "http://www.w3.org/2000/svg" => Namespace::Svg,
                    "http://www.w3.org/1998/Math/MathML" => Namespace::MathMl,
                    _ => Namespace::Html,
                };
                let start = self.arena.attr_count();
                let mut places = std::mem::take(&mut self.places);
                self.order.of(id, element, &mut places);
                if places.is_empty() {
                    places.extend((0..).zip(&element.attrs));
                }
                for (_, (name, value)) in &places {
                    let text = match &name.prefix {
                        Some(prefix) if !prefix.is_empty() => format!("{}:{}", &**prefix, &*name.local),
                        _ => name.local.to_string(),
                    };
                    let attr = self.arena.intern_text(&text);
                    let value = self.copy(value);
                    self.arena.push_attr(attr, value);
                }
                self.places = places;
                let attrs = self.arena.end_attrs(start);
                let attrs = if attrs.is_empty() { AttrList::EMPTY } else { attrs };
                let name = self.arena.intern_text(element.name());
                self.arena.new_element(name, namespace, attrs)
            }
        };
        self.nodes.push(id);
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_the_same() {
        let page = "<!DOCTYPE html><title>a&amp;b</title><p class=x id=y>one<b>two</b><!--c--><template><i>t</i></template><svg viewBox=0><a xlink:href=u /></svg>";
        let html = Html::parse_document(page);
        let converted = from_scraper(&html);
        assert_eq!(converted.nodes.len(), converted.document.node_count());
        let lines = converted.document.dump();
        assert_eq!(
            lines.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"),
            "<!DOCTYPE html>\n<html>\n  <head>\n    <title>\n      \"a&b\"\n  <body>\n    <p>\n      class=\"x\"\n      id=\"y\"\n      \"one\"\n      <b>\n        \"two\"\n      <!-- c -->\n      <template>\n        content\n          <i>\n            \"t\"\n      <svg svg>\n        viewBox=\"0\"\n        <svg a>\n          xlink href=\"u\""
        );
    }
}
