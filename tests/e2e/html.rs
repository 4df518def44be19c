//! Pages in a crawl: the engines beside each other, bounds that pages meet, and selectors that cannot be answered.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::books_of_a_job::{logs_with, stat};
use super::harness::{Ended, Folder, Shop};
use super::server::{Answer, Server};
use super::user_crate::start;

/// Elements deeper than a browser keeps open.
fn deep(depth: usize) -> Answer {
    Answer::html(format!("<p>{}<b>at the bottom</b>", "<div>".repeat(depth)))
}

fn pages() -> Server {
    Server::start(|asked| match asked.path() {
        "/offers" => Answer::html(
            "<h1>Offers</h1><table class=offers>
             <tr><td><a href=/p/1>one</a><td class='low price' data-pence=950>9.50 GBP
             <tr><td><a href=/p/22>the &quot;other&quot; one's</a><td class=price data-pence=1200>12.00 GBP</table>",
        ),
        "/deep" | "/deep/again" => deep(600),
        path if path.starts_with("/long/") => Answer::html("<b></b>".repeat(20_000)),
        _ => Answer::html("<p>x"),
    })
}

/// Crawls these paths of [`pages`].
fn read(folder: &Folder, paths: &str, more: &[&str]) -> Ended {
    let server = pages();
    let (base, paths) = (format!("base={}", server.url("")), format!("paths={paths}"));
    start(folder, &[&["crawl", "pages", "-a", &base, "-a", &paths, "-o", "items.jsonl"], more].concat()).end().with_code(0)
}

/// What was found, by path.
fn items(folder: &Folder) -> BTreeMap<String, Value> {
    folder.items("items.jsonl").into_iter().map(|item| (item["path"].as_str().unwrap().to_owned(), item)).collect()
}

#[test]
fn every_engine_crawls_the_bookshop_to_the_same_items() {
    let shops = Folder::new();
    let shop = Shop::start(&shops, &["--products", "60"]);
    let argument = format!("url={}", shop.url);
    let mut expected: Vec<String> = Vec::new();
    for engine in ["dragline", "scraper", "compare"] {
        let folder = Folder::new();
        let setting = format!("HTML_ENGINE={engine}");
        let arguments = ["crawl", "bookshop", "-a", &argument, "-s", &setting, "-s", "RETRY_BACKOFF=0.1", "-o", "items.jsonl"];
        let ended = folder.run(&arguments).with_code(0);
        let mut items: Vec<String> = folder.items("items.jsonl").iter().map(Value::to_string).collect();
        items.sort();
        assert!(items.len() > 60, "{ended}");
        if engine == "dragline" {
            expected = items;
        } else {
            assert_eq!(items, expected, "{engine}");
        }
        // At the least the tree of each page with an item, and one selector on it.
        let compared = stat(&folder, "html/compared");
        assert_eq!(compared.is_some_and(|count| count > 120), engine == "compare", "{compared:?} {ended}");
        assert_eq!(stat(&folder, "html/differences"), None, "{engine}: {ended}");
        assert_eq!(stat(&folder, "html/exceeded/depth"), None, "{engine}: {ended}");
    }
}

#[test]
fn pages_are_taken_apart_alike_by_every_engine() {
    for engine in ["dragline", "scraper", "compare"] {
        let folder = Folder::new();
        let ended = read(&folder, "/offers", &["-s", &format!("HTML_ENGINE={engine}")]);
        let found = json!({
            "title": "Offers",
            "rows": [
                {"name": "one", "link": "/p/1", "price": "9.50"},
                {"name": "the \"other\" one's", "link": "/p/22", "price": "12.00"},
            ],
            "count": 2.0,
            "dear": true,
            "sum": 2150.0,
            "other": "12.00 GBP",
            "classes": ["9.50 GBP\n             "],
            "tested": ["/p/1"],
            "texts": 7,
        });
        assert_eq!(items(&folder)["/offers"]["found"], found, "{engine}: {ended}");
        assert_eq!(stat(&folder, "html/differences"), None, "{engine}: {ended}");
    }
}

#[test]
fn a_page_that_is_too_deep_is_marked_counted_and_logged_once_and_its_items_are_kept() {
    let folder = Folder::new();
    let ended = read(&folder, "/deep,/deep/again,/other", &[]);
    let items = items(&folder);
    for path in ["/deep", "/deep/again"] {
        assert_eq!(items[path]["found"], json!(["at the bottom"]), "{ended}");
        assert_eq!(items[path]["flags"], json!([false, true, false]), "before it is read, depth, whether it ends early");
    }
    assert_eq!(items["/other"]["flags"], json!([false, false, false]));
    assert_eq!(stat(&folder, "html/exceeded/depth"), Some(2), "{ended}");
    assert_eq!(logs_with(&folder, "the tree of a page has met a bound and is not quite what the standard says"), 1, "{ended}");
    ended.says(&["HTML_MAX_DEPTH"]);

    // The other engine knows no such bound.
    for (engine, differences) in [("scraper", None), ("compare", Some(1))] {
        let folder = Folder::new();
        let ended = read(&folder, "/deep,/other", &["-s", &format!("HTML_ENGINE={engine}")]);
        assert_eq!(self::items(&folder)["/deep"]["found"], json!(["at the bottom"]), "{ended}");
        assert_eq!(self::items(&folder)["/deep"]["flags"], json!([false, engine == "compare", false]), "{ended}");
        assert_eq!(stat(&folder, "html/exceeded/depth"), differences, "{engine}: {ended}");
        assert_eq!(stat(&folder, "html/differences"), differences, "{engine}: {ended}");
        assert_eq!(logs_with(&folder, "the engines build different trees"), differences.unwrap_or(0), "{ended}");
    }

    // The bound is a setting; what cuts a page short keeps what stands before.
    let folder = Folder::new();
    let ended = read(&folder, "/deep,/other", &["-s", "HTML_MAX_DEPTH=700", "-s", "HTML_MAX_NODES=100"]);
    assert_eq!(self::items(&folder)["/deep"]["flags"], json!([false, false, true]), "{ended}");
    assert_eq!(self::items(&folder)["/other"]["found"], "<p>x</p>");
    assert_eq!((stat(&folder, "html/exceeded/depth"), stat(&folder, "html/exceeded/nodes")), (None, Some(1)), "{ended}");
    assert_eq!(logs_with(&folder, "the tree of a page has met a bound and ends early"), 1, "{ended}");
}

#[test]
fn a_selector_that_cannot_be_answered_fails_its_callback_and_says_why() {
    let folder = Folder::new();
    let paths = [
        "/other",
        "/bad/css",
        "/bad/nested",
        "/bad/xpath",
        "/bad/function",
        "/bad/variable",
        "/bad/pattern",
        "/long/css",
        "/long/xpath",
        "/long/hidden",
        "/tried",
    ];
    let ended = read(&folder, &paths.join(","), &[]);
    let items = items(&folder);
    assert_eq!(items.keys().collect::<Vec<_>>(), ["/other", "/tried"], "{ended}");
    assert_eq!(items["/tried"]["found"], json!([[1, false], [5, false]]), "{ended}");
    for text in [
        "css selector \"p[\" is not valid at byte 1: the selector ends too early",
        "css selector \"a:hoover\" is not valid at byte 1: ",
        "xpath at byte 8 of \"//p[@id=]/text()\": found \"]\", allowed here: ",
        "xpath at byte 0 of \"ends-with(//p, 'x')\": there is no function ends-with(); allowed are ",
        "xpath expression \"//p[. = $wanted]\" cannot be answered: xpath variable $wanted has no value; give it one",
        "regular expression \"^(\\\\d+\" is not valid at byte 1: unclosed group",
        "css selector \"b:is(zz ~ b)\" was given up on this page: ",
        "xpath expression \"//b[count(preceding::*) = count(following::*)]\" was given up on this page: ",
        "the page has no middle",
    ] {
        ended.says(&[text]);
    }
    assert_eq!(logs_with(&folder, "callback failed"), 9, "{ended}");
    assert!(!ended.err.contains("panic"), "{ended}");
    let hidden = ended.err.lines().find(|line| line.contains("the page has no middle")).unwrap();
    assert!(hidden.contains("was given up on this page"), "{hidden}");
}

#[test]
fn a_wrong_engine_or_bound_is_refused_with_what_is_allowed() {
    let folder = Folder::new();
    for (setting, parts) in [
        ("HTML_ENGINE=servo", ["servo", r#""dragline", "scraper", "compare""#]),
        ("HTML_ENGINE=", ["HTML_ENGINE", r#""dragline", "scraper", "compare""#]),
        ("HTML_MAX_DEPTH=7", ["number 7", "from 8 to 1000000"]),
        ("HTML_MAX_DEPTH=deep", ["\"deep\"", "from 8 to 1000000"]),
        ("HTML_MAX_NODES=4294967296", ["number 4294967296", "from 10 to 1000000000"]),
        ("HTML_MAX_ATTRIBUTES=-1", ["number -1", "from 10 to 1000000000"]),
        ("HTML_STEPS_PER_BYTE=0", ["number 0", "from 1 to 1000000"]),
        ("HTML_MAX_DEPHT=9", ["HTML_MAX_DEPHT", "did you mean HTML_MAX_DEPTH?"]),
    ] {
        let said = folder.refused(&["crawl", "bench", "-a", "url=http://127.0.0.1:1/", "-s", setting]);
        for part in parts {
            assert!(said.contains(part), "{setting}: {said}");
        }
    }
}
