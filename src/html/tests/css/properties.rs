//! Results on random pages and selectors, compared with scraper's.

use proptest::prelude::*;
use scraper::{ElementRef, Html, Selector};

use super::*;
use crate::html::arena::{Arena, Kind};
use crate::html::from_scraper::Converted;
use crate::html::names::known;
use crate::html::span::Span;

fn html() -> impl Strategy<Value = String> {
    const PARTS: [&str; 22] = [
        "<div>",
        "</div>",
        "<div class='c d'>",
        "<p class=c>",
        "</p>",
        "<b>",
        "</b>",
        "x",
        "<table>",
        "<td>",
        "</table>",
        "<a href=u>",
        "</a>",
        "<!--c-->",
        "<i id=i>",
        "</i>",
        "<ul><li>",
        "<li data-x='a-b'>",
        "</ul>",
        "<br>",
        " ",
        "<svg><g viewBox=1></g></svg>",
    ];
    prop::collection::vec(prop::sample::select(&PARTS[..]), 0..48).prop_map(|parts| format!("<!DOCTYPE html>{}", parts.concat()))
}

fn compound() -> impl Strategy<Value = String> {
    let name = prop::sample::select(&["div", "p", "b", "*", "a", "li", "td", "", "", "g", "i", "zz"][..]);
    const TESTS: [&str; 26] = [
        "",
        "",
        "",
        ".c",
        ".d",
        "#i",
        "[href]",
        "[data-x|=a]",
        "[class~=d]",
        "[viewBox]",
        ":first-child",
        ":last-child",
        ":nth-child(2n+1)",
        ":nth-last-child(2)",
        ":nth-of-type(2)",
        ":nth-last-of-type(odd)",
        ":only-child",
        ":only-of-type",
        ":empty",
        ":root",
        ":not(.c)",
        ":is(p, .c)",
        ":where(div b, i)",
        ":not(:first-child, a b)",
        ":scope",
        "[id=i]",
    ];
    (name, prop::sample::select(&TESTS[..]))
        .prop_map(|(name, test)| if name.is_empty() && test.is_empty() { "*".to_owned() } else { format!("{name}{test}") })
}

fn complex() -> impl Strategy<Value = String> {
    let more = prop::collection::vec((prop::sample::select(&[" ", ">", "+", "~"][..]), compound()), 0..4);
    (compound(), more).prop_map(|(first, more)| more.into_iter().fold(first, |all, (join, next)| format!("{all}{join}{next}")))
}

fn selector() -> impl Strategy<Value = String> {
    let has =
        (compound(), prop::sample::select(&["", ">", "+", "~"][..]), complex(), prop::sample::select(&["", " b", ">p"][..]))
            .prop_map(|(anchor, join, relative, rest)| format!("{anchor}:has({join}{relative}){rest}"));
    let one = prop_oneof![4 => complex(), 1 => has, 1 => complex().prop_map(|inner| format!(":is({inner})"))];
    prop::collection::vec(one, 1..3).prop_map(|parts| parts.join(","))
}

/// What scraper finds in a node and below it, as nodes of ours.
fn expected(html: &Html, converted: &Converted, root: NodeId, selector: &str) -> Vec<NodeId> {
    let selector = Selector::parse(selector).unwrap();
    let root = ElementRef::wrap(html.tree.get(converted.nodes[root.index()]).unwrap()).unwrap();
    let own = selector.matches_with_scope(&root, Some(root)).then_some(root);
    let found = own.into_iter().chain(root.select(&selector));
    let at = |element: ElementRef<'_>| NodeId::at(converted.nodes.iter().position(|id| *id == element.id()).unwrap());
    found.map(at).collect()
}

/// The same tree, its nodes made in another order than they stand in.
fn scrambled(page: &Document) -> Document {
    let arena = page.arena();
    let mut copy = super::page("<!DOCTYPE html>");
    copy.arena = Arena::new(bytes::Bytes::new());
    let mut ids = vec![NodeId::DOCUMENT; arena.len()];
    for index in (1..arena.len()).rev() {
        let id = NodeId::at(index);
        let data = |copy: &mut Arena| {
            let start = copy.side.len();
            copy.side.extend_from_slice(arena.bytes(arena.data(id)));
            Span::of_side(start, copy.side.len())
        };
        ids[index] = match arena.kind(id) {
            Kind::Element => {
                let attrs: Vec<_> =
                    arena.attrs(id).map(|attr| (arena.name_text(attr.name()), arena.bytes(attr.value()))).collect();
                let start = copy.arena.attr_count();
                for (name, value) in attrs {
                    let name = copy.arena.intern_text(name);
                    let from = copy.arena.side.len();
                    copy.arena.side.extend_from_slice(value);
                    let to = copy.arena.side.len();
                    copy.arena.push_attr(name, Span::of_side(from, to));
                }
                let attrs = copy.arena.end_attrs(start);
                let name = copy.arena.intern_text(arena.name_text(arena.name(id)));
                copy.arena.new_element(name, arena.namespace(id), attrs)
            }
            Kind::Text => {
                let data = data(&mut copy.arena);
                copy.arena.new_text(data)
            }
            kind => {
                let data = data(&mut copy.arena);
                copy.arena.new_data(kind, known::HTML, data)
            }
        };
    }
    for index in 1..arena.len() {
        copy.arena.append(ids[arena.parent(NodeId::at(index)).index()], ids[index]);
    }
    assert!(!copy.arena.is_in_order());
    copy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 2_000 } else { 50_000 }))]

    #[test]
    fn results_equal_those_of_scraper(text in html(), selector in selector()) {
        let html = Html::parse_document(&text);
        let converted = from_scraper(&html);
        let page = &converted.document;
        let wanted = expected(&html, &converted, root(page), &selector);
        let found: Vec<NodeId> = css(page, &selector).iter().map(|hit| hit.node()).collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn inner_results_equal_those_of_scraper_with_the_leftmost_part_inside(
        text in html(),
        first in compound(),
        join in prop::sample::select(&[" ", ">", "+", "~"][..]),
        rest in complex(),
        nth in 0_usize..20,
    ) {
        let html = Html::parse_document(&text);
        let converted = from_scraper(&html);
        let page = &converted.document;
        let all = css(page, "*");
        let inner_root = all[nth % all.len()];
        let wanted = expected(&html, &converted, inner_root.node(), &format!("{first}:is(:scope, :scope *){join}{rest}"));
        let found: Vec<NodeId> = inner(page, &[inner_root], &format!("{first}{join}{rest}")).iter().map(|hit| hit.node()).collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn many_roots_find_what_each_of_them_finds(text in html(), roots in selector(), selector in selector(), take in "(::text| ::text|::attr\\(class\\)| ::attr\\(href\\)|)") {
        let page = page(&text);
        let roots = css(&page, &roots);
        // With a comma list the pseudo-element is that of its last item.
        let selector = format!("{selector}{take}");
        let together = inner(&page, &roots, &selector);
        let mut each: Vec<Hit> = roots.iter().flat_map(|root| inner(&page, &[*root], &selector)).collect();
        each.sort_by_key(|hit| hit.order(&page));
        each.dedup();
        prop_assert_eq!(&together, &each);
        prop_assert!(together.is_sorted_by(|a, b| a.order(&page) < b.order(&page)));
    }

    #[test]
    fn the_order_nodes_were_made_in_does_not_matter(text in html(), selector in selector(), below in selector(), take in "(::text| ::text|::attr\\(class\\)|)") {
        let page = page(&text);
        let scrambled = scrambled(&page);
        let selector = format!("{selector}{take}");
        prop_assert_eq!(show(&scrambled, &css(&scrambled, &selector)), show(&page, &css(&page, &selector)));
        let (here, there) = (css(&page, &below), css(&scrambled, &below));
        prop_assert_eq!(show(&scrambled, &inner(&scrambled, &there, &selector)), show(&page, &inner(&page, &here, &selector)));
    }

    #[test]
    fn deep_takes_are_those_of_all_below(text in html(), selector in complex()) {
        let page = page(&text);
        let deep = css(&page, &format!("{selector} ::text"));
        let both = css(&page, &format!("{selector}:is(*)::text, {selector} :is(*)::text"));
        prop_assert_eq!(deep, both);
    }

    #[test]
    fn no_text_makes_a_selector_panic(text in any::<String>(), close in "[a-z*>:,#.()\\[\\]\"'\\\\/| ]{0,16}") {
        let page = page(SHOP);
        for text in [text, close.clone(), format!("{close}::text"), format!("a::attr({close})"), format!("p:has({close})")] {
            match Compiled::parse(&text) {
                Ok(compiled) => drop(compiled.select(&page, &[NodeId::DOCUMENT], Reach::Subtree)),
                Err(error) => prop_assert!(error.position() <= text.len() && text.is_char_boundary(error.position()), "{}", error),
            }
        }
    }
}
