//! Builds the tree of a page and remembers in which order its source gives the attributes of an element.
//!
//! The tree keeps the attributes of an element sorted by name. Here is noted, as places beside the tree, only what that
//! loses: elements whose attributes do not stand sorted in the source. Never changes the tree itself.

use std::borrow::Cow;
use std::cell::RefCell;

use ego_tree::NodeId;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ParseOpts, QualName};
use scraper::node::Element;
use scraper::{Html, HtmlTreeSink};

/// An attribute as the tree keeps it.
pub(crate) type Pair = (QualName, StrTendril);

/// The source order of attributes, for the elements whose sorted order is another one.
#[derive(Default)]
pub(crate) struct SourceOrder {
    /// Where the places of an element start in `places`; sorted by element once the page is built.
    starts: Vec<(NodeId, usize)>,
    /// For each attribute of such an element, in sorted order, its place in the source.
    places: Vec<u32>,
}

impl SourceOrder {
    /// Puts the attributes of an element as they stand in the source into `out`, each with its place. Leaves it empty
    /// where the element's own order is that order.
    pub(crate) fn of<'e>(&self, id: NodeId, element: &'e Element, out: &mut Vec<(u32, &'e Pair)>) {
        out.clear();
        if let Some(start) = self.start(id)
            && let Some(places) = self.places.get(start..)
        {
            out.extend(places.iter().copied().zip(&element.attrs));
            out.sort_unstable_by_key(|(place, _)| *place);
        }
    }

    fn start(&self, id: NodeId) -> Option<usize> {
        let at = self.starts.binary_search_by_key(&id, |(element, _)| *element).ok()?;
        self.starts.get(at).map(|(_, start)| *start)
    }

    /// Notes the places of attributes that are not sorted; gives where they start.
    #[inline(never)]
    fn note<T>(&mut self, attributes: &[T], name: impl Fn(&T) -> &QualName) -> usize {
        let start = self.places.len();
        self.places.extend((0_u32..).take(attributes.len()));
        if let Some(places) = self.places.get_mut(start..) {
            let name_at = |place: u32| attributes.get(place as usize).map(&name);
            places.sort_unstable_by(|one, other| name_at(*one).cmp(&name_at(*other)));
        }
        start
    }

    /// Forgets what was noted about an element.
    fn forget(&mut self, id: NodeId) {
        self.starts.retain(|(element, _)| *element != id);
    }
}

/// Builds the tree of a document and notes the order of its attributes.
pub(crate) fn parse(text: &str) -> (Html, SourceOrder) {
    let sink = Sink { tree: HtmlTreeSink::new(Html::new_document()), order: RefCell::default(), merged: RefCell::default() };
    html5ever::parse_document(sink, without_scripting()).one(text)
}

/// A crawler runs no script: what is in `noscript` is content (WHATWG HTML, 13.2.6.4.4 and 13.2.6.4.7).
fn without_scripting() -> ParseOpts {
    let mut options = ParseOpts::default();
    options.tree_builder.scripting_enabled = false;
    options
}

/// The tree of scraper as the parser fills it, with an eye on attributes.
struct Sink {
    tree: HtmlTreeSink,
    order: RefCell<SourceOrder>,
    /// Elements that got attributes of later tags (`html` and `body`), with all names in source order.
    merged: RefCell<Vec<(NodeId, Vec<QualName>)>>,
}

impl Sink {
    fn note_merge(&self, target: NodeId, attributes: &[Attribute]) {
        let html = self.tree.0.borrow();
        let Some(element) = html.tree.get(target).and_then(|node| node.value().as_element()) else {
            return;
        };
        let has = |name: &QualName| element.attrs.binary_search_by(|(own, _)| own.cmp(name)).is_ok();
        let added = attributes.iter().map(|attribute| &attribute.name).filter(|name| !has(name)).cloned();
        let mut merged = self.merged.borrow_mut();
        if let Some((_, names)) = merged.iter_mut().find(|(id, _)| *id == target) {
            names.extend(added);
            return;
        }
        let mut order = self.order.borrow_mut();
        let mut known = Vec::new();
        // The newest element comes last, so the list is sorted already.
        order.of(target, element, &mut known);
        let mut names: Vec<QualName> = if known.is_empty() {
            element.attrs.iter().map(|(name, _)| name.clone()).collect()
        } else {
            known.iter().map(|(_, (name, _))| name.clone()).collect()
        };
        names.extend(added);
        order.forget(target);
        merged.push((target, names));
    }
}

impl TreeSink for Sink {
    type Handle = NodeId;
    type Output = (Html, SourceOrder);
    type ElemName<'a> = <HtmlTreeSink as TreeSink>::ElemName<'a>;

    fn finish(self) -> Self::Output {
        let mut order = self.order.into_inner();
        for (id, names) in self.merged.into_inner() {
            if !names.is_sorted() {
                let start = order.note(&names, |name| name);
                order.starts.push((id, start));
            }
        }
        order.starts.sort_unstable_by_key(|(id, _)| *id);
        (self.tree.finish(), order)
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        if attrs.is_sorted_by(|one, other| one.name.cmp(&other.name).is_le()) {
            return self.tree.create_element(name, attrs, flags);
        }
        let mut order = self.order.borrow_mut();
        let start = order.note(&attrs, |attribute| &attribute.name);
        let id = self.tree.create_element(name, attrs, flags);
        order.starts.push((id, start));
        id
    }

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        if !attrs.is_empty() {
            self.note_merge(*target, &attrs);
        }
        self.tree.add_attrs_if_missing(target, attrs);
    }

    // A page has no use for parse errors: every text is a document.
    fn parse_error(&self, _message: Cow<'static, str>) {}

    // All else is the tree's.

    fn get_document(&self) -> NodeId {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Self::ElemName<'a> {
        self.tree.elem_name(target)
    }

    fn create_comment(&self, text: StrTendril) -> NodeId {
        self.tree.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> NodeId {
        self.tree.create_pi(target, data)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.tree.append(parent, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeId, prev_element: &NodeId, child: NodeOrText<NodeId>) {
        self.tree.append_based_on_parent_node(element, prev_element, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public_id: StrTendril, system_id: StrTendril) {
        self.tree.append_doctype_to_document(name, public_id, system_id);
    }

    fn mark_script_already_started(&self, node: &NodeId) {
        self.tree.mark_script_already_started(node);
    }

    fn pop(&self, node: &NodeId) {
        self.tree.pop(node);
    }

    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        self.tree.get_template_contents(target)
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        self.tree.same_node(x, y)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &NodeId, new_node: NodeOrText<NodeId>) {
        self.tree.append_before_sibling(sibling, new_node);
    }

    fn associate_with_form(&self, target: &NodeId, form: &NodeId, nodes: (&NodeId, Option<&NodeId>)) {
        self.tree.associate_with_form(target, form, nodes);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.tree.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        self.tree.is_mathml_annotation_xml_integration_point(handle)
    }

    fn set_current_line(&self, line_number: u64) {
        self.tree.set_current_line(line_number);
    }

    fn allow_declarative_shadow_roots(&self, intended_parent: &NodeId) -> bool {
        self.tree.allow_declarative_shadow_roots(intended_parent)
    }

    fn attach_declarative_shadow(&self, location: &NodeId, template: &NodeId, attrs: &[Attribute]) -> bool {
        self.tree.attach_declarative_shadow(location, template, attrs)
    }

    fn maybe_clone_an_option_into_selectedcontent(&self, option: &NodeId) {
        self.tree.maybe_clone_an_option_into_selectedcontent(option);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use scraper::Node;

    use super::*;

    fn documents() -> Vec<String> {
        let table: serde_json::Value = serde_json::from_str(include_str!("../../../tests/data/html_tree.json")).unwrap();
        table["cases"].as_array().unwrap().iter().map(|case| case["data"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_tree_is_that_of_scraper() {
        for text in documents() {
            let theirs = html5ever::parse_document(HtmlTreeSink::new(Html::new_document()), without_scripting()).one(&*text);
            let ours = parse(&text).0;
            assert_eq!(ours.tree, theirs.tree, "{text:?}");
            assert_eq!(ours.quirks_mode, theirs.quirks_mode, "{text:?}");
        }
    }

    #[test]
    fn only_attributes_out_of_order_are_noted() {
        let (html, order) = parse("<html lang=e><p>x<a class=c href=h><img alt=a src=s><body class=b id=i><input type=t name=n>");
        let mut noted = Vec::new();
        let mut scratch = Vec::new();
        for node in html.tree.root().descendants() {
            if let Node::Element(element) = node.value() {
                order.of(node.id(), element, &mut scratch);
                if !scratch.is_empty() {
                    noted.push(element.name());
                }
            }
        }
        assert_eq!(noted, ["input"]);
    }
}
