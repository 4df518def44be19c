//! What ours is compared with: html5ever with the tree of scraper below it, put right where scraper's sink errs.
//!
//! That one never says that an `annotation-xml` is an HTML integration point, so html5ever would read its content as MathML.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

use ego_tree::NodeId;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::{Attribute, ParseOpts, QualName};
use scraper::{Html, HtmlTreeSink};

/// html5ever without scripting, that takes a byte order mark as text.
pub(super) fn options() -> ParseOpts {
    let mut options = ParseOpts::default();
    options.tree_builder.scripting_enabled = false;
    options.tokenizer.discard_bom = false;
    options
}

/// The tree of a page.
pub(super) fn document(page: &str) -> Html {
    html5ever::parse_document(Sink::new(Html::new_document()), options()).one(page)
}

/// A sink for html5ever.
pub(super) struct Sink {
    tree: HtmlTreeSink,
    integration_points: RefCell<HashSet<NodeId>>,
}

impl Sink {
    /// Fills a tree.
    pub(super) fn new(html: Html) -> Self {
        Self { tree: HtmlTreeSink::new(html), integration_points: RefCell::default() }
    }
}

impl TreeSink for Sink {
    type Handle = NodeId;
    type Output = Html;
    type ElemName<'a> = <HtmlTreeSink as TreeSink>::ElemName<'a>;

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, flags: ElementFlags) -> NodeId {
        let is_point = flags.mathml_annotation_xml_integration_point;
        let id = self.tree.create_element(name, attrs, flags);
        if is_point {
            self.integration_points.borrow_mut().insert(id);
        }
        id
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        self.integration_points.borrow().contains(handle)
    }

    // All else is scraper's.

    fn finish(self) -> Html {
        self.tree.finish()
    }

    fn parse_error(&self, message: Cow<'static, str>) {
        self.tree.parse_error(message);
    }

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

    fn add_attrs_if_missing(&self, target: &NodeId, attrs: Vec<Attribute>) {
        self.tree.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        self.tree.reparent_children(node, new_parent);
    }
}
