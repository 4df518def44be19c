//! What a selector finds: nodes, and attributes by their place in the list of their element.

use super::arena::{Arena, Attr, NodeId};
use super::document::Document;

/// A found node or attribute. It owns nothing and is only meaningful for the page it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hit {
    /// An element, a text, a comment, a processing instruction or the page itself.
    Node(NodeId),
    /// An attribute.
    Attr {
        /// The element that has it.
        owner: NodeId,
        /// Its place in the list of the element, from 0.
        place: u32,
    },
}

impl Hit {
    /// The node itself, or the element that has the attribute.
    #[inline]
    pub(crate) const fn node(self) -> NodeId {
        match self {
            Self::Node(node) | Self::Attr { owner: node, .. } => node,
        }
    }

    /// The attribute, if it is one.
    pub(crate) fn attr(self, arena: &Arena) -> Option<Attr> {
        match self {
            Self::Node(_) => None,
            Self::Attr { owner, place } => arena.attr_at(owner, place),
        }
    }

    /// A key that ascends in document order: an element, its attributes in the order of the source, what is below it.
    #[inline]
    pub(crate) fn order(self, document: &Document) -> u64 {
        let (node, place) = match self {
            Self::Node(node) => (node, 0),
            Self::Attr { owner, place } => (owner, u64::from(place) + 1),
        };
        u64::from(document.place(node)) << 32 | place
    }
}

/// Puts hits in document order and takes doubles out.
pub(crate) fn sort(hits: &mut Vec<Hit>, document: &Document) {
    if hits.is_sorted_by(|a, b| a.order(document) < b.order(document)) {
        return;
    }
    hits.sort_unstable_by_key(|hit| hit.order(document));
    hits.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_comes_before_its_attributes_and_both_before_what_is_below() {
        let html = scraper::Html::parse_document("<p a=1 b=2>x</p>");
        let document = super::super::from_scraper::from_scraper(&html).document;
        let p = NodeId::at(4);
        let attr = |place| Hit::Attr { owner: p, place };
        let mut hits = vec![Hit::Node(NodeId::at(5)), attr(1), Hit::Node(p), attr(0), attr(1)];
        sort(&mut hits, &document);
        assert_eq!(hits.first(), Some(&Hit::Node(p)));
        assert_eq!(hits, [Hit::Node(p), attr(0), attr(1), Hit::Node(NodeId::at(5))]);
        let values: Vec<_> =
            hits.iter().filter_map(|hit| hit.attr(document.arena())).map(|a| document.arena().text(a.value())).collect();
        assert_eq!(values, ["1", "2"]);
        assert!(hits.iter().all(|hit| hit.node().is_some()));
    }
}
