//! Invariants of selections on generated pages and selectors.

use proptest::prelude::*;

use super::selection::SHOP;
use crate::html::Page;

fn html() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            Just("<div>"),
            Just("</div>"),
            Just("<p class=c>"),
            Just("</p>"),
            Just("<b>"),
            Just("</b>"),
            Just("x"),
            Just("<table>"),
            Just("<td>"),
            Just("</table>"),
            Just("<a href=u>"),
            Just("<!--c-->"),
            Just("<i id=i>")
        ],
        0..40,
    )
    .prop_map(|parts| parts.concat())
}

fn selector() -> impl Strategy<Value = String> {
    let one = ("(div|p|b|\\*|\\.c|a|#i|)", "( |>|)", "(p|b|\\*|a|td|:first-child)", "(::text|::attr\\(href\\)|)");
    prop::collection::vec(
        one.prop_map(|(a, join, b, take)| {
            let join = if a.is_empty() {
                String::new()
            } else if join.is_empty() {
                " ".to_owned()
            } else {
                join
            };
            format!("{a}{join}{b}{take}")
        }),
        1..3,
    )
    .prop_map(|parts| parts.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_first_is_the_first_of_all(html in html(), selector in selector(), inner in selector()) {
        let page = Page::parse(&html);
        let all = page.css(&selector);
        prop_assert_eq!(page.css(&selector).get(), all.getall().first().cloned());
        prop_assert_eq!(page.css(&selector).is_empty(), all.getall().is_empty());
        let nested = all.css(&inner).getall();
        prop_assert_eq!(all.css(&inner).get(), nested.first().cloned());
        for node in &all {
            prop_assert_eq!(node.css(&inner).get(), node.css(&inner).getall().first().cloned());
        }
    }

    #[test]
    fn nodes_come_in_document_order_without_doubles(html in html(), selector in selector(), inner in selector()) {
        let page = Page::parse(&html);
        for selection in [page.css(&selector), page.css(&selector).css(&inner)] {
            let places: Vec<_> = selection.hits_for_tests().iter().map(|hit| hit.order(page.document())).collect();
            prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", places);
        }
    }

    #[test]
    fn no_text_makes_a_selector_panic(text in any::<String>(), close in "[a-z*>:,#.()\\[\\]\"'\\\\/ ]{0,16}", node in any::<bool>()) {
        let page = Page::parse(SHOP);
        for text in [text, close.clone(), format!("{close}::text"), format!("a::attr({close})")] {
            let root = if node { page.css("div") } else { page.root() };
            let _ = root.css(&text).getall();
            let _ = root.re(&text);
        }
    }
}
