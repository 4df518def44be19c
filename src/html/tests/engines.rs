//! The engines behind one page: which of them answers, and what is said where they differ.

use bytes::Bytes;

use super::selection::SHOP;
use super::serialize::documents;
use crate::html::{Document, Engine, Limits, Page, PageOptions};

fn page(text: &str, engine: Engine) -> Page {
    Page::parse_with(text, &PageOptions::default().engine(engine))
}

#[test]
fn a_document_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Document>();
}

#[test]
fn every_engine_gives_the_same_on_an_ordinary_page() {
    for selector in [
        "title::text",
        "#list a::attr(href)",
        "li",
        "#outer *::text",
        "a::attr(title), a::attr(href), b",
        "p:first-child",
        "li:nth-child(2) > a",
        "nav",
        "p::text",
    ] {
        let expected = page(SHOP, Engine::Dragline).css(selector).getall();
        for engine in [Engine::Scraper, Engine::Compare] {
            let page = page(SHOP, engine);
            assert_eq!(page.css(selector).getall(), expected, "{selector} {engine:?}");
            assert_eq!(page.css(selector).get(), expected.first().cloned(), "{selector} {engine:?}");
            let nested = page.css("#list, #outer").css(selector).getall();
            assert_eq!(nested, page.xpath("//*[@id='list' or @id='outer']").css(selector).getall(), "{selector} {engine:?}");
            assert_eq!(page.take_compared().differing, 0, "{selector}");
        }
    }
}

#[test]
fn xpath_and_texts_are_asked_of_a_copy_of_the_other_tree() {
    let page = page("<p>1<p b=2 a=1>x &amp; <script>no</script>y<template><i>t</i></template>", Engine::Scraper);
    assert_eq!(page.xpath("//p[2]/@b").get().as_deref(), Some("2"));
    assert_eq!(page.css("p").xpath("following-sibling::p").css("::attr(a)").get().as_deref(), Some("1"));
    let last = page.css("p:last-child");
    assert_eq!(last.text().as_deref(), Some("x & y"));
    assert_eq!(last.get().as_deref(), Some("<p b=\"2\" a=\"1\">x &amp; <script>no</script>y<template><i>t</i></template></p>"));
    assert_eq!(page.css("i::text").get().as_deref(), Some("t"));
}

#[test]
fn a_selector_only_one_engine_knows_is_not_compared() {
    let page = page("<p lang=en>x", Engine::Compare);
    assert_eq!(page.take_compared().answers, 1, "the tree");
    assert_eq!(page.css("p:lang(en)").len(), 1);
    assert_eq!(page.take_compared().answers, 0);
    assert_eq!(page.css("p").len(), 1);
    assert_eq!(page.take_compared().answers, 1);
    assert!(page.take_errors().is_empty());
}

#[test]
fn a_bad_selector_is_an_error_with_every_engine() {
    for engine in [Engine::Dragline, Engine::Scraper, Engine::Compare] {
        let page = page("<p>x", engine);
        assert!(page.try_css("p[").is_err(), "{engine:?}");
        assert!(page.css("p[").is_empty());
        assert_eq!(page.take_errors().len(), 1, "{engine:?}");
    }
}

/// What is in pages whose trees differ, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("<?", "html5ever makes a comment of each processing instruction; where it ends is another matter too"),
    ("<annotation-xml encoding", "scraper's tree knows no integration point of HTML in MathML"),
    ("<selectedcontent", "html5ever copies no option"),
];

#[test]
fn trees_of_the_test_suite_are_compared_without_another_difference() {
    let mut differing = Vec::new();
    let mut met = [false; DIFFERENCES.len()];
    for text in documents() {
        let compared = page(&text, Engine::Compare).take_compared();
        let reason = DIFFERENCES.iter().position(|(part, _)| text.contains(part));
        match reason {
            _ if compared.differing == 0 => {}
            Some(reason) => met[reason] = true,
            None => differing.push(format!("{text:?}: {:?}", compared.first)),
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert_eq!(met, [true; DIFFERENCES.len()]);
}

#[test]
fn a_page_keeps_the_bytes_it_is_given() {
    let body = Bytes::from("\u{feff}<p title=x>grüße</p>".to_owned());
    let inside = body.as_ptr_range();
    for engine in [Engine::Dragline, Engine::Compare] {
        let page = Page::from_utf8(body.clone(), &PageOptions::default().engine(engine)).unwrap();
        for text in page.css("p::text, p::attr(title)").strs() {
            assert!(inside.contains(&text.as_ptr()), "{text} was copied");
        }
        assert_eq!(page.css("p::text").get().as_deref(), Some("grüße"));
    }
    let error = Page::from_utf8(Bytes::from_static(b"ab\xffc"), &PageOptions::default()).unwrap_err();
    assert_eq!(error.valid_up_to(), 2);
}

#[test]
fn a_page_says_which_bounds_it_has_met() {
    let options = PageOptions::default().limits(Limits { depth: 20, nodes: 1000, ..Limits::default() });
    assert!(!Page::parse_with("<p>x", &options).exceeded().any());
    let deep = Page::parse_with(&"<div>".repeat(30), &options);
    assert!(deep.exceeded().depth && !deep.exceeded().is_cut());
    assert_eq!(deep.css("div").len(), 30);
    let wide = Page::parse_with(&"<br>".repeat(3000), &options);
    assert!(wide.exceeded().nodes && wide.exceeded().is_cut());
    assert!((900..=1000).contains(&wide.css("br").len()));
}
