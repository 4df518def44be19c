//! CSS: what a spider author relies on, one sentence each. Trees are made by html5ever here.

mod attacks;
mod conformance;
mod properties;
mod speed;

use scraper::Html;

use crate::html::Document;
use crate::html::arena::NodeId;
use crate::html::css::{Compiled, CssError, Found, Reach};
use crate::html::from_scraper::from_scraper;
use crate::html::hit::Hit;

pub(super) fn page(text: &str) -> Document {
    from_scraper(&Html::parse_document(text)).document
}

fn root(page: &Document) -> NodeId {
    page.document_element().unwrap().id
}

fn try_css(page: &Document, selector: &str) -> Result<Vec<Hit>, CssError> {
    Compiled::parse(selector).map(|compiled| search(page, compiled, &[root(page)], Reach::Document))
}

/// What is found; the same without patience, and its first.
fn search(page: &Document, mut compiled: Compiled, roots: &[NodeId], reach: Reach) -> Vec<Hit> {
    let Found { hits, exceeded, .. } = compiled.select(page, roots, reach);
    assert!(!exceeded, "{compiled:?}");
    assert_eq!(compiled.first(page, roots, reach).hits.first(), hits.first(), "{compiled:?}");
    compiled.patience = 0;
    let prepared = compiled.select(page, roots, reach);
    assert_eq!((&prepared.hits, prepared.exceeded), (&hits, false), "{compiled:?}");
    hits
}

fn css(page: &Document, selector: &str) -> Vec<Hit> {
    try_css(page, selector).unwrap()
}

fn inner(page: &Document, roots: &[Hit], selector: &str) -> Vec<Hit> {
    let roots: Vec<NodeId> = roots.iter().map(|hit| hit.node()).collect();
    search(page, Compiled::parse(selector).unwrap(), &roots, Reach::Subtree)
}

/// An element as its name and `#id`, a text as it is, an attribute as its value.
fn show(page: &Document, hits: &[Hit]) -> Vec<String> {
    let arena = page.arena();
    let show = |hit: &Hit| match hit {
        Hit::Attr { .. } => arena.text(hit.attr(arena).unwrap().value()).to_owned(),
        Hit::Node(id) if arena.is_text(*id) => arena.text(arena.data(*id)).to_owned(),
        Hit::Node(id) => {
            let node = page.node(*id).unwrap();
            node.attr("id").map_or_else(|| node.name().unwrap().to_owned(), |id| format!("{}#{id}", node.name().unwrap()))
        }
    };
    hits.iter().map(show).collect()
}

const SHOP: &str = r##"<!DOCTYPE html><title>Shop &amp; Co</title><body class="home">
<ul id="list"><li class="item"><a href="/1" title="one">One <b>new</b></a> 10</li><li class="item"><a href="/2">Two</a> 20</li></ul>
<div id="outer"><p>a<b>c</b>d</p><div id="inner"><p>e</p></div></div><p id="last">x<script>no()</script>  y
 z</p></body>"##;

#[test]
fn hits_come_in_document_order_without_doubles() {
    let page = page(SHOP);
    for (selector, expected) in [
        ("title::text", vec!["Shop & Co"]),
        ("#outer *::text", vec!["a", "c", "d", "e"]),
        ("#outer p::text, #outer b::text", vec!["a", "c", "d", "e"]),
        ("#outer p::text", vec!["a", "d", "e"]),
        ("#outer b, #outer p::text", vec!["a", "b", "d", "e"]),
        ("#outer ::text, #outer b", vec!["a", "b", "c", "d", "e"]),
        ("#list ::attr(title), #list a::attr(href), a", vec!["a", "/1", "one", "a", "/2"]),
        ("body::attr(class)", vec!["home"]),
        ("#list > ::attr(class)", vec!["item", "item"]),
        ("nav::text", vec![]),
    ] {
        assert_eq!(show(&page, &css(&page, selector)), expected, "{selector}");
    }
    let early = self::page("<!DOCTYPE html><div><p><b>c</b>d</p></div>");
    assert_eq!(show(&early, &css(&early, "p *::text")), ["c", "d"]);
    assert_eq!(show(&early, &css(&early, "p > *::text")), ["c"]);
    assert_eq!(show(&early, &css(&early, "p::text")), ["d"]);
    let same = self::page("<a x=1 y=1 href=1></a><a href=1></a>");
    assert_eq!(css(&same, "a::attr(x), a::attr(y), a::attr(href), a::attr(x)").len(), 4);
}

#[test]
fn an_inner_search_includes_its_node_and_stays_inside() {
    let page = page(SHOP);
    let link = css(&page, "#list a")[..1].to_vec();
    for (selector, expected) in [
        ("::attr(href)", vec!["/1"]),
        ("a", vec!["a"]),
        // An ancestor outside of the node does not count, the node itself does.
        ("ul b", vec![]),
        ("ul ::text", vec![]),
        ("li > a", vec![]),
        ("a b", vec!["b"]),
        ("a > b::text", vec!["new"]),
        ("a ::text", vec!["One ", "new"]),
        (":scope > b", vec!["b"]),
        (":scope", vec!["a"]),
        ("a:first-child", vec!["a"]),
    ] {
        assert_eq!(show(&page, &inner(&page, &link, selector)), expected, "{selector}");
    }
    let second = css(&page, "li")[1..].to_vec();
    assert_eq!(show(&page, &inner(&page, &second, "li + li, li:nth-child(2) > a::text")), ["Two"]);
    let lists = css(&page, "ul");
    assert_eq!(show(&page, &inner(&page, &lists, "li:first-child > a::attr(title)")), ["one"]);
}

#[test]
fn nested_nodes_give_no_doubles() {
    let page = page(SHOP);
    let divs = css(&page, "div");
    assert_eq!(divs.len(), 2);
    assert_eq!(show(&page, &inner(&page, &divs, "p::text")), ["a", "d", "e"]);
    assert_eq!(show(&page, &inner(&page, &divs, "div")), ["div#outer", "div#inner"]);
    assert_eq!(show(&page, &inner(&page, &divs, ":scope > p::text")), ["a", "d", "e"]);
    assert_eq!(show(&page, &inner(&page, &divs, ":scope > p, b")), ["p", "b", "p"]);
    assert_eq!(show(&page, &inner(&page, &divs, ":scope ::text")), ["a", "c", "d", "e"]);
    // Text and attributes contain nothing.
    let texts = css(&page, "#last::text");
    assert!(inner(&page, &texts, "*").is_empty());
}

#[test]
fn an_error_says_where_and_why() {
    for (selector, position, reason) in [
        ("", 0, "missing"),
        ("a, , b", 3, "missing"),
        ("div > p:foo", 7, "\":foo\""),
        ("li, a b:frob(x)", 7, "\":frob(x)\""),
        ("li:not(.x, :foo)", 11, "\":foo)\""),
        ("a::before", 1, "::text and ::attr(name)"),
        ("a::text b", 1, "::text and ::attr(name)"),
        ("p a::attr()", 10, "name of one attribute"),
        ("p::attr(a b)", 8, "name of one attribute"),
        ("é > ", 3, "dangling combinator"),
        ("a:not(", 1, "\":not(\""),
        ("a[", 1, "too early"),
        ("a b[x=]", 3, "\"[x=]\""),
        ("a b]", 3, "\"]\""),
        ("p .5", 2, "\".5\""),
        ("b > #1", 4, "\"#1\""),
        ("x|a", 0, "namespace"),
        (":has(a:has(b))", 6, "not allowed"),
        ("a:before", 1, "pseudo"),
        ("b a:-dragline-within", 3, "unsupported"),
        ("*:::x", 1, "only ::text"),
        ("a : b", 4, "colon"),
    ] {
        let error = Compiled::parse(selector).unwrap_err();
        assert!(error.reason().contains(reason), "{error}");
        assert_eq!(error.position(), position, "{error}");
        assert!(error.to_string().contains(&format!("{selector:?}")), "{error}");
    }
}

#[test]
fn names_of_attributes_are_lower_case_in_html_and_exact_elsewhere() {
    let page = page(
        "<!DOCTYPE html><p ID=p Data-X=1><svg id=s viewBox=0 data-y=2><linearGradient id=g xlink:href=u xml:lang=fr /><foreignObject id=f><p id=q viewBox=1></foreignObject></svg><custom-tag id=c>",
    );
    for (selector, expected) in [
        ("[DATA-X]", vec!["p#p"]),
        ("p[data-x='1']", vec!["p#p"]),
        ("[viewbox]", vec!["p#q"]),
        ("[viewBox]", vec!["svg#s", "p#q"]),
        ("lineargradient", vec![]),
        ("linearGradient", vec!["linearGradient#g"]),
        ("P", vec!["p#p", "p#q"]),
        ("CUSTOM-TAG", vec!["custom-tag#c"]),
        ("SVG", vec![]),
        ("svg|svg, math|*", vec!["svg#s"]),
        ("svg|p", vec![]),
        ("html|p", vec!["p#p", "p#q"]),
        ("*|p", vec!["p#p", "p#q"]),
        ("|p", vec![]),
        ("[xlink|href]", vec!["linearGradient#g"]),
        ("[*|href=u]", vec!["linearGradient#g"]),
        ("[href]", vec![]),
        ("[xlink\\:href]", vec![]),
        ("[xml|lang=fr]", vec!["linearGradient#g"]),
        (":lang(fr)", vec!["linearGradient#g"]),
        ("svg::attr(viewBox), p::attr(data-x), svg::attr(viewbox), p::attr(DATA-X)", vec!["1", "0"]),
    ] {
        assert_eq!(show(&page, &css(&page, selector)), expected, "{selector}");
    }
}

#[test]
fn letter_case_of_classes_and_ids_counts_but_in_quirks_mode() {
    let text = "<div class='A b' id=X><p class=c data-v=Val type=Text>";
    let (standard, quirks) = (page(&format!("<!DOCTYPE html>{text}")), page(text));
    for (selector, in_standard, in_quirks) in [
        (".a", 0, 1),
        (".A.b", 1, 1),
        ("#x", 0, 1),
        ("#x .C", 0, 1),
        ("div:not(.a) > p", 1, 0),
        ("[data-v=val]", 0, 0),
        ("[data-v=val i]", 1, 1),
        ("[data-v=Val s]", 1, 1),
        ("[type=text]", 1, 1),
        ("[type=text s]", 0, 0),
    ] {
        assert_eq!(css(&standard, selector).len(), in_standard, "{selector}");
        assert_eq!(css(&quirks, selector).len(), in_quirks, "{selector} in quirks mode");
    }
}

#[test]
fn form_controls_and_links_are_told_by_their_markup() {
    let page = page(
        "<!DOCTYPE html><a id=a href=x></a><a id=b></a><link href=x><input id=c type=CHECKBOX checked><input id=d type=text checked><fieldset disabled id=f><legend><input id=e></legend><legend><input id=g></legend><p><button id=h></button><fieldset id=i></fieldset></fieldset><select id=j><optgroup disabled id=k><option id=l selected></optgroup><option id=m></select>",
    );
    for (selector, expected) in [
        (":link", vec!["a#a"]),
        (":any-link", vec!["a#a"]),
        ("a:not(:link)", vec!["a#b"]),
        (":checked", vec!["input#c", "option#l"]),
        (":disabled", vec!["fieldset#f", "input#g", "button#h", "fieldset#i", "optgroup#k", "option#l"]),
        (":enabled", vec!["input#c", "input#d", "input#e", "select#j", "option#m"]),
        ("a:hover, a:visited, :focus, :target, :active", vec![]),
    ] {
        assert_eq!(show(&page, &css(&page, selector)), expected, "{selector}");
    }
}

#[test]
fn relative_selectors_find_what_has_something() {
    let page = page(
        "<!DOCTYPE html><div id=a><p id=b><i id=c></i></p><p id=d></p></div><div id=e><section id=f><i id=g></i><b id=h></b></section></div><ul id=u><li id=v></li>",
    );
    for (selector, expected) in [
        ("div:has(i)", vec!["div#a", "div#e"]),
        ("div:has(> p)", vec!["div#a"]),
        (":has(+ p)", vec!["p#b"]),
        ("div:has(~ ul)", vec!["div#a", "div#e"]),
        ("div:has(+ ul)", vec!["div#e"]),
        ("div:has(p > i)", vec!["div#a"]),
        ("div:has(div i)", vec![]),
        ("div:has(i + b)", vec!["div#e"]),
        ("div:has(~ div b)", vec!["div#a"]),
        ("div:has(+ div > section > b)", vec!["div#a"]),
        ("i:has(+ b)", vec!["i#g"]),
        ("div:not(:has(b))", vec!["div#a"]),
        ("div:has(b, p)", vec!["div#a", "div#e"]),
        ("div:has(section):has(b) i", vec!["i#g"]),
        (":is(div, ul):has(> li, > section)", vec!["div#e", "ul#u"]),
        ("html:has(body > ul) b", vec!["b#h"]),
    ] {
        assert_eq!(show(&page, &css(&page, selector)), expected, "{selector}");
    }
}

#[test]
fn a_text_is_found_over_the_borders_of_nodes() {
    let page = page("<!DOCTYPE html><p id=a>on<b id=b>e t</b>wo</p><p id=c>one</p><p id=d>o<!-- -->n<i></i>e</p>");
    for (selector, expected) in [
        ("p:contains('one')", vec!["p#a", "p#c", "p#d"]),
        ("p:contains('one two')", vec!["p#a"]),
        (":contains(\"e t\")", vec!["html", "body", "p#a", "b#b"]),
        ("p:contains(oneone)", vec![]),
        ("p:contains('')", vec!["p#a", "p#c", "p#d"]),
        ("p:not(:contains('e t'))", vec!["p#c", "p#d"]),
    ] {
        assert_eq!(show(&page, &css(&page, selector)), expected, "{selector}");
    }
}

#[test]
fn a_compiled_selector_and_its_page_can_be_shared_between_threads() {
    fn is_shareable<T: Send + Sync>(_: &T) {}
    let (page, compiled) = (page(SHOP), Compiled::parse("zz a:has(b), x-y[zz] ::text, li:nth-child(2 of .item) a").unwrap());
    is_shareable(&page);
    is_shareable(&compiled);
    let other = self::page("<!DOCTYPE html><zz><a id=a><b></b></a></zz><x-y zz>t</x-y>");
    assert_eq!(show(&other, &compiled.select(&other, &[root(&other)], Reach::Document).hits), ["a#a", "t"]);
    assert_eq!(show(&page, &compiled.select(&page, &[root(&page)], Reach::Document).hits), ["a"]);
}

/// Rules that are easily got wrong; answers by Selectors 4 and WHATWG HTML 4.16.
#[test]
fn rules_with_exceptions_are_kept() {
    const BODY: &str = "<div id=d class='A b'><p id=p1 lang=EN-us>x<p id=p2 title='Hello WORLD'></p><b id=b1></b><p id=p3></div>";
    let ids = |page: &Document, selector: &str| {
        let id = |hit: &Hit| page.node(hit.node()).unwrap().attr("id").unwrap_or_default().to_owned();
        css(page, selector).iter().map(id).collect::<Vec<_>>()
    };
    let (strict, quirks) = (page(&format!("<!DOCTYPE html>{BODY}")), page(BODY));
    for (selector, expected) in [
        ("p:nth-child(2 of p)", &["p2"][..]),
        (":nth-child(2 of #p2, #p3)", &["p3"]),
        (":nth-last-child(1 of p:not(#p3))", &["p2"]),
        ("[title='hello world' i]", &["p2"]),
        ("[title='hello world']", &[]),
        ("[title='Hello WORLD' s]", &["p2"]),
        ("[title^=hello i][title$=d i][title*='O W' i]", &["p2"]),
        ("[title*='']", &[]),
        ("div:not(:has(> b))", &[]),
        ("p:not(:has(~ b))", &["p3"]),
        ("p:nth-last-of-type(1), #d > :nth-last-child(2)", &["b1", "p3"]),
        ("#p\\31", &["p1"]),
        ("p:lang(en)", &["p1"]),
        ("b + p, p + b", &["b1", "p3"]),
        ("p ~ b ~ p", &["p3"]),
        (":is(p, b):not(p + p, b ~ p)", &["p1", "b1"]),
        ("html|p:first-child", &["p1"]),
        ("svg|p", &[]),
    ] {
        assert_eq!(ids(&strict, selector), expected, "{selector}");
    }
    for (selector, is_found) in [(".a", false), (".A", true), (".B", false), ("#D", false), ("div.b.A", true)] {
        assert_eq!(!ids(&strict, selector).is_empty(), is_found, "{selector}");
        assert_eq!(ids(&quirks, selector), ["d"], "{selector}");
    }
}

#[test]
fn places_among_many_siblings_are_those_among_few() {
    let items: String = (1..=100).map(|n| format!("<li id={n}>{n} <b>x</b>{}", "<i></i>".repeat(n % 7))).collect();
    let nested = format!("<ul>{}<li><ol>{items}</ol></ul>", "<li><ul><li>a<li>b<li>c</ul>".repeat(40));
    let page = page(&format!("<ul>{items}</ul>{}{nested}", "<i></i>".repeat(50)));
    let arena = page.arena();
    let place =
        |id: NodeId| page.node(id).unwrap().parent().unwrap().children().filter(|n| n.is_element()).position(|n| n.id == id);
    for (selector, of, is_it) in [
        ("li:nth-child(2n+1)", "li", (|n| n % 2 == 1) as fn(usize) -> bool),
        ("b:nth-child(1)", "b", |n| n == 1),
        ("i:nth-child(-n+40)", "i", |n| n <= 40),
        ("*:nth-child(33)", "*", |n| n == 33),
        ("li:nth-child(2n+1), i:nth-child(3n)", "li, i", |_| true),
    ] {
        let all = css(&page, of);
        let found = css(&page, selector);
        let expected: Vec<Hit> = all.into_iter().filter(|hit| is_it(place(hit.node()).unwrap() + 1)).collect();
        if selector.contains(',') {
            let both = |hit: &Hit| {
                let place = place(hit.node()).unwrap() + 1;
                if arena.name_text(arena.name(hit.node())) == "li" { place % 2 == 1 } else { place % 3 == 0 }
            };
            assert_eq!(found, expected.into_iter().filter(both).collect::<Vec<_>>());
        } else {
            assert_eq!(found, expected, "{selector}");
        }
    }
}

#[test]
fn texts_of_nested_matches_come_in_document_order() {
    let page = page("<div>a<div>b<p>c</p>d</div>e</div><p>f<div>g");
    assert_eq!(show(&page, &css(&page, "div::text")), ["a", "b", "d", "e", "g"]);
    assert_eq!(show(&page, &css(&page, "div::text, p")), ["a", "b", "p", "d", "e", "p", "g"]);
    assert_eq!(show(&page, &css(&page, "div ::text, p::text")), ["a", "b", "c", "d", "e", "f", "g"]);
}
