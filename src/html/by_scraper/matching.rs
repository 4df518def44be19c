//! Runs compiled selectors over the tree of scraper: all hits in document order without doubles, or only the first one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ego_tree::iter::Edge;
use scraper::{ElementRef, Node};

use super::super::css::split::Take;
use super::compiled::Group;

type NodeRef<'p> = ego_tree::NodeRef<'p, Node>;

/// One selected node, as scraper knows it.
#[derive(Clone, Copy)]
pub(super) enum Found<'p, 'g> {
    Element(ElementRef<'p>),
    Text(NodeRef<'p>),
    /// The owner and the name.
    Attr(ElementRef<'p>, &'g str),
}

/// Every hit of the groups below the roots.
pub(super) fn all<'p, 'g>(roots: &[ElementRef<'p>], groups: &'g [Group]) -> Vec<Found<'p, 'g>> {
    let mut hits = Vec::new();
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
pub(super) fn first<'p, 'g>(roots: &[ElementRef<'p>], groups: &'g [Group]) -> Option<Found<'p, 'g>> {
    if let [group] = groups
        && let Some(outer) = sufficient(roots, group)
    {
        return outer.iter().find_map(|root| first_below(*root, group));
    }
    all(roots, groups).first().copied()
}

fn first_below<'p, 'g>(root: ElementRef<'p>, group: &'g Group) -> Option<Found<'p, 'g>> {
    let mut matched = matches(root, group);
    match &group.take {
        Take::Element => matched.next().map(Found::Element),
        Take::Attr(name) => matched.find(|element| element.attr(name).is_some()).map(|element| Found::Attr(element, name)),
        Take::Text => loop {
            let element = matched.next()?;
            let child = element.children().find(|child| child.value().is_text() || child.value().is_element());
            match child {
                None => {}
                Some(child) if child.value().is_text() => break Some(Found::Text(child)),
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

/// The elements one group matches below a root, the root itself included.
fn matches<'p, 'g>(root: ElementRef<'p>, group: &'g Group) -> impl Iterator<Item = ElementRef<'p>> + use<'p, 'g> {
    let own = group.selector.matches_with_scope(&root, Some(root)).then_some(root);
    own.into_iter().chain(root.select(&group.selector))
}

fn collect<'p, 'g>(root: ElementRef<'p>, group: &'g Group, hits: &mut Vec<Found<'p, 'g>>) {
    let matched = matches(root, group);
    match &group.take {
        Take::Element => hits.extend(matched.map(Found::Element)),
        Take::Attr(name) => {
            hits.extend(matched.filter(|element| element.attr(name).is_some()).map(|element| Found::Attr(element, name)));
        }
        Take::Text => collect_texts(matched, hits),
    }
}

/// Text nodes whose parent is a match, in document order also where matches lie inside each other: one walk over the
/// outermost match takes the inner ones along.
fn collect_texts<'p>(matched: impl Iterator<Item = ElementRef<'p>>, hits: &mut Vec<Found<'p, '_>>) {
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
                        hits.push(Found::Text(node));
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
fn in_document_order<'p, 'g>(roots: &[ElementRef<'p>], mut hits: Vec<Found<'p, 'g>>) -> Vec<Found<'p, 'g>> {
    let Some(top) = roots.first().and_then(|root| root.ancestors().last().or(Some(**root))) else {
        return hits;
    };
    let places: HashMap<_, _> = top.descendants().enumerate().map(|(place, node)| (node.id(), place)).collect();
    let place = |hit: &Found<'p, 'g>| match hit {
        Found::Element(element) => (places.get(&element.id()).copied(), 0_u8),
        Found::Text(node) => (places.get(&node.id()).copied(), 0),
        Found::Attr(element, _) => (places.get(&element.id()).copied(), 1),
    };
    hits.sort_by_key(place);
    let mut seen = HashSet::new();
    hits.retain(|hit| match hit {
        Found::Element(element) => seen.insert((element.id(), None)),
        Found::Text(node) => seen.insert((node.id(), None)),
        Found::Attr(element, name) => seen.insert((element.id(), Some(*name))),
    });
    hits
}
