//! Whether a tree is one: its links agree, its order is what it says, and each of its spans is text.

use crate::html::Document;
use crate::html::arena::{Kind, NodeId};

/// Panics if anything about the tree is wrong.
pub(super) fn check(document: &Document) {
    let arena = document.arena();
    let mut walked = Vec::new();
    let mut id = NodeId::DOCUMENT;
    assert!(arena.parent(id).is_none() && arena.next(id).is_none() && arena.kind(id) == Kind::Document);
    while id.is_some() {
        assert!(walked.len() < arena.len(), "a walk comes by more nodes than there are");
        walked.push(id);
        children(document, id);
        texts(document, id);
        id = arena.following(id, NodeId::DOCUMENT);
    }
    for (place, pair) in walked.windows(2).enumerate() {
        assert!(document.place(pair[0]) < document.place(pair[1]), "the places of node {place} and the next are wrong");
    }
    if arena.is_in_order() {
        assert_eq!(walked.len(), arena.len(), "a tree said to be in order has nodes outside of it");
        assert!(walked.is_sorted(), "a tree said to be in order is not");
    }
}

fn children(document: &Document, id: NodeId) {
    let arena = document.arena();
    let mut before = NodeId::NONE;
    let mut child = arena.first_child(id);
    let mut count = 0;
    while child.is_some() {
        assert_eq!(arena.parent(child), id, "{child:?}");
        assert_eq!(arena.prev(child), before, "{child:?}");
        count += 1;
        assert!(count < arena.len(), "the children of {id:?} go round");
        before = child;
        child = arena.next(child);
    }
    assert_eq!(arena.last_child(id), before, "{id:?}");
}

fn texts(document: &Document, id: NodeId) {
    let arena = document.arena();
    let data = arena.data(id);
    // A span that is cut amid a letter gives an empty text.
    assert_eq!(arena.text(data).len(), data.len(), "{id:?} {:?}", arena.bytes(data));
    assert!(!arena.is_text(id) || !data.is_empty(), "{id:?} is a text without text");
    let mut names = Vec::new();
    for (place, attr) in (0..).zip(arena.attrs(id)) {
        assert_eq!(arena.attr_at(id, place).map(|attr| attr.value()), Some(attr.value()), "{id:?}");
        let value = attr.value();
        assert_eq!(arena.text(value).len(), value.len(), "{id:?} {:?}", arena.bytes(value));
        assert!(!arena.name_text(attr.name()).is_empty(), "{id:?} has an attribute without name");
        names.push(attr.name());
        assert!(names.len() <= arena.attr_count(), "the attributes of {id:?} have no end");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{id:?} has an attribute twice");
    if arena.is_element(id) {
        assert!(!arena.name_text(arena.name(id)).is_empty(), "{id:?} has no name");
    }
}
