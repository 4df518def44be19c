//! The bookshop against its own truth: every page, every item, and the books of both sides.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::books_of_a_job::{Record, items, requests, stat};
use super::harness::{Folder, Shop};

#[test]
fn a_crawl_of_the_bookshop_is_its_truth() {
    let folder = Folder::new();
    let shop = Shop::start(&folder, &["--products", "150"]);
    let argument = format!("url={}", shop.url);
    let (truth, before) = (shop.json("__truth"), shop.json("__stats"));
    assert_eq!(before["requests"], 0);
    let ended = folder
        .run(&["crawl", "bookshop", "-a", &argument, "-s", "RETRY_BACKOFF=0.1", "-s", "RETRY_BACKOFF_MAX=1", "-o", "books.jsonl"])
        .with_code(0);
    let stats = shop.json("__stats");

    pages_are_answered_once(&truth, &requests(&folder));
    items_are_right(&truth, &folder);
    nothing_is_asked_in_vain(&shop, &truth, &stats);

    let asked = stats["requests"].as_u64().unwrap();
    let taken = ended.number("requests", "taken");
    assert_eq!(stat(&folder, "downloader/request_count"), Some(asked), "the shop counts what the crawl counts");
    assert!(ended.number("leases", "reported") >= taken - ended.number("requests", "dropped"), "{ended}");
    assert_eq!(ended.number("leases", "reported"), asked, "one report for each attempt and hop: {ended}");
    assert_eq!(ended.number("leases", "acquired"), ended.number("leases", "released"), "{ended}");
    assert!(requests(&folder).len() as u64 >= taken, "each request has a record");
}

/// The canonical form of the truth: no fragment, the query's pairs sorted.
pub(crate) fn canonical(url: &str) -> String {
    let mut url = url::Url::parse(url).unwrap();
    url.set_fragment(None);
    if let Some(query) = url.query() {
        let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
        pairs.sort();
        url.set_query(Some(&pairs.join("&")));
    }
    url.into()
}

/// Path and query of the canonical form.
pub(crate) fn path_of(url: &str) -> String {
    url::Url::parse(&canonical(url)).unwrap()[url::Position::BeforePath..].to_owned()
}

/// Each address of the truth has one final record, with the status the shop says it ends with.
fn pages_are_answered_once(truth: &Value, records: &[Record]) {
    let mut by_url: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        by_url.entry(canonical(&record.url)).or_default().push(record);
    }
    for page in truth["pages"].as_array().unwrap() {
        let url = page["url"].as_str().unwrap();
        let status = page["status"].as_u64().unwrap();
        let found = by_url.get(url).map_or(&[][..], Vec::as_slice);
        if page["kind"] == "redirect_loop" {
            let ends =
                found.iter().filter(|r| r.error.as_deref().is_some_and(|e| e.contains("max redirections reached"))).count();
            assert!(ends <= 1 && found.len() <= 1, "{url}: {found:?}");
            continue;
        }
        // A hop that was followed is part of the request that led there; one that was not has a record of its own.
        if page["target"].is_string() && found.is_empty() {
            continue;
        }
        assert_eq!(found.len(), 1, "{url}: {found:?}");
        assert_eq!(u64::from(found[0].status), status, "{url}: {found:?}");
        assert_eq!(found[0].success, status == 200, "{url}: {found:?}");
    }
    let known: BTreeSet<&str> = truth["pages"].as_array().unwrap().iter().map(|page| page["url"].as_str().unwrap()).collect();
    for (url, found) in by_url.iter().filter(|(url, _)| !known.contains(url.as_str())) {
        let path = url::Url::parse(url).unwrap().path().to_owned();
        if path == "/robots.txt" {
            assert!(found.len() == 1 && found[0].success, "{found:?}");
            continue;
        }
        let forbidden = path.starts_with("/private/") || path.starts_with("/cart");
        assert!(found.iter().all(|record| record.status == 0), "{url}: {found:?}");
        assert!(forbidden, "{url} is neither in the truth nor disallowed: {found:?}");
    }
    let loops = truth["pages"].as_array().unwrap().iter().filter(|page| page["kind"] == "redirect_loop").count();
    let ended = records.iter().filter(|r| r.error.as_deref().is_some_and(|e| e.contains("max redirections reached"))).count();
    assert!(loops == 0 || ended >= 1, "{loops} addresses of loops, {ended} loops ended");
}

/// Every product and author is there once, right in every field, in the feed as in the store.
fn items_are_right(truth: &Value, folder: &Folder) {
    let feed = folder.items("books.jsonl");
    let expected = expected_items(truth);
    right_items(truth, &feed, &expected);
    let mut stored = items(folder);
    for item in &mut stored {
        assert!(item.as_object_mut().unwrap().remove("_ts").is_some_and(|time| time.is_u64()), "the store adds when: {item}");
    }
    assert_eq!(by_url(&stored, "product"), by_url(&feed, "product"));
    assert_eq!(stored.len(), feed.len());
}

fn by_url(items: &[Value], kind: &str) -> BTreeMap<String, Value> {
    let of_kind = items.iter().filter(|item| item["kind"] == kind);
    let pairs: Vec<(String, Value)> = of_kind.map(|item| (item["url"].as_str().unwrap().to_owned(), item.clone())).collect();
    let count = pairs.len();
    let map: BTreeMap<String, Value> = pairs.into_iter().collect();
    assert_eq!(map.len(), count, "an item is there twice");
    map
}

/// The products' items, by address.
pub(crate) fn expected_items(truth: &Value) -> BTreeMap<String, Value> {
    let products = truth["products"].as_array().unwrap().iter().map(|product| {
        let mut item = json!({"kind": "product"});
        for name in ["url", "upc", "title", "price", "currency", "availability", "stock", "rating", "category"] {
            item[name] = product[name].clone();
        }
        item["author"] = product["author"]["name"].clone();
        item["author_url"] = product["author"]["url"].clone();
        (product["url"].as_str().unwrap().to_owned(), item)
    });
    products.collect()
}

/// Each product and author of the truth is there once, right in every field, and nothing else is.
pub(crate) fn right_items(truth: &Value, items: &[Value], expected: &BTreeMap<String, Value>) {
    let found = by_url(items, "product");
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (url, item) in expected {
        assert_eq!(&found[url], item);
    }
    let pages = truth["pages"].as_array().unwrap().iter().filter(|page| page["kind"] == "author").count();
    let authors = by_url(items, "author");
    assert_eq!(authors.len(), pages);
    for product in truth["products"].as_array().unwrap() {
        let author = &authors[product["author"]["url"].as_str().unwrap()];
        assert_eq!(author["name"], product["author"]["name"]);
        assert_eq!(author["birth_year"], product["author"]["birth_year"]);
    }
    assert_eq!(items.len(), found.len() + authors.len(), "products and authors only");
}

/// Each address was asked for once, those that fail at first as often as that takes, and nothing disallowed at all.
fn nothing_is_asked_in_vain(shop: &Shop, truth: &Value, stats: &Value) {
    let (mut asked, looping) = (asked_for(shop, stats), looping_paths(truth));
    for path in &looping {
        let times = asked.remove(path).unwrap_or(0);
        assert!(times <= 22, "{path} was asked for {times} times");
    }
    assert_eq!(asked, times_asked(truth));
}

/// How often each path must be asked for, but those of redirect loops.
pub(crate) fn times_asked(truth: &Value) -> BTreeMap<String, u64> {
    let attempts = 3;
    let mut expected: BTreeMap<String, u64> = BTreeMap::from([("/robots.txt".to_owned(), 1)]);
    for page in truth["pages"].as_array().unwrap().iter().filter(|page| page["kind"] != "redirect_loop") {
        let times = match page["special"].as_str() {
            Some("always_fails") if page["status"] == 500 => attempts,
            _ => 1 + u64::from(page["first_status"].is_u64()),
        };
        expected.insert(path_of(page["url"].as_str().unwrap()), times);
    }
    expected
}

/// The paths of redirect loops.
pub(crate) fn looping_paths(truth: &Value) -> BTreeSet<String> {
    let looping = truth["pages"].as_array().unwrap().iter().filter(|page| page["kind"] == "redirect_loop");
    looping.map(|page| path_of(page["url"].as_str().unwrap())).collect()
}

/// How often each path was asked for, by its canonical form.
pub(crate) fn asked_for(shop: &Shop, stats: &Value) -> BTreeMap<String, u64> {
    assert_eq!(stats["elsewhere"], 0);
    let mut asked: BTreeMap<String, u64> = BTreeMap::new();
    for (path, counts) in stats["paths"].as_object().unwrap() {
        *asked.entry(path_of(&format!("{}{}", shop.url, path.trim_start_matches('/')))).or_default() +=
            counts["count"].as_u64().unwrap();
    }
    asked
}
