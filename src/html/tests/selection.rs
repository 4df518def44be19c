//! What a spider author relies on, one sentence each.

use crate::html::selection::KEPT_ERRORS;
use crate::html::{Page, SelectorKind, compile_pattern};

pub(super) const SHOP: &str = r#"<title>Shop &amp; Co</title><body class="home">
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
    let first: Vec<_> = page.css("#list a").attrs().collect();
    assert!(first.contains(&("href", "/1")) && first.contains(&("title", "one")), "{first:?}");
    assert_eq!(page.css("#list a::attr(href)").attrs().count() + page.css("none").attrs().count(), 0);
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
fn an_error_of_a_selection_is_that_of_its_selector() {
    for (selector, position, reason) in
        [("li, a b:frob(x)", 7, "\":frob(x)\""), ("a::text b", 1, "::text and ::attr(name)"), ("é > ", 3, "dangling combinator")]
    {
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

#[test]
fn a_selector_that_takes_too_long_is_an_error_of_the_call_that_can_return_one() {
    let page = Page::parse(&"<b></b>".repeat(20_000));
    let error = page.try_css("b:is(zz ~ b)").unwrap_err();
    assert!(error.is_given_up() && error.to_string().contains("was given up on this page"), "{error}");
    assert!(page.css("body").try_css("b:is(zz ~ b)").unwrap_err().is_given_up());
    assert_eq!(page.take_errors(), []);
    assert_eq!(page.css("b:is(zz ~ b)").len(), 0);
    assert!(page.take_errors()[0].is_given_up());
    assert_eq!(page.try_css("b").unwrap().len(), 20_000);
}
