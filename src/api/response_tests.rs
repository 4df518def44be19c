#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! What a callback reads from a body, and what that costs.

use http::HeaderValue;
use http::header::CONTENT_TYPE;

use super::*;
use crate::html::{Exceeded, Limits, SelectorKind};
use crate::scheduler::job::RequestId;

/// A response with this body.
pub(crate) fn response(content_type: &'static str, body: impl Into<Bytes>, html: PageOptions) -> Response {
    let job = Arc::new(Job::page(RequestId(1), 1, Request::get("http://a.example/d/", &()).unwrap()));
    let body = body.into();
    let reply = Reply {
        status: StatusCode::OK,
        version: Version::HTTP_11,
        headers: [(CONTENT_TYPE, HeaderValue::from_static(content_type))].into_iter().collect(),
        wire_bytes: body.len() as u64,
        body,
        flags: BodyFlags { decoded: true, ..BodyFlags::default() },
    };
    Response::new(job, Arc::new(reply), Duration::ZERO, Rc::default()).read_with(html)
}

fn html(body: impl Into<Bytes>) -> Response {
    response("text/html", body, PageOptions::default())
}

#[test]
fn a_body_in_utf_8_is_copied_neither_for_its_text_nor_for_its_tree() {
    for mark in ["", "\u{feff}"] {
        let page = html(format!("{mark}<title>grüße</title><p id=one>two &amp; three"));
        let body = page.body().as_ptr_range();
        assert!(body.contains(&page.text().as_ptr()));
        assert!(page.text().starts_with("<title>"));
        for text in page.css("title::text, p::attr(id)").strs() {
            assert!(body.contains(&text.as_ptr()), "{text}");
        }
        assert_eq!(page.page().document().source().as_ptr(), page.text().as_ptr());
        assert_eq!((page.encoding(), page.css("p::text").get().as_deref()), ("UTF-8", Some("two & three")));
    }
}

#[test]
fn a_body_in_another_encoding_is_decoded_once() {
    let page = response("text/html; charset=windows-1251", b"<p>\xcf\xf0\xe8\xe2\xe5\xf2".to_vec(), PageOptions::default());
    assert_eq!((page.text(), page.encoding()), ("<p>Привет", "windows-1251"));
    assert_eq!(page.page().document().source().as_ptr(), page.text().as_ptr());
    assert_eq!(page.xpath("//p/text()").get().as_deref(), Some("Привет"));
    let broken = html(b"<meta charset=utf-8><p>a\xffb".to_vec());
    assert_eq!(broken.css("p::text").get().as_deref(), Some("a\u{fffd}b"));
    assert_eq!(html("").css("body").len(), 1);
}

#[test]
fn css_xpath_and_patterns_are_asked_of_one_tree() {
    let page = html("<base href=/x/><p class=price>12.50 EUR</p><a href=y>more</a>");
    assert_eq!(page.css(".price").xpath("text()").re_first(r"[\d.]+").as_deref(), Some("12.50"));
    assert_eq!(page.xpath("//a/@href").get().as_deref(), Some("y"));
    assert_eq!(page.try_xpath("count(//a)").unwrap().number(), Some(1.0));
    assert!(matches!(page.xpath_value("count(//a)"), Ok(XPathValue::Number(_))));
    assert_eq!(page.xpath_with("//a[.=$t]/@href", &Variables::new().with("t", "more")).len(), 1);
    assert_eq!(page.links()[0].url.as_str(), "http://a.example/x/y");
    assert_eq!(page.take_selector_errors(), []);
    assert!(page.xpath("//a[").is_empty() && page.css("a[").is_empty() && page.re("(").is_empty());
    let kinds: Vec<_> = page.take_selector_errors().iter().map(SelectorError::kind).collect();
    assert_eq!(kinds, [SelectorKind::Pattern, SelectorKind::XPath, SelectorKind::Css]);
    for _ in 0..1_000 {
        let _ = (page.re("("), page.re_first("("));
    }
    assert_eq!(page.take_selector_errors().len(), 16, "no more are kept");
    assert!(page.try_xpath("//a[").is_err() && page.xpath_value("//a[").is_err());
}

#[test]
fn the_flags_know_of_the_tree_once_it_is_built() {
    let limits = Limits { depth: 10, ..Limits::default() };
    let deep = response("text/html", "<div>".repeat(20), PageOptions::default().limits(limits));
    assert_eq!(deep.flags(), BodyFlags { decoded: true, ..BodyFlags::default() });
    assert!(deep.built_page().is_none());
    assert_eq!(deep.css("div").len(), 20);
    let flags = deep.flags();
    assert!(flags.decoded && flags.html.depth && !flags.html.is_cut());
    let plain = html("<p>x");
    assert_eq!((plain.css("p").len(), plain.flags().html), (1, Exceeded::default()));
}

#[test]
fn case_c01_bom_beats_header() {
    let body = "\u{feff}<!DOCTYPE html><title>Привет</title>";
    let page = response("text/html; charset=cp1251", body, PageOptions::default());
    assert!(page.encoding().eq_ignore_ascii_case("utf-8"), "{}", page.encoding());
    assert_eq!(page.css("title::text").get().as_deref(), Some("Привет"));
    assert!(page.text().starts_with("<!DOCTYPE"), "{}", page.text());
}

#[test]
fn case_c02_charset_only_in_meta() {
    let mut body = b"<html><head><meta content='text/html; charset=windows-1251' http-equiv='Content-Type'><title>".to_vec();
    body.extend(b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0</title></head></html>");
    let page = html(body);
    assert_eq!((page.encoding(), page.css("title::text").get().as_deref()), ("windows-1251", Some("Привет мир")));
    // A guess takes these bytes for windows-1251 without a declaration, and must not be asked when there is one.
    let mut body = b"<meta content='text/html; charset=koi8-r' http-equiv='Content-Type'><title>".to_vec();
    body.extend(b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0</title>");
    assert_eq!(html(body).css("title::text").get().as_deref(), Some("оПХБЕР ЛХП"));
}

#[test]
fn a_declaration_late_in_a_long_head_counts_and_several_content_types_are_read_together() {
    let mut body = format!("<head><script>{}</script><meta charset=koi8-r><title>", "x".repeat(5_000)).into_bytes();
    body.extend(b"\xf0\xf2\xe9\xf7\xe5\xf4</title>");
    assert_eq!(html(body).css("title::text").get().as_deref(), Some("ПРИВЕТ"));
    let page = response("text/html; charset=koi8-r, text/html", b"<p>\xf0".to_vec(), PageOptions::default());
    assert_eq!(page.css("p::text").get().as_deref(), Some("П"));
}
