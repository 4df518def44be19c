#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! The link vectors of the wire contract, recorded from Scrapy's extractor, and the pages that broke other crawlers.

use base64::Engine as _;
use encoding_rs::Encoding;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::web::charset;
use crate::web::document_url::join;
use crate::web::key::seen_key;

const VECTORS: &str = include_str!("../../../tests/data/link_extraction.json");

/// Documents of the vectors where our links differ, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("base-far", "a base element counts wherever it stands"),
    ("relative-forms", "https:rel on an http page is https://rel/ in the URL standard, not an error"),
    ("duplicates", "a URL with an empty query is another one in the URL standard"),
    ("malformed-unclosed", TREE),
    ("undeclared-invalid", GUESS),
    ("nul-and-controls", "a NUL in an attribute is U+FFFD in HTML5, as the vector says"),
];
const GUESS: &str = "the encoding is a guess, as the vector says";
const TREE: &str = "an HTML5 tree ends the anchor at the paragraph and opens it again inside, as the vector says";

/// The same for addresses that are joined one by one.
const JOIN_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("base-far", "x", "a base element counts wherever it stands"),
    ("duplicates", "/a?", "a URL with an empty query is another one in the URL standard"),
    ("base-bad", "a", "a base that is not of the web does not count"),
];

/// The same for single selectors.
const QUERY_EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("nofollow", "a[rel~=nofollow]::attr(href)", "HTML compares the values of rel without regard to case"),
    ("malformed-unclosed", "a::attr(href)", TREE),
    ("malformed-unclosed", "a::text", TREE),
    ("malformed-unclosed", "li::text", "an HTML5 tree puts an anchor around the text of the list items"),
    ("malformed-unclosed", "//i//text()", "an HTML5 tree opens a misnested i again behind its b"),
    ("undeclared-invalid", "p::text", GUESS),
    ("undeclared-invalid", "a::attr(href)", GUESS),
    ("bom-utf8", "//body/node()", "libxml2 escapes addresses where it writes HTML, the HTML standard does not"),
    ("uppercase-tags", "//A", "browsers compare names of HTML elements in any case, in XPath too"),
    ("uppercase-tags", "p.price::text", "a page without a doctype is in quirks mode, where classes match in any case"),
    ("empty-doc", "body", "an HTML5 tree always has a body"),
    ("xhtml", "p span::text", "a slash does not close a paragraph in HTML"),
    ("xhtml", "body > span::text", "a slash does not close a paragraph in HTML"),
    ("nul-and-controls", "a::attr(href)", "a NUL in an attribute is U+FFFD in HTML5"),
];

/// A document of the vectors, as a crawl would read it.
struct Document {
    id: String,
    vector: Value,
    page: Page,
    url: Url,
    encoding: &'static Encoding,
}

impl Document {
    fn of(vector: &Value) -> Self {
        let body = match vector["body_base64"].as_str() {
            Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).unwrap(),
            None => vector["html"].as_str().unwrap().as_bytes().to_vec(),
        };
        let (text, encoding) = charset::decode(&body, vector["content_type"].as_str(), Some("com"));
        Self {
            id: vector["id"].as_str().unwrap().to_owned(),
            vector: vector.clone(),
            page: Page::parse(&text),
            url: Url::parse(vector["base_url"].as_str().unwrap()).unwrap(),
            encoding,
        }
    }

    fn source(&self) -> Source<'_> {
        Source::new(&self.page, &self.url, self.encoding)
    }
}

fn documents() -> Vec<Document> {
    let data: Value = serde_json::from_str(VECTORS).unwrap();
    let documents: Vec<Document> = data["documents"].as_array().unwrap().iter().map(Document::of).collect();
    assert_eq!(documents.len(), 40);
    documents
}

fn page_url() -> Url {
    Url::parse("http://a.test/d/p.html").unwrap()
}

fn urls_by(extractor: &LinkExtractor, html: &str, document: &str) -> Vec<String> {
    let document = Url::parse(document).unwrap();
    extractor.links_of(&Page::parse(html), &document).into_iter().map(|link| link.url.into()).collect()
}

fn urls(html: &str, document: &str) -> Vec<String> {
    urls_by(&LinkExtractor::new(), html, document)
}

fn shown(links: &[Link]) -> Value {
    // Scrapy leaves the fragment in the URL as well, and its own field empty.
    let one = |link: &Link| json!({"url": link.url.as_str(), "text": link.text, "fragment": "", "nofollow": link.nofollow});
    links.iter().map(one).collect()
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_40_documents_give_the_links_of_scrapy_unless_a_browser_knows_better() {
    let mut wrong = Vec::new();
    for document in documents() {
        let found = shown(&LinkExtractor::new().extract(&document.source()).links);
        let expected = &document.vector["links"];
        let listed = EXCEPTIONS.iter().any(|(name, _)| *name == document.id);
        if (found == *expected) == listed {
            wrong.push(format!("{} (listed: {listed})\n  found    {found}\n  expected {expected}", document.id));
        }
    }
    none(&wrong);
}

#[test]
fn documents_that_an_html5_tree_reads_otherwise_give_the_addresses_of_that_tree() {
    let mut compared = 0;
    for document in documents() {
        let Some(expected) = document.vector["html5_hrefs"].as_array() else { continue };
        compared += 1;
        let anchors = document.page.css("a[href], area[href]");
        assert_eq!(hrefs(&anchors).map(Value::from).collect::<Vec<_>>(), *expected, "{}", document.id);
    }
    assert!(compared >= 2, "{compared}");
}

#[test]
fn every_address_of_the_vectors_joins_as_there() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for document in documents() {
        let base = base_url(&document.page, &document.url);
        for pair in document.vector["urljoin"].as_array().unwrap() {
            let href = pair[0].as_str().unwrap();
            let found = join(&base, href, document.encoding).ok().map(String::from);
            // Scrapy encodes what a URL cannot hold only when it sends the request.
            let absolute = pair[1].as_str().filter(|text| Url::parse(text).is_ok());
            let expected = absolute.and_then(|text| join(&base, text, document.encoding).ok()).map(String::from);
            let listed = JOIN_EXCEPTIONS.iter().any(|(id, address, _)| (*id, *address) == (document.id.as_str(), href));
            compared += 1;
            if (found == expected) == listed {
                wrong.push(format!("{} {href:?} (listed: {listed}): {found:?}, expected {expected:?}", document.id));
            }
        }
    }
    none(&wrong);
    assert!(compared > 150, "{compared}");
}

#[test]
fn every_query_of_the_link_vectors_gives_the_same() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for document in documents() {
        for query in document.vector["queries"].as_array().unwrap() {
            let text = query["query"].as_str().unwrap();
            let found = match query["type"].as_str().unwrap() {
                "css" => document.page.try_css(text),
                "xpath" => document.page.try_xpath(text),
                other => panic!("{other}"),
            };
            let expected = &query["getall"];
            let right = match found.as_ref().map(Selection::getall) {
                Ok(found) => json!(found) == *expected,
                Err(_) => expected.is_null(),
            };
            compared += 1;
            if right == QUERY_EXCEPTIONS.iter().any(|(id, query, _)| (*id, *query) == (document.id.as_str(), text)) {
                wrong.push(format!("{} {text}\n  found    {found:?}\n  expected {expected}", document.id));
            }
        }
    }
    none(&wrong);
    assert!(compared > 120, "{compared}");
}

#[test]
fn case_h01_base_element() {
    let late = format!("<!-- {} --><base href='/late/'><a href='x'>", " ".repeat(5000));
    for (name, html, expected) in [
        ("plain", "<base href='http://b.test/r/'><a href='x'>", "http://b.test/r/x"),
        ("relative", "<base href='/q/'><a href='x'>", "http://a.test/q/x"),
        ("comment", "<!-- <base href='http://evil.test/'> --><a href='x'>", "http://a.test/d/x"),
        ("script", "<script>var t=\"<base href='http://evil.test/'>\"</script><a href='x'>", "http://a.test/d/x"),
        ("late", &late, "http://a.test/late/x"),
        ("two", "<base href='/one/'><base href='/two/'><a href='x'>", "http://a.test/one/x"),
        ("no_href", "<base target=_blank><base href='/one/'><a href='x'>", "http://a.test/one/x"),
        ("bad_scheme", "<base href='javascript:1'><a href='x'>", "http://a.test/d/x"),
        ("bad address", "<base href='http://[bad'><a href='x'>", "http://a.test/d/x"),
        ("behind the link", "<a href='x'><base href='/q/'>", "http://a.test/q/x"),
        ("in a template", "<template><base href='/t/'></template><base href='/q/'><a href='x'>", "http://a.test/q/x"),
        ("only in a template", "<template><base href='/t/'></template><a href='x'>", "http://a.test/d/x"),
    ] {
        assert_eq!(urls(html, page_url().as_str()), [expected], "{name}");
    }
}

#[test]
fn case_h02_odd_hrefs() {
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
    let (page, document) = (Page::parse(&html), Url::parse("https://a.test/de/start.html").unwrap());
    let found = LinkExtractor::new().extract(&Source::new(&page, &document, UTF_8));
    assert_eq!(
        found.links.iter().map(|link| link.url.as_str()).collect::<Vec<_>>(),
        [
            "https://a.test/x",
            "https://a.test/de/impressum.html",
            "https://a.test/de/start.html?p=2",
            // The page itself: the duplicate filter has seen it, for which fragments do not count.
            "https://a.test/de/start.html#top",
            "https://a.test/ab",
            "https://c.test/y",
            "https://a.test/de/start.html",
            "https://a.test/Z",
            "https://a.test/up"
        ]
    );
    assert_eq!(found.skipped, 5, "mailto, javascript, tel, data, and what does not parse");
    let key = |url: &str| seen_key(&http::Method::GET, &Url::parse(url).unwrap(), b"");
    assert_eq!(key("https://a.test/de/start.html#top"), key(document.as_str()));
    assert_eq!(page.take_errors(), []);
}

const SHOP: &str = r#"<nav><a href="http://a.test/nav">n</a></nav><main><a href="/p/1">1</a><a href="http://sub.b.test/p/2">2</a>
    <area href="/p/3.pdf"><a href="http://notb.test/p/4">4</a><a class=in href="/t.TAR.GZ">5</a></main>"#;

fn filtered(extractor: &LinkExtractor) -> Vec<String> {
    urls_by(extractor, SHOP, page_url().as_str())
}

#[test]
fn links_are_chosen_by_pattern_domain_extension_and_place() {
    let all = ["http://a.test/nav", "http://a.test/p/1", "http://sub.b.test/p/2", "http://notb.test/p/4"];
    let new = LinkExtractor::new;
    assert_eq!(filtered(&new()), all);
    assert_eq!(filtered(&new().allow(r"/p/\d")), all[1..]);
    assert_eq!(filtered(&new().allow("/p/").deny("notb")), all[1..3]);
    assert_eq!(filtered(&new().allow("nav").allow("/1")), all[..2]);
    assert_eq!(filtered(&new().allow_domain("B.test")), [all[2]]);
    assert_eq!(filtered(&new().deny_domain(".b.test").deny_domain("a.test")), [all[3]]);
    assert_eq!(filtered(&new().restrict_css("nav")), all[..1]);
    let both = new().restrict_css("a.in").restrict_css("nav");
    assert_eq!(filtered(&both.clone().deny_extensions([".pdf"])), [all[0], "http://a.test/t.TAR.GZ"]);
    assert_eq!(filtered(&both.deny_extensions(["tar.gz"])), all[..1]);
    assert_eq!(filtered(&new().deny_extensions::<&str>([])).len(), 6);
    assert!(new().allows(&Url::parse("http://a.test/x").unwrap()));
    assert!(!new().allows(&Url::parse("http://a.test/x.JPG?y.html").unwrap()));
}

#[test]
fn regions_of_css_and_xpath_are_one_set_in_document_order() {
    let new = LinkExtractor::new;
    assert_eq!(filtered(&new().restrict_xpath("//nav")), ["http://a.test/nav"]);
    let both = new().restrict_xpath("//main/a[2]").restrict_css("nav").restrict_xpath("//a[.='1'] | //main");
    let expected = ["http://a.test/nav", "http://a.test/p/1", "http://sub.b.test/p/2", "http://notb.test/p/4"];
    assert_eq!(filtered(&both), expected);
    assert_eq!(filtered(&new().restrict_xpath("count(//a)")), [""; 0]);
    // Regions inside regions give their links once.
    let html = "<div><a href=1>x</a><div><a href=2>y</a></div></div>";
    assert_eq!(
        urls_by(&new().restrict_css("div").keep_doubles(), html, "http://a.test/"),
        ["http://a.test/1", "http://a.test/2"]
    );
}

#[test]
fn links_are_chosen_by_their_text_before_doubles_are_left_out() {
    let html = "<a href=/1><img></a><a href=/1>Read  more</a><a href=/2>less</a>";
    let found = LinkExtractor::new().restrict_text("(?i)read").restrict_text("nothing").links_of(&Page::parse(html), &page_url());
    assert_eq!(shown(&found), json!([{"url": "http://a.test/1", "text": "Read  more", "fragment": "", "nofollow": false}]));
}

#[test]
fn other_elements_and_attributes_can_be_read() {
    let html = "<a href=/1 data-to=/2>x</a><link href=/3><x-card data-to=/4></x-card><img src=/5.png><svg><a xlink:href=/6>y</a>";
    let found = |extractor: LinkExtractor| urls_by(&extractor, html, "http://a.test/").join(" ").replace("http://a.test", "");
    let new = LinkExtractor::new;
    assert_eq!(found(new().attrs(["HREF", "data-to"])), "/1 /2");
    assert_eq!(found(new().tags(["LINK", "x-card"]).attrs(["href", "data-to"])), "/3 /4");
    assert_eq!(found(new().tags(["*"]).attrs(["data-to"])), "/2 /4");
    assert_eq!(found(new().tags(["img"]).attrs(["src"])), "");
    assert_eq!(found(new().tags(["img"]).attrs(["src"]).deny_extensions(["gif"])), "/5.png");
    assert_eq!(found(new().attrs(["xlink:href"])), "/6");
    assert_eq!(found(new().tags::<&str>([])) + &found(new().attrs::<&str>([])), "");
    // Names that no page has are no error.
    assert_eq!(found(new().tags(["a]", "1", "-"]).attrs(["\"", "a b"])), "");
}

#[test]
fn doubles_canonical_forms_and_nofollow_are_as_asked() {
    let html = "<a href='/a?b=1&a=2#x'>1</a><a href='/a?b=1&a=2#x' rel=nofollow>2</a><a rel='ugc,NOFOLLOW' href=/b>3</a><a href='/a?a=2&b=1'>4</a>";
    let found = |extractor: LinkExtractor| urls_by(&extractor, html, "http://a.test/").join(" ").replace("http://a.test", "");
    let new = LinkExtractor::new;
    assert_eq!(found(new()), "/a?b=1&a=2#x /b /a?a=2&b=1");
    assert_eq!(found(new().keep_doubles()), "/a?b=1&a=2#x /a?b=1&a=2#x /b /a?a=2&b=1");
    assert_eq!(found(new().canonicalize()), "/a?a=2&b=1 /b");
    assert_eq!(found(new().canonicalize().keep_doubles()), "/a?a=2&b=1 /a?a=2&b=1 /b /a?a=2&b=1");
    assert_eq!(found(new().skip_nofollow()), "/a?b=1&a=2#x /a?a=2&b=1");
    let links = new().links_of(&Page::parse(html), &page_url());
    assert_eq!((links[0].fragment(), links[1].fragment()), (Some("x"), None));
}

#[test]
fn values_are_changed_or_left_out_before_they_are_resolved() {
    let html = "<base href=/d/><a href=\" go('x') \">1</a><a href=/y>2</a><a href='go(mailto:a)'>3</a>";
    let process = |value: &str| value.starts_with("go(").then(|| value.replace(['g', 'o', '(', ')', '\''], ""));
    let (page, document) = (Page::parse(html), page_url());
    let source = Source::new(&page, &document, UTF_8);
    let found = LinkExtractor::new().process_value(process).extract(&source);
    assert_eq!((shown(&found.links)[0]["url"].as_str(), found.links.len(), found.skipped), (Some("http://a.test/d/x"), 1, 1));
    let raw = LinkExtractor::new().process_value(process).keep_white_space().extract(&source);
    assert_eq!((raw.links.len(), raw.skipped), (0, 1), "the blank in front is handed over");
}

#[test]
fn an_extractor_that_cannot_be_read_finds_nothing_and_says_so() {
    let new = LinkExtractor::new;
    for broken in
        [new().allow("("), new().deny("("), new().restrict_css("a["), new().restrict_xpath("//a["), new().restrict_text("(")]
    {
        let broken = broken.allow("[");
        let page = Page::parse(SHOP);
        assert_eq!(broken.links_of(&page, &page_url()), []);
        assert!(!broken.allows(&page_url()));
        let errors = page.take_errors();
        assert_eq!(errors.len(), 1, "the first error: {errors:?}");
        assert_eq!(broken.checked().unwrap_err(), errors[0]);
    }
    assert!(new().allow("x").checked().is_ok());
}

#[test]
fn a_link_goes_to_the_first_extractor_that_takes_it() {
    let new = LinkExtractor::new;
    let page = Page::parse(
        "<nav><a href=/c?b&a>1</a></nav><a href=/p/1>2</a><a href=/p/2>3</a><a href=mailto:x>4</a><a href=/c?b&a>5</a>",
    );
    let extractors = [
        new().allow("/p/1"),
        new().allow("/p/"),
        new().restrict_css("nav").canonicalize(),
        new(),
        new().tags(["area"]),
        new().allow("("),
    ];
    let (shares, skipped) = LinkExtractor::share_out(extractors.iter(), &Source::new(&page, &page_url(), UTF_8));
    let shares: Vec<String> = shares
        .iter()
        .map(|links| {
            links.iter().map(|link| link.url.path().to_owned() + link.url.query().unwrap_or("")).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(shares, ["/p/1", "/p/2", "/ca=&b=", "", "", ""]);
    assert_eq!(skipped, 1, "the places of all of the page are read once");
    assert_eq!(page.take_errors().len(), 1);
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
    let links = LinkExtractor::new().links_of(&Page::parse(&html), &page_url());
    assert_eq!(links.len(), 200);
    assert!(links.iter().all(|link| link.text.len() <= 2048 && link.text.starts_with("text")));
    assert!(links[0].text.len() > 2040);
}

#[test]
fn a_long_base_cannot_blow_up_the_urls() {
    let html = format!("<base href='/{}/'>{}", "b".repeat(100_000), "<a href=x>".repeat(10_000));
    let (page, document) = (Page::parse(&html), page_url());
    let found = LinkExtractor::every().keep_doubles().extract(&Source::new(&page, &document, UTF_8));
    assert_eq!(found.links.len() + found.skipped, 10_000);
    assert!((10..100).contains(&found.links.len()), "{}", found.links.len());
}

proptest! {
    #[test]
    fn links_of_any_bytes_are_links_of_the_web_and_each_once(body in proptest::collection::vec(any::<u8>(), 0..200), pieces in proptest::collection::vec(0..PIECES.len(), 0..40)) {
        let markup: Vec<u8> = pieces.iter().flat_map(|at| PIECES[*at].bytes()).chain(body).collect();
        let (text, encoding) = charset::decode(&markup, None, None);
        let (page, document) = (Page::parse(&text), page_url());
        let source = Source::new(&page, &document, encoding);
        let all = LinkExtractor::every();
        for extractor in [
            all.clone(),
            all.clone().restrict_css("div, a").restrict_xpath("//p//a").canonicalize(),
            all.clone().tags(["*"]).attrs(["href", "src", "action"]).restrict_text("."),
            LinkExtractor::new().skip_nofollow().process_value(|value| Some(value.replace('/', "//"))),
        ] {
            let links = extractor.extract(&source).links;
            let different: HashSet<&str> = links.iter().map(|link| link.url.as_str()).collect();
            prop_assert_eq!(different.len(), links.len());
            prop_assert!(links.iter().all(|link| is_web(&link.url) && extractor.allows(&link.url) && link.text.len() <= 2048));
        }
        prop_assert_eq!(page.take_errors(), []);
    }
}

const PIECES: &[&str] = &[
    "<a href=",
    "<a href='",
    "'>",
    ">",
    "</a>",
    "<base href=//b.test/q/>",
    "<base href=",
    "/x?é=ж#y ",
    "http://",
    "https:[",
    "<area href=?",
    "<p>",
    "<div>",
    "<template>",
    "</template>",
    "<meta charset=koi8-r>",
    "\u{feff}",
    "\0",
    "&#x41;&amp",
    " rel=nofollow ",
    "javascript:",
    "\n",
    "<table>",
    "<svg>",
    "<a href=a><object><a href=b>",
    "text é \u{1f980}",
    "%",
    "\\",
    "@:0/",
];
