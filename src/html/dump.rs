//! The tree as lines: the format of the html5lib and web-platform tests, by which trees are compared.

use std::fmt::Write as _;

use super::arena::{Kind, Namespace, NodeId};
use super::document::Document;
use super::names::known;

/// Indents are cut there: deep trees would grow with the square.
const DEEPEST: usize = 4096;

impl Document {
    /// One line a node, two blanks a level; attributes sorted by name, below their element. The content of a `template`
    /// lies below a line `content`.
    #[must_use]
    pub fn dump(&self) -> String {
        let arena = &self.arena;
        let mut out = String::new();
        let mut depth = 0;
        let mut id = arena.first_child(NodeId::DOCUMENT);
        while id.is_some() {
            self.dump_node(&mut out, id, depth);
            let is_template = arena.is_html(id, known::TEMPLATE);
            if is_template {
                let _ = writeln!(out, "{:1$}content", "", (depth + 1).min(DEEPEST) * 2);
            }
            let child = arena.first_child(id);
            if child.is_some() {
                depth += if is_template { 2 } else { 1 };
                id = child;
                continue;
            }
            loop {
                let next = arena.next(id);
                if next.is_some() {
                    id = next;
                    break;
                }
                id = arena.parent(id);
                if id.is_none() || id == NodeId::DOCUMENT {
                    return out;
                }
                depth -= if arena.is_html(id, known::TEMPLATE) { 2 } else { 1 };
            }
        }
        out
    }

    fn dump_node(&self, out: &mut String, id: NodeId, depth: usize) {
        let arena = &self.arena;
        let indent = depth.min(DEEPEST) * 2;
        let _ = write!(out, "{:indent$}", "");
        let data = arena.text(arena.data(id));
        let _ = match arena.kind(id) {
            Kind::Document => Ok(()),
            Kind::Text => writeln!(out, "\"{data}\""),
            Kind::Comment => writeln!(out, "<!-- {data} -->"),
            Kind::ProcessingInstruction => writeln!(out, "<?{} {data}>", arena.name_text(arena.name(id))),
            Kind::Doctype => {
                let Some(doctype) = &self.doctype else { return };
                let name = arena.text(doctype.name);
                if doctype.public_id.is_none() && doctype.system_id.is_none() {
                    writeln!(out, "<!DOCTYPE {name}>")
                } else {
                    let id = |id: Option<_>| id.map_or("", |span| arena.text(span));
                    writeln!(out, "<!DOCTYPE {name} \"{}\" \"{}\">", id(doctype.public_id), id(doctype.system_id))
                }
            }
            Kind::Element => self.dump_element(out, id, indent),
        };
    }

    fn dump_element(&self, out: &mut String, id: NodeId, indent: usize) -> std::fmt::Result {
        let arena = &self.arena;
        let prefix = match arena.namespace(id) {
            Namespace::Html => "",
            Namespace::Svg => "svg ",
            Namespace::MathMl => "math ",
        };
        writeln!(out, "<{prefix}{}>", arena.name_text(arena.name(id)))?;
        let is_foreign = arena.namespace(id) != Namespace::Html;
        let mut attrs: Vec<(String, &str)> = arena
            .attrs(id)
            .map(|attr| {
                let name = arena.name_text(attr.name());
                let name = if is_foreign && has_namespace(name) { name.replacen(':', " ", 1) } else { name.to_owned() };
                (name, arena.text(attr.value()))
            })
            .collect();
        attrs.sort_unstable();
        for (name, value) in attrs {
            writeln!(out, "{:1$}{name}=\"{value}\"", "", indent + 2)?;
        }
        Ok(())
    }
}

/// Attributes of SVG and MathML that are in a namespace of their own (WHATWG HTML 13.2.6.1, "adjust foreign attributes").
pub(crate) fn has_namespace(name: &str) -> bool {
    matches!(
        name,
        "xlink:actuate"
            | "xlink:arcrole"
            | "xlink:href"
            | "xlink:role"
            | "xlink:show"
            | "xlink:title"
            | "xlink:type"
            | "xml:lang"
            | "xml:space"
            | "xmlns:xlink"
    )
}
