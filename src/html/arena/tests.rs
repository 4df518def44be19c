#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use super::super::names::known;
use super::*;

fn arena() -> Arena {
    Arena::new(Bytes::from_static(b"onetwothree"))
}

fn children(arena: &Arena, id: NodeId) -> Vec<NodeId> {
    let mut all = Vec::new();
    let mut child = arena.first_child(id);
    while child.is_some() {
        assert_eq!(arena.parent(child), id);
        assert_eq!(arena.prev(child), all.last().copied().unwrap_or(NodeId::NONE));
        all.push(child);
        child = arena.next(child);
    }
    assert_eq!(arena.last_child(id), all.last().copied().unwrap_or(NodeId::NONE));
    all
}

#[test]
fn links_stay_consistent() {
    let mut arena = arena();
    let top = arena.new_element(known::DIV, Namespace::Html, AttrList::EMPTY);
    arena.append(NodeId::DOCUMENT, top);
    let made: Vec<NodeId> = (0..4).map(|_| arena.new_element(known::P, Namespace::Html, AttrList::EMPTY)).collect();
    let [a, b, c, d] = made[..] else { unreachable!() };
    arena.append(top, a);
    arena.append(top, b);
    assert_eq!(children(&arena, top), [a, b]);
    arena.insert_before(a, c);
    arena.insert_before(b, d);
    assert_eq!(children(&arena, top), [c, a, d, b]);
    for gone in [c, b, d, a] {
        arena.detach(gone);
        assert!(!children(&arena, top).contains(&gone));
        assert!(arena.parent(gone).is_none());
    }
    assert_eq!(children(&arena, top), []);
    arena.append(top, b);
    assert_eq!(children(&arena, top), [b]);
    let other = arena.new_element(known::UL, Namespace::Html, AttrList::EMPTY);
    assert_eq!(arena.move_children(top, other), 1);
    assert_eq!((children(&arena, top), children(&arena, other)), (vec![], vec![b]));
}

#[test]
fn order_holds_until_a_node_goes_elsewhere() {
    let mut arena = arena();
    let html = arena.new_element(known::HTML, Namespace::Html, AttrList::EMPTY);
    arena.append(NodeId::DOCUMENT, html);
    let head = arena.new_element(known::HEAD, Namespace::Html, AttrList::EMPTY);
    arena.append(html, head);
    let body = arena.new_element(known::BODY, Namespace::Html, AttrList::EMPTY);
    arena.append(html, body);
    assert!(arena.is_in_order());
    let late = arena.new_element(known::META, Namespace::Html, AttrList::EMPTY);
    arena.append(head, late);
    assert!(!arena.is_in_order());
}

#[test]
fn joined_texts_cost_no_more_than_a_small_multiple() {
    let mut arena = arena();
    let text = arena.new_text(Span::of_source(0, 3));
    arena.append(NodeId::DOCUMENT, text);
    arena.add_text(text, Span::of_source(3, 6));
    assert_eq!((arena.text(arena.data(text)), arena.side.len()), ("onetwo", 0));
    let mut expected = "onetwo".to_owned();
    for n in 0..10_000 {
        let start = arena.side.len();
        arena.side.extend_from_slice(b"&");
        let one = Span::of_side(start, start + 1);
        arena.add_text(text, if n % 2 == 0 { one } else { Span::of_source(0, 3) });
        expected.push_str(if n % 2 == 0 { "&" } else { "one" });
    }
    assert_eq!(arena.text(arena.data(text)), expected);
    assert!(arena.side.len() < 20 * expected.len(), "{}", arena.side.len());
}

#[test]
fn attributes_end_with_their_list() {
    let mut arena = arena();
    arena.push_attr(known::ID, Span::of_source(0, 3));
    arena.push_attr(known::CLASS, Span::of_source(3, 6));
    let list = arena.end_attrs(0);
    arena.push_attr(known::HREF, Span::of_source(6, 11));
    let other = arena.end_attrs(2);
    assert!(arena.end_attrs(3).is_empty());
    let id = arena.new_element(known::A, Namespace::Html, list);
    assert_eq!(arena.attrs(id).map(|a| a.name()).collect::<Vec<_>>(), [known::ID, known::CLASS]);
    arena.add_attrs(id, other, 9);
    assert_eq!(arena.attrs(id).map(|a| arena.text(a.value())).collect::<Vec<_>>(), ["one", "two", "three"]);
    let third = arena.attr_count();
    for name in [known::HREF, known::ALT, known::SRC, known::REL] {
        arena.push_attr(name, Span::of_source(0, 3));
    }
    let list = arena.end_attrs(third);
    assert!(arena.add_attrs(id, list, 5).is_cut);
    let names: Vec<_> = arena.attrs(id).map(|a| a.name()).collect();
    assert_eq!(names, [known::ID, known::CLASS, known::HREF, known::ALT, known::SRC]);
    arena.rename_attr(arena.attr_list(id), 1, known::TITLE);
    assert_eq!(arena.attr(id, known::TITLE), Some(Span::of_source(3, 6)));
    assert_eq!(arena.attrs(id).count(), 5);
}

#[test]
fn a_text_of_any_length_keeps_its_span() {
    let mut arena = Arena::new(vec![b'a'; MOST_SHORT + 3].into());
    let short = arena.new_text(Span::of_source(0, MOST_SHORT));
    let long = arena.new_data(Kind::Comment, known::A, Span::of_source(0, MOST_SHORT + 1));
    let instruction = arena.new_data(Kind::ProcessingInstruction, known::B, Span::of_source(1, 3));
    assert_eq!(arena.data(short), Span::of_source(0, MOST_SHORT));
    assert_eq!(arena.data(long), Span::of_source(0, MOST_SHORT + 1));
    assert_eq!((arena.data(instruction), arena.name(instruction)), (Span::of_source(1, 3), known::B));
    for end in MOST_SHORT + 1..=MOST_SHORT + 3 {
        arena.add_text(short, Span::of_source(end - 1, end));
        assert_eq!((arena.data(short), arena.kind(short)), (Span::of_source(0, end), Kind::Text));
    }
}

#[test]
fn an_element_keeps_its_attributes_wherever_its_first_child_is() {
    let mut arena = arena();
    arena.push_attr(known::ID, Span::of_source(0, 3));
    let list = arena.end_attrs(0);
    let top = arena.append_element(NodeId::DOCUMENT, known::DIV, Namespace::Html, list);
    let near = arena.append_text(top, Span::of_source(3, 6));
    assert_eq!(arena.first_child(top), near);
    let far = arena.new_text(Span::of_source(6, 11));
    arena.insert_before(near, far);
    assert_eq!(children(&arena, top), [far, near]);
    assert!(arena.is_html(top, known::DIV));
    arena.push_attr(known::ALT, Span::of_source(3, 6));
    let more = arena.end_attrs(1);
    arena.add_attrs(top, more, 9);
    assert_eq!(arena.attrs(top).map(|attr| attr.name()).collect::<Vec<_>>(), [known::ID, known::ALT]);
    for gone in [far, near] {
        arena.detach(gone);
    }
    assert_eq!(children(&arena, top), []);
    arena.append(top, near);
    assert_eq!((children(&arena, top), arena.attr(top, known::ID)), (vec![near], Some(Span::of_source(0, 3))));
}
