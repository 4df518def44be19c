#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! The public conformance tables of parsel, cssselect and our own documents, then what they do not cover.
//!
//! Where a table carries `standard` (what the CSS specifications say) that is what we follow; else it is parsel.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

const CSS_SELECT: &str = include_str!("../../../tests/data/css_select.json");
const CSSSELECT_IDS: &str = include_str!("../../../tests/data/css_cssselect_ids.json");
const PARSEL: &str = include_str!("../../../tests/data/selectors_parsel_tests.json");

/// Cases that come out otherwise, with the reason.
const CSS_SELECT_EXCEPTIONS: &[(&str, &str)] = &[];
const CSSSELECT_EXCEPTIONS: &[(&str, &str)] = &[];
const PARSEL_EXCEPTIONS: &[(&str, &str)] = &[];

/// Fails on a case that comes out otherwise without being listed, and on a listed one that comes out right.
fn compare(failures: &[(String, String)], exceptions: &[(&str, &str)]) {
    let failed: BTreeSet<&str> = failures.iter().map(|(id, _)| id.as_str()).collect();
    let listed: BTreeSet<&str> = exceptions.iter().map(|(id, _)| *id).collect();
    let unlisted: Vec<_> = failures.iter().filter(|(id, _)| !listed.contains(id.as_str())).collect();
    assert!(unlisted.is_empty(), "{} unlisted:\n{unlisted:#?}", unlisted.len());
    let passing: Vec<_> = listed.difference(&failed).collect();
    assert!(passing.is_empty(), "listed but right: {passing:?}");
    assert!(exceptions.iter().all(|(_, reason)| !reason.is_empty()));
}

/// An element by its id, or by its name where it has none.
fn label(element: &Selection<'_>) -> String {
    element.attr("id").filter(|id| !id.is_empty()).or(element.name()).unwrap_or("?").to_owned()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn found(page: &Page, selector: &str) -> Result<Vec<String>, SelectorError> {
    let selection = page.try_css(selector)?;
    let mixed = selection.iter().any(|node| node.name().is_none());
    Ok(selection
        .iter()
        .map(|node| match node.name() {
            Some(_) if mixed => format!("#{}", label(&node)),
            Some(_) => label(&node),
            None => node.get().unwrap(),
        })
        .collect())
}

#[test]
fn selectors_answer_as_parsel_or_the_standard_does() {
    let data: Value = serde_json::from_str(CSS_SELECT).unwrap();
    let mut failures = Vec::new();
    for case in data["cases"].as_array().unwrap() {
        let page = Page::parse(data["documents"][case["doc"].as_str().unwrap()].as_str().unwrap());
        let selector = case["selector"].as_str().unwrap();
        let expected = case.get("standard").unwrap_or(&case["expected"]);
        let answer = found(&page, selector);
        let right = match (expected["type"].as_str().unwrap(), &answer) {
            ("elements", Ok(found)) => *found == strings(&expected["ids"]),
            ("strings", Ok(found)) => *found == strings(&expected["values"]),
            ("mixed", Ok(found)) => *found == strings(&expected["value"]),
            ("empty", Ok(found)) => found.is_empty(),
            ("valid", Ok(_)) | ("error", Err(_)) => true,
            _ => false,
        };
        if !right {
            failures.push((case["id"].as_str().unwrap().to_owned(), format!("{selector} -> {answer:?}, not {expected}")));
        }
    }
    compare(&failures, CSS_SELECT_EXCEPTIONS);
}

#[test]
fn selectors_answer_as_cssselect_does() {
    let data: Value = serde_json::from_str(CSSSELECT_IDS).unwrap();
    let page = Page::parse(data["document"].as_str().unwrap());
    let mut failures = Vec::new();
    for case in data["cases"].as_array().unwrap() {
        let selector = case["selector"].as_str().unwrap();
        let answer = found(&page, selector);
        if answer.as_ref().ok() != Some(&strings(&case["expected"])) {
            let expected = &case["expected"];
            failures.push((case["id"].as_str().unwrap().to_owned(), format!("{selector} -> {answer:?}, not {expected}")));
        }
    }
    compare(&failures, CSSSELECT_EXCEPTIONS);
}

#[test]
fn the_css_calls_of_the_parsel_tests_give_the_same() {
    let data: Value = serde_json::from_str(PARSEL).unwrap();
    let mut failures = Vec::new();
    for case in data["cases"].as_array().unwrap() {
        let Some(selector) = case.get("css").and_then(Value::as_str) else { continue };
        let html = case.get("html").unwrap_or_else(|| &data["documents"][case["doc"].as_str().unwrap()]);
        let page = Page::parse(html.as_str().unwrap());
        let expected = &case["expected"];
        let answer = page.try_css(selector);
        let right = match (expected["type"].as_str().unwrap(), &answer) {
            ("elements", Ok(found)) => {
                let found: Vec<_> = found
                    .iter()
                    .map(|node| {
                        let text = node.css("*::text").getall().concat();
                        (node.name().unwrap().to_owned(), text)
                    })
                    .collect();
                let wanted: Vec<_> = expected["value"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|value| (value["tag"].as_str().unwrap().to_owned(), value["text"].as_str().unwrap().to_owned()))
                    .collect();
                found == wanted
            }
            ("strings", Ok(found)) => found.getall() == strings(&expected["value"]),
            ("empty", Ok(found)) => found.is_empty(),
            ("error", Err(_)) => true,
            _ => false,
        };
        if !right {
            failures.push((case["id"].as_str().unwrap().to_owned(), format!("{selector} -> {answer:?}, not {expected}")));
        }
    }
    compare(&failures, PARSEL_EXCEPTIONS);
}

const SHOP: &str = r#"<title>Shop &amp; Co</title><body class="home">
<ul id="list"><li class="item"><a href="/1" title="one">One <b>new</b></a> 10</li><li class="item"><a href="/2">Two</a> 20</li></ul>
<div id="outer"><p>a<b>c</b>d</p><div id="inner"><p>e</p></div></div><p id="last">x<script>no()</script>  y
 z</p></body>"#;

#[test]
fn get_gives_html_text_or_value_of_the_first() {
    let page = Page::parse(SHOP);
    for (selector, expected) in [
        ("title::text", Some("Shop & Co")),
        ("title", Some("<title>Shop &amp; Co</title>")),
        ("#list a::attr(href)", Some("/1")),
        ("#outer p", Some("<p>a<b>c</b>d</p>")),
        ("body::attr(class)", Some("home")),
        ("#outer *::text", Some("a")),
        ("#outer b::text, #outer p::text", Some("a")),
        ("nav::text", None),
        ("nav", None),
    ] {
        assert_eq!(page.css(selector).get().as_deref(), expected, "{selector}");
        assert_eq!(page.css(selector).getall().first().map(String::as_str), expected, "{selector}");
        assert_eq!(page.css(selector).is_empty(), expected.is_none(), "{selector}");
    }
    assert!(page.take_errors().is_empty());
}

#[test]
fn texts_of_nested_matches_stay_in_document_order() {
    let page = Page::parse(SHOP);
    assert_eq!(page.css("#outer *::text").getall(), ["a", "c", "d", "e"]);
    assert_eq!(page.css("#outer p::text, #outer b::text").getall(), ["a", "c", "d", "e"]);
    assert_eq!(page.css("#outer p::text").getall(), ["a", "d", "e"]);
    assert_eq!(page.css("#outer b, #outer p::text").getall(), ["a", "<b>c</b>", "d", "e"]);
    let early = Page::parse("<div><p><b>c</b>d</p></div>");
    assert_eq!(early.css("p *::text").get().as_deref(), Some("c"));
    assert_eq!(early.css("p::text").get().as_deref(), Some("d"));
}

#[test]
fn an_inner_search_includes_its_node_and_stays_inside() {
    let page = Page::parse(SHOP);
    let rows: Vec<_> = page
        .css("#list li")
        .iter()
        .map(|row| (row.css("a::attr(href)").get().unwrap(), row.css("::text").getall().concat()))
        .collect();
    assert_eq!(rows, [("/1".to_owned(), "One new 10".to_owned()), ("/2".to_owned(), "Two 20".to_owned())]);
    let link = page.css("#list a").first();
    assert_eq!(link.css("::attr(href)").getall(), ["/1"]);
    assert_eq!(link.css("a").len(), 1);
    // An ancestor outside of the node does not count, the node itself does.
    assert_eq!(link.css("ul b").len(), 0);
    assert_eq!(link.css("a b").len(), 1);
    assert_eq!(link.css("a > b::text").getall(), ["new"]);
    assert_eq!(link.css(":scope > b").len(), 1);
    assert_eq!(page.css("ul").css("li:first-child > a::attr(title)").getall(), ["one"]);
    // Text and attribute values contain nothing.
    assert!(page.css("a::text").css("*").is_empty());
    assert!(page.css("a::attr(href)").first().css("*").is_empty());
}

#[test]
fn nested_nodes_give_no_doubles() {
    let page = Page::parse(SHOP);
    let divs = page.css("div");
    assert_eq!(divs.len(), 2);
    assert_eq!(divs.css("p::text").getall(), ["a", "d", "e"]);
    assert_eq!(divs.css("div").len(), 2);
    let parents = divs.css(":scope > p");
    assert_eq!(parents.getall(), ["<p>a<b>c</b>d</p>", "<p>e</p>"]);
    assert_eq!(divs.css(":scope > p, b").len(), 3);
    let same = Page::parse("<a x=1 y=1 href=1></a><a href=1></a>");
    assert_eq!(same.css("a::attr(x), a::attr(y), a::attr(href)").getall(), ["1", "1", "1", "1"]);
}

#[test]
fn other_views_of_a_node() {
    let page = Page::parse(SHOP);
    assert_eq!(page.css("#last").text().as_deref(), Some("x y z"));
    assert_eq!(page.css("#list a").text().as_deref(), Some("One new"));
    assert_eq!(page.css("#list a").attr("title"), Some("one"));
    assert_eq!(page.css("#list a").attr("none"), None);
    assert_eq!(page.css("#list b").html().as_deref(), Some("<b>new</b>"));
    assert_eq!(page.css("#list b::text").html(), None);
    assert_eq!(page.css("none").text(), None);
    assert_eq!(page.root().name(), Some("html"));
    let mut count = 0;
    for item in page.css("li") {
        assert_eq!(item.len(), 1);
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn patterns_follow_the_group_rules_of_parsel() {
    let page = Page::parse("<p>a=1, b=22</p><p>c=333</p><i title='x &gt; y'>q</i>");
    let texts = page.css("p::text");
    assert_eq!(texts.re(r"\d+"), ["1", "22", "333"]);
    assert_eq!(texts.re(r"(\w)=(\d+)"), ["a", "1", "b", "22", "c", "333"]);
    assert_eq!(texts.re(r"(a)|(c)"), ["a", "", "", "c"]);
    assert_eq!(texts.re(r"(\w)=(?P<extract>\d+)"), ["1", "333"]);
    assert_eq!(texts.re_first(r"\d{2,}").as_deref(), Some("22"));
    assert_eq!(texts.re_first("z"), None);
    assert_eq!(page.css("p").re("<p>(.)"), ["a", "c"]);
    assert_eq!(page.css("i").re("x > y"), ["x > y"]);
    assert!(page.take_errors().is_empty());
}

#[test]
fn a_bad_selector_gives_nothing_and_is_kept_for_the_caller() {
    let page = Page::parse(SHOP);
    for _ in 0..3 {
        assert!(page.css("a[").css("b").is_empty());
    }
    assert!(page.css("p").re("(").is_empty());
    assert_eq!(page.css("p").re_first("["), None);
    let errors = page.take_errors();
    assert_eq!(errors.len(), 5);
    assert_eq!((errors[0].kind(), errors[0].text(), errors[0].position()), (SelectorKind::Css, "a[", 1));
    assert_eq!((errors[3].kind(), errors[3].text()), (SelectorKind::Pattern, "("));
    assert!(page.take_errors().is_empty());
    for _ in 0..100 {
        let _ = page.css("a[");
    }
    assert_eq!(page.take_errors().len(), KEPT_ERRORS);
    assert!(page.try_css("a[").is_err());
    assert!(page.take_errors().is_empty());
}

#[test]
fn an_error_says_where_and_why() {
    for (selector, position, reason) in [
        ("", 0, "missing"),
        ("a, , b", 3, "missing"),
        ("div > p:foo", 7, "foo"),
        ("li, a b:frob(x)", 7, "frob"),
        ("a::before", 1, "::text and ::attr(name)"),
        ("a::text b", 1, "::text and ::attr(name)"),
        ("p a::attr()", 10, "name of one attribute"),
        ("p::attr(a b)", 8, "name of one attribute"),
        ("é > ", 2, "too early"),
    ] {
        let error = Page::parse("").try_css(selector).map(|_| ()).unwrap_err();
        assert_eq!(error.position(), position, "{error}");
        assert!(error.reason().contains(reason), "{error}");
        assert!(error.to_string().contains(&format!("{selector:?}")), "{error}");
    }
    for (pattern, position) in [("ab(", 2), ("a{2", 1), ("(?=x)", 0), ("[z-a]", 1)] {
        let error = compile_pattern(pattern).unwrap_err();
        assert_eq!(error.position(), position, "{error}");
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn html() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop_oneof![
                Just("<div>"), Just("</div>"), Just("<p class=c>"), Just("</p>"), Just("<b>"), Just("</b>"), Just("x"),
                Just("<table>"), Just("<td>"), Just("</table>"), Just("<a href=u>"), Just("<!--c-->"), Just("<i id=i>")
            ],
            0..40,
        )
        .prop_map(|parts| parts.concat())
    }

    fn selector() -> impl Strategy<Value = String> {
        let one = ("(div|p|b|\\*|\\.c|a|#i|)", "( |>|)", "(p|b|\\*|a|td|:first-child)", "(::text|::attr\\(href\\)|)");
        prop::collection::vec(one.prop_map(|(a, join, b, take)| {
            let join = if a.is_empty() { String::new() } else if join.is_empty() { " ".to_owned() } else { join };
            format!("{a}{join}{b}{take}")
        }), 1..3).prop_map(|parts| parts.join(","))
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
                let order: Vec<_> = page.root_element().unwrap().descendants().map(|node| node.id()).collect();
                let places: Vec<_> = selection.hits().iter().map(|hit| {
                    let (id, rank) = match hit {
                        Hit::Element(element) => (element.id(), 0),
                        Hit::Text(node) => (node.id(), 0),
                        Hit::Attr(element, _) => (element.id(), 1),
                    };
                    (order.iter().position(|node| *node == id).unwrap(), rank)
                }).collect();
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
}
