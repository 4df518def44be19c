//! Outer HTML: attributes in source order, all else as html5ever writes it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use scraper::{ElementRef, Html};
use serde_json::Value;

use super::selection::SHOP;
use crate::html::by_scraper::{SourceOrder, parse};
use crate::html::from_scraper::{Converted, convert, from_scraper};
use crate::html::{Document, Engine, Page, PageOptions};

const TREES: &str = include_str!("../../../tests/data/html_tree.json");

pub(super) fn documents() -> Vec<String> {
    let table: Value = serde_json::from_str(TREES).unwrap();
    let cases = table["cases"].as_array().unwrap();
    cases.iter().map(|case| case["data"].as_str().unwrap().to_owned()).collect()
}

/// What html5ever writes for each element, and what we write for it without regard to the source order.
fn assert_same_but_for_order(text: &str) {
    let (html, order) = parse(text);
    let Converted { document, nodes } = convert(&html, &SourceOrder::default());
    let whole = document.root().html();
    assert_eq!(whole, html.html(), "{text:?}");
    for (node, theirs) in document.root().descendants().zip(nodes.iter().skip(1)) {
        if let Some(element) = ElementRef::wrap(html.tree.get(*theirs).unwrap()) {
            assert_eq!(node.html(), element.html(), "{text:?}");
        }
    }
    let ours = convert(&html, &order).document.root().html();
    assert_eq!(Html::parse_document(&ours).tree, Html::parse_document(&whole).tree, "{text:?}");
}

#[test]
fn outer_html_is_that_of_html5ever_but_for_the_order_of_attributes() {
    let documents = documents();
    assert!(documents.len() > 1500);
    for text in documents.iter().map(String::as_str).chain([
        SHOP,
        "<p title='a<b>c&amp;&quot;&#39;\u{a0}\u{c2}é'>a&lt;b&gt;c&amp;\"'\u{a0}\u{c2}é</p>",
        "<pre>\n\nx</pre><textarea>\n\n&lt;y</textarea><listing>\nz</listing>",
        "<script>a<b&&c\u{a0}</script><style>a>b</style><xmp><b>&</xmp><iframe><b></iframe><noscript><b>&</noscript>",
        "<svg xml:lang=en xlink:href=u href=v xmlns:xlink=w><style>a&gt;b</style><image/></svg><math definitionurl=x>",
        "<template b a><td z=1 y=2>x</template><br c b a><img src=s alt=a><plaintext>a<b>&",
    ]) {
        assert_same_but_for_order(text);
    }
}

#[test]
fn inner_html_is_what_is_between_the_tags() {
    let document = Document::parse("<div a=1>x &amp; <b c=d>y</b><br></div><script>a<b</script>");
    let inner: Vec<String> = document.body().unwrap().children().map(|child| child.inner_html()).collect();
    assert_eq!(inner, ["x &amp; <b c=\"d\">y</b><br>", "a<b"]);
}

#[test]
fn what_is_in_noscript_is_found() {
    let page = Page::parse("<body><noscript><a href=/plain>x</a></noscript>");
    assert_eq!(page.css("noscript a::attr(href)").get().as_deref(), Some("/plain"));
    assert_eq!(page.css("noscript").get().as_deref(), Some(r#"<noscript><a href="/plain">x</a></noscript>"#));
}

#[test]
fn attributes_keep_the_order_of_the_source() {
    for (text, selector, expected) in [
        ("<a href=1 class=c id=i>x</a>", "a", r#"<a href="1" class="c" id="i">x</a>"#),
        ("<a class=c href=1>x</a>", "a", r#"<a class="c" href="1">x</a>"#),
        // Of doubles the first counts.
        ("<p z=1 a=2 z=3 A=4 m=5>x", "p", r#"<p z="1" a="2" m="5">x</p>"#),
        // The adoption agency makes a second b.
        ("<b z=1 a=2>1<p>2</b>3</p>", "body", r#"<body><b z="1" a="2">1</b><p><b z="1" a="2">2</b>3</p></body>"#),
        // An unclosed formatting element is made again.
        ("<p><i z a>1<p>2", "body", r#"<body><p><i z="" a="">1</i></p><p><i z="" a="">2</i></p></body>"#),
        // What does not belong into a table goes before it.
        (
            "<table z=1 a=2><tr y=1 b=2><td><p z a></table><table><div y=1 c=2>x</table>",
            "body",
            concat!(
                r#"<body><table z="1" a="2"><tbody><tr y="1" b="2"><td><p z="" a=""></p></td></tr></tbody></table>"#,
                r#"<div y="1" c="2">x</div><table></table></body>"#
            ),
        ),
        ("<template z a><p y b>x</template>", "template", r#"<template z="" a=""><p y="" b="">x</p></template>"#),
        (
            "<svg><use xlink:href=a href=b xml:lang=c b=d></svg>",
            "use",
            r#"<use xlink:href="a" href="b" xml:lang="c" b="d"></use>"#,
        ),
        // Later tags add what is missing, behind what is there.
        ("<body z=1 b=2><body y=3 z=4 a=5><body c=6 b=7 y=8>", "body", r#"<body z="1" b="2" y="3" a="5" c="6"></body>"#),
        ("<body a=1><body c=2><body b=3>", "body", r#"<body a="1" c="2" b="3"></body>"#),
        ("<body c=1 b=2><body>x", "body", r#"<body c="1" b="2">x</body>"#),
        ("x<body a=1><body b=2>", "body", r#"<body a="1" b="2">x</body>"#),
        (
            "<i y a></i><html z=1 b=2><u x c></u>",
            "html",
            r#"<html z="1" b="2"><head></head><body><i y="" a=""></i><u x="" c=""></u></body></html>"#,
        ),
    ] {
        for engine in [Engine::Dragline, Engine::Scraper, Engine::Compare] {
            let page = Page::parse_with(text, &PageOptions::default().engine(engine));
            let found = page.css(selector);
            assert_eq!(found.get().as_deref(), Some(expected), "{text} {engine:?}");
            assert_eq!(found.html().as_deref(), Some(expected), "{text} {engine:?}");
            assert_eq!(found.getall(), [expected], "{text} {engine:?}");
            assert_eq!(found.re(r"(?s)^.*$"), [expected.replace("&quot;", "\"")], "{text} {engine:?}");
        }
    }
}

#[test]
fn a_deep_page_is_written_without_deep_calls() {
    let text = "<span z a>".repeat(5_000);
    let document = from_scraper(&Html::parse_document(&text)).document;
    let html = document.body().unwrap().first_child().unwrap().html();
    assert!(html.starts_with(r#"<span a="" z=""><span a="" z="">"#) && html.ends_with("</span></span>"));
}

fn attributes() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec(("[a-eA-Eé-]{1,2}", "[a-c<>&\"\u{a0}é]{0,4}"), 0..12)
}

/// The attributes that count, as they have to be written.
fn written(tags: &[Vec<(String, String)>]) -> String {
    let mut names = BTreeSet::new();
    let mut out = String::new();
    for (name, value) in tags.iter().flatten() {
        let name = name.to_ascii_lowercase();
        if names.insert(name.clone()) {
            let value = value.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
            out += &format!(" {name}=\"{}\"", value.replace('\u{a0}', "&nbsp;"));
        }
    }
    out
}

fn tag(name: &str, attributes: &[(String, String)]) -> String {
    let attributes: String = attributes
        .iter()
        .map(|(name, value)| format!(" {name}=\"{}\"", value.replace('&', "&amp;").replace('"', "&quot;")))
        .collect();
    format!("<{name}{attributes}>")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_attributes_come_back_in_source_order(elements in prop::collection::vec(attributes(), 1..6), bodies in prop::collection::vec(attributes(), 1..4)) {
        let mut text = tag("body", &bodies[0]);
        let mut expected = format!("<body{}>", written(&bodies));
        for element in &elements {
            text += &format!("{}x</p>", tag("p", element));
            expected += &format!("<p{}>x</p>", written(std::slice::from_ref(element)));
        }
        text.extend(bodies[1..].iter().map(|body| tag("body", body)));
        expected += "</body>";
        let page = Page::parse(&text);
        prop_assert_eq!(page.css("body").get(), Some(expected));
    }
}
