//! Runs compiled selectors over the tree: all hits in document order without doubles, or only the first one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};

use super::compiled::{Group, Take};
use super::outer_html::outer_html;
use super::source_order::SourceOrder;

type NodeRef<'p> = ego_tree::NodeRef<'p, Node>;

/// One selected node.
#[derive(Clone, Copy)]
pub(super) enum Hit<'p> {
    Element(ElementRef<'p>),
    Text(NodeRef<'p>),
    /// The owner and the value.
    Attr(ElementRef<'p>, &'p str),
}

/// Where a selector starts to look; in document order.
#[derive(Clone)]
pub(super) enum Roots<'p> {
    One(ElementRef<'p>),
    Many(Vec<ElementRef<'p>>),
}

impl<'p> Roots<'p> {
    fn as_slice(&self) -> &[ElementRef<'p>] {
        match self {
            Self::One(root) => std::slice::from_ref(root),
            Self::Many(roots) => roots,
        }
    }
}

impl<'p> Hit<'p> {
    pub(super) fn to_text(self, order: &SourceOrder) -> String {
        match self {
            Self::Element(element) => outer_html(*element, order),
            Self::Text(node) => text_of(node).to_owned(),
            Self::Attr(_, value) => value.to_owned(),
        }
    }

    /// The text a pattern is matched against.
    pub(super) fn pattern_text(self, order: &SourceOrder) -> Cow<'p, str> {
        match self {
            Self::Element(element) => {
                let html = outer_html(*element, order);
                if html.contains('&') {
                    return html.replace("&gt;", ">").replace("&quot;", "\"").replace("&nbsp;", "\u{a0}").into();
                }
                html.into()
            }
            Self::Text(node) => text_of(node).into(),
            Self::Attr(_, value) => value.into(),
        }
    }

    pub(super) fn visible_text(self) -> String {
        let mut out = String::new();
        match self {
            Self::Element(element) => visible_text(element, &mut out),
            Self::Text(node) => push_words(text_of(node), &mut out),
            Self::Attr(_, value) => push_words(value, &mut out),
        }
        if out.ends_with(' ') {
            out.pop();
        }
        out
    }

    pub(super) fn as_str(self, attribute: &str) -> Option<&'p str> {
        match self {
            Self::Element(element) => element.attr(attribute),
            Self::Text(node) => Some(text_of(node)),
            Self::Attr(_, value) => Some(value),
        }
    }
}

/// Every hit of the groups below the roots.
pub(super) fn all<'p>(roots: &Roots<'p>, groups: &[Group]) -> Vec<Hit<'p>> {
    let mut hits = Vec::new();
    let roots = roots.as_slice();
    if let [group] = groups
        && let Some(outer) = sufficient(roots, group)
    {
        for root in outer.iter() {
            collect(*root, group, &mut hits);
        }
        return hits;
    }
    for root in roots {
        for group in groups {
            collect(*root, group, &mut hits);
        }
    }
    in_document_order(roots, hits)
}

/// The first hit in document order.
pub(super) fn first<'p>(roots: &Roots<'p>, groups: &[Group]) -> Option<Hit<'p>> {
    if let [group] = groups
        && let Some(outer) = sufficient(roots.as_slice(), group)
    {
        return outer.iter().find_map(|root| first_below(*root, group));
    }
    all(roots, groups).first().copied()
}

fn first_below<'p>(root: ElementRef<'p>, group: &Group) -> Option<Hit<'p>> {
    let mut matched = matches(root, group);
    match &group.take {
        Take::Element => matched.next().map(Hit::Element),
        Take::Attr(name) => matched.find_map(|element| Some(Hit::Attr(element, element.attr(name)?))),
        Take::Text => loop {
            let element = matched.next()?;
            let child = element.children().find(|child| child.value().is_text() || child.value().is_element());
            match child {
                None => {}
                Some(child) if child.value().is_text() => break Some(Hit::Text(child)),
                Some(_) => {
                    // An element stands before any text; it may be a match with an earlier text of its own.
                    let mut hits = Vec::new();
                    collect(root, group, &mut hits);
                    break hits.first().copied();
                }
            }
        },
    }
}

/// The roots that find what all of them find: those that lie in no other one, in document order. `None` where an inner
/// root can find something of its own. One walk over the roots at most.
fn sufficient<'r, 'p>(roots: &'r [ElementRef<'p>], group: &Group) -> Option<Cow<'r, [ElementRef<'p>]>> {
    if roots.len() < 2 {
        return Some(Cow::Borrowed(roots));
    }
    let mut outer = Vec::with_capacity(roots.len());
    let mut rest = roots.iter().peekable();
    while let Some(root) = rest.next() {
        outer.push(*root);
        for node in root.descendants() {
            let Some(next) = rest.peek() else { break };
            if next.id() == node.id() {
                rest.next();
            }
        }
    }
    (outer.len() == roots.len() || !group.uses_scope).then_some(Cow::Owned(outer))
}

/// The text of an element as a reader sees it, with runs of white space as one blank.
pub(super) fn visible_text(element: ElementRef<'_>, out: &mut String) {
    let mut hidden: usize = 0;
    for edge in element.traverse() {
        let opens = matches!(edge, Edge::Open(_));
        let (Edge::Open(node) | Edge::Close(node)) = edge;
        match node.value() {
            Node::Element(inner) if matches!(inner.name(), "script" | "style" | "template") => {
                hidden = if opens { hidden + 1 } else { hidden.saturating_sub(1) };
            }
            Node::Text(text) if opens && hidden == 0 => push_words(text, out),
            _ => {}
        }
    }
}

fn push_words(text: &str, out: &mut String) {
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
}

fn text_of(node: NodeRef<'_>) -> &str {
    match node.value() {
        Node::Text(text) => text,
        _ => "",
    }
}

/// The elements one group matches below a root, the root itself included.
fn matches<'p, 'g>(root: ElementRef<'p>, group: &'g Group) -> impl Iterator<Item = ElementRef<'p>> + use<'p, 'g> {
    let own = group.selector.matches_with_scope(&root, Some(root)).then_some(root);
    own.into_iter().chain(root.select(&group.selector))
}

fn collect<'p>(root: ElementRef<'p>, group: &Group, hits: &mut Vec<Hit<'p>>) {
    let matched = matches(root, group);
    match &group.take {
        Take::Element => hits.extend(matched.map(Hit::Element)),
        Take::Attr(name) => {
            hits.extend(matched.filter_map(|element| Some(Hit::Attr(element, element.attr(name)?))));
        }
        Take::Text => collect_texts(matched, hits),
    }
}

/// Text nodes whose parent is a match, in document order also where matches lie inside each other: one walk over the
/// outermost match takes the inner ones along.
fn collect_texts<'p>(matched: impl Iterator<Item = ElementRef<'p>>, hits: &mut Vec<Hit<'p>>) {
    let mut matched = matched.peekable();
    let mut taken: Vec<bool> = Vec::new();
    while let Some(outer) = matched.peek().copied() {
        for edge in outer.traverse() {
            match edge {
                Edge::Open(node) if node.value().is_element() => {
                    let takes = matched.next_if(|next| next.id() == node.id()).is_some();
                    taken.push(takes);
                }
                Edge::Open(node) if node.value().is_text() => {
                    if taken.last() == Some(&true) {
                        hits.push(Hit::Text(node));
                    }
                }
                Edge::Close(node) if node.value().is_element() => {
                    taken.pop();
                }
                Edge::Open(_) | Edge::Close(_) => {}
            }
        }
    }
}

/// Puts hits of several searches in document order, without doubles: an element before its attributes, both before
/// its content. Attributes of one element keep the order they were found in.
fn in_document_order<'p>(roots: &[ElementRef<'p>], mut hits: Vec<Hit<'p>>) -> Vec<Hit<'p>> {
    let Some(top) = roots.first().and_then(|root| root.ancestors().last().or(Some(**root))) else {
        return hits;
    };
    let places: HashMap<_, _> = top.descendants().enumerate().map(|(place, node)| (node.id(), place)).collect();
    let place = |hit: &Hit<'p>| match hit {
        Hit::Element(element) => (places.get(&element.id()).copied(), 0_u8),
        Hit::Text(node) => (places.get(&node.id()).copied(), 0),
        Hit::Attr(element, _) => (places.get(&element.id()).copied(), 1),
    };
    hits.sort_by_key(place);
    // An attribute value is known by where it is stored: two equal values are still two attributes.
    let mut seen = HashSet::new();
    hits.retain(|hit| match hit {
        Hit::Element(element) => seen.insert((element.id(), None)),
        Hit::Text(node) => seen.insert((node.id(), None)),
        Hit::Attr(element, value) => seen.insert((element.id(), Some(value.as_ptr()))),
    });
    hits
}
