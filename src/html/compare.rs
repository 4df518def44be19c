//! Two trees of one page side by side, and what differs.
//!
//! Only for `HTML_ENGINE = "compare"`. Keeps the first few differences of a page; all are counted.

use std::cell::RefCell;

use super::arena::{Kind, NodeId};
use super::by_scraper::ByScraper;
use super::document::{Document, NodeRef};
use super::hit::Hit;

/// The most differences of a page that are kept to be shown.
const KEPT: usize = 4;
/// The most characters of an answer that are shown.
const SHOWN: usize = 120;

/// What the other engine made of the page, and what it answered otherwise.
pub(crate) struct Comparison {
    pub(crate) theirs: ByScraper,
    /// Our copy of their tree.
    pub(crate) copy: Document,
    /// Whether both trees are the same: then a node of ours is the one of the copy that has its place.
    same: bool,
    noted: RefCell<Compared>,
}

/// How many answers were compared, and how many of them differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) answers: u64,
    pub(crate) differing: u64,
    /// The first of them.
    pub(crate) first: Vec<Difference>,
}

/// An answer that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The selector; none for the tree itself.
    pub(crate) selector: Option<String>,
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl Comparison {
    /// Compares the trees.
    pub(crate) fn new(ours: &Document, theirs: ByScraper, copy: Document) -> Self {
        let difference = tree_difference(ours, &copy);
        let comparison = Self { theirs, copy, same: difference.is_none(), noted: RefCell::default() };
        comparison.note(difference.map(|(ours, theirs)| Difference { selector: None, ours, theirs }));
        comparison
    }

    /// The node of the copy that is `id` of our tree; none where the trees differ.
    pub(crate) fn copied(&self, ours: &Document, id: NodeId) -> Option<NodeId> {
        self.same.then(|| NodeId::at(ours.place(id) as usize))
    }

    /// Compares what both found.
    pub(crate) fn found(&self, selector: &str, ours: (&Document, &[Hit]), theirs: &[Hit]) {
        let shown = |document: &Document, hits: &[Hit]| hits.iter().map(|hit| shown(document, *hit)).collect::<Vec<_>>();
        let (ours, theirs) = (shown(ours.0, ours.1), shown(&self.copy, theirs));
        let difference = (ours != theirs).then(|| {
            let at = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
            let at_place = |found: &[String]| match found.get(at) {
                Some(text) => format!("{} found, number {}: {}", found.len(), at + 1, cut(text)),
                None => format!("{} found", found.len()),
            };
            Difference { selector: Some(selector.to_owned()), ours: at_place(&ours), theirs: at_place(&theirs) }
        });
        self.note(difference);
    }

    /// Takes what was noted since the last time.
    pub(crate) fn take(&self) -> Compared {
        self.noted.take()
    }

    fn note(&self, difference: Option<Difference>) {
        let mut noted = self.noted.borrow_mut();
        noted.answers += 1;
        if let Some(difference) = difference {
            noted.differing += 1;
            if noted.first.len() < KEPT {
                noted.first.push(difference);
            }
        }
    }
}

/// The first node, in document order, at which two trees part, as each has it.
fn tree_difference(ours: &Document, theirs: &Document) -> Option<(String, String)> {
    let (mut our, mut their) = (NodeId::DOCUMENT, NodeId::DOCUMENT);
    // The level of each, so that the same node at another place is another one.
    let (mut our_depth, mut their_depth) = (0_usize, 0_usize);
    loop {
        let (one, other) = (ours.node(our), theirs.node(their));
        match (one, other) {
            (None, None) => return None,
            (Some(one), Some(other)) if our_depth == their_depth && is_same(one, other) => {}
            _ => return Some((line(one, our_depth), line(other, their_depth))),
        }
        (our, our_depth) = following(ours, our, our_depth);
        (their, their_depth) = following(theirs, their, their_depth);
    }
}

fn following(document: &Document, id: NodeId, depth: usize) -> (NodeId, usize) {
    let arena = document.arena();
    let child = arena.first_child(id);
    if child.is_some() {
        return (child, depth + 1);
    }
    let (mut id, mut depth) = (id, depth);
    while id.is_some() {
        let next = arena.next(id);
        if next.is_some() {
            return (next, depth);
        }
        id = arena.parent(id);
        depth = depth.saturating_sub(1);
    }
    (NodeId::NONE, 0)
}

fn is_same(ours: NodeRef<'_>, theirs: NodeRef<'_>) -> bool {
    match (kind(ours), kind(theirs)) {
        (Kind::Element, Kind::Element) => {
            ours.name() == theirs.name() && ours.namespace() == theirs.namespace() && ours.attrs().eq(theirs.attrs())
        }
        (Kind::ProcessingInstruction, Kind::Comment) => {
            // A comment in the standard before June 2026, which html5ever follows.
            let both = (ours.name().unwrap_or_default(), ours.data().unwrap_or_default());
            let comment = theirs.data().unwrap_or_default();
            comment.strip_prefix('?').and_then(|rest| rest.strip_prefix(both.0)).is_some_and(|rest| {
                let rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
                rest == both.1 || rest.strip_suffix('?') == Some(both.1)
            })
        }
        (one, other) => one == other && ours.data() == theirs.data(),
    }
}

fn kind(node: NodeRef<'_>) -> Kind {
    node.document.arena().kind(node.id)
}

/// A found node as it is compared and shown: HTML would be long, and is compared with the tree.
fn shown(document: &Document, hit: Hit) -> String {
    match hit.attr(document.arena()) {
        Some(attr) => {
            let arena = document.arena();
            format!("{}={:?}", arena.name_text(attr.name()), arena.text(attr.value()))
        }
        None => line(document.node(hit.node()), 0),
    }
}

fn line(node: Option<NodeRef<'_>>, depth: usize) -> String {
    let Some(node) = node else { return "nothing".to_owned() };
    let mut text = match node.name() {
        Some(name) => {
            let attrs = node.attrs().map(|(name, value)| format!(" {name}={value:?}"));
            format!("<{name}{}>", attrs.collect::<String>())
        }
        None => format!("{node:?}"),
    };
    if depth > 0 {
        text = format!("{} at depth {depth}", cut(&text));
    }
    text
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl std::fmt::Debug for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparison").field("same", &self.same).field("noted", &self.noted.borrow()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::super::from_scraper::from_scraper;
    use super::*;

    fn document(text: &str) -> Document {
        from_scraper(&scraper::Html::parse_document(text)).document
    }

    #[test]
    fn the_first_node_at_which_trees_part_is_named() {
        for (one, other, expected) in [
            ("<p a=1>x", "<p a=1>x", None),
            ("<p>x", "<p>y", Some(("\"x\" at depth 4", "\"y\" at depth 4"))),
            ("<p a=1>", "<p a=2>", Some(("<p a=\"1\"> at depth 3", "<p a=\"2\"> at depth 3"))),
            ("<p><b></b></p>", "<p></p><b></b>", Some(("<b> at depth 4", "<b> at depth 3"))),
            ("<p>", "", Some(("<p> at depth 3", "nothing"))),
            ("", "<!--c-->", Some(("<html> at depth 1", "\"c\" at depth 1"))),
            ("<svg><a/></svg>", "<svg></svg><a></a>", Some(("<a> at depth 4", "<a> at depth 3"))),
        ] {
            let found = tree_difference(&document(one), &document(other));
            let found = found.as_ref().map(|(ours, theirs)| (ours.as_str(), theirs.as_str()));
            assert_eq!(found, expected, "{one} {other}");
        }
    }

    #[test]
    fn differing_answers_are_counted_and_the_first_ones_kept() {
        let page = "<p id=1>x<p id=2>y";
        let (theirs, copy) = ByScraper::parse(page);
        let ours = document(page);
        let comparison = Comparison::new(&ours, theirs, copy);
        assert_eq!(comparison.take(), Compared { answers: 1, ..Compared::default() });
        let hits = [Hit::Node(NodeId::at(4)), Hit::Node(NodeId::at(6))];
        comparison.found("p", (&ours, &hits), &hits);
        assert_eq!(comparison.copied(&ours, NodeId::at(6)), Some(NodeId::at(6)));
        for _ in 0..10 {
            comparison.found("p", (&ours, &hits), &hits[..1]);
        }
        let compared = comparison.take();
        assert_eq!((compared.answers, compared.differing, compared.first.len()), (11, 10, KEPT));
        let first = &compared.first[0];
        assert_eq!(first.selector.as_deref(), Some("p"));
        assert_eq!((first.ours.as_str(), first.theirs.as_str()), ("2 found, number 2: <p id=\"2\">", "1 found"));
        assert_eq!(comparison.take(), Compared::default());
    }
}
