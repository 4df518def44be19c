#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! The link vectors of the wire contract, recorded from Scrapy's extractor, and the pages that broke other crawlers.

use serde_json::{Value, json};

use super::*;

const VECTORS: &str = include_str!("../../tests/data/link_extraction.json");

/// Documents where a browser answers otherwise than Scrapy, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("base-far", "a base element counts wherever it stands"),
    ("relative-forms", "https:rel on an http page is https://rel/ in the URL standard, not an error"),
    ("duplicates", "a URL with an empty query is another one in the URL standard"),
    ("malformed-unclosed", "an HTML5 tree ends the anchor at the paragraph and opens it again inside"),
    ("meta-charset", QUERY_ENCODING),
    ("header-1251", QUERY_ENCODING),
    ("latin1-as-1252", QUERY_ENCODING),
    ("shift-jis", QUERY_ENCODING),
    ("nul-and-controls", "a NUL in an attribute is U+FFFD in HTML5"),
];
const QUERY_ENCODING: &str = "query characters are encoded as UTF-8, not in the encoding of the document";

/// The same for single selectors.
const QUERY_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("nofollow", "a[rel~=nofollow]::attr(href)", "HTML compares the values of rel without regard to case"),
    ("malformed-unclosed", "a::attr(href)", "an HTML5 tree ends the anchor at the paragraph and opens it again inside"),
    ("malformed-unclosed", "a::text", "an HTML5 tree ends the anchor at the paragraph and opens it again inside"),
    ("malformed-unclosed", "li::text", "an HTML5 tree puts an anchor around the text of the list items"),
    ("uppercase-tags", "p.price::text", "a page without a doctype is in quirks mode, where classes match in any case"),
    ("empty-doc", "body", "an HTML5 tree always has a body"),
    ("xhtml", "p span::text", "a slash does not close a paragraph in HTML"),
    ("xhtml", "body > span::text", "a slash does not close a paragraph in HTML"),
    ("nul-and-controls", "a::attr(href)", "a NUL in an attribute is U+FFFD in HTML5"),
];

fn page_url() -> Url {
    Url::parse("http://a.test/d/p.html").unwrap()
}

fn urls(html: &str, document: &str) -> Vec<String> {
    let document = Url::parse(document).unwrap();
    extract_links(&Page::parse(html), &document).into_iter().map(|link| link.url.into()).collect()
}

fn shown(links: &[Link]) -> Value {
    let one = |link: &Link| json!({"url": link.url.as_str(), "text": link.text, "fragment": "", "nofollow": link.nofollow});
    links.iter().map(one).collect()
}

#[test]
fn links_are_those_of_scrapy_unless_a_browser_knows_better() {
    let data: Value = serde_json::from_str(VECTORS).unwrap();
    let mut wrong = Vec::new();
    for document in data["documents"].as_array().unwrap() {
        let id = document["id"].as_str().unwrap();
        let page = Page::parse(document["html"].as_str().unwrap());
        let base = Url::parse(document["base_url"].as_str().unwrap()).unwrap();
        let found = shown(&links_with(&page, &base, &LinkFilter::new()));
        let right = found == document["links"];
        let listed = EXCEPTIONS.iter().any(|(name, _)| *name == id);
        if right == listed {
            wrong.push(format!("{id} (listed: {listed})\n  found    {found}\n  expected {}", document["links"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_queries_of_the_link_vectors_give_the_same() {
    let data: Value = serde_json::from_str(VECTORS).unwrap();
    let mut wrong = Vec::new();
    for document in data["documents"].as_array().unwrap() {
        let id = document["id"].as_str().unwrap();
        let page = Page::parse(document["html"].as_str().unwrap());
        for query in document["queries"].as_array().unwrap().iter().filter(|query| query["type"] == "css") {
            let selector = query["query"].as_str().unwrap();
            let found = page.try_css(selector).map(|found| found.getall());
            let expected = &query["getall"];
            let right = match &found {
                Ok(found) => json!(found) == *expected,
                Err(_) => expected.is_null(),
            };
            if right == QUERY_EXCEPTIONS.iter().any(|(name, text, _)| (*name, *text) == (id, selector)) {
                wrong.push(format!("{id} {selector}\n  found    {found:?}\n  expected {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_base_element_is_honoured_wherever_it_stands() {
    let late = format!("<!-- {} --><base href='/late/'><a href='x'>", " ".repeat(5000));
    for (html, expected) in [
        ("<base href='http://b.test/r/'><a href='x'>", "http://b.test/r/x"),
        ("<base href='/q/'><a href='x'>", "http://a.test/q/x"),
        ("<!-- <base href='http://evil.test/'> --><a href='x'>", "http://a.test/d/x"),
        ("<script>var t=\"<base href='http://evil.test/'>\"</script><a href='x'>", "http://a.test/d/x"),
        (&late, "http://a.test/late/x"),
        ("<base href='/one/'><base href='/two/'><a href='x'>", "http://a.test/one/x"),
        ("<base target=_blank><base href='/one/'><a href='x'>", "http://a.test/one/x"),
        ("<base href='javascript:1'><a href='x'>", "http://a.test/d/x"),
        ("<base href='http://[bad'><a href='x'>", "http://a.test/d/x"),
    ] {
        assert_eq!(urls(html, page_url().as_str()), [expected], "{html}");
    }
}

#[test]
fn odd_addresses_are_read_as_a_browser_reads_them() {
    let hrefs = [
        "\n   https://a.test/x \t",
        "impressum.html",
        "?p=2",
        "#top",
        "/a\tb",
        "//c.test/y",
        "",
        "mailto:u@example.test",
        "javascript:void(0)",
        "tel:1",
        "data:text/html,x",
        "HTTPS://A.test/Z",
        "./../up",
        "http://[bad",
    ];
    let html: String = hrefs.iter().map(|href| format!("<a href=\"{href}\">t</a>")).collect();
    assert_eq!(
        urls(&html, "https://a.test/de/start.html"),
        [
            "https://a.test/x",
            "https://a.test/de/impressum.html",
            "https://a.test/de/start.html?p=2",
            "https://a.test/de/start.html#top",
            "https://a.test/ab",
            "https://c.test/y",
            "https://a.test/de/start.html",
            "https://a.test/Z",
            "https://a.test/up"
        ]
    );
}

fn filtered(filter: &LinkFilter) -> Vec<String> {
    let html = r#"<nav><a href="http://a.test/nav">n</a></nav><main><a href="/p/1">1</a><a href="http://sub.b.test/p/2">2</a>
        <area href="/p/3.pdf"><a href="http://notb.test/p/4">4</a><a class=in href="/t.TAR.GZ">5</a></main>"#;
    links_with(&Page::parse(html), &page_url(), filter).into_iter().map(|link| link.url.into()).collect()
}

#[test]
fn a_filter_chooses_by_pattern_domain_extension_and_place() {
    let all = ["http://a.test/nav", "http://a.test/p/1", "http://sub.b.test/p/2", "http://notb.test/p/4"];
    assert_eq!(filtered(&LinkFilter::new()), all);
    assert_eq!(filtered(&LinkFilter::new().allow(r"/p/\d").unwrap()), all[1..]);
    assert_eq!(filtered(&LinkFilter::new().allow("/p/").unwrap().deny("notb").unwrap()), all[1..3]);
    assert_eq!(filtered(&LinkFilter::new().allow("nav").unwrap().allow("/1").unwrap()), all[..2]);
    assert_eq!(filtered(&LinkFilter::new().allow_domain("B.test")), [all[2]]);
    assert_eq!(filtered(&LinkFilter::new().deny_domain(".b.test").deny_domain("a.test")), [all[3]]);
    assert_eq!(filtered(&LinkFilter::new().restrict_css("nav").unwrap()), all[..1]);
    let both = LinkFilter::new().restrict_css("a.in").unwrap().restrict_css("nav").unwrap();
    assert_eq!(filtered(&both.clone().deny_extensions([".pdf"])), [all[0], "http://a.test/t.TAR.GZ"]);
    assert_eq!(filtered(&both.deny_extensions(["tar.gz"])), all[..1]);
    assert_eq!(filtered(&LinkFilter::new().deny_extensions::<_, &str>([])).len(), 6);
    assert!(LinkFilter::new().allow("(").is_err() && LinkFilter::new().deny("(").is_err());
    assert!(LinkFilter::new().restrict_css("a[").is_err());
}

#[test]
fn hrefs_come_from_elements_values_and_texts() {
    let page = Page::parse("<a href=/1>x</a><a>y</a><link href=/2><p>/3</p>");
    assert_eq!(hrefs(&page.css("a, link")).collect::<Vec<_>>(), ["/1", "/2"]);
    assert_eq!(hrefs(&page.css("a::attr(href)")).collect::<Vec<_>>(), ["/1"]);
    assert_eq!(hrefs(&page.css("p::text")).collect::<Vec<_>>(), ["/3"]);
}

#[test]
fn nested_anchors_cannot_blow_up_the_texts() {
    let html: String = (0..200).map(|n| format!("<a href=/{n}><object>text of link é")).collect();
    let links = extract_links(&Page::parse(&html), &page_url());
    assert_eq!(links.len(), 200);
    assert!(links.iter().all(|link| link.text.len() <= 2048 && link.text.starts_with("text")));
    assert!(links[0].text.len() > 2040);
}
